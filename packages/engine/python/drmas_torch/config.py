"""The shape of a decoder, and the order of its numbers in one flat buffer.

The order is that of the engines in TypeScript (`decoder-tensors.ts`, `adapter-tensors.ts`), so that weights, moments
and their hashes are the same bytes on every engine. Matrices are [inputs, outputs] and used as y = x W.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from .messages import AdapterJson, DecoderJson

ELSEWHERE = ('ropeBase', 'ropeScaling')
"""Fields of a model that are not read here: the frequencies of its rotation come as arrays."""
MATRICES = ('qkv', 'attentionOut', 'gateUp', 'down')
Shapes = list[tuple[str, tuple[int, ...]]]


@dataclass(frozen=True)
class Config:
    """`DecoderConfig` of the engine (src/contract/architecture.ts), as far as a forward pass needs it."""

    vocab_size: int
    width: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    feed_forward: int
    context: int
    norm_epsilon: float
    attention_bias: str | None = None  # 'qkv', or 'qkvo' with one for the output projection
    query_key_norm: bool = False
    gate: str = 'silu'
    offset_norms: bool = False
    result_norms: bool = False
    scaled_embedding: bool = False
    score_divisor: float | None = None
    unrotated_layers: Sequence[int] = ()
    untied_output: bool = False
    sliding_window: DecoderJson = field(default_factory=dict)  # positions and layers
    convolution: DecoderJson = field(default_factory=dict)  # taps and layers

    @staticmethod
    def of(json: DecoderJson) -> Config:
        """@throws TypeError naming a field that the worker does not know: without it the model would be another one"""
        given = {key: value for key, value in json.items() if value is not None and key not in ELSEWHERE}
        return Config(**{re.sub('[A-Z]', lambda capital: '_' + capital[0].lower(), key): given[key] for key in given})

    @property
    def score_scale(self) -> float:
        return (self.score_divisor or self.head_dim) ** -0.5

    @property
    def taps(self) -> int:
        return self.convolution.get('taps', 0)

    @property
    def convolving(self) -> list[int]:
        """The layers that convolve instead of attending."""
        return self.convolution.get('layers', [])

    def window_of(self, layer: int) -> int | None:
        """How many positions a query of this layer sees, its own included; None: all."""
        return self.sliding_window['positions'] if layer in self.sliding_window.get('layers', ()) else None

    def kept(self, layer: int) -> list[tuple[int, int]]:
        """Heads and sizes of what a layer keeps of each token for later ones: keys and values, or its inputs."""
        return [(1, self.width)] if layer in self.convolving else 2 * [(self.kv_heads, self.head_dim)]

    def matrix(self, layer: int, name: str) -> tuple[int, list[tuple[str, int]]]:
        """The inputs of a matrix, and the projections that it holds side by side with their outputs."""
        q, kv = self.heads * self.head_dim, self.kv_heads * self.head_dim
        if name == 'qkv':
            if layer in self.convolving:
                return self.width, [('in', 3 * self.width)]
            return self.width, [('q', q), ('k', kv), ('v', kv)]
        if name == 'attentionOut':
            return q, [('o', self.width)]
        if name == 'gateUp':
            return self.width, [('gate', self.feed_forward), ('up', self.feed_forward)]
        return self.feed_forward, [('down', self.width)]

    def shapes(self) -> Shapes:
        """All tensors of the decoder in the order of the flat buffer; a feature that it lacks has empty ones."""
        qkv = (self.heads + 2 * self.kv_heads) * self.head_dim
        shapes: Shapes = [('embedding', (self.vocab_size, self.width))]
        for layer in range(self.layers):
            convolves = layer in self.convolving

            def matrix(name: str, layer: int = layer) -> tuple[int, int]:
                inputs, parts = self.matrix(layer, name)
                return inputs, sum(outputs for _, outputs in parts)

            head_norm = self.head_dim if self.query_key_norm and not convolves else 0
            result_norm = self.width if self.result_norms else 0
            for name, shape in (
                ('attentionNorm', (self.width,)),
                ('qkv', matrix('qkv')),
                ('attentionOut', matrix('attentionOut')),
                ('feedForwardNorm', (self.width,)),
                ('gateUp', matrix('gateUp')),
                ('down', matrix('down')),
                ('qkvBias', (qkv if self.attention_bias else 0,)),
                ('attentionOutBias', (self.width if self.attention_bias == 'qkvo' else 0,)),
                ('queryNorm', (head_norm,)),
                ('keyNorm', (head_norm,)),
                ('attentionResultNorm', (result_norm,)),
                ('feedForwardResultNorm', (result_norm,)),
                ('convolution', (self.taps, self.width) if convolves else (0,)),
            ):
                shapes.append((f'layers.{layer}.{name}', shape))
        shapes.append(('finalNorm', (self.width,)))
        if self.untied_output:
            shapes.append(('output', (self.vocab_size, self.width)))
        return shapes


@dataclass(frozen=True)
class AdapterSettings:
    """A low-rank adapter: y = x W + (alpha / rank) (x A) B for each projection among `targets`."""

    rank: int
    alpha: float
    targets: tuple[str, ...]

    @staticmethod
    def of(json: AdapterJson) -> AdapterSettings:
        return AdapterSettings(json['rank'], json['alpha'], tuple(json['targets']))

    @property
    def scale(self) -> float:
        return self.alpha / self.rank

    def adapts(self, projection: str) -> bool:
        if projection == 'in':  # the joined projection of a layer that convolves
            return any(target in 'qkv' for target in self.targets)
        return projection in self.targets

    def adapted(self, config: Config, layer: int, matrix: str) -> list[tuple[str, int]]:
        """The adapted projections of a matrix with their outputs."""
        return [part for part in config.matrix(layer, matrix)[1] if self.adapts(part[0])]

    def shapes(self, config: Config) -> Shapes:
        """Of each adapted matrix A [inputs, n · rank], then the B [rank, outputs] of each of its n projections."""
        shapes: Shapes = []
        for layer in range(config.layers):
            for matrix in MATRICES:
                adapted = self.adapted(config, layer, matrix)
                if not adapted:
                    continue
                name = f'layers.{layer}.{matrix}'
                shapes.append((f'{name}.A', (config.matrix(layer, matrix)[0], len(adapted) * self.rank)))
                shapes += [(f'{name}.B.{projection}', (self.rank, outputs)) for projection, outputs in adapted]
        return shapes


def size_of(shapes: Iterable[tuple[str, Sequence[int]]]) -> int:
    return sum(math.prod(shape) for _, shape in shapes)


def views(flat: Tensor, shapes: Shapes) -> dict[str, Tensor]:
    """Tensors of these shapes as views of a flat buffer, one after another."""
    tensors, at = {}, 0
    for name, shape in shapes:
        size = math.prod(shape)
        tensors[name] = flat[at : at + size].view(shape)
        at += size
    if at != flat.numel():
        raise ValueError(f'expected {at} numbers, got {flat.numel()}')
    return tensors


def sent(numbers: Tensor, device: torch.device) -> Tensor:
    """On the device; a card goes on computing meanwhile, for which a copy must start from pinned memory."""
    if device.type != 'cuda' or numbers.is_cuda or not numbers.numel():
        return numbers.to(device)
    return numbers.pin_memory().to(device, non_blocking=True)


def widest(device: torch.device) -> torch.dtype:
    """The number type of long sums; GPUs of Apple have no doubles."""
    return torch.float32 if device.type == 'mps' else torch.float64
