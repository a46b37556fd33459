"""Log-probs and entropies of given tokens from the normed stream, in blocks of rows, so that logits of the whole
vocabulary exist for one block at a time. They are computed again for the gradient."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from .attention import wide_product

if TYPE_CHECKING:
    from .decoder import Pieces

BLOCK_LOGITS = 2**26
COOLEST, HOTTEST = 1e-30, 1e30


def scale_of_draws(temperature: float) -> float:
    """The factor of the logits from which a token is drawn; 0 takes the most probable one."""
    return 0.0 if temperature < COOLEST else 1 / min(temperature, HOTTEST)


def scale_of_scores(temperature: float) -> float:
    """The factor of the logits whose softmax gives log-probs: 1 for a greedy sample."""
    return scale_of_draws(temperature) or 1.0


def logits_of(hidden: Tensor, output: Tensor) -> Tensor:
    """In float32: a narrow number type would round them by more than samplers and trainers may differ."""
    return wide_product(hidden, output.t())


def scores(logits: Tensor, targets: Tensor, scale: Tensor) -> tuple[Tensor, Tensor]:
    """Log-probs of the targets and entropies [N] from logits [N, V] and their scales [N]."""
    logits = logits * scale[:, None]
    total = torch.logsumexp(logits, -1)
    entropies = total - (torch.softmax(logits, -1) * logits).sum(-1)
    return logits.gather(1, targets[:, None])[:, 0] - total, entropies


def slopes(
    logits: Tensor, targets: Tensor, scale: Tensor, of_logprobs: Tensor, of_entropies: Tensor, dtype: torch.dtype
) -> Tensor:
    """The slopes of a loss with respect to the logits [N, V], from its slopes with respect to the scores [N]."""
    logits = logits * scale[:, None]
    total = torch.logsumexp(logits, -1, keepdim=True)
    p = torch.exp(logits - total)
    entropy = total - (p * logits).sum(-1, keepdim=True)
    d = -p * of_logprobs[:, None] - p * (logits - total + entropy) * of_entropies[:, None]
    written = torch.arange(logits.shape[1], device=logits.device) == targets[:, None]
    return (torch.where(written, d + of_logprobs[:, None], d) * scale[:, None]).to(dtype)


class TokenScores(torch.autograd.Function):
    """From hidden [N, width], output [V, width], targets [N] and scales of the logits [N] to log-probs and entropies
    [N]."""

    @staticmethod
    def forward(
        ctx: Any, pieces: Pieces, hidden: Tensor, output: Tensor, targets: Tensor, scale: Tensor
    ) -> tuple[Tensor, ...]:
        rows = max(8, BLOCK_LOGITS // output.shape[0] // 8 * 8)
        ctx.save_for_backward(hidden, output, targets, scale)
        ctx.pieces, ctx.blocks = pieces, [slice(first, first + rows) for first in range(0, len(targets), rows)]
        found = [pieces.scores(logits_of(hidden[some], output), targets[some], scale[some]) for some in ctx.blocks]
        return tuple(map(torch.cat, zip(*found, strict=True))) or 2 * (scale.new_zeros(0),)

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor | None, ...]:
        hidden, output, targets, scale = ctx.saved_tensors
        of_hidden = torch.zeros_like(hidden)
        of_output = torch.zeros_like(output, dtype=torch.float32) if ctx.needs_input_grad[2] else None
        for some in ctx.blocks:
            given = targets[some], scale[some], *(each[some] for each in upstream)
            d = ctx.pieces.slopes(logits_of(hidden[some], output), *given, hidden.dtype)
            of_hidden[some] = d @ output
            if of_output is not None:
                of_output += d.t() @ hidden[some]
        return None, of_hidden, None if of_output is None else of_output.to(output.dtype), None, None
