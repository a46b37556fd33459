"""The engine as a process: takes calls one after another, and ticks its samplers while requests run."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from typing import BinaryIO

import torch

from .decoder import Pieces
from .engine import Engine, plain
from .frames import Arrays, Frame, Header, Inbox, write_frame
from .graphs import Memory
from .messages import Refusal
from .place import Place


def take(engine: Engine, frame: Frame) -> None:
    """Answers one frame."""
    header, arrays = frame
    if header['type'] == 'generate':
        engine.generate(header['requests'], arrays)
    elif header['type'] == 'cancel':
        engine.cancel(set(header['ids']))
    else:
        try:
            value, out = engine.call(header['method'], header['args'], arrays)
            engine.send({'type': 'answer', 'id': header['id'], 'value': value}, out)
        except Exception as error:  # a call that fails is answered, and the engine goes on
            if plain(error)['name'] == 'BackendError' and not isinstance(error, (Refusal, ValueError)):
                traceback.print_exc()
            engine.send({'type': 'answer', 'id': header['id'], 'error': plain(error)}, {})


def serve(engine: Engine) -> None:
    """Runs until the other side closes the pipe, which ends the process (`Inbox`)."""
    while True:
        frame = engine.inbox.next(wait=not engine.busy)
        if frame is not None:
            take(engine, frame)
        else:
            engine.tick()


def sender(stream: BinaryIO) -> Callable[[Header, Arrays], None]:
    """Frames from two threads do not mix: answers, and the reader's answers to pings."""
    lock = threading.Lock()

    def send(header: Header, arrays: Arrays) -> None:
        with lock:
            write_frame(stream, header, arrays)

    return send


def place_of(device: torch.device, rows: int, recompute: bool) -> Place:
    """Where to compute. On a card products stay in float32 where they are asked for, and attention is FlexAttention."""
    memory = None
    if device.type == 'cuda':
        device = torch.device('cuda', device.index or 0)
        torch.cuda.set_device(device)
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
        memory = Memory()
    return Place(device, rows, Pieces.on(device), recompute, memory)


def main() -> None:
    options = argparse.ArgumentParser(description='The engine of drmas on PyTorch. drmas starts it.')
    options.add_argument('--device', default='cpu')
    options.add_argument('--threads', type=int, default=1, help='of the processor')
    options.add_argument('--slots', type=int, default=64, help='the most requests that are sampled at once')
    options.add_argument('--rows', type=int, default=1024, help='the most rows of a micro-batch')
    options.add_argument('--recompute', action='store_true', help='keep only the inputs of layers for gradients')
    given = options.parse_args()
    # An interrupt of the terminal reaches this process too; the program that started it decides what ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # What libraries print must not get among the frames.
    sink = os.fdopen(os.dup(1), 'wb', buffering=1 << 16)
    os.dup2(2, 1)
    send = sender(sink)
    try:
        torch.set_num_threads(given.threads)
        place = place_of(torch.device(given.device), given.rows, given.recompute)
        if place.memory is not None:
            place.memory.report = lambda line: send({'type': 'progress', 'message': line}, {})
        device = torch.zeros(1, device=place.device).device
        inbox = Inbox(sys.stdin.buffer.raw, on_ping=lambda: send({'type': 'pong'}, {}))  # type: ignore[union-attr]
        name = torch.cuda.get_device_name(device) if device.type == 'cuda' else device.type
        isa, threads = f'{name}, PyTorch {torch.__version__}', torch.get_num_threads()
        ready = {'type': 'ready', 'kernels': 'torch', 'isa': isa, 'threads': threads}
        send(ready, {})
        serve(Engine(inbox, send, place, given.slots))
    except Exception as error:
        traceback.print_exc()
        send({'type': 'failed', 'error': plain(error)}, {})
        sys.stderr.flush()
        os._exit(1)  # neither graphs nor what compiles them can delay the end
