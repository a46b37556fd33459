"""Continuous batching on a cache of keys and values: a tick decodes one token for every running request, of whatever
agent or episode. Prompts of a tick are computed as trees: a group's prompt and an agent's system prompt pass the
model once.

On a card a tick is one CUDA graph, and its tokens are read one tick late, so that the card never waits for the host: a
request that ends has one more token drawn, which nobody reads.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from .adapters import AdapterBank
from .attention import KEYS, ROWS, Cache, CacheRows, Mixer, by_slot, doubled, padded
from .config import AdapterSettings, sent, views
from .decoder import Decoder
from .draws import triangle_for
from .graphs import NOTHING, Graphs
from .head import logits_of, scale_of_draws
from .messages import Wanted
from .place import Place
from .slots import Slots
from .tree import Tree

UNUSED = {'token': 0, 'position': 0, 'top_k': 0, 'adapter': -1, 'scale': 1.0, 'top_p': 1.0, 'logprob': 0.0}
"""What the device knows of each slot: the token to feed next, its position, how to draw, the adapter, and the log-prob
of what was drawn; and the values of a slot that was never used."""

COMPANY = 4
"""On a card a prompt waits so many ticks for others, while requests run: a pass for one costs what a pass for many
costs."""

GRAPH_ROWS, GRAPH_KEYS = 32, 256
"""The fewest slots and positions of a cache that graphs read; a tick reads a power of 2 of positions."""

MOST_RECORDED = 4096
"""Prompts of more rows than so many take the card longer than the host."""

CACHE_SHARE = 0.5
"""The share of a card's free memory that a cache may take."""


@dataclass(frozen=True)
class Version:
    """Published weights: the number of their adapter in the bank, -1 for the decoder's own weights, and their own
    number. Keys and values belong to an owner."""

    adapter: int
    number: int
    owner: int


@dataclass(eq=False)
class Request:
    wanted: Wanted
    prompt: np.ndarray
    uniforms: np.ndarray
    key: Hashable
    version: Version
    slot: int = -1
    tokens: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    finish_reason: str | None = None
    """None while it waits or runs."""

    @property
    def id(self) -> int:
        return self.wanted['id']

    @property
    def known(self) -> np.ndarray:
        return np.concatenate((self.prompt, np.array(self.tokens, np.int32)))


Late = tuple[list[tuple[Request, int]], Tensor, Tensor, torch.cuda.Event]
"""What a tick has drawn for these requests in their slots, on its way from the card."""


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
        self.place, self.decoder, self.most_slots, self.on_token = place, decoder, slots, on_token
        self.bank = None if adapter is None else AdapterBank(decoder.config, adapter, place.device, decoder.dtype)
        self._free: list[int] = []
        """The numbers in the bank that no version has."""
        self._versions: dict[Hashable, Version] = {}
        self._owners = 0
        self._waiting: list[Request] = []
        self._running: list[Request] = []
        self._on_card = place.device.type == 'cuda'
        self._graphs = Graphs(place.device, place.memory)
        self._triangle = triangle_for(decoder.config.vocab_size, place.device)
        self._late: Late | None = None
        self._waited = 0
        self._empty()

    def _empty(self) -> None:
        """No slots, and no memory for them."""
        self._graphs.forget()
        self._slots = Slots()
        self._cache = Cache(self.decoder.config, self.place.device, self.decoder.dtype)
        self._state = {name: torch.full((0,), value, device=self.place.device) for name, value in UNUSED.items()}
        self._uniforms = torch.zeros(0, 0, device=self.place.device)
        """Of each slot the random number of the draw at each position."""

    # Versions

    def load(self, key: Hashable, number: int, adapter: dict[str, Tensor] | None) -> None:
        if key in self._versions:  # of a publication that failed
            self.unload(key)
        index = -1
        if adapter is not None:
            if self.bank is None:
                raise ValueError('this sampler has no adapters')
            if not self._free:
                before, count = self.bank.count, max(4, 2 * self.bank.count)
                self._graphs.forget()
                self.bank.resize(count)
                self._free = list(range(count - 1, before - 1, -1))
            index = self._free.pop()
            self.bank.load(index, adapter)
        self._owners += 1
        self._versions[key] = Version(index, number, self._owners)

    def unload(self, key: Hashable) -> None:
        version = self._versions.pop(key)
        self._slots.forget(version.owner)
        if version.adapter >= 0:
            self._free.append(version.adapter)

    def plays(self, key: Hashable) -> bool:
        return any(one.key == key for one in [*self._running, *self._waiting])

    # Requests

    def submit(self, wanted: Wanted, prompt: np.ndarray, uniforms: np.ndarray, key: Hashable) -> None:
        self._waiting.append(Request(wanted, prompt, uniforms, key, self._versions[key]))

    def cancel(self, ids: set[int]) -> None:
        self._waiting = [one for one in self._waiting if one.id not in ids]
        for one in [one for one in self._running if one.id in ids]:
            self._end(one, 'cancelled')

    @property
    def busy(self) -> bool:
        return bool(self._waiting or self._running or self._late)

    def pause(self) -> None:
        """Gives the memory of the cache back. What runs waits again, and goes on from its tokens."""
        self._waiting = [*self._running, *self._waiting]
        self._running, self._late, self._waited = [], None, 0
        self._empty()

    def clear(self) -> list[int]:
        """After a tick that failed: forgets all requests. Returns their numbers."""
        self.pause()
        ids = [one.id for one in self._waiting]
        self._waiting = []
        return ids

    def _end(self, one: Request, reason: str) -> None:
        one.finish_reason = reason
        self._slots.release(one.slot)
        self._running.remove(one)

    def _positions(self, request: Request) -> int:
        return min(self.decoder.config.context, len(request.prompt) + request.wanted['maxTokens'])

    # A tick

    @torch.no_grad()
    def step(self) -> list[Request]:
        """One token for every running request. Returns those that have come to their end."""
        self._admit()
        late, self._late = self._late, None
        if self._running:
            self._narrow()
            running = [(one, one.slot) for one in self._running]
            tokens, logprobs = self._decode()
            if not self._on_card:
                return self._take(running, tokens, logprobs)
            # A copy that nobody waits for goes to pinned memory.
            ids, scores = (part.to('cpu', non_blocking=True, copy=True) for part in (tokens, logprobs))
            event = torch.cuda.Event()
            event.record()
            self._late = running, ids, scores, event
        if late is None:
            return []
        running, tokens, logprobs, event = late
        event.synchronize()
        return self._take(running, tokens, logprobs)

    def _take(self, running: list[tuple[Request, int]], tokens: Tensor, logprobs: Tensor) -> list[Request]:
        """Gives each request the token that its slot has drawn. Returns those that end."""
        drawn, scores = tokens.tolist(), logprobs.tolist()
        ended = []
        for one, slot in running:
            if one.finish_reason is not None:
                continue
            token = drawn[slot]
            last = one.tokens[-1] if one.tokens else int(one.prompt[-1])
            at = len(one.prompt) + len(one.tokens) - 1
            self._slots.tokens[one.slot, at], self._slots.length[one.slot] = last, at + 1
            one.tokens.append(token)
            one.logprobs.append(scores[slot])
            if one.wanted['streamed']:
                self.on_token(one.id, token)
            stopped = token in one.wanted['stopTokens']
            if stopped or len(one.prompt) + len(one.tokens) >= self._positions(one):
                self._end(one, 'stop' if stopped else 'length')
                ended.append(one)
        return ended

    def _admit(self) -> None:
        """Moves waiting requests into slots, and computes the keys and values of all but the last token of their
        prompts, in passes of at most the place's rows; a longer prompt has a pass by itself."""
        if not self._waiting:
            return
        if self._on_card and self._running and self._waited < COMPANY:
            self._waited += 1
            return
        self._waited = 0
        self._fit()
        admitted: list[Request] = []
        begun: dict[int, int] = {}
        """Of each slot that is taken for this pass, how many tokens were there."""
        copied: dict[int, int] = {}
        """The slots from which the first of them come."""
        rows = 0
        while self._waiting:
            one = self._waiting[0]
            if self._positions(one) > self._cache.capacity:
                break
            taken = self._slots.take(one.known, one.version.owner)
            if taken is None:
                break
            one.slot, source, shared = taken
            self._running.append(self._waiting.pop(0))
            new = len(one.known) - 1 - shared
            if rows + new > self.place.rows:
                self._begin(admitted, begun, copied)
                admitted, begun, copied, rows = [], {}, {}, 0
            rows += new
            # What another request of this pass will compute is shared as a tree, not by a copy.
            shared = min(shared, begun.get(source, shared))
            if one.slot != source and shared > 0:
                copied[one.slot] = copied.get(source, source)
            begun[one.slot] = shared
            admitted.append(one)
        self._begin(admitted, begun, copied)

    def _begin(self, admitted: list[Request], begun: dict[int, int], copied: dict[int, int]) -> None:
        """One pass for these prompts."""
        if not admitted:
            return
        if copied:
            counts = [begun[slot] for slot in copied]
            slots = np.repeat([list(copied.values()), list(copied)], counts, 1)
            places = np.concatenate([np.arange(count) for count in counts])
            self._cache.copy(*sent(torch.from_numpy(np.stack((*slots, places))), self.place.device))
        self._write_state(admitted)
        self._prefill([one for one in admitted if begun[one.slot] < len(one.known) - 1], begun)

    def _fit(self) -> None:
        """Makes the cache large enough for all that waits, if there is memory for it."""
        cache = self._cache
        longest = max(self._positions(one) for one in self._waiting)
        wanted = min(self.most_slots, len(self._running) + len(self._waiting))
        if self.place.memory is None:
            capacity, count = padded(longest, KEYS), padded(wanted, ROWS)
        else:  # few sizes, since graphs of another size are recorded anew
            capacity = min(doubled(longest, GRAPH_KEYS), padded(self.decoder.config.context, KEYS))
            count = min(doubled(wanted, GRAPH_ROWS), padded(self.most_slots, ROWS))
        capacity, count = max(capacity, cache.capacity), max(count, cache.slots)
        if capacity == cache.capacity and count == cache.slots:
            return
        if self.place.memory is not None:
            each = cache.bytes_of_position
            free = self.place.memory.free() + cache.slots * cache.capacity * each
            fits = int(CACHE_SHARE * free) // (capacity * each) // ROWS * ROWS
            if fits < cache.slots and self._running:
                return  # what is there goes on; a longer request waits until none is running
            count = max(ROWS, min(count, fits))
            if capacity == cache.capacity and count <= cache.slots:
                return
        self._graphs.forget()
        if count < cache.slots:  # what is in the cache goes, before the memory is taken anew
            self._empty()
        self._cache.resize(count, capacity)
        self._slots.resize(count, capacity)
        n, width = self._uniforms.shape
        self._uniforms = F.pad(self._uniforms, (0, capacity - width, 0, count - n))
        self._state = {name: F.pad(self._state[name], (0, count - n), value=value) for name, value in UNUSED.items()}

    def _write_state(self, admitted: list[Request]) -> None:
        known, wanted = [one.known for one in admitted], [one.wanted for one in admitted]
        slots = sent(torch.tensor([one.slot for one in admitted]), self.place.device)
        values = {
            'token': [int(tokens[-1]) for tokens in known],
            'position': [len(tokens) - 1 for tokens in known],
            'top_k': [one['topK'] for one in wanted],
            'adapter': [one.version.adapter for one in admitted],
            'scale': [scale_of_draws(one['temperature']) for one in wanted],
            'top_p': [one['topP'] for one in wanted],
        }
        for name, of_slots in values.items():
            numbers = torch.tensor(of_slots, dtype=self._state[name].dtype)
            self._state[name][slots] = sent(numbers, self.place.device)
        uniforms = np.zeros((len(admitted), self._uniforms.shape[1]), np.float32)
        for row, one in zip(uniforms, admitted, strict=True):
            place = row[len(one.prompt) - 1 :]
            place[: len(one.uniforms)] = one.uniforms[: len(place)]
        self._uniforms[slots] = sent(torch.from_numpy(uniforms), self.place.device)

    def _prefill(self, admitted: list[Request], begun: dict[int, int]) -> None:
        """The keys and values of prompts, as one tree for all that have the same version and the same cached tokens."""
        if not admitted:
            return
        groups: dict[tuple[Hashable, bytes], list[Request]] = {}
        for one in admitted:
            groups.setdefault((one.key, one.known[: begun[one.slot]].tobytes()), []).append(one)
        trees, slots, adapters = [], [], []
        for group in groups.values():
            shared = begun[group[0].slot]
            trees.append(Tree([one.known[shared:-1] for one in group], shared))
            slots.append([one.slot for one in group])
            adapters.append(group[0].version.adapter)
        config = self.decoder.config
        packed = self.place.packed(config, trees, slots, adapters)

        def forward(numbers: Tensor) -> Tensor:
            token, position, mixer = self.place.mixer(config, packed, numbers, self._cache)
            adapter = views(numbers, packed.sizes.shapes)['adapter']
            return self.decoder.hidden(token, position, mixer, self.bank.adds(adapter) if self.bank else None)

        key = packed.sizes if packed.sizes.rows <= MOST_RECORDED else None
        self._graphs.run(key, packed.numbers, forward)

    # Decoding

    def _narrow(self) -> None:
        """A tick is as wide as its highest slot. So what runs in a high slot gets a low one that nobody uses, and what
        was kept there gets the high one, if it makes ticks half as wide."""
        enough = doubled(len(self._running), ROWS)
        high = [one for one in self._running if one.slot >= enough]
        if not high:
            return
        low = self._slots.free(enough)[: len(high)]
        sources = np.concatenate((np.array([one.slot for one in high]), low))
        targets = np.roll(sources, len(high))
        for one, slot in zip(high, low, strict=True):
            one.slot = int(slot)
        # A card is one token ahead of what is known of it.
        counts = np.minimum(self._slots.length[sources] + 1, self._cache.capacity)
        places = np.concatenate([np.arange(count) for count in counts])
        moves = np.stack((*np.repeat([sources, targets], counts, 1), places))
        self._cache.copy(*sent(torch.from_numpy(moves), self.place.device))
        self._slots.move(sources, targets)
        old, new = sent(torch.from_numpy(np.stack((sources, targets))), self.place.device)
        for of_slots in [*self._state.values(), self._uniforms]:
            of_slots[new] = of_slots[old]

    def _decode(self) -> tuple[Tensor, Tensor]:
        """Draws a token for each slot up to the last one that runs: tokens and log-probs [count]."""
        cache = self._cache
        highest = max(one.slot for one in self._running) + 1
        # A token that is read late has not been counted yet.
        longest = max(len(one.prompt) + len(one.tokens) for one in self._running) + self._on_card
        filtered = any(one.wanted['topK'] > 0 or one.wanted['topP'] < 1 for one in self._running)
        recorded = self.place.memory is not None
        count = min(cache.slots, doubled(highest, ROWS) if recorded else padded(highest, ROWS))
        length = min(cache.capacity, doubled(longest, GRAPH_KEYS) if recorded else padded(longest, KEYS))
        key = count, length, filtered
        self._graphs.run(key, NOTHING, lambda _: self._tick(*key), repeatable=False)
        return self._state['token'][:count], self._state['logprob'][:count]

    def _tick(self, count: int, length: int, filtered: bool) -> None:
        """The work of a tick, all on the device: it reads and writes the state of the slots."""
        cache, config = self._cache, self.decoder.config
        state = {name: of_slots[:count] for name, of_slots in self._state.items()}
        token, position = state['token'], state['position']
        slots = torch.arange(count, device=position.device)
        back = torch.arange(1, max(1, config.taps), device=position.device)[:, None]
        ancestors = torch.where(position >= back, slots * cache.capacity + position - back, -1)
        attention = by_slot(config, position, length, 1 if self._on_card else ROWS, self.place.pieces.softmax)
        mixer = Mixer(config, attention, ancestors, cache, CacheRows(slice(None), slots, position))
        hidden = self.decoder.hidden(token, position, mixer, self.bank.adds(state['adapter']) if self.bank else None)
        uniforms = self._uniforms[:count].gather(1, position[:, None])[:, 0]
        logits = logits_of(hidden, self.decoder.output)
        how = state['scale'], state['top_k'], state['top_p'], filtered
        new, logprob = self.place.pieces.draw(logits, uniforms, *how, self._triangle)
        after = (position + 1).clamp(max=min(cache.capacity, config.context) - 1)
        # From here on nothing needs memory: a tick that finds none runs again from where it was.
        token.copy_(new)
        state['logprob'].copy_(logprob)
        position.copy_(after)
