"""How rows read the rows before them.

One mixer serves training, prefill and decoding. It gives the rows of a batch, after rows that it reads from a cache, to
an attention function, and keeps rows in the cache. There are three such functions.

On a processor each sequence of a tree attends by itself, over its own keys in the order of their positions. Rows and
keys are padded to fixed multiples. So what a row gets depends on its own sequence alone, to the last bit, whatever
else is in the batch; the sampler does the same. On a card all rows of a tree attend at once, by FlexAttention. A row
that decodes reads its slot of the cache where it lies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from .config import Config

ROWS, KEYS = 8, 64
"""Products of so many rows, and attention over so many keys, give each row the same bits in any company."""

BLOCK = 128
"""FlexAttention skips blocks of so many rows and keys."""

LEAST_HEAD = 16
"""FlexAttention takes no smaller heads; zeros beside the numbers of a head change no score."""

MOST_SCORES = 2**25
"""The most scores that a call of attention computes at a time."""

Attention = Callable[[Tensor, Tensor, Tensor], Tensor]
"""From queries [R, heads, d], and the keys and values that rows read, to [R, heads, d]."""

Windowed = Callable[['int | None'], Attention]
"""The attention of layers whose rows see so many positions; None: all."""


def padded(count: int, multiple: int) -> int:
    return -(-count // multiple) * multiple


def doubled(count: int, least: int) -> int:
    """The power of two from `least` on, itself one, that is at least `count`."""
    return max(least, 1 << max(0, count - 1).bit_length())


def wide_product(a: Tensor, b: Tensor) -> Tensor:
    """a @ b [..., N, M] in float32. A card sums in float32, and rounds the result to narrow numbers unless it is
    asked not to."""
    if a.device.type != 'cuda' or a.dtype == torch.float32:
        return (a @ b).float()
    if a.dim() == 2:
        return torch.mm(a, b, out_dtype=torch.float32)
    return torch.bmm(a.flatten(0, -3), b.flatten(0, -3), out_dtype=torch.float32).unflatten(0, a.shape[:-2])


def masked_softmax(scores: Tensor, hides: Tensor, scale: float, dtype: torch.dtype = torch.float32) -> Tensor:
    """A row that sees nothing, as that of a slot which nobody uses may, gets finite numbers: a cache keeps them."""
    least = torch.finfo(torch.float32).min
    return torch.softmax((scores * scale).masked_fill(hides, least), -1).to(dtype)


def attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    hides: Tensor,
    scale: float,
    least: int = 1,
    softmax: Callable[..., Tensor] = masked_softmax,
) -> Tensor:
    """Softmax attention of q [B, n, heads, d] over k and v [B, kv heads, L, d]. `hides` [B, 1, M, L] with
    M = n · heads / kv heads or 1 leaves at least one key a row. Products have at least `least` rows."""
    batch, n, _, d = q.shape
    heads = k.shape[1]
    rows = q.view(batch, n, heads, -1, d).transpose(1, 2).reshape(batch, heads, -1, d)
    count = rows.shape[2]
    if count < least:
        rows = F.pad(rows, (0, 0, 0, least - count))
    out = softmax(wide_product(rows, k.transpose(-1, -2)), hides, scale, v.dtype) @ v
    return out[:, :, :count].reshape(batch, heads, n, -1, d).transpose(1, 2).reshape(q.shape)


@dataclass(frozen=True)
class CacheRows:
    """Rows of a batch with their slots and positions in the cache, [N] each."""

    rows: Tensor | slice
    slots: Tensor
    places: Tensor


class Cache:
    """Keys and values of the tokens so far for each layer that attends, [slots, kv heads, capacity, d], and the inputs
    of each that convolves, [slots, 1, capacity, width]."""

    def __init__(self, config: Config, device: torch.device, dtype: torch.dtype) -> None:
        self.config, self.slots, self.capacity = config, 0, 0
        self.layers = [
            [torch.zeros(0, heads, 0, size, device=device, dtype=dtype) for heads, size in config.kept(layer)]
            for layer in range(config.layers)
        ]
        numbers = sum(heads * size for layer in range(config.layers) for heads, size in config.kept(layer))
        self.bytes_of_position = numbers * dtype.itemsize

    def resize(self, slots: int, capacity: int) -> None:
        """Keeps what still has a place. Memory holds the old and the new tensor of one layer at a time. If it fails for
        want of memory, the next call begins with what there is."""
        for tensors in self.layers:
            for i, old in enumerate(tensors):
                tensors[i] = F.pad(old, (0, 0, 0, capacity - old.shape[2], 0, 0, 0, slots - old.shape[0]))
        self.slots, self.capacity = slots, capacity

    def copy(self, sources: Tensor, targets: Tensor, places: Tensor) -> None:
        """Copies what is at these places, [N] each, from slots to others. All is read before it is written."""
        for tensors in self.layers:
            for tensor in tensors:
                tensor[targets, :, places] = tensor[sources, :, places]


class Mixer:
    """`ancestors` [taps - 1, R]: where among the rows that are read the ones 1, 2, ... tokens before each row are, -1
    where there is none; only layers that convolve look. With a cache, `writes` are the rows that it keeps. Then rows
    read `reads` of it and those of the batch, or without `reads` all of it in place."""

    def __init__(
        self,
        config: Config,
        attention: Windowed,
        ancestors: Tensor,
        cache: Cache | None = None,
        writes: CacheRows | None = None,
        reads: CacheRows | None = None,
    ) -> None:
        self.config, self.ancestors, self.cache, self.writes, self.reads = config, ancestors, cache, writes, reads
        windows = {config.window_of(layer) for layer in range(config.layers) if layer not in config.convolving}
        self.attention = {window: attention(window) for window in windows}

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """From queries [R, heads, d], keys and values [R, kv heads, d] to [R, heads, d]."""
        return self.attention[self.config.window_of(layer)](q, *self._read(layer, k, v))

    def convolve(self, layer: int, x: Tensor, kernel: Tensor) -> Tensor:
        """The causal convolution of x [R, width] with a kernel [taps, width] along each sequence."""
        inputs = self._read(layer, x[:, None])[0].reshape(-1, x.shape[1])
        y = x * kernel[-1]
        for back, rows in enumerate(self.ancestors, 1):
            y = y + inputs[rows.clamp(min=0)] * (rows >= 0)[:, None] * kernel[-1 - back]
        return y

    def _read(self, layer: int, *values: Tensor) -> Sequence[Tensor]:
        cache, writes, reads = self.cache, self.writes, self.reads
        if cache is None or writes is None:
            return values
        kept = cache.layers[layer]
        # A weight of 0 hides no NaN of rows beside. Keys keep theirs, so a row that sees them is not finite either.
        values = *values[:-1], values[-1].nan_to_num()
        for tensor, value in zip(kept, values, strict=True):
            tensor[writes.slots, :, writes.places] = value[writes.rows]
        if reads is None:
            return kept
        return [torch.cat((old[reads.slots, :, reads.places], new)) for old, new in zip(kept, values, strict=True)]


@dataclass(frozen=True)
class Segment:
    """Neighbouring rows of one sequence, up to its last row. `path`: where its tokens are among the rows that are
    read."""

    first: int
    count: int
    path: np.ndarray


def unseen(back: Tensor, window: int | None) -> Tensor:
    """Whether a row does not see a key that comes so many tokens before it."""
    return back < 0 if window is None else (back < 0) | (back >= window)


@dataclass(frozen=True)
class Group:
    """Segments that attend in one call: B of them with at most n rows each, over L keys each. Padding is like a
    segment's last row."""

    rows: Tensor  # [B, n]
    keys: Tensor  # [B, L], padded by the last one
    back: Tensor  # [B, 1, n, L]: how many tokens a key comes before a row
    places: Tensor  # [B n]: where results go; those of padding go to the first place, which nobody reads

    @staticmethod
    def of(segments: Sequence[Segment], n: int, keys: int, device: torch.device) -> Group:
        row, count = np.arange(n), np.array([[one.count] for one in segments])
        within = np.minimum(row, count - 1)
        rows = within + np.array([[one.first] for one in segments])
        before = np.array([[len(one.path)] for one in segments]) - count
        back = (before + within)[:, None, :, None] - np.arange(keys)
        # A weight of 0 would not hide the keys of another sequence that are not finite.
        padded_keys = np.stack([np.pad(one.path, (0, keys - len(one.path)), 'edge') for one in segments])
        places = np.where(row < count, rows + 1, 0).reshape(-1)
        return Group(*(torch.from_numpy(each).to(device) for each in (rows, padded_keys, back, places)))


def by_sequence(config: Config, segments: Sequence[Segment], device: torch.device) -> Windowed:
    """Each sequence attends by itself; segments of equal padded lengths in one call."""
    by_size: dict[tuple[int, int], list[Segment]] = {}
    for one in segments:
        by_size.setdefault((padded(one.count, ROWS), padded(len(one.path), KEYS)), []).append(one)
    groups: list[Group] = []
    for (n, keys), alike in by_size.items():
        most = max(1, MOST_SCORES // (n * keys * config.heads))
        groups += [Group.of(alike[at : at + most], n, keys, device) for at in range(0, len(alike), most)]
    places = torch.cat([group.places for group in groups])

    def of(window: int | None) -> Attention:
        hides = [unseen(group.back, window).repeat_interleave(config.heads // config.kv_heads, 2) for group in groups]

        def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            outs = []
            for group, mask in zip(groups, hides, strict=True):
                keys, values = (part[group.keys].transpose(1, 2) for part in (k, v))
                outs.append(attend(q[group.rows], keys, values, mask, config.score_scale).flatten(0, 1))
            result = q.new_zeros(len(q) + 1, *q.shape[1:])
            return result.index_copy(0, places, torch.cat(outs))[1:]

        return attention

    return of


def by_slot(
    config: Config, position: Tensor, length: int, least: int, softmax: Callable[..., Tensor] = masked_softmax
) -> Windowed:
    """Row i reads slot i of the cache, whose first `length` positions have all that it sees."""
    back = position[:, None] - torch.arange(length, device=position.device)

    def of(window: int | None) -> Attention:
        hides = unseen(back, window)[:, None, None]

        def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            keys, values = k[: len(q), :, :length], v[: len(q), :, :length]
            return attend(q[:, None], keys, values, hides, config.score_scale, least, softmax)[:, 0]

        return attention

    return of


# FlexAttention, on a card


def tree_blocks(begin: Tensor, end: Tensor, rows: int, block: int = BLOCK) -> tuple[Tensor, Tensor]:
    """Which blocks of keys a block of rows sees in part, and which it sees whole: [Q, K] each. Their least and largest
    `begin` and `end` tell it without a look at any pair."""
    first = torch.arange(0, rows, block, device=end.device)[:, None]
    last = first + block - 1
    begins, ends = begin.view(-1, block), end.view(-1, block)
    some = (begins.amin(-1) <= last) & (ends.amax(-1) > first)
    whole = (begins.amax(-1) <= first) & (ends.amin(-1) > last)
    return some & ~whole, whole


def by_tree(
    config: Config, begin: Tensor, end: Tensor, positions: Tensor, rows: int, flex: Callable[..., Tensor]
) -> Windowed:
    """All rows attend at once. Key k, at one of `positions`, is seen by the rows q with begin[k] <= q < end[k]. The
    last keys are the rows' own. Rows and keys are multiples of `BLOCK`."""
    from torch.nn.attention.flex_attention import BlockMask

    part, whole = tree_blocks(begin, end, rows)
    asking, more = positions[len(positions) - rows :], max(0, LEAST_HEAD - config.head_dim)

    def listed(blocks: Tensor) -> tuple[Tensor, Tensor]:
        order = torch.argsort(blocks.int(), dim=-1, descending=True, stable=True)
        return blocks.sum(-1).int()[None, None], order.int()[None, None]

    def of(window: int | None) -> Attention:
        blocks = part, whole
        if window is not None:
            past = asking - window  # a row sees the positions after this one
            near = past.view(-1, BLOCK).amin(-1)[:, None] < positions.view(-1, BLOCK).amax(-1)
            blocks = (part | whole) & near, torch.zeros_like(whole)

        def sees(_b: Tensor, _h: Tensor, i: Tensor, j: Tensor) -> Tensor:
            seen = (begin[j] <= i) & (i < end[j])
            return seen if window is None else seen & (past[i] < positions[j])

        mask = BlockMask.from_kv_blocks(*listed(blocks[0]), *listed(blocks[1]), BLOCK_SIZE=BLOCK, mask_mod=sees)

        def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            q, k, v = ((F.pad(each, (0, more)) if more else each).transpose(0, 1)[None] for each in (q, k, v))
            out = flex(q, k, v, block_mask=mask, scale=config.score_scale, enable_gqa=True)
            return out[0, ..., : config.head_dim].transpose(0, 1)

        return attention

    return of
