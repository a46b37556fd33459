"""Where an engine computes, and trees as the rows of one forward pass there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from .attention import BLOCK, ROWS, Cache, CacheRows, Mixer, Segment, by_sequence, by_tree, padded
from .config import Config
from .decoder import Pieces
from .tree import Tree

ROWS_ON_A_CARD = 1024
"""Rows of a batch that trains on a card are a multiple of this: few lengths to compile for."""


@dataclass(frozen=True)
class Place:
    """`rows`: the most rows of a micro-batch. `flex`: FlexAttention, for a card. `recompute`: keep only the inputs of
    layers for the backward pass."""

    device: torch.device
    rows: int
    pieces: Pieces
    flex: Callable[..., Tensor] | None
    recompute: bool

    def training(self, config: Config, tree: Tree) -> tuple[Tensor, Tensor, Mixer]:
        """Tokens and positions [R] of a tree, and its mixer."""
        return self._packed(config, [tree], ROWS if self.flex is None else ROWS_ON_A_CARD)

    def prefill(
        self, config: Config, trees: Sequence[Tree], slots: Sequence[Sequence[int]], cache: Cache
    ) -> tuple[Tensor, Tensor, Mixer]:
        """The same for prompts. `slots`: those of each tree's sequences, which keep their rows. The tokens before a
        tree are in the first of them."""
        return self._packed(config, trees, ROWS if self.flex is None else BLOCK, slots, cache)

    def _packed(
        self,
        config: Config,
        trees: Sequence[Tree],
        multiple: int,
        slots: Sequence[Sequence[int]] = (),
        cache: Cache | None = None,
    ) -> tuple[Tensor, Tensor, Mixer]:
        """Rows read keys: those of the cache, then their own. Rows of padding see only themselves."""
        before = padded(sum(tree.before for tree in trees), 1 if self.flex is None else BLOCK)
        rows = padded(sum(tree.rows for tree in trees), multiple)
        # Key k is seen by rows begin[k] <= q < end[k].
        begin, end = (np.concatenate((np.zeros(before, np.int64), np.arange(rows) + more)) for more in (0, 1))
        tokens, positions = np.zeros(rows, np.int64), np.zeros(before + rows, np.int64)
        read = np.zeros((2, before), np.int64)
        written = [np.zeros((3, 0), np.int64)]
        paths: list[np.ndarray] = []
        segments: list[Segment] = []
        cached, first = 0, 0
        for t, tree in enumerate(trees):
            past, own = np.arange(cached, cached + tree.before), np.arange(first, first + tree.rows)
            begin[past], end[past], positions[past] = first, first + tree.rows, np.arange(tree.before)
            tokens[own], end[before + own], positions[before + own] = tree.tokens, tree.end + first, tree.positions
            keys = [np.concatenate((past, path + first + before)) for path in tree.paths]
            segments += [Segment(branch.first + first, branch.count, keys[branch.sequence]) for branch in tree.branches]
            paths += keys
            if cache is not None:
                read[0, past], read[1, past] = slots[t][0], np.arange(tree.before)
                for path, slot in zip(tree.paths, slots[t], strict=True):
                    where = np.arange(len(path)) + tree.before
                    written.append(np.stack((path + first, np.full(len(path), slot), where)))
            cached, first = cached + tree.before, first + tree.rows
        if self.flex is None:
            attention = by_sequence(config, segments, self.device)
        else:
            attention = by_tree(config, self._on(begin), self._on(end), self._on(positions), rows, self.flex)
        ancestors = self._on(ancestors_of(paths, before + rows, config.taps)[:, before:])
        writes = CacheRows(*self._on(np.concatenate(written, 1)))
        reads = CacheRows(slice(before), *self._on(read))
        mixer = Mixer(config, attention, ancestors, cache, writes, reads)
        return self._on(tokens), self._on(positions[before:]), mixer

    def _on(self, array: np.ndarray) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(self.device)


def ancestors_of(paths: Sequence[np.ndarray], keys: int, taps: int) -> np.ndarray:
    """Where among so many keys the ones 1 to taps - 1 tokens before each are, [taps - 1, keys]; -1: nowhere."""
    ancestors = np.full((max(0, taps - 1), keys), -1, np.int64)
    for path in paths:
        for back in range(1, taps):
            ancestors[back - 1][path[back:]] = path[: len(path) - back]
    return ancestors
