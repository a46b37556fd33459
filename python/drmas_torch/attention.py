"""How rows read the rows before them: the mixers of training and prefill, by sequence and by FlexAttention.

On a processor each sequence of a tree attends by itself, over its own keys in the order of their positions. Rows and
keys are padded to fixed multiples. So what a row gets depends on its own sequence alone, to the last bit, whatever
else is in the batch; the sampler does the same. On a card all rows of a tree attend at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from .config import Config
from .tree import Tree

ROWS, KEYS = 8, 64
"""Products of so many rows, and attention over so many keys, give each row the same bits in any company."""

BLOCK = 128
"""FlexAttention skips blocks of so many rows and keys."""


def padded(count: int, multiple: int) -> int:
    return -(-count // multiple) * multiple


def attend(q: Tensor, k: Tensor, v: Tensor, sees: Tensor, scale: float) -> Tensor:
    """Softmax attention of q [..., M, d] over k and v [..., L, d]; `sees` [..., M, L] has at least one key a row."""
    scores = (q @ k.transpose(-1, -2)).float() * scale
    return torch.softmax(scores.masked_fill(~sees, -torch.inf), -1).to(v.dtype) @ v


@dataclass(frozen=True)
class CacheRows:
    """Rows of a batch with their slots and positions in the cache, [N] each."""

    rows: Tensor
    slots: Tensor
    places: Tensor


class Cache:
    """Keys and values of the tokens so far: [slots, kv heads, capacity, d] for each layer that attends, and for a
    layer that convolves its inputs [slots, capacity, width]."""

    def __init__(self, config: Config, slots: int, capacity: int, device: torch.device, dtype: torch.dtype) -> None:
        self.config, self.slots, self.capacity = config, slots, capacity

        def zeros(*shape: int) -> Tensor:
            return torch.zeros(shape, device=device, dtype=dtype)

        attending = [layer for layer in range(config.layers) if layer not in config.convolving]
        self.keys = {layer: zeros(slots, config.kv_heads, capacity, config.head_dim) for layer in attending}
        self.values = {layer: zeros(slots, config.kv_heads, capacity, config.head_dim) for layer in attending}
        self.inputs = {layer: zeros(slots, capacity, config.width) for layer in config.convolving}

    @staticmethod
    def bytes_of_position(config: Config, dtype: torch.dtype) -> int:
        attending = config.layers - len(config.convolving)
        numbers = 2 * attending * config.kv_heads * config.head_dim + len(config.convolving) * config.width
        return numbers * dtype.itemsize

    def adopt(self, other: Cache) -> None:
        """Takes over the contents of a smaller cache."""
        for mine, theirs in ((self.keys, other.keys), (self.values, other.values)):
            for layer, old in theirs.items():
                mine[layer][: other.slots, :, : other.capacity] = old
        for layer, old in other.inputs.items():
            self.inputs[layer][: other.slots, : other.capacity] = old

    def write(self, layer: int, at: CacheRows, k: Tensor, v: Tensor) -> None:
        """Keeps the keys and values of rows."""
        self.keys[layer][at.slots, :, at.places] = k[at.rows]
        self.values[layer][at.slots, :, at.places] = v[at.rows]

    def write_inputs(self, layer: int, at: CacheRows, x: Tensor) -> None:
        """Keeps the inputs of a layer that convolves."""
        self.inputs[layer][at.slots, at.places] = x[at.rows]

    def copy(self, source: int, target: int, length: int) -> None:
        """Copies the first `length` positions from one slot to another."""
        for layers in (self.keys, self.values):
            for tensor in layers.values():
                tensor[target, :, :length] = tensor[source, :, :length]
        for tensor in self.inputs.values():
            tensor[target, :length] = tensor[source, :length]


@dataclass(frozen=True)
class Segment:
    """Neighbouring rows of one sequence, up to its last row. `path`: the rows of its tokens that are in the batch. If
    it has a slot of the cache, its tokens before, `cached` of them, are there, and its rows are written there too."""

    first: int
    count: int
    path: np.ndarray
    cached: int = 0
    slot: int | None = None

    @property
    def length(self) -> int:
        return self.cached + len(self.path)


def convolved(x: Tensor, kernel: Tensor, before: Callable[[int], Tensor]) -> Tensor:
    """x [R, width] with a causal kernel [taps, width]; `before(n)` gives the inputs n tokens before each row."""
    y = x * kernel[-1]
    for back in range(1, len(kernel)):
        y = y + before(back) * kernel[len(kernel) - 1 - back]
    return y


def inputs_before(inputs: Tensor, slots: Tensor, positions: Tensor, back: int) -> Tensor:
    """The inputs in the cache `back` tokens before rows of these slots and positions; 0 where there is none."""
    place = positions - back
    return inputs[slots, place.clamp(min=0)] * (place >= 0)[:, None]


@dataclass(frozen=True)
class Group:
    """Segments that attend in one call: B of them with at most n rows each, over L keys each."""

    rows: Tensor  # [B, n], padded by row 0
    sees: Tensor  # [B, 1, n · group, L]
    paths: Tensor | None  # [B, L], padded by row 0; None if the keys are in the cache
    slots: Tensor | None  # [B]
    real: Tensor  # the numbers of the rows that are no padding, among B · n


MOST_SCORES = 2**25
"""The most scores that a call of attention computes at a time."""


class SequenceMixer:
    """Each sequence of a tree attends by itself: `positions` [R] of its rows, segments of the sequences, and for a
    prefill the cache. `ancestors` as in `TreeMixer`."""

    def __init__(
        self,
        config: Config,
        positions: Tensor,
        segments: Sequence[Segment],
        ancestors: Tensor | None = None,
        cache: Cache | None = None,
        writes: CacheRows | None = None,
    ) -> None:
        self.config, self.positions, self.cache, self.writes = config, positions, cache, writes
        self.ancestors = ancestors
        self.groups = {
            window: [self._group(some, window) for some in self._alike(segments)]
            for window in {config.window_of(layer) for layer in range(config.layers) if layer not in config.convolving}
        }
        slots = np.zeros(len(positions), np.int64)
        for s in segments:
            slots[s.first : s.first + s.count] = s.slot or 0
        self.slots = torch.from_numpy(slots).to(positions.device)

    def _alike(self, segments: Sequence[Segment]) -> list[list[Segment]]:
        """Segments in groups of equal padded lengths."""
        by_size: dict[tuple[int, int], list[Segment]] = {}
        for s in segments:
            by_size.setdefault((padded(s.count, ROWS), padded(s.length, KEYS)), []).append(s)
        groups = []
        for (rows, keys), some in by_size.items():
            most = max(1, MOST_SCORES // (rows * keys * self.config.heads))
            groups += [some[first : first + most] for first in range(0, len(some), most)]
        return groups

    def _group(self, segments: Sequence[Segment], window: int | None) -> Group:
        device = self.positions.device
        n, keys = padded(segments[0].count, ROWS), padded(segments[0].length, KEYS)
        rows = np.zeros((len(segments), n), np.int64)
        first = np.array([s.length - s.count for s in segments])
        counts = np.array([s.count for s in segments])
        for i, s in enumerate(segments):
            rows[i, : s.count] = np.arange(s.first, s.first + s.count)
        cached = segments[0].slot is not None
        paths = None if cached else np.stack([np.pad(s.path, (0, keys - len(s.path))) for s in segments])
        back = (first[:, None] + np.arange(n))[:, :, None] - np.arange(keys)
        sees = (back >= 0) & (back < (window or keys + 1))
        real = np.arange(n)[None] < counts[:, None]
        sees[~real] = np.arange(keys) == 0  # rows of padding see something, so that nothing is NaN
        group = self.config.heads // self.config.kv_heads
        seen = torch.from_numpy(sees).to(device).repeat_interleave(group, 1)[:, None]
        slots = torch.tensor([s.slot for s in segments], device=device) if cached else None
        return Group(
            torch.from_numpy(rows).to(device),
            seen,
            None if paths is None else torch.from_numpy(paths).to(device),
            slots,
            torch.from_numpy(np.flatnonzero(real)).to(device),
        )

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        cache, writes = self.cache, self.writes
        if cache is not None and writes is not None:
            cache.write(layer, writes, k, v)
        parts, rows = [], []
        for group in self.groups[self.config.window_of(layer)]:
            batch, n = group.rows.shape
            queries = q[group.rows].view(batch, n, self.config.kv_heads, -1, q.shape[-1])
            queries = queries.transpose(1, 2).reshape(batch, self.config.kv_heads, -1, q.shape[-1])
            if group.paths is not None:
                keys, values = (part[group.paths].transpose(1, 2) for part in (k, v))
            elif cache is not None:
                length = group.sees.shape[-1]
                keys, values = (part[layer][group.slots, :, :length] for part in (cache.keys, cache.values))
            out = attend(queries, keys, values, group.sees, self.config.score_scale)
            out = (
                out.view(batch, self.config.kv_heads, n, -1, q.shape[-1])
                .transpose(1, 2)
                .reshape(batch * n, *q.shape[1:])
            )
            parts.append(out[group.real])
            rows.append(group.rows.view(-1)[group.real])
        return q.new_zeros(q.shape).index_copy(0, torch.cat(rows), torch.cat(parts))

    def convolve(self, layer: int, x: Tensor, kernel: Tensor) -> Tensor:
        cache, writes = self.cache, self.writes
        if cache is None or writes is None:
            return convolved(x, kernel, ancestral(x, self.ancestors))
        cache.write_inputs(layer, writes, x)
        inputs = cache.inputs[layer]
        return convolved(x, kernel, lambda back: inputs_before(inputs, self.slots, self.positions, back))


def ancestral(x: Tensor, ancestors: Tensor | None) -> Callable[[int], Tensor]:
    """The rows of x some tokens before each row, 0 where there is none."""
    if ancestors is None:
        raise ValueError('a layer convolves, but the batch has no ancestors')
    source = F.pad(x, (0, 0, 0, 1))
    return lambda back: source[ancestors[back - 1]]


def segments_of(tree: Tree, cached: int = 0, slots: Sequence[int] | None = None, first: int = 0) -> list[Segment]:
    """The segments of a tree whose rows begin at row `first`."""
    return [
        Segment(
            branch.first + first,
            branch.count,
            tree.paths[branch.sequence] + first,
            cached,
            slots[branch.sequence] if slots is not None else None,
        )
        for branch in tree.branches
    ]


# FlexAttention, on a card


def tree_blocks(end: Tensor, block: int = BLOCK) -> tuple[Tensor, Tensor]:
    """Which blocks of keys a block of queries sees in part, and which it sees whole: [Q, K] each.

    The least and the largest end of a block of keys tell it without a look at any pair. For K before Q: some pair is
    seen if max end(K) > the first row of Q, all pairs if min end(K) > the last row of Q. The diagonal counts as seen
    in part.
    """
    ends = end.view(-1, block)
    number = torch.arange(len(ends), device=end.device)
    before = number[None, :] < number[:, None]
    some = before & (ends.amax(-1)[None, :] > number[:, None] * block)
    some = some | torch.eye(len(ends), dtype=torch.bool, device=end.device)
    whole = before & (ends.amin(-1)[None, :] > number[:, None] * block + block - 1)
    return some & ~whole, whole


def tree_mask(end: Tensor, positions: Tensor, window: int | None) -> Any:
    """The block mask of a tree whose rows are a multiple of `BLOCK`."""
    from torch.nn.attention.flex_attention import BlockMask

    part, whole = tree_blocks(end)
    if window is not None:
        part, whole = part | whole, torch.zeros_like(whole)

    def listed(blocks: Tensor) -> tuple[Tensor, Tensor]:
        order = torch.argsort(blocks.int(), dim=-1, descending=True, stable=True)
        return blocks.sum(-1).int()[None, None], order.int()[None, None]

    def sees(_b: Tensor, _h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        seen = (j <= i) & (i < end[j])
        return seen if window is None else seen & (positions[i] - positions[j] < window)

    return BlockMask.from_kv_blocks(*listed(part), *listed(whole), BLOCK_SIZE=BLOCK, mask_mod=sees)


class TreeMixer:
    """All rows of a tree attend at once by FlexAttention. `ancestors` [taps - 1, R]: the rows 1, 2, ... tokens before
    each row, R where there is none; only layers that convolve read them. Rows `writes` go to the cache. The first
    `reads.rows` rows of the tree have no tokens in this batch: their keys and values come from the cache."""

    def __init__(
        self,
        config: Config,
        end: Tensor,
        positions: Tensor,
        flex: Callable[..., Tensor],
        cache: Cache | None = None,
        writes: CacheRows | None = None,
        reads: CacheRows | None = None,
        ancestors: Tensor | None = None,
    ) -> None:
        self.config, self.flex, self.cache, self.ancestors = config, flex, cache, ancestors
        self.writes, self.reads = writes, reads
        windows = {config.window_of(layer) for layer in range(config.layers) if layer not in config.convolving}
        self.masks = {window: tree_mask(end, positions, window) for window in windows}

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        cache, writes, reads = self.cache, self.writes, self.reads
        if cache is not None and reads is not None:
            k, v = k.clone(), v.clone()
            k[reads.rows] = cache.keys[layer][reads.slots, :, reads.places]
            v[reads.rows] = cache.values[layer][reads.slots, :, reads.places]
        if cache is not None and writes is not None:
            cache.write(layer, writes, k, v)
        q, k, v = (part.transpose(0, 1)[None] for part in (q, k, v))
        mask = self.masks[self.config.window_of(layer)]
        out = self.flex(q, k, v, block_mask=mask, scale=self.config.score_scale, enable_gqa=True)
        return out[0].transpose(0, 1)

    def convolve(self, layer: int, x: Tensor, kernel: Tensor) -> Tensor:
        cache, writes, reads = self.cache, self.writes, self.reads
        if cache is not None and reads is not None:
            x = x.clone()
            x[reads.rows] = cache.inputs[layer][reads.slots, reads.places]
        if cache is not None and writes is not None:
            cache.write_inputs(layer, writes, x)
        return convolved(x, kernel, ancestral(x, self.ancestors))


def ancestors_of(paths: Sequence[np.ndarray], rows: int, taps: int) -> np.ndarray:
    """The rows 1 to taps - 1 tokens before each row, [taps - 1, rows]; `rows` where there is none."""
    ancestors = np.full((max(0, taps - 1), rows), rows, np.int64)
    for path in paths:
        for back in range(1, taps):
            ancestors[back - 1][path[back:]] = path[: len(path) - back]
    return ancestors


class CacheMixer:
    """Decoding: one row a slot, for slots 0 to R - 1, over the first `length` positions of the cache."""

    def __init__(self, config: Config, cache: Cache, position: Tensor, length: int, group_rows: int) -> None:
        """`group_rows`: the queries of a group of heads are padded to so many rows."""
        self.config, self.cache, self.position, self.length = config, cache, position, length
        self.rows = torch.arange(len(position), device=position.device)
        self.group_rows = group_rows
        place = torch.arange(length, device=position.device)
        back = position[:, None] - place[None, :]
        self.sees: dict[int | None, Tensor] = {}
        for window in {config.window_of(layer) for layer in range(config.layers)}:
            seen = back >= 0
            self.sees[window] = (seen if window is None else seen & (back < window))[:, None, None, :]

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        keys, values = self.cache.keys[layer], self.cache.values[layer]
        keys[self.rows, :, self.position] = k
        values[self.rows, :, self.position] = v
        count, heads, d = q.shape
        group = heads // self.config.kv_heads
        q = q.view(count, -1, group, d)
        if group < self.group_rows:
            q = F.pad(q, (0, 0, 0, self.group_rows - group))
        seen = keys[:count, :, : self.length], values[:count, :, : self.length]
        out = attend(q, *seen, self.sees[self.config.window_of(layer)], self.config.score_scale)
        return out[:, :, :group].reshape(count, heads, d)

    def convolve(self, layer: int, x: Tensor, kernel: Tensor) -> Tensor:
        inputs = self.cache.inputs[layer]
        inputs[self.rows, self.position] = x
        return convolved(x, kernel, lambda back: inputs_before(inputs, self.rows, self.position, back))
