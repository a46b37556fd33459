"""Low-rank adapters: one in training, and a bank of several for rows of any of them in one product.

Both multiply the same matrices: A padded to a multiple of `WIDTH` columns, and the B's as diagonal blocks. So a row
gets the same bits from an adapter alone as from one in a bank.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from .attention import padded
from .config import MATRICES, AdapterSettings, Config
from .decoder import Adds

WIDTH = 16


def joined(
    config: Config, settings: AdapterSettings, tensors: dict[str, Tensor], layer: int, matrix: str
) -> tuple[Tensor, Tensor]:
    """A [inputs, w] and (alpha / rank) times the B's as blocks [w, outputs] of a matrix whose adapter has rank n ·
    rank <= w."""
    name = f'layers.{layer}.{matrix}'
    parts = config.matrix(layer, matrix)[1]
    total = sum(outputs for _, outputs in parts)
    blocks, column = [], 0
    for projection, outputs in parts:
        if settings.adapts(projection):
            up = tensors[f'{name}.B.{projection}'] * settings.scale
            blocks.append(F.pad(up, (column, total - column - outputs)))
        column += outputs
    down = tensors[f'{name}.A']
    more = padded(down.shape[1], WIDTH) - down.shape[1]
    return F.pad(down, (0, more)), F.pad(torch.cat(blocks), (0, 0, 0, more))


def adapter_adds(config: Config, settings: AdapterSettings, tensors: dict[str, Tensor]) -> Adds:
    """What one adapter adds, in place. Its weights are float32; products are in the number type of x."""

    def adds(layer: int, matrix: str, x: Tensor, y: Tensor) -> Tensor:
        if f'layers.{layer}.{matrix}.A' not in tensors:
            return y
        down, up = joined(config, settings, tensors, layer, matrix)
        return y.addmm_(x @ down.to(x.dtype), up.to(x.dtype))

    return adds


class AdapterBank:
    """Adapters of one base and one rank side by side: x A of all of them, the columns of others set to 0, times B of
    all.

    It needs no gather and no kernel of ours, and one CUDA graph serves every mix of agents.
    """

    def __init__(self, config: Config, settings: AdapterSettings, device: torch.device, dtype: torch.dtype) -> None:
        self.config, self.settings, self.count = config, settings, 0
        self.A: dict[tuple[int, str], Tensor] = {}
        self.B: dict[tuple[int, str], Tensor] = {}
        self._widths: dict[tuple[int, str], int] = {}
        for layer in range(config.layers):
            for matrix in MATRICES:
                width = padded(len(settings.adapted(config, layer, matrix)) * settings.rank, WIDTH)
                if width:
                    inputs, parts = config.matrix(layer, matrix)
                    self._widths[layer, matrix] = width
                    self.A[layer, matrix] = torch.zeros(inputs, 0, device=device, dtype=dtype)
                    self.B[layer, matrix] = torch.zeros(0, sum(size for _, size in parts), device=device, dtype=dtype)

    def resize(self, count: int) -> None:
        """Makes room for more adapters, and keeps those that are there. If memory fails, the next call goes on."""
        for key, width in self._widths.items():
            wanted = count * width
            self.A[key] = F.pad(self.A[key], (0, wanted - self.A[key].shape[1]))
            self.B[key] = F.pad(self.B[key], (0, 0, 0, wanted - self.B[key].shape[0]))
        self.count = count

    def load(self, index: int, tensors: dict[str, Tensor]) -> None:
        for key, width in self._widths.items():
            own = slice(index * width, (index + 1) * width)
            self.A[key][:, own], self.B[key][own] = joined(self.config, self.settings, tensors, *key)

    def adds(self, adapters: Tensor) -> Adds:
        """What its adapter adds to each row, in place: the one of this number [R], or none for -1."""
        own: dict[int, Tensor] = {}
        for key, width in self._widths.items():
            if width not in own:
                owner = torch.arange(self.count, device=adapters.device).repeat_interleave(width)
                own[width] = (owner[None, :] == adapters[:, None]).to(self.A[key].dtype)

        def adds(layer: int, matrix: str, x: Tensor, y: Tensor) -> Tensor:
            width = self._widths.get((layer, matrix))
            if width is None:
                return y
            return y.addmm_((x @ self.A[layer, matrix]) * own[width], self.B[layer, matrix])

        return adds
