"""The weights of models that do not train: from safetensors files, which are mapped, or from memory."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from .config import Config, views
from .decoder import Decoder, Pieces, Ropes
from .messages import Part

DTYPES = {'F32': torch.float32, 'F16': torch.float16, 'BF16': torch.bfloat16}


class Base:
    """A model that does not train, as decoders with products in one number type or another. Weights from files are
    read for each of them, one tensor at a time; weights from memory are dropped after the first."""

    def __init__(
        self, config: Config, ropes: Ropes, pieces: Pieces, device: torch.device, weights: np.ndarray | Sequence[Part]
    ) -> None:
        self.config, self.ropes, self.pieces, self.device = config, ropes, pieces, device
        self._weights: Tensor | Sequence[Part] | None = (
            torch.from_numpy(weights) if isinstance(weights, np.ndarray) else weights
        )
        self._decoders: dict[torch.dtype, Decoder] = {}
        self._hash: str | None = None

    def decoder(self, dtype: torch.dtype) -> Decoder:
        """With products in this number type; vectors stay in float32."""
        if dtype not in self._decoders:
            if isinstance(self._weights, Tensor) and dtype != torch.float32:
                self.hash()  # of the weights before they are rounded
            tensors = {
                name: tensor.to(self.device, dtype if tensor.dim() == 2 else torch.float32, copy=True)
                for name, tensor in self._tensors()
            }
            self._decoders[dtype] = Decoder(self.config, tensors, self.ropes, dtype, self.pieces)
            if isinstance(self._weights, Tensor):
                self._weights = None
        return self._decoders[dtype]

    def hash(self) -> str:
        """SHA-256 of the weights as float32 in the order of the flat buffer."""
        if self._hash is None:
            digest = hashlib.sha256()
            for _, tensor in self._tensors():
                for part in tensor.reshape(-1).split(2**22):
                    digest.update(part.float().cpu().numpy().data)
            self._hash = digest.hexdigest()
        return self._hash

    def flat(self) -> np.ndarray:
        """All weights as float32, one tensor after another."""
        return np.concatenate([tensor.reshape(-1).cpu().float().numpy() for _, tensor in self._tensors()])

    def _tensors(self) -> Iterator[tuple[str, Tensor]]:
        """The tensors in the order of the flat buffer."""
        if isinstance(self._weights, Tensor):
            yield from views(self._weights, self.config.shapes()).items()
        elif self._weights is None:
            yield from next(iter(self._decoders.values())).tensors.items()
        else:
            parts, at = sorted(self._weights, key=lambda part: part['at']), 0
            for name, shape in self.config.shapes():
                end = at + math.prod(shape)
                own = [part for part in parts if at <= part['at'] < end]
                yield name, read_parts(own, at, end - at, self.device).view(shape)
                at = end


def read_parts(parts: Sequence[Part], begin: int, size: int, device: torch.device) -> Tensor:
    """The numbers [size] of a flat buffer from `begin` on; bfloat16 if they are so in the files, else float32. They are
    transposed on the device."""
    narrow = bool(parts) and all(part['dtype'] == 'BF16' for part in parts)
    flat = torch.zeros(size, dtype=torch.bfloat16 if narrow else torch.float32, device=device)
    for part in parts:
        dtype, at = DTYPES[part['dtype']], part['at'] - begin
        count = math.prod(part['shape'])
        mapped = np.memmap(part['path'], np.uint8, 'c', part['offset'], (count * dtype.itemsize,))
        tensor = torch.frombuffer(mapped, dtype=dtype, count=count).view(part['shape']).to(device)
        stride = part.get('stride')
        if stride is None:
            flat[at : at + count] = tensor.reshape(-1)
        else:
            outputs, inputs = part['shape']
            # To transpose by itself is several times as fast on a processor.
            flat.as_strided((inputs, outputs), (stride, 1), at).copy_(tensor.t().contiguous())
    return flat
