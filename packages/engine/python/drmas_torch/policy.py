"""Models that train: policies (a whole decoder, an adapter on a base, a trunk with an adapter for each agent) and
critics."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from .adapters import adapter_adds
from .attention import ROWS, padded
from .config import AdapterSettings, sent, size_of
from .decoder import Adds, Decoder
from .graphs import Graphs
from .head import TokenScores, logits_of, scale_of_scores
from .messages import Refusal
from .place import Place
from .trained import Slice, Trained, norm_of
from .tree import Tree, groups_of


@dataclass(frozen=True)
class Sample:
    """A sequence whose tokens with mask 1 are predicted. `agent`: whose adapter it passes through, on a trunk."""

    tokens: np.ndarray
    mask: np.ndarray
    temperature: float
    agent: str

    @property
    def read(self) -> np.ndarray:
        """The tokens that get a row: all but the last."""
        return self.tokens[:-1]

    @property
    def written(self) -> np.ndarray:
        """The places of the predicted tokens."""
        return np.flatnonzero(self.mask[1:]) + 1


@dataclass(frozen=True)
class Batch:
    """A micro-batch after its forward pass: the samples' numbers, and of their written tokens one after another the
    normed stream [N, width], padded by rows that nobody reads."""

    samples: list[int]
    written: list[np.ndarray]
    hidden: Tensor
    targets: Tensor
    scale: Tensor

    @property
    def count(self) -> int:
        return sum(len(places) for places in self.written)

    def numbers(self, values: Tensor) -> np.ndarray:
        """Those of the written tokens [count]."""
        return values.detach()[: self.count].float().cpu().numpy()

    def spread(self, rows: list[np.ndarray], numbers: np.ndarray) -> None:
        """Writes one number for each written token to the samples' rows."""
        ends = np.cumsum([len(places) for places in self.written])
        parts = np.split(numbers, ends[:-1])
        for i, places, part in zip(self.samples, self.written, parts, strict=True):
            rows[i][places] = part


Upstream = Callable[..., Sequence[np.ndarray]]
"""From a batch and the scores [N] of its written tokens to the loss's slopes with respect to each kind of score."""


class Policy:
    """A whole decoder that trains, an adapter that trains on a base, a trunk with an adapter for each agent that all
    train, or a base that only scores. The flat buffer of a trunk has the decoder, then the adapters."""

    scored: tuple[str, ...] = ('logprobs', 'entropies')
    """The kinds of scores."""

    def __init__(
        self,
        place: Place,
        decoder: Decoder,
        weights: Trained | None,
        settings: AdapterSettings | None = None,
        agents: Sequence[str] = (),
    ) -> None:
        self.place, self.decoder, self.config, self.settings = place, decoder, decoder.config, settings
        self.weights, self.agents = weights, tuple(agents)
        self._graphs = Graphs(place.device, place.memory)
        self.adapters: dict[str, dict[str, Tensor]] = {}
        """By agent; '' is the adapter of all."""
        if weights is not None and settings is not None:
            names = [name for name, _ in settings.shapes(self.config)]
            for agent in self.agents or ('',):
                prefix = f'{agent} ' if agent else ''
                self.adapters[agent] = {name: weights.tensors[prefix + name] for name in names}

    @property
    def trained(self) -> Trained:
        """@throws Refusal if nothing trains"""
        if self.weights is None:
            raise Refusal('a frozen model has no weights of its own to train', 'ArgumentError')
        return self.weights

    @property
    def parts(self) -> list[Trained]:
        """What trains together."""
        return [self.trained]

    def _reading(self, leaves: Sequence[Tensor], agent: str) -> tuple[Decoder, Adds | None]:
        """The decoder, and what this agent's adapter adds to it, with these tensors for those that train; without any,
        with the weights themselves."""
        if agent and agent not in self.adapters:
            raise ValueError(f"agent '{agent}' has no adapter: expected one of {', '.join(self.agents)}")
        of, adapter = self.decoder, self.adapters.get(agent)
        if leaves:
            given = dict(zip(self.trained.tensors, leaves, strict=True))
            if of.tensors is self.trained.tensors:
                of = Decoder(of.config, given, of.ropes, of.dtype, of.pieces)
            if adapter is not None:
                adapter = {name: given[f'{agent} {name}' if agent else name] for name in adapter}
        if adapter is None or self.settings is None:
            return of, None
        return of, adapter_adds(self.config, self.settings, adapter)

    def slices(self, rates: dict[str, float] | None) -> list[Slice] | None:
        """The slices of the weights that a step with these rates of parts changes; None: all, at the settings' rate."""
        if rates is None:
            return None
        if not self.agents:
            raise ValueError('rates of parts need adapters of agents on the policy')
        if rates['trunk'] == rates['adapters'] == 1:
            return None
        border = size_of(self.config.shapes())
        parts = Slice(0, border, rates['trunk']), Slice(border, self.trained.flat.numel(), rates['adapters'])
        return [part for part in parts if part.rate > 0]

    def scores(self, batch: Batch) -> tuple[Tensor, ...]:
        return TokenScores.apply(self.place.pieces, batch.hidden, self.decoder.output, batch.targets, batch.scale)

    @torch.no_grad()
    def score(self, samples: Sequence[Sample]) -> list[np.ndarray]:
        """The first kind of scores of the written tokens, 0 elsewhere: one [T] row a sample."""
        rows = [np.zeros(len(sample.tokens), np.float32) for sample in samples]
        for batch in self.batches(samples):
            batch.spread(rows, batch.numbers(self.scores(batch)[0]))
        return rows

    @torch.no_grad()
    def logits(self, tokens: np.ndarray) -> np.ndarray:
        """The logits after each token [T, vocabulary], without adapters of agents."""
        hidden = self._hidden(Tree([tokens]), '')
        return logits_of(hidden[: padded(len(tokens), ROWS)], self.decoder.output)[: len(tokens)].cpu().numpy()

    def accumulate(self, samples: Sequence[Sample], upstream: Upstream) -> tuple[list[np.ndarray], float]:
        """Adds the gradient of a loss. Returns the first kind of scores and the norm of this call's gradient (a
        critic's: without its head). A call that fails adds nothing."""
        with ExitStack() as calls:
            targets = [calls.enter_context(part.call()) for part in self.parts]
            rows = [np.zeros(len(sample.tokens), np.float32) for sample in samples]
            for batch in self.batches(samples):
                scores = self.scores(batch)
                numbers = [batch.numbers(each) for each in scores]
                batch.spread(rows, numbers[0])
                slopes = upstream(batch, *numbers)
                if batch.count:
                    more = len(scores[0]) - batch.count
                    upstreams = [sent(torch.from_numpy(np.pad(each, (0, more))), self.place.device) for each in slopes]
                    torch.autograd.backward(scores, upstreams)
                # The next pass may be recorded, and needs the memory of this one.
                del batch, scores
            return rows, norm_of(targets[:1])

    def batches(self, samples: Sequence[Sample]) -> Iterator[Batch]:
        """Runs the forward pass of all samples, each agent by itself. Use a batch before asking for the next one."""
        for agent in dict.fromkeys(sample.agent for sample in samples):
            own = [i for i, sample in enumerate(samples) if sample.agent == agent]
            for group in groups_of([samples[i].read for i in own], self.place.rows):
                yield self._batch(samples, [own[i] for i in group], agent)

    def _batch(self, samples: Sequence[Sample], group: list[int], agent: str) -> Batch:
        some = [samples[i] for i in group]
        tree = Tree([sample.read for sample in some])
        hidden = self._hidden(tree, agent)
        written = [sample.written for sample in some]
        rows = np.concatenate([path[places - 1] for path, places in zip(tree.paths, written, strict=True)])
        targets = np.concatenate([sample.tokens[places] for sample, places in zip(some, written, strict=True)])
        scales = np.repeat([scale_of_scores(sample.temperature) for sample in some], [len(one) for one in written])
        more = padded(len(rows), ROWS) - len(rows)
        read, wanted, scale = (
            sent(torch.from_numpy(np.pad(part.astype(dtype), (0, more), constant_values=fill)), self.place.device)
            for part, dtype, fill in ((rows, np.int64, 0), (targets, np.int64, 0), (scales, np.float32, 1))
        )
        return Batch(group, written, hidden[read], wanted, scale)

    def _hidden(self, tree: Tree, agent: str) -> Tensor:
        packed = self.place.packed(self.config, [tree])

        def forward(numbers: Tensor, *leaves: Tensor) -> Tensor:
            tokens, positions, mixer = self.place.mixer(self.config, packed, numbers)
            decoder, adds = self._reading(leaves, agent)
            return decoder.hidden(tokens, positions, mixer, adds, self.place.recompute)

        leaves = list(self.trained.tensors.values()) if torch.is_grad_enabled() else []
        return self._graphs.run((agent, packed.sizes, bool(leaves)), packed.numbers, forward, leaves)


class Critic(Policy):
    """A model with a value head: the normed stream times the head's weights plus a bias."""

    scored = ('values',)

    def __init__(
        self, place: Place, decoder: Decoder, weights: Trained, settings: AdapterSettings | None, head: Tensor
    ) -> None:
        """`head`: weights [width], then the bias."""
        super().__init__(place, decoder, weights, settings)
        self.head = Trained(head, [('head', (head.numel(),))])

    @property
    def parts(self) -> list[Trained]:
        return [self.trained, self.head]

    def scores(self, batch: Batch) -> tuple[Tensor, ...]:
        head = self.head.tensors['head']
        return (batch.hidden.float() @ head[:-1] + head[-1],)
