"""The forward pass of a decoder of the Llama layout (Llama, Mistral, Qwen 2 and 3, SmolLM3, Gemma 3, LFM2) over rows.

One pass serves training, prefill and decoding, which differ only in their mixer: how a row reads the rows before it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from .attention import Mixer
from .config import Config

Adds = Callable[[int, str, Tensor], 'Tensor | None']
"""What an adapter adds to the product of a layer's matrix with x; None if it does not adapt the matrix."""


class Ropes:
    """Cosines and sines of all positions, [context, d / 2] each, for layers with and without a sliding window."""

    def __init__(self, config: Config, frequencies: np.ndarray, local: np.ndarray | None, device: torch.device) -> None:
        def table(of: np.ndarray) -> tuple[Tensor, Tensor]:
            # Angles are rounded to float32, as transformers and the engine in TypeScript round them.
            angles = np.arange(config.context, dtype=np.float32)[:, None] * of.astype(np.float32)[None, :]
            wide = angles.astype(np.float64)
            return tuple(torch.from_numpy(f(wide).astype(np.float32)).to(device) for f in (np.cos, np.sin))  # type: ignore

        self.tables = {'plain': table(frequencies)}
        if local is not None:
            self.tables['local'] = table(local)
        skipped = {*config.unrotated_layers, *config.convolving}
        self.of_layer = [
            None if layer in skipped else 'local' if layer in config.window_layers else 'plain'
            for layer in range(config.layers)
        ]

    def at(self, positions: Tensor) -> list[tuple[Tensor, Tensor] | None]:
        """Of each layer the cosines and sines of these positions, [R, 1, d / 2] each."""
        turns = {
            name: (cos[positions][:, None, :], sin[positions][:, None, :]) for name, (cos, sin) in self.tables.items()
        }
        return [None if name is None else turns[name] for name in self.of_layer]


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """The halves of a head are turned against each other."""
    a, b = x.float().chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1).to(x.dtype)


def rms_norm(x: Tensor, gain: Tensor, epsilon: float, offset: bool) -> Tensor:
    wide = x.float()
    scale = torch.rsqrt(wide.square().mean(-1, keepdim=True) + epsilon)
    return (wide * scale * (gain + 1 if offset else gain)).to(x.dtype)


def gated(gate_up: Tensor, gelu: bool) -> Tensor:
    gate, up = gate_up.chunk(2, -1)
    return (F.gelu(gate, approximate='tanh') if gelu else F.silu(gate)) * up


@dataclass(frozen=True)
class Pieces:
    """What lies between the products; on a card each is compiled to one kernel."""

    rotate: Callable[..., Tensor] = rotate
    rms_norm: Callable[..., Tensor] = rms_norm
    gated: Callable[..., Tensor] = gated

    @staticmethod
    def on(device: torch.device) -> Pieces:
        if device.type != 'cuda':
            return Pieces()
        return Pieces(*(torch.compile(piece, dynamic=True) for piece in (rotate, rms_norm, gated)))


class Decoder:
    """A decoder with given weights (`Config.shapes`). `dtype` is that of products; matrices in another one are cast."""

    def __init__(
        self, config: Config, tensors: dict[str, Tensor], ropes: Ropes, dtype: torch.dtype, pieces: Pieces
    ) -> None:
        self.config, self.tensors, self.ropes, self.dtype, self.pieces = config, tensors, ropes, dtype, pieces

    @property
    def output(self) -> Tensor:
        """The output head [vocabulary, width]."""
        return self.matrix('output' if self.config.untied_output else 'embedding')

    def matrix(self, name: str) -> Tensor:
        return self.tensors[name].to(self.dtype)

    def hidden(
        self, tokens: Tensor, positions: Tensor, mixer: Mixer, adds: Adds | None = None, recompute: bool = False
    ) -> Tensor:
        """The normed stream [R, width] of rows with these tokens and positions, [R] each."""
        x = F.embedding(tokens, self.tensors['embedding']).to(self.dtype)
        if self.config.scaled_embedding:
            x = x * math.sqrt(self.config.width)
        turns = self.ropes.at(positions)
        for i in range(self.config.layers):
            if recompute and torch.is_grad_enabled():
                x = checkpoint(self._layer, i, x, turns[i], mixer, adds, use_reentrant=False)
            else:
                x = self._layer(i, x, turns[i], mixer, adds)
        return self._norm(x, 'finalNorm')

    def _norm(self, x: Tensor, name: str) -> Tensor:
        return self.pieces.rms_norm(x, self.tensors[name], self.config.norm_epsilon, self.config.offset_norms)

    def _product(self, layer: int, name: str, x: Tensor, adds: Adds | None, bias: str | None = None) -> Tensor:
        w = self.matrix(f'layers.{layer}.{name}')
        offsets = self.tensors[f'layers.{layer}.{bias}'] if bias else None
        y = torch.addmm(offsets.to(x.dtype), x, w) if offsets is not None and offsets.numel() else x @ w
        added = adds(layer, name, x) if adds is not None else None
        return y if added is None else y + added

    def _layer(self, i: int, x: Tensor, turn: tuple[Tensor, Tensor] | None, mixer: Mixer, adds: Adds | None) -> Tensor:
        c, at = self.config, f'layers.{i}.'
        qkv = self._product(i, 'qkv', self._norm(x, at + 'attentionNorm'), adds, 'qkvBias')
        if i in c.convolving:
            b, gate, inner = qkv.chunk(3, -1)
            mixed = gate * mixer.convolve(i, b * inner, self.tensors[at + 'convolution'].to(self.dtype))
        else:
            heads = qkv.view(len(x), -1, c.head_dim)
            q, k, v = heads.split((c.heads, c.kv_heads, c.kv_heads), 1)
            if c.query_key_norm:
                q, k = self._norm(q, at + 'queryNorm'), self._norm(k, at + 'keyNorm')
            if turn is not None:
                q, k = self.pieces.rotate(q, *turn), self.pieces.rotate(k, *turn)
            mixed = mixer.attend(i, q, k, v).reshape(len(x), c.heads * c.head_dim)
        result = self._product(i, 'attentionOut', mixed, adds, 'attentionOutBias')
        x = x + (self._norm(result, at + 'attentionResultNorm') if c.result_norms else result)
        gate_up = self._product(i, 'gateUp', self._norm(x, at + 'feedForwardNorm'), adds)
        result = self._product(i, 'down', self.pieces.gated(gate_up, c.gate == 'gelu'), adds)
        return x + (self._norm(result, at + 'feedForwardResultNorm') if c.result_norms else result)
