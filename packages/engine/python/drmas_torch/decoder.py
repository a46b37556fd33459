"""The forward pass of a decoder of the Llama layout (Llama, Mistral, Qwen 2 and 3, SmolLM3, Gemma 3, LFM2) over rows.

One pass serves training, prefill and decoding, which differ only in their mixer: how a row reads the rows before it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from .attention import Mixer, masked_softmax
from .config import Config
from .draws import draw
from .head import scores, slopes

KINDS = 64

Adds = Callable[[int, str, Tensor, Tensor], Tensor]
"""From a layer, its matrix, x and their product, which it may change, to that product with what an adapter adds."""


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
            None if layer in skipped else 'local' if config.window_of(layer) is not None else 'plain'
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


def added(
    x: Tensor, result: Tensor, result_gain: Tensor | None, gain: Tensor, epsilon: float, offset: bool
) -> tuple[Tensor, Tensor]:
    """The stream after the result of a block, which may have a norm of its own, and the norm of that stream."""
    x = x + (result if result_gain is None else rms_norm(result, result_gain, epsilon, offset))
    return x, rms_norm(x, gain, epsilon, offset)


def turned(
    q: Tensor,
    k: Tensor,
    gains: tuple[Tensor, Tensor] | None,
    turn: tuple[Tensor, Tensor] | None,
    epsilon: float,
    offset: bool,
) -> tuple[Tensor, Tensor]:
    """Queries and keys, normed where the decoder has `gains` of heads, and rotated."""
    if gains is not None:
        q, k = rms_norm(q, gains[0], epsilon, offset), rms_norm(k, gains[1], epsilon, offset)
    return (q, k) if turn is None else (rotate(q, *turn), rotate(k, *turn))


def gated(gate_up: Tensor, gelu: bool) -> Tensor:
    gate, up = gate_up.chunk(2, -1)
    return (F.gelu(gate, approximate='tanh') if gelu else F.silu(gate)) * up


def compiled(work: Any) -> Any:
    """As kernels of a card. Each kind of arguments has its own: number types, shapes of decoders, with and without a
    gradient. After `KINDS` of them PyTorch goes on without compiling. Sizes that are equal by chance make no kind."""
    from torch._dynamo import config
    from torch._inductor import config as inductor
    from torch.fx.experimental import _config as symbols

    # One piece has a kernel or two. Processes that compile them side by side would outlive this one, and hold its
    # pipes.
    inductor.compile_threads = 1
    config.recompile_limit = KINDS
    symbols.use_duck_shape = False
    return torch.compile(work, dynamic=True)


@dataclass(frozen=True)
class Pieces:
    """What lies between the products; on a card each is compiled to a kernel or two."""

    rms_norm: Callable[..., Tensor] = rms_norm
    added: Callable[..., tuple[Tensor, Tensor]] = added
    turned: Callable[..., tuple[Tensor, Tensor]] = turned
    gated: Callable[..., Tensor] = gated
    softmax: Callable[..., Tensor] = masked_softmax
    draw: Callable[..., tuple[Tensor, Tensor]] = draw
    scores: Callable[..., tuple[Tensor, Tensor]] = scores
    slopes: Callable[..., Tensor] = slopes
    flex: Callable[..., Tensor] | None = None
    """FlexAttention, for a card."""

    @staticmethod
    def on(device: torch.device) -> Pieces:
        if device.type != 'cuda':
            return Pieces()
        from torch.nn.attention.flex_attention import flex_attention

        pieces = rms_norm, added, turned, gated, masked_softmax, draw, scores, slopes, flex_attention
        return Pieces(*map(compiled, pieces))


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
        result: Tensor | None = None
        for i in range(self.config.layers):
            inputs = i, x, result, turns[i], mixer, adds
            if recompute and torch.is_grad_enabled():
                x, result = checkpoint(self._layer, *inputs, use_reentrant=False, preserve_rng_state=False)
            else:
                x, result = self._layer(*inputs)
        return self._added(x, result, self.config.layers - 1, 'feedForward', 'finalNorm')[1]

    def _added(self, x: Tensor, result: Tensor | None, layer: int, block: str, norm: str) -> tuple[Tensor, Tensor]:
        """The stream after the result of a layer's block, and its norm of this name."""
        c, gain = self.config, self.tensors[norm]
        if result is None:
            return x, self.pieces.rms_norm(x, gain, c.norm_epsilon, c.offset_norms)
        of_result = self.tensors[f'layers.{layer}.{block}ResultNorm'] if c.result_norms else None
        return self.pieces.added(x, result, of_result, gain, c.norm_epsilon, c.offset_norms)

    def _product(self, layer: int, name: str, x: Tensor, adds: Adds | None, bias: str | None = None) -> Tensor:
        w = self.matrix(f'layers.{layer}.{name}')
        offsets = self.tensors[f'layers.{layer}.{bias}'] if bias else None
        y = torch.addmm(offsets.to(x.dtype), x, w) if offsets is not None and offsets.numel() else x @ w
        return y if adds is None else adds(layer, name, x, y)

    def _layer(
        self,
        i: int,
        x: Tensor,
        result: Tensor | None,
        turn: tuple[Tensor, Tensor] | None,
        mixer: Mixer,
        adds: Adds | None,
    ) -> tuple[Tensor, Tensor]:
        """From the stream and the result of the layer before, which is still to be added, to the same of this one."""
        c, at = self.config, f'layers.{i}.'
        x, normed = self._added(x, result, i - 1, 'feedForward', at + 'attentionNorm')
        qkv = self._product(i, 'qkv', normed, adds, 'qkvBias')
        if i in c.convolving:
            b, gate, inner = qkv.chunk(3, -1)
            mixed = gate * mixer.convolve(i, b * inner, self.tensors[at + 'convolution'].to(self.dtype))
        else:
            heads = qkv.view(len(x), -1, c.head_dim)
            q, k, v = heads.split((c.heads, c.kv_heads, c.kv_heads), 1)
            gains = (self.tensors[at + 'queryNorm'], self.tensors[at + 'keyNorm']) if c.query_key_norm else None
            if gains is not None or turn is not None:
                q, k = self.pieces.turned(q, k, gains, turn, c.norm_epsilon, c.offset_norms)
            mixed = mixer.attend(i, q, k, v).reshape(len(x), c.heads * c.head_dim)
        result = self._product(i, 'attentionOut', mixed, adds, 'attentionOutBias')
        x, normed = self._added(x, result, i, 'attention', at + 'feedForwardNorm')
        gate_up = self._product(i, 'gateUp', normed, adds)
        return x, self._product(i, 'down', self.pieces.gated(gate_up, c.gate == 'gelu'), adds)
