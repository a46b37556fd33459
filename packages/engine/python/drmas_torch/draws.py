"""Draws of tokens from logits, all on the device."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from .attention import padded
from .config import widest

SUMS = 256
"""Probabilities are summed in blocks of so many, then over the blocks."""


def place_at(mass: Tensor, wanted: Tensor, triangle: Tensor) -> Tensor:
    """The first place in each row of mass [B, N] up to which its sum exceeds the number wanted [B]; else the last place
    with mass.

    Sums are products with a triangle of ones (`triangle_for`), in its number type, first over blocks, then within the
    block that holds the place: the same bits in every run, which scans on a card do not promise.
    """
    blocks = F.pad(mass, (0, -mass.shape[1] % SUMS)).view(len(mass), -1, SUMS)
    sums = blocks.sum(-1, dtype=triangle.dtype)
    ends = sums @ triangle[: sums.shape[1], : sums.shape[1]]
    block, rows = _first_of(ends, sums, wanted), torch.arange(len(mass), device=mass.device)
    inner = blocks[rows, block].to(triangle.dtype)
    start = (ends - sums)[rows, block]
    return block * SUMS + _first_of(start[:, None] + inner @ triangle[:SUMS, :SUMS], inner, wanted)


def _first_of(cumulative: Tensor, mass: Tensor, wanted: Tensor) -> Tensor:
    has = mass > 0
    hit = has & (cumulative > wanted[:, None])
    place = torch.arange(mass.shape[1], device=mass.device)
    last = torch.where(has, place, -1).amax(-1).clamp(min=0)
    return torch.where(hit.any(-1), hit.int().argmax(-1), last)


def triangle_for(vocabulary: int, device: torch.device) -> Tensor:
    size = max(SUMS, padded(vocabulary, SUMS) // SUMS)
    return torch.ones(size, size, dtype=widest(device), device=device).triu()


def draw(
    logits: Tensor,
    uniforms: Tensor,
    scale: Tensor,
    top_k: Tensor,
    top_p: Tensor,
    filtered: bool,
    triangle: Tensor,
) -> tuple[Tensor, Tensor]:
    """One token a row of logits [B, V], and its log-prob over the whole vocabulary.

    The distribution is inverted at a number of [0, 1) in the order of ids; a scale of 0 takes the most probable token.
    """
    greedy, wide = scale == 0, widest(logits.device)
    logits = logits.float() * torch.where(greedy, torch.ones_like(scale), scale)[:, None]
    total = torch.logsumexp(logits, -1)
    mass = torch.exp(logits - total[:, None])
    if filtered:
        ranked, order = torch.sort(mass, dim=-1, descending=True, stable=True)
        rank = torch.arange(mass.shape[1], device=mass.device)[None]
        ranked = torch.where((top_k[:, None] > 0) & (rank >= top_k[:, None]), 0, ranked)
        # The fewest tokens that reach the share top_p: one that reaches it exactly is the last.
        share = top_p.to(wide) * ranked.sum(-1, dtype=wide)
        share = torch.nextafter(share, torch.full_like(share, -1))
        kept = (ranked > 0) & (rank <= place_at(ranked, share, triangle)[:, None])
        mass = mass * torch.zeros_like(mass).scatter(1, order, kept.to(mass.dtype))
    token = place_at(mass, uniforms.to(wide) * mass.sum(-1, dtype=wide), triangle)
    token = torch.where(greedy, logits.argmax(-1), token)
    return token, logits.gather(1, token[:, None])[:, 0] - total
