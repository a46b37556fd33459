"""Weights straight from safetensors files: the engine maps a file, and copies each tensor to its place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

DTYPES = {'F32': torch.float32, 'F16': torch.float16, 'BF16': torch.bfloat16}


@dataclass(frozen=True)
class FilePart:
    """A tensor of a file and its place in a flat buffer: from number `at` on. `stride` is the width of the matrix that
    holds the transposed tensor as a block of its columns; None if the order is the same."""

    path: str
    offset: int
    dtype: str
    shape: list[int]
    at: int
    stride: int | None = None


def read_parts(parts: Sequence[FilePart], size: int) -> Tensor:
    """The flat buffer [size]. Its number type is bfloat16 if every matrix in the files is, else float32."""
    narrow = all(part.dtype == 'BF16' for part in parts)
    flat = torch.zeros(size, dtype=torch.bfloat16 if narrow else torch.float32)
    for part in parts:
        count = int(np.prod(part.shape))
        dtype = DTYPES[part.dtype]
        mapped = np.memmap(part.path, np.uint8, 'r', part.offset, (count * dtype.itemsize,))
        tensor = torch.frombuffer(mapped, dtype=dtype, count=count).view(part.shape)
        if part.stride is None:
            flat[part.at : part.at + count] = tensor.reshape(-1)
        else:
            outputs, inputs = part.shape
            flat.as_strided((inputs, outputs), (part.stride, 1), part.at).copy_(tensor.t())
    return flat
