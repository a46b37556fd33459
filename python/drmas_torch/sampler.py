"""Continuous batching on a cache of keys and values: a tick decodes one token for every running request, of whatever
agent or episode. Prompts of a tick are computed as trees: a group's prompt and an agent's system prompt pass the
model once.

On a card a tick is one CUDA graph, and its tokens are read one tick late, so that the card never waits for the host: a
request that ends has one more token drawn, which nobody reads.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from .adapters import AdapterBank
from .attention import (
    BLOCK,
    KEYS,
    ROWS,
    Cache,
    CacheMixer,
    CacheRows,
    SequenceMixer,
    TreeMixer,
    ancestors_of,
    padded,
    segments_of,
)
from .config import AdapterSettings, widest
from .decoder import Decoder
from .head import logits_of, scale_of_draws
from .policy import Place
from .tree import Tree

SUMS = 256
"""Probabilities are summed in blocks of so many, then over the blocks."""

STATE = {
    'token': (torch.long, 0),
    'position': (torch.long, 0),
    'drawn': (torch.long, 0),
    'top_k': (torch.long, 0),
    'bank': (torch.long, -1),
    'scale': (torch.float32, 1),
    'top_p': (torch.float32, 1),
    'logprob': (torch.float32, 0),
}
"""Of each slot: the token to feed next, its position, how many were drawn, how to draw, the adapter, what was drawn."""

CACHE_SHARE = 0.5
"""The share of a card's free memory that a cache may take."""


def place_at(mass: Tensor, wanted: Tensor) -> Tensor:
    """The first place in each row of mass [B, N] up to which its sum exceeds the number wanted [B]; else the last place
    with mass.

    Sums are products with a triangle of ones, first over blocks, then within the block that holds the place: the same
    bits in every run, which scans on a card do not promise.
    """
    blocks = F.pad(mass, (0, -mass.shape[1] % SUMS)).view(len(mass), -1, SUMS)
    sums = blocks.sum(-1)
    ends = sums @ _triangle(sums)
    block, rows = _first_of(ends, sums, wanted), torch.arange(len(mass), device=mass.device)
    inner = blocks[rows, block]
    start = (ends - sums)[rows, block]
    return block * SUMS + _first_of(start[:, None] + inner @ _triangle(inner), inner, wanted)


def _first_of(cumulative: Tensor, mass: Tensor, wanted: Tensor) -> Tensor:
    has = mass > 0
    hit = has & (cumulative > wanted[:, None])
    place = torch.arange(mass.shape[1], device=mass.device)
    last = torch.where(has, place, -1).amax(-1).clamp(min=0)
    return torch.where(hit.any(-1), hit.int().argmax(-1), last)


_triangles: dict[tuple[int, torch.device], Tensor] = {}


def _triangle(summed: Tensor) -> Tensor:
    """Ones on and above the diagonal, for sums along rows. A CUDA graph keeps the address of the one it was given."""
    key = summed.shape[-1], summed.device
    if key not in _triangles:
        _triangles[key] = torch.ones(key[0], key[0], dtype=summed.dtype, device=summed.device).triu()
    return _triangles[key]


def draw(
    logits: Tensor, uniforms: Tensor, scale: Tensor, top_k: Tensor, top_p: Tensor, filtered: bool
) -> tuple[Tensor, Tensor]:
    """One token a row of logits [B, V], and its log-prob over the whole vocabulary.

    The distribution is inverted at a number of [0, 1) in the order of ids; a scale of 0 takes the most probable token.
    """
    greedy, wide = scale == 0, widest(logits.device)
    logits = logits * torch.where(greedy, torch.ones_like(scale), scale)[:, None]
    total = torch.logsumexp(logits, -1)
    mass = torch.exp(logits - total[:, None])
    if filtered:
        ranked, order = torch.sort(mass, dim=-1, descending=True, stable=True)
        rank = torch.arange(mass.shape[1], device=mass.device)[None]
        ranked = torch.where((top_k[:, None] > 0) & (rank >= top_k[:, None]), 0, ranked).to(wide)
        # The fewest tokens that reach the share top_p: one that reaches it exactly is the last.
        share = torch.nextafter(top_p.to(wide) * ranked.sum(-1), ranked.new_tensor(-1))
        kept = (ranked > 0) & (rank <= place_at(ranked, share)[:, None])
        mass = mass * torch.zeros_like(mass).scatter(1, order, kept.to(mass.dtype))
    mass = mass.to(wide)
    token = place_at(mass, uniforms.to(wide) * mass.sum(-1))
    token = torch.where(greedy, logits.argmax(-1), token)
    return token, logits.gather(1, token[:, None])[:, 0] - total


@dataclass(frozen=True)
class Request:
    id: int
    prompt: np.ndarray
    temperature: float
    top_p: float
    top_k: int
    most_tokens: int
    stop_tokens: frozenset[int]
    uniforms: np.ndarray
    streamed: bool


@dataclass
class Running:
    request: Request
    key: Hashable
    slot: int
    tokens: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    ended: bool = False


@dataclass(frozen=True)
class Result:
    request: Request
    tokens: list[int]
    logprobs: list[float]
    finish_reason: str
    version: int


@dataclass(frozen=True)
class Version:
    """Published weights: their place in the bank, -1 for the decoder's own, and their number."""

    place: int
    number: int
    owner: int


class Slots:
    """The tokens whose keys and values each slot of the cache holds. A slot that is free keeps them until it is
    needed, so that a prompt which goes on from an earlier one is not computed again."""

    def __init__(self, count: int, capacity: int) -> None:
        self.tokens = np.full((count, capacity), -1, np.int32)
        self.length = np.zeros(count, np.int64)
        self.owner = np.full(count, -1, np.int64)
        self.used = np.zeros(count, np.int64)
        self.busy = np.zeros(count, bool)
        self._clock = 0

    def adopt(self, other: Slots) -> None:
        count, capacity = other.tokens.shape
        self.tokens[:count, :capacity] = other.tokens
        for name in ('length', 'owner', 'used', 'busy'):
            getattr(self, name)[:count] = getattr(other, name)
        self._clock = other._clock

    def take(self, prompt: np.ndarray, owner: int) -> tuple[int, int, int] | None:
        """A slot for a prompt, the slot of the same owner that shares most first tokens with it, and how many (at most
        all but the last, which is always computed). None if all slots are busy."""
        free = np.flatnonzero(~self.busy)
        if len(free) == 0:
            return None
        oldest = int(free[np.argmin(self.used[free])])
        source, shared = oldest, 0
        own = np.flatnonzero((self.owner == owner) & (self.length > 0))
        if len(own):
            width = min(len(prompt), self.tokens.shape[1])
            equal = self.tokens[own, :width] == prompt[None, :width]
            first = np.where(equal.all(1), width, np.argmin(equal, 1))
            alike = np.minimum(first, self.length[own])
            best = int(np.lexsort((self.busy[own], -alike))[0])
            if alike[best] > 0:
                source, shared = int(own[best]), int(alike[best])
        # Taking the source itself saves the copy, and loses nothing when the prompt goes on from all that it holds.
        slot = source if not self.busy[source] and shared == self.length[source] else oldest
        self.owner[slot], self.busy[slot] = owner, True
        self._touch(slot)
        shared = min(shared, len(prompt) - 1)
        self.tokens[slot, : len(prompt) - 1] = prompt[:-1]
        self.length[slot] = len(prompt) - 1
        return slot, source, shared

    def release(self, slot: int) -> None:
        self.busy[slot] = False
        self._touch(slot)

    def forget(self, owner: int) -> None:
        self.length[self.owner == owner] = 0

    def _touch(self, slot: int) -> None:
        self._clock += 1
        self.used[slot] = self._clock


Late = tuple[list[Running], Tensor, Tensor, torch.cuda.Event]
"""What a tick has drawn for these requests, on its way from the card."""


class Sampler:
    """Samples from versions of policies that share a decoder: adapters in a bank, or the decoder's own weights."""

    def __init__(
        self,
        place: Place,
        decoder: Decoder,
        slots: int,
        adapter: AdapterSettings | None,
        on_token: Callable[[int, int], None],
    ) -> None:
        self.place, self.decoder, self.most_slots, self.adapter, self.on_token = (
            place,
            decoder,
            slots,
            adapter,
            on_token,
        )
        self.bank: AdapterBank | None = None
        self._free_places: list[int] = []
        self._versions: dict[Hashable, Version] = {}
        self._owners = 0
        self._waiting: list[tuple[Request, Hashable]] = []
        self._running: list[Running] = []
        self._cache: Cache | None = None
        self._slots = Slots(0, 0)
        self._state: dict[str, Tensor] = {}
        self._graphs: dict[tuple[int, int, bool], torch.cuda.CUDAGraph] = {}
        self._pool: Any = None
        self._late: Late | None = None
        self._read: list[tuple[Tensor, Tensor]] = []

    # Versions

    def load(self, key: Hashable, number: int, adapter: dict[str, Tensor] | None) -> None:
        place = -1
        if adapter is not None:
            if not self._free_places:
                self._more_places()
            place = self._free_places.pop()
            if self.bank is not None:
                self.bank.load(place, adapter)
        self._owners += 1
        self._versions[key] = Version(place, number, self._owners)

    def unload(self, key: Hashable) -> None:
        version = self._versions.pop(key)
        self._slots.forget(version.owner)
        if version.place >= 0:
            self._free_places.append(version.place)

    def _more_places(self) -> None:
        if self.adapter is None:
            raise ValueError('this sampler has no adapters')
        old, before = self.bank, self.bank.places if self.bank else 0
        places = max(4, 2 * before)
        self.bank = AdapterBank(self.decoder.config, self.adapter, places, self.place.device, self.decoder.dtype)
        if old is not None:
            self.bank.adopt(old)
        self._free_places = list(range(places - 1, before - 1, -1))
        self._graphs.clear()

    def plays(self, key: Hashable) -> bool:
        return any(one.key == key for one in self._running) or any(waiting == key for _, waiting in self._waiting)

    # Requests

    def submit(self, request: Request, key: Hashable) -> None:
        self._waiting.append((request, key))

    def cancel(self, ids: set[int]) -> None:
        self._waiting = [entry for entry in self._waiting if entry[0].id not in ids]
        for one in self._running:
            if one.request.id in ids:
                self._end(one)

    @property
    def busy(self) -> bool:
        return bool(self._waiting or self._running or self._late)

    def _end(self, one: Running) -> None:
        one.ended = True
        self._slots.release(one.slot)
        self._running.remove(one)

    def _positions(self, request: Request) -> int:
        return min(self.decoder.config.context, len(request.prompt) + request.most_tokens)

    # A tick

    @torch.no_grad()
    def step(self) -> list[Result]:
        """One token for every running request. Returns the results that have come to their end."""
        self._admit()
        late, self._late = self._late, None
        if self._running:
            running = list(self._running)
            tokens, logprobs = self._decode()
            if self.place.device.type == 'cuda':
                self._late = self._read_later(running, tokens, logprobs)
            else:
                return self._take(running, tokens, logprobs)
        if late is None:
            return []
        running, tokens, logprobs, event = late
        event.synchronize()
        return self._take(running, tokens, logprobs)

    def _read_later(self, running: list[Running], tokens: Tensor, logprobs: Tensor) -> Late:
        """Begins to copy what a tick has drawn. One pair of buffers is read while the other is filled."""
        if len(self._read) != 2 or len(self._read[0][0]) < len(tokens):
            size = len(self._state['token'])
            self._read = [
                (torch.empty(size, dtype=torch.long, pin_memory=True), torch.empty(size, pin_memory=True))
                for _ in range(2)
            ]
        self._read.reverse()
        ids, scores = (buffer[: len(tokens)] for buffer in self._read[0])
        ids.copy_(tokens, non_blocking=True)
        scores.copy_(logprobs, non_blocking=True)
        event = torch.cuda.Event()
        event.record()
        return running, ids, scores, event

    def _take(self, running: list[Running], tokens: Tensor, logprobs: Tensor) -> list[Result]:
        """Gives each request the token that its slot has drawn."""
        drawn, scores = tokens.tolist(), logprobs.tolist()
        results = []
        for one in running:
            if one.ended:
                continue
            request, token = one.request, drawn[one.slot]
            last = one.tokens[-1] if one.tokens else int(request.prompt[-1])
            at = len(request.prompt) + len(one.tokens) - 1
            self._slots.tokens[one.slot, at], self._slots.length[one.slot] = last, at + 1
            one.tokens.append(token)
            one.logprobs.append(scores[one.slot])
            if request.streamed:
                self.on_token(request.id, token)
            stopped = token in request.stop_tokens
            if stopped or len(request.prompt) + len(one.tokens) >= self._positions(request):
                reason = 'stop' if stopped else 'length'
                results.append(Result(request, one.tokens, one.logprobs, reason, self._versions[one.key].number))
                self._end(one)
        return results

    def _admit(self) -> None:
        """Moves waiting requests into slots, and computes the keys and values of all but the last token of their
        prompts."""
        if not self._waiting:
            return
        self._fit()
        cache = self._cache
        if cache is None:
            return
        admitted: list[tuple[Running, int]] = []
        while self._waiting:
            request, key = self._waiting[0]
            version = self._versions[key]
            if self._positions(request) > cache.capacity:
                break
            taken = self._slots.take(request.prompt, version.owner)
            if taken is None:
                break
            slot, source, shared = taken
            self._waiting.pop(0)
            # What another request of this tick will compute is shared as a tree, not by a copy.
            if any(one.slot == source for one, _ in admitted):
                sourced = next(begun for one, begun in admitted if one.slot == source)
                shared = min(shared, sourced)
            if slot != source and shared > 0:
                cache.copy(source, slot, shared)
            one = Running(request, key, slot)
            admitted.append((one, shared))
            self._running.append(one)
        if not admitted:
            return
        self._write_state([one for one, _ in admitted])
        self._prefill([(one, shared) for one, shared in admitted if shared < len(one.request.prompt) - 1])

    def _fit(self) -> None:
        """Makes the cache large enough for all that waits, if there is memory for it."""
        config, cache = self.decoder.config, self._cache
        longest = max(self._positions(request) for request, _ in self._waiting)
        capacity = padded(max(longest, cache.capacity if cache else 0), KEYS)
        count = padded(min(self.most_slots, len(self._running) + len(self._waiting)), ROWS)
        count = max(count, cache.slots if cache else 0)
        if cache is not None and capacity == cache.capacity and count == cache.slots:
            return
        of_slot = capacity * Cache.bytes_of_position(config, self.decoder.dtype)
        if self.place.device.type == 'cuda':
            free, _ = torch.cuda.mem_get_info(self.place.device)
            fits = int(CACHE_SHARE * free) // of_slot // ROWS * ROWS
            if fits < count and cache is not None and (capacity == cache.capacity or self._running):
                return  # what is there goes on; a longer request waits until none is running
            count = max(ROWS, min(count, fits))
        larger = Cache(config, count, capacity, self.place.device, self.decoder.dtype)
        slots = Slots(count, capacity)
        if cache is not None and count >= cache.slots:
            larger.adopt(cache)
            slots.adopt(self._slots)
        self._cache, self._slots = larger, slots
        self._graphs.clear()
        self._resize_state(count, capacity)

    def _resize_state(self, count: int, capacity: int) -> None:
        """The state of each slot: the token to feed, its position, the number of drawn tokens, and how to draw."""
        device, old = self.place.device, self._state
        self._state = {
            name: torch.full((count,), fill, dtype=dtype, device=device) for name, (dtype, fill) in STATE.items()
        }
        self._state['uniforms'] = torch.zeros(count, capacity, device=device)
        for name, tensor in old.items():
            if name == 'uniforms':
                self._state[name][: len(tensor), : tensor.shape[1]] = tensor[:count]
            else:
                self._state[name][: len(tensor)] = tensor[:count]

    def _write_state(self, admitted: list[Running]) -> None:
        state, device = self._state, self.place.device
        slots = torch.tensor([one.slot for one in admitted], device=device)
        requests = [one.request for one in admitted]
        columns = {
            'token': [int(r.prompt[-1]) for r in requests],
            'position': [len(r.prompt) - 1 for r in requests],
            'drawn': [0 for _ in requests],
            'top_k': [r.top_k for r in requests],
            'bank': [self._versions[one.key].place for one in admitted],
            'scale': [scale_of_draws(r.temperature) for r in requests],
            'top_p': [r.top_p for r in requests],
        }
        for name, values in columns.items():
            state[name][slots] = torch.tensor(values, dtype=state[name].dtype).to(device)
        width = state['uniforms'].shape[1]
        uniforms = np.stack([np.pad(r.uniforms[:width], (0, max(0, width - len(r.uniforms)))) for r in requests])
        state['uniforms'][slots] = torch.from_numpy(uniforms).to(device)

    def _prefill(self, admitted: list[tuple[Running, int]]) -> None:
        """The keys and values of prompts, as one tree for all that have the same version and the same cached tokens."""
        cache = self._cache
        if not admitted or cache is None:
            return
        groups: dict[tuple[Hashable, bytes], list[tuple[Running, int]]] = {}
        for one, shared in admitted:
            groups.setdefault((one.key, one.request.prompt[:shared].tobytes()), []).append((one, shared))
        device, on_card = self.place.device, self.place.flex is not None
        tokens, positions, ends, banks, paths = [], [], [], [], []
        writes: list[tuple[np.ndarray, int, np.ndarray]] = []
        reads: list[tuple[np.ndarray, int, np.ndarray]] = []
        segments = []
        rows = 0
        for group in groups.values():
            shared = group[0][1]
            tree = Tree([one.request.prompt[shared:-1] for one, _ in group], shared)
            # On a card the cached tokens are rows too, whose keys and values are read from the cache.
            before = shared if on_card else 0
            slots = [one.slot for one, _ in group]
            segments += segments_of(tree, shared, slots, rows) if not on_card else []
            tokens += [np.zeros(before, np.int64), tree.tokens]
            positions += [np.arange(before), tree.positions]
            ends += [np.full(before, rows + before + tree.rows), tree.end + rows + before]
            place = self._versions[group[0][0].key].place
            banks.append(np.full(before + tree.rows, place))
            if before:
                reads.append((np.arange(rows, rows + before), slots[0], np.arange(before)))
            for path, slot in zip(tree.paths, slots, strict=True):
                writes.append((path + rows + before, slot, np.arange(len(path)) + shared))
                paths.append(np.concatenate((np.arange(rows, rows + before), path + rows + before)))
            rows += before + tree.rows
        more = padded(rows, BLOCK if on_card else ROWS) - rows
        columns = [np.concatenate(part) for part in (tokens, positions, banks)]
        token, position, bank = (
            torch.from_numpy(np.pad(part, (0, more), constant_values=fill)).to(device)
            for part, fill in zip(columns, (0, 0, -1), strict=True)
        )
        written = self._places(writes)
        mixer: SequenceMixer | TreeMixer
        if self.place.flex is None:
            mixer = SequenceMixer(self.decoder.config, position, segments, None, cache, written)
        else:
            end = torch.from_numpy(np.concatenate([*ends, np.arange(rows, rows + more) + 1])).to(device)
            ancestors = torch.from_numpy(ancestors_of(paths, rows + more, self.decoder.config.taps)).to(device)
            read = self._places(reads) if reads else None
            mixer = TreeMixer(self.decoder.config, end, position, self.place.flex, cache, written, read, ancestors)
        self.decoder.hidden(token, position, mixer, self.bank.adds(bank) if self.bank else None)

    def _places(self, parts: list[tuple[np.ndarray, int, np.ndarray]]) -> CacheRows:
        """Rows with their slots and positions in the cache."""
        slots = np.concatenate([np.full(len(rows), slot) for rows, slot, _ in parts])
        columns = (np.concatenate([part[0] for part in parts]), slots, np.concatenate([part[2] for part in parts]))
        return CacheRows(*(torch.from_numpy(column).to(self.place.device) for column in columns))

    # Decoding

    def _decode(self) -> tuple[Tensor, Tensor]:
        """Draws a token for each slot up to the last one that runs: tokens and log-probs [count]."""
        cache = self._cache
        if cache is None:
            raise ValueError('nothing was admitted')
        highest = max(one.slot for one in self._running) + 1
        # A token that is read late has not been counted yet.
        longest = max(len(one.request.prompt) + len(one.tokens) for one in self._running) + (self._graphed and 1)
        filtered = any(one.request.top_k > 0 or one.request.top_p < 1 for one in self._running)
        if not self._graphed:
            count, length = padded(highest, ROWS), min(cache.capacity, padded(longest, KEYS))
            self._tick(count, length, filtered)
        else:
            count = min(cache.slots, max(ROWS, 1 << (highest - 1).bit_length()))
            length = min(cache.capacity, padded(longest, 4 * KEYS))
            self._graph(count, length, filtered).replay()
        return self._state['token'][:count], self._state['logprob'][:count]

    @property
    def _graphed(self) -> bool:
        return self.place.device.type == 'cuda'

    def _tick(self, count: int, length: int, filtered: bool) -> None:
        """The work of a tick, all on the device: it reads and writes the state of the slots."""
        state, cache = self._state, self._cache
        if cache is None:
            raise ValueError('nothing was admitted')
        token, position, drawn = (state[name][:count] for name in ('token', 'position', 'drawn'))
        group_rows = 1 if self._graphed else ROWS
        mixer = CacheMixer(self.decoder.config, cache, position, length, group_rows)
        adds = self.bank.adds(state['bank'][:count]) if self.bank else None
        hidden = self.decoder.hidden(token, position, mixer, adds)
        uniforms = state['uniforms'][:count].gather(1, drawn[:, None])[:, 0]
        scale, top_k, top_p = (state[name][:count] for name in ('scale', 'top_k', 'top_p'))
        logits = logits_of(hidden, self.decoder.output)
        drawn_token, logprob = draw(logits, uniforms, scale, top_k, top_p, filtered)
        token.copy_(drawn_token)
        state['logprob'][:count] = logprob
        last = min(cache.capacity, self.decoder.config.context) - 1
        position.copy_((position + 1).clamp(max=last))
        drawn.copy_((drawn + 1).clamp(max=last))

    def _graph(self, count: int, length: int, filtered: bool) -> torch.cuda.CUDAGraph:
        """The tick of this size as a CUDA graph. It is captured when it is first needed."""
        key = count, length, filtered
        if key in self._graphs:
            return self._graphs[key]
        kept = {name: tensor.clone() for name, tensor in self._state.items()}
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):  # compiles and chooses kernels before anything is recorded
            for _ in range(2):
                self._tick(count, length, filtered)
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        if self._pool is None:
            self._pool = torch.cuda.graph_pool_handle()
        with torch.cuda.graph(graph, pool=self._pool):
            self._tick(count, length, filtered)
        for name, tensor in kept.items():
            self._state[name].copy_(tensor)
        self._graphs[key] = graph
        return graph
