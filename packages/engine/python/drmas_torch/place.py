"""Where an engine computes, and trees as the rows of one forward pass there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from .attention import BLOCK, ROWS, Cache, CacheRows, Mixer, Segment, by_sequence, by_tree, doubled, padded
from .config import Config, Shapes, size_of, views
from .decoder import Pieces
from .graphs import Memory
from .tree import Tree

LARGE = 1024
"""On a card a batch of more rows has a multiple of so many, and a smaller one a power of 2: few sizes to compile and
record."""


@dataclass(frozen=True)
class Sizes:
    """Of a packed batch: its rows, the keys before them that are read from a cache, and the keys that a cache keeps. On
    a card the last are a power of 2 times the rows, so that few sizes are to compile and record."""

    rows: int
    before: int
    written: int
    taps: int

    @property
    def shapes(self) -> Shapes:
        """Key k is seen by rows begin[k] <= q < end[k]. `adapter`: the number of each row's in the bank. `writes` and
        `reads` are slots and places of a cache; the first line of `writes` is the row."""
        rows, keys = self.rows, self.before + self.rows
        return [
            ('tokens', (rows,)),
            ('adapter', (rows,)),
            ('positions', (keys,)),
            ('begin', (keys,)),
            ('end', (keys,)),
            ('ancestors', (max(0, self.taps - 1), rows)),
            ('writes', (3, self.written)),
            ('reads', (2, self.before)),
        ]


@dataclass(frozen=True)
class Packed:
    """Trees as the rows of one forward pass. Its numbers lie in one tensor, so that one copy brings them to a card.
    Rows of padding see only themselves."""

    sizes: Sizes
    numbers: Tensor
    segments: Sequence[Segment]


@dataclass(frozen=True)
class Place:
    """`rows`: the most rows of a micro-batch. `recompute`: keep only the inputs of
    layers for the backward pass. `memory`: that of recorded passes, for a card."""

    device: torch.device
    rows: int
    pieces: Pieces
    recompute: bool
    memory: Memory | None = None

    def few(self, count: int, least: int) -> int:
        """So many or some more: a multiple of `least`, on a card one of few sizes. There it has two blocks at least,
        because PyTorch compiles sizes of 1 apart."""
        if self.pieces.flex is None or count == 0:
            return padded(count, least)
        return padded(count, LARGE) if count > LARGE else doubled(count, 2 * BLOCK)

    def packed(
        self,
        config: Config,
        trees: Sequence[Tree],
        slots: Sequence[Sequence[int]] = (),
        adapters: Sequence[int] = (),
    ) -> Packed:
        """`slots`: those of each tree's sequences in a cache that keeps their rows; the tokens before a tree are in the
        first of them. `adapters`: those of the trees."""
        before, rows = sum(tree.before for tree in trees), sum(tree.rows for tree in trees)
        written = sum(len(path) for tree in trees for path in tree.paths) if slots else 0
        some = self.few(rows, ROWS)
        if self.pieces.flex is not None and written:
            written = some * doubled(-(-written // some), 1)
        sizes = Sizes(some, self.few(before, 1), written, config.taps)
        numbers = np.zeros(size_of(sizes.shapes), np.int64)
        to = {name: part.numpy() for name, part in views(torch.from_numpy(numbers), sizes.shapes).items()}
        to['adapter'][:] = -1
        to['begin'][sizes.before :], to['end'][sizes.before :] = np.arange(sizes.rows), np.arange(sizes.rows) + 1
        paths: list[np.ndarray] = []
        segments: list[Segment] = []
        cached, first, kept = 0, 0, 0
        for t, tree in enumerate(trees):
            past, own = slice(cached, cached + tree.before), slice(first, first + tree.rows)
            keys = slice(sizes.before + own.start, sizes.before + own.stop)
            to['begin'][past], to['end'][past] = own.start, own.stop
            to['positions'][past] = np.arange(tree.before)
            to['tokens'][own] = tree.tokens
            to['end'][keys] = tree.end + first
            to['positions'][keys] = tree.positions
            ways = [np.concatenate((np.arange(cached, cached + tree.before), path + keys.start)) for path in tree.paths]
            segments += [Segment(branch.first + first, branch.count, ways[branch.sequence]) for branch in tree.branches]
            paths += ways
            if slots:
                to['adapter'][own] = adapters[t]
                to['reads'][0, past] = slots[t][0]
                to['reads'][1, past] = np.arange(tree.before)
                for path, slot in zip(tree.paths, slots[t], strict=True):
                    places = np.arange(len(path)) + tree.before
                    to['writes'][:, kept : kept + len(path)] = path + first, np.full(len(path), slot), places
                    kept += len(path)
            cached, first = cached + tree.before, first + tree.rows
        if kept:  # what is written twice is written alike
            to['writes'][:, kept:] = to['writes'][:, :1]
        to['ancestors'][:] = ancestors_of(paths, sizes.before + sizes.rows, config.taps)[:, sizes.before :]
        return Packed(sizes, torch.from_numpy(numbers), segments)

    def mixer(
        self, config: Config, packed: Packed, numbers: Tensor, cache: Cache | None = None
    ) -> tuple[Tensor, Tensor, Mixer]:
        """Tokens and positions [R] of a packed batch, and its mixer. `numbers` are those of the batch on this device.
        Rows read keys of the cache, then their own."""
        sizes = packed.sizes
        of = views(numbers, sizes.shapes)
        if self.pieces.flex is None:
            attention = by_sequence(config, packed.segments, self.device)
        else:
            attention = by_tree(config, of['begin'], of['end'], of['positions'], sizes.rows, self.pieces.flex)
        writes, reads = CacheRows(*of['writes']), CacheRows(slice(sizes.before), *of['reads'])
        mixer = Mixer(config, attention, of['ancestors'], cache, writes, reads)
        return of['tokens'], of['positions'][sizes.before :], mixer


def ancestors_of(paths: Sequence[np.ndarray], keys: int, taps: int) -> np.ndarray:
    """Where among so many keys the ones 1 to taps - 1 tokens before each are, [taps - 1, keys]; -1: nowhere."""
    ancestors = np.full((max(0, taps - 1), keys), -1, np.int64)
    for path in paths:
        for back in range(1, taps):
            ancestors[back - 1][path[back:]] = path[: len(path) - back]
    return ancestors
