"""Log-probs and entropies of given tokens from the normed stream, in blocks of rows, so that logits of the whole
vocabulary exist for one block at a time. They are computed again for the gradient."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .attention import wide_product

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


class TokenScores(torch.autograd.Function):
    """From hidden [N, width], output [V, width], targets [N] and scales of the logits [N] to log-probs and entropies
    [N]."""

    @staticmethod
    def forward(ctx: Any, hidden: Tensor, output: Tensor, targets: Tensor, scale: Tensor) -> tuple[Tensor, Tensor]:
        rows = max(8, BLOCK_LOGITS // output.shape[0] // 8 * 8)
        logprobs, entropies = [hidden.new_zeros(0, dtype=torch.float32)], [hidden.new_zeros(0, dtype=torch.float32)]
        for first in range(0, len(targets), rows):
            some = slice(first, first + rows)
            logits = logits_of(hidden[some], output) * scale[some, None]
            total = torch.logsumexp(logits, -1)
            logprobs.append(logits.gather(1, targets[some, None])[:, 0] - total)
            entropies.append(total - (torch.softmax(logits, -1) * logits).sum(-1))
        ctx.save_for_backward(hidden, output, targets, scale)
        ctx.rows = rows
        return torch.cat(logprobs), torch.cat(entropies)

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor | None, ...]:
        of_logprobs, of_entropies = upstream
        hidden, output, targets, scale = ctx.saved_tensors
        of_hidden = torch.zeros_like(hidden)
        of_output = torch.zeros_like(output, dtype=torch.float32) if ctx.needs_input_grad[1] else None
        for first in range(0, len(targets), ctx.rows):
            some = slice(first, first + ctx.rows)
            logits = logits_of(hidden[some], output) * scale[some, None]
            total = torch.logsumexp(logits, -1, keepdim=True)
            p = torch.exp(logits - total)
            entropy = total - (p * logits).sum(-1, keepdim=True)
            d = -p * of_logprobs[some, None] - p * (logits - total + entropy) * of_entropies[some, None]
            d.scatter_add_(1, targets[some, None], of_logprobs[some, None])
            d = (d * scale[some, None]).to(hidden.dtype)
            of_hidden[some] = d @ output
            if of_output is not None:
                of_output += d.t() @ hidden[some]
        return of_hidden, None if of_output is None else of_output.to(output.dtype), None, None
