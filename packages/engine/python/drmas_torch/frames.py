"""Frames over a pipe, in both directions.

A frame: the four bytes `drms`, u32 bytes of the header, u64 bytes of the arrays, the header as JSON, the arrays. The
header's list `arrays` has their names, number types and lengths; each array is padded to 8 bytes. Little-endian.
JSON has no word for NaN, so numbers that may not be finite travel in arrays.
"""

from __future__ import annotations

import json
import os
import queue
import struct
import threading
from collections.abc import Callable, Mapping
from io import RawIOBase
from typing import Any, BinaryIO

import numpy as np

MAGIC = b'drms'
HEAD = struct.Struct('<4sIQ')
DTYPES = {'f32': np.float32, 'i32': np.int32, 'u8': np.uint8, 'u16': np.uint16, 'f64': np.float64}
NAMES = {np.dtype(dtype): name for name, dtype in DTYPES.items()}

Header = dict[str, Any]
Arrays = dict[str, np.ndarray]
Frame = tuple[Header, Arrays]


class FrameError(Exception):
    """The bytes are no frame."""


def read_exactly(stream: RawIOBase, size: int) -> bytearray:
    """@throws EOFError when the stream ends before"""
    data = bytearray(size)
    view, at = memoryview(data), 0
    while at < size:
        count = stream.readinto(view[at:])
        if not count:
            raise EOFError
        at += count
    return data


def read_frame(stream: RawIOBase) -> Frame:
    """@throws FrameError, or EOFError at the end"""
    magic, header_bytes, array_bytes = HEAD.unpack(read_exactly(stream, HEAD.size))
    if magic != MAGIC:
        raise FrameError(f'expected a frame, got {magic!r}')
    header = json.loads(bytes(read_exactly(stream, header_bytes)))
    payload, at = read_exactly(stream, array_bytes), 0
    arrays: Arrays = {}
    for entry in header.pop('arrays'):
        arrays[entry['name']] = array = np.frombuffer(payload, DTYPES[entry['dtype']], entry['length'], at)
        at += array.nbytes + -array.nbytes % 8
    return header, arrays


def write_frame(stream: BinaryIO, header: Header, arrays: Mapping[str, np.ndarray] | None = None) -> None:
    """An error other than that of the stream comes before the first byte is written."""
    flat = {name: np.ascontiguousarray(array).reshape(-1) for name, array in (arrays or {}).items()}
    listed = [{'name': name, 'dtype': NAMES[array.dtype], 'length': array.size} for name, array in flat.items()]
    text = json.dumps({**header, 'arrays': listed}, allow_nan=False).encode()
    padding = {name: -array.nbytes % 8 for name, array in flat.items()}
    stream.write(HEAD.pack(MAGIC, len(text), sum(a.nbytes + padding[n] for n, a in flat.items())) + text)
    for name, array in flat.items():
        if array.size:
            stream.write(array.data.cast('B'))
        stream.write(bytes(padding[name]))
    stream.flush()


class Inbox:
    """Frames that a thread reads, so that a tick need not wait for the pipe. The end of the pipe ends the process at
    once, whatever it computes: the program that it worked for is gone."""

    def __init__(self, stream: RawIOBase, on_ping: Callable[[], None] | None = None) -> None:
        self._frames: queue.Queue[Frame | Exception] = queue.Queue()
        self._later: list[Frame] = []
        self._on_ping = on_ping
        threading.Thread(target=self._read, args=(stream,), daemon=True).start()

    def _read(self, stream: RawIOBase) -> None:
        try:
            while True:
                frame = read_frame(stream)
                if frame[0].get('type') == 'ping' and self._on_ping is not None:
                    self._on_ping()
                else:
                    self._frames.put(frame)
        except EOFError:
            os._exit(0)
        except Exception as error:  # whatever it is: without its reader the engine would wait for ever
            self._frames.put(error)

    def _take(self, wait: bool) -> Frame:
        frame = self._frames.get(block=wait)
        if isinstance(frame, Exception):
            self._frames.put(frame)  # for the next one who asks: no frame comes any more
            raise frame
        return frame

    def next(self, wait: bool) -> Frame | None:
        """The next frame; None if there is none yet and `wait` is false. @throws what ended the reader"""
        if self._later:
            return self._later.pop(0)
        try:
            return self._take(wait)
        except queue.Empty:
            return None

    def until(self, kind: str) -> Frame:
        """The next frame of this type; others are kept for later, in order. @throws what ended the reader"""
        while True:
            frame = self._take(wait=True)
            if frame[0].get('type') == kind:
                return frame
            self._later.append(frame)
