"""Sequences packed as a tree: tokens at the beginning that several sequences have in common are one row each.

Rows are in depth-first order. So row k is an ancestor of row q, or q itself, exactly if k <= q < end[k]: the whole
mask of attention is one number a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


def common_prefix(a: np.ndarray, b: np.ndarray) -> int:
    """The number of tokens that both begin with."""
    length = min(len(a), len(b))
    different = np.flatnonzero(a[:length] != b[:length])
    return int(different[0]) if len(different) else length


@dataclass(frozen=True)
class Branch:
    """The rows that a sequence has and no sequence before it: they are neighbours."""

    sequence: int
    first: int
    count: int


class Tree:
    """`tokens`, `positions`, `end` [R]; `paths[i]`: the row of each token of sequence i. `before` tokens come before
    each sequence, and have no row."""

    def __init__(self, sequences: Sequence[np.ndarray], before: int = 0) -> None:
        self.before = before
        order = order_of_tokens(sequences)
        tokens: list[np.ndarray] = []
        positions: list[np.ndarray] = []
        self.branches: list[Branch] = []
        self.paths: list[np.ndarray] = [np.zeros(0, np.int64)] * len(sequences)
        self.rows = 0
        last, path = np.zeros(0, np.int32), np.zeros(0, np.int64)
        ends = np.zeros(sum(len(sequence) for sequence in sequences), np.int64)
        for i in order:
            sequence = sequences[i]
            common = common_prefix(last, sequence)
            ends[path[common:]] = self.rows
            count = len(sequence) - common
            new = np.arange(self.rows, self.rows + count)
            path = np.concatenate((path[:common], new))
            tokens.append(sequence[common:])
            positions.append(np.arange(common, len(sequence)) + before)
            if count:
                self.branches.append(Branch(i, self.rows, count))
            self.rows += count
            self.paths[i] = path
            last = sequence
        ends[path] = self.rows
        self.tokens = np.concatenate([*tokens, np.zeros(0, np.int32)]).astype(np.int64)
        self.positions = np.concatenate([*positions, np.zeros(0, np.int64)])
        self.end = ends[: self.rows]


def order_of_tokens(sequences: Sequence[np.ndarray]) -> list[int]:
    """The sequences' numbers in the order of their tokens: those that begin alike are neighbours."""
    return sorted(range(len(sequences)), key=lambda i: sequences[i].tolist())


def groups_of(sequences: Sequence[np.ndarray], most_rows: int) -> list[list[int]]:
    """Sequences in groups whose trees have at most `most_rows` rows; a longer sequence is a group by itself."""
    groups: list[list[int]] = []
    rows, before = most_rows + 1, np.zeros(0, np.int32)
    for i in order_of_tokens(sequences):
        sequence = sequences[i]
        if len(sequence) == 0:
            continue
        new = len(sequence) - common_prefix(before, sequence)
        if rows + new > most_rows:
            groups.append([])
            rows, new = 0, len(sequence)
        groups[-1].append(i)
        rows += new
        before = sequence
    return groups
