"""Starts the worker: `python /path/to/drmas_torch`. Frames come on stdin and go to stdout."""

import os
import sys

if __package__ in (None, ''):
    # The package's folder is not a place to import from: `tree` and `head` are common names.
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [path for path in sys.path if os.path.abspath(path or '.') != here]
    sys.path.insert(0, os.path.dirname(here))

from drmas_torch.worker import main

if __name__ == '__main__':
    main()
