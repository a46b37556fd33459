"""Models that train: policies (a whole decoder, an adapter on a base, a trunk with an adapter for each agent) and
critics."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from .adapters import adapter_adds
from .attention import (
    ROWS,
    SequenceMixer,
    TreeMixer,
    ancestors_of,
    padded,
    segments_of,
)
from .config import AdapterSettings, Config, size_of, views
from .decoder import Adds, Decoder, Mixer, Pieces, Ropes
from .head import TokenScores, logits_of, scale_of_scores
from .trained import Slice, Trained
from .tree import Tree, groups_of

ROWS_ON_A_CARD = 1024
"""Rows of a batch on a card are a multiple of this: few lengths to compile for."""


@dataclass(frozen=True)
class Place:
    """Where an engine computes. `rows`: the most rows of a micro-batch."""

    device: torch.device
    rows: int
    pieces: Pieces
    flex: Callable[..., Tensor] | None
    recompute: bool

    def training(self, config: Config, tree: Tree) -> tuple[Tensor, Tensor, Mixer]:
        """Tokens, positions and the mixer of a tree, padded by rows that see only themselves."""
        multiple = ROWS if self.flex is None else ROWS_ON_A_CARD
        rows = padded(tree.rows, multiple)
        tokens, positions = (
            torch.from_numpy(np.pad(part, (0, rows - tree.rows))).to(self.device)
            for part in (tree.tokens, tree.positions)
        )
        ancestors = torch.from_numpy(ancestors_of(tree.paths, rows, config.taps)).to(self.device)
        if self.flex is None:
            return tokens, positions, SequenceMixer(config, positions, segments_of(tree), ancestors)
        end = np.concatenate((tree.end, np.arange(tree.rows, rows) + 1))
        mixer = TreeMixer(config, torch.from_numpy(end).to(self.device), positions, self.flex, ancestors=ancestors)
        return tokens, positions, mixer


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


class Base:
    """A model that does not train, in the number type of its products."""

    def __init__(self, config: Config, flat: Tensor, ropes: Ropes, place: Place, dtype: torch.dtype) -> None:
        tensors = views(flat, config.shapes())
        self.config, self.ropes, self.dtype = config, ropes, dtype
        self.tensors = {
            name: tensor.to(place.device, dtype if tensor.dim() == 2 else torch.float32, copy=True)
            for name, tensor in tensors.items()
        }
        self.decoder = Decoder(config, self.tensors, ropes, dtype, place.pieces)

    def flat(self) -> np.ndarray:
        return torch.cat([tensor.float().reshape(-1).cpu() for tensor in self.tensors.values()]).numpy()


class Model:
    """A decoder with the weights of it that train. `trained` is None for a base that only scores."""

    def __init__(self, place: Place, decoder: Decoder, trained: Trained | None) -> None:
        self.place, self.decoder, self.trained = place, decoder, trained
        self.config = decoder.config
        self.rows_computed = 0

    def adds_of(self, agent: str) -> Adds | None:
        return None

    def batches(self, samples: Sequence[Sample]) -> Iterator[Batch]:
        """Runs the forward pass of all samples, each agent by itself. Use a batch before asking for the next one."""
        self.rows_computed = 0
        for agent in dict.fromkeys(sample.agent for sample in samples):
            own = [i for i, sample in enumerate(samples) if sample.agent == agent]
            for group in groups_of([samples[i].read for i in own], self.place.rows):
                yield self._batch(samples, [own[i] for i in group], self.adds_of(agent))

    def _batch(self, samples: Sequence[Sample], group: list[int], adds: Adds | None) -> Batch:
        some = [samples[i] for i in group]
        tree = Tree([sample.read for sample in some])
        self.rows_computed += tree.rows
        hidden = self._hidden(tree, adds)
        written = [sample.written for sample in some]
        rows = np.concatenate([path[places - 1] for path, places in zip(tree.paths, written, strict=True)])
        targets = np.concatenate([sample.tokens[places] for sample, places in zip(some, written, strict=True)])
        scales = np.repeat(
            np.array([scale_of_scores(sample.temperature) for sample in some], np.float32),
            [len(places) for places in written],
        )
        more = padded(len(rows), ROWS) - len(rows)
        device = self.place.device
        read, wanted = (
            torch.from_numpy(np.pad(part.astype(np.int64), (0, more))).to(device) for part in (rows, targets)
        )
        scale = torch.from_numpy(np.pad(scales, (0, more), constant_values=1)).to(device)
        return Batch(group, written, hidden[read], wanted, scale)

    def _hidden(self, tree: Tree, adds: Adds | None) -> Tensor:
        tokens, positions, mixer = self.place.training(self.config, tree)
        return self.decoder.hidden(tokens, positions, mixer, adds, self.place.recompute)

    @torch.no_grad()
    def score(self, samples: Sequence[Sample]) -> list[np.ndarray]:
        """The log-probs of the written tokens, 0 elsewhere: one [T] row a sample."""
        rows = [np.zeros(len(sample.tokens), np.float32) for sample in samples]
        for batch in self.batches(samples):
            logprobs, _ = TokenScores.apply(batch.hidden, self.decoder.output, batch.targets, batch.scale)
            spread(rows, batch, logprobs)
        return rows

    @torch.no_grad()
    def logits(self, tokens: np.ndarray) -> np.ndarray:
        """The logits after each token [T, vocabulary], without adapters of agents."""
        hidden = self._hidden(Tree([tokens]), self.adds_of(''))
        return logits_of(hidden[: padded(len(tokens), ROWS)], self.decoder.output)[: len(tokens)].cpu().numpy()


Upstream = Callable[[Batch, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]
"""From the log-probs and entropies [N] of a batch's written tokens to the loss's slopes with respect to both."""


def spread(rows: list[np.ndarray], batch: Batch, values: Tensor) -> None:
    """Writes one number for each written token of a batch to the samples' rows."""
    numbers, at = values.detach().float().cpu().numpy(), 0
    for i, places in zip(batch.samples, batch.written, strict=True):
        rows[i][places] = numbers[at : at + len(places)]
        at += len(places)


def padded_slopes(slopes: np.ndarray, like: Tensor) -> Tensor:
    """Slopes of the written tokens, 0 for the padding."""
    return torch.from_numpy(np.pad(slopes, (0, len(like) - len(slopes)))).to(like.device, like.dtype)


class Policy(Model):
    """A whole decoder that trains, an adapter that trains on a base, or a base that only scores."""

    def __init__(
        self, place: Place, decoder: Decoder, trained: Trained | None, settings: AdapterSettings | None = None
    ) -> None:
        super().__init__(place, decoder, trained)
        self.settings = settings

    def adds_of(self, agent: str) -> Adds | None:
        if self.settings is None or self.trained is None:
            return None
        return adapter_adds(self.config, self.settings, self.trained.tensors)

    def accumulate(self, samples: Sequence[Sample], upstream: Upstream) -> tuple[list[np.ndarray], float]:
        """Adds the gradient of a loss. Returns the log-probs and the norm of the gradient of this call."""
        trained = self._trained
        target = trained.begin_call()
        try:
            rows = [np.zeros(len(sample.tokens), np.float32) for sample in samples]
            for batch in self.batches(samples):
                scores = TokenScores.apply(batch.hidden, self.decoder.output, batch.targets, batch.scale)
                spread(rows, batch, scores[0])
                count = batch.count
                slopes = upstream(batch, *(part.detach()[:count].float().cpu().numpy() for part in scores))
                if count:
                    torch.autograd.backward(scores, [padded_slopes(each, scores[0]) for each in slopes])
        finally:
            norm = trained.end_call(target)
        return rows, norm

    @property
    def _trained(self) -> Trained:
        if self.trained is None:
            raise ValueError('a frozen model has no weights of its own to train')
        return self.trained

    def slices(self, rates: dict[str, float] | None) -> list[Slice] | None:
        """The slices of the weights that a step with these rates of parts changes; None: all, at the settings' rate."""
        if rates is not None:
            raise ValueError('rates of parts need adapters of agents on the policy')
        return None


class Trunk(Policy):
    """A whole decoder with an adapter for each agent; all of it trains. The flat buffer has the decoder, then the
    adapters."""

    def __init__(
        self,
        place: Place,
        config: Config,
        ropes: Ropes,
        dtype: torch.dtype,
        flat: Tensor,
        agents: Sequence[str],
        settings: AdapterSettings,
    ) -> None:
        whole, each = config.shapes(), settings.shapes(config)
        shapes = whole + [(f'{agent} {name}', shape) for agent in agents for name, shape in each]
        trained = Trained(flat, shapes)
        super().__init__(place, Decoder(config, trained.tensors, ropes, dtype, place.pieces), trained, settings)
        self.agents, self.border = tuple(agents), size_of(whole)
        self._names = [name for name, _ in each]
        self._adds = {agent: adapter_adds(config, settings, self.adapter(agent)) for agent in agents}

    def adapter(self, agent: str) -> dict[str, Tensor]:
        """The tensors of an agent's adapter."""
        tensors = self._trained.tensors
        return {name: tensors[f'{agent} {name}'] for name in self._names}

    def adds_of(self, agent: str) -> Adds | None:
        if agent == '':
            return None
        if agent not in self._adds:
            raise ValueError(f"agent '{agent}' has no adapter: expected one of {', '.join(self.agents)}")
        return self._adds[agent]

    def slices(self, rates: dict[str, float] | None) -> list[Slice] | None:
        if rates is None or rates['trunk'] == rates['adapters'] == 1:
            return None
        parts = [
            Slice(0, self.border, rates['trunk']),
            Slice(self.border, self._trained.flat.numel(), rates['adapters']),
        ]
        return [part for part in parts if part.rate > 0]


class Critic:
    """A decoder, or an adapter on one, with a value head: the normed stream times the head's weights plus a bias."""

    def __init__(self, policy: Policy, head: Tensor) -> None:
        """`policy`: a model of its own. `head`: weights [width], then the bias."""
        self.policy = policy
        self.head = Trained(head, [('head', (head.numel(),))])
        if policy.trained is None:
            raise ValueError('a frozen model has no weights of its own to train')
        self.trunk = policy.trained

    def _values(self, batch: Batch) -> Tensor:
        head = self.head.tensors['head']
        return batch.hidden.float() @ head[:-1] + head[-1]

    @torch.no_grad()
    def values(self, samples: Sequence[Sample]) -> list[np.ndarray]:
        """A value for each written token, from the tokens before it; 0 elsewhere."""
        rows = [np.zeros(len(sample.tokens), np.float32) for sample in samples]
        for batch in self.policy.batches(samples):
            spread(rows, batch, self._values(batch))
        return rows

    def accumulate(self, samples: Sequence[Sample], upstream: Callable[[Batch, np.ndarray], np.ndarray]) -> None:
        """Adds the gradient of a loss, from the values of a batch's written tokens [N] to the loss's slopes."""
        targets = [part.begin_call() for part in (self.trunk, self.head)]
        try:
            for batch in self.policy.batches(samples):
                values = self._values(batch)
                slopes = upstream(batch, values.detach()[: batch.count].cpu().numpy())
                if batch.count:
                    values.backward(padded_slopes(slopes, values))
        finally:
            for part, target in zip((self.trunk, self.head), targets, strict=True):
                part.end_call(target)
