"""How a peer talks to the benchmark: its settings are a line of JSON on stdin, its answers lines of JSON on stdout."""
import json
import os
import sys
import time


def settings():
    return json.loads(sys.stdin.readline())


def serve(about, repeat):
    """Says that it is ready, then answers each further line on stdin with repeat(): a dict with `amount`, `seconds` and whatever else is worth keeping."""
    answers = os.fdopen(os.dup(1), 'w', buffering=1)
    os.dup2(2, 1)  # whatever libraries print must not mix with the answers
    answers.write(json.dumps(about) + '\n')
    for _ in sys.stdin:
        answers.write(json.dumps(repeat()) + '\n')


def for_seconds(least, step):
    """Calls step() until `least` seconds are over, at least once: (calls, seconds)."""
    start, calls = time.perf_counter(), 0
    while calls == 0 or time.perf_counter() - start < least:
        step()
        calls += 1
    return calls, time.perf_counter() - start
