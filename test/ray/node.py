"""
Runs a node of a Ray cluster in this process.

usage: node.py <flags of `ray start`>

The node ends when standard input does, with its process group: a test that dies leaves nothing running. Jobs, which have
groups of their own, end when what watches over them is gone.
"""
import os
import signal
import sys
import threading

from ray.scripts.scripts import main


def end_with_input():
    while os.read(0, 1):
        pass
    os.killpg(os.getpgid(0), signal.SIGKILL)


threading.Thread(target=end_with_input, daemon=True).start()
sys.argv = ["ray", "start", "--block", *sys.argv[1:]]
main()
