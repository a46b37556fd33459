"""Passes as CUDA graphs. To start a kernel costs the host more than the kernel of a small model costs the card, and a
pass of such a model starts thousands; a graph starts them all at once.

The first passes of a size run as they are, which compiles and chooses kernels. The third one is recorded. From then on
the record is repeated, at the same addresses. A record of what can run twice is first compared with the pass itself:
its result, and its gradient if it has one.
"""

from __future__ import annotations

import functools
import gc
import sys
import weakref
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from .config import sent
from .trained import norm_of

ALIKE = 0.02
"""How far a record may be from its pass, as a share of the norm: kernels may be chosen anew."""

MOST_KEPT = 128
"""An owner keeps so many records, those that were used last: each takes memory of the card and of the host."""

ROOM, BESIDE = 2, 3 * 2**29
"""A pass is recorded if there is room for so many: the record, and a pass that runs as it is. So many bytes stay free
beside them, for what is not recorded: log-probs of a batch, updates."""

FIRST, AGAIN = 2, 16
"""A size is recorded after so many passes that ran as they were: few sizes come so often. After a refusal it is tried
again when the passes are so many times as many, since memory may be free by then, or weights finite."""

NOTHING = torch.zeros(0)  # the numbers of a pass that reads none

Work = Callable[..., Any]
"""A pass over numbers on the device, and over leaves that learn. It reads all else where it lay when it was
recorded."""


class Memory:
    """Memory that all graphs of a place share, since one of them runs at a time."""

    def __init__(self) -> None:
        self._pool: Any = None
        self._anchor: Any = None
        self.made = self.refused = 0
        """So many passes were recorded, and so many were not."""
        self.report: Callable[[str], object] = functools.partial(print, file=sys.stderr)
        """Takes the line about the first pass that was not; others often follow."""
        self.passes_free = ROOM  # doubles when records had to make room
        self.owners: weakref.WeakSet[Graphs] = weakref.WeakSet()

    def record(self, work: Work, numbers: Tensor, leaves: Sequence[Tensor], gradients: Sequence[Tensor]) -> Work:
        """What repeats the work, which need not run now. Its result is good until the next record is repeated. With
        leaves that learn, the result has a gradient with respect to them, which is written to `gradients`."""
        stream, kept = torch.cuda.current_stream(), numbers.clone()
        # Autograd remembers of a leaf the stream that used it first, and a capture may not wait for another one. So
        # what is captured has leaves of its own, which lie where the real ones lie.
        aliases = [leaf.detach().requires_grad_() for leaf in leaves]
        forward, backward = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
        try:
            pool = self._shared(numbers)
            with torch.cuda.graph(forward, pool=pool):
                result = work(kept, *aliases)
            if not leaves:
                return Record(kept, result, forward).repeat
            slopes = torch.empty_like(result, requires_grad=False)
            with torch.cuda.graph(backward, pool=pool):
                found = torch.autograd.grad(result, aliases, slopes, allow_unused=True, materialize_grads=True)
                for to, gradient in zip(gradients, found, strict=True):
                    to.copy_(gradient)
        except BaseException:
            self._end_broken()
            raise
        finally:
            torch.cuda.set_stream(stream)  # a capture that fails may stay on its own
        return Record(kept, result.detach(), forward, slopes, backward, gradients).repeat

    def _shared(self, numbers: Tensor) -> Any:
        """The pool of all graphs. It ends with its last graph, and what libraries keep in it could then break the next
        capture. So a graph of one number stays."""
        if self._pool is None:
            self._pool = torch.cuda.graph_pool_handle()
            anchor, number = torch.cuda.CUDAGraph(), numbers.new_zeros(1)
            with torch.cuda.graph(anchor, pool=self._pool):
                number.zero_()
            self._anchor = anchor, number
        return self._pool

    def _end_broken(self) -> None:
        """A capture that broke leaves its pool recording, so that no other can begin there: later ones get another
        pool. One that failed otherwise has ended, and its pool is in order."""
        try:
            torch._C._cuda_endAllocateToPool(torch.cuda.current_device(), self._pool)
        except RuntimeError:
            return
        self._pool = self._anchor = None

    def give_back(self) -> None:
        """Drops all records with their memory, which no pass beside them gets."""
        for owner in self.owners:
            owner.forget()
        self._pool = self._anchor = None
        self.passes_free *= 2
        gc.collect()
        torch.cuda.empty_cache()

    def taken(self) -> int:
        """The bytes that tensors have now."""
        return torch.cuda.memory_allocated()

    def free(self) -> int:
        """The bytes that there are for more. What graphs have taken serves graphs alone."""
        idle = [
            segment['total_size'] - segment['allocated_size']
            for segment in torch.cuda.memory_snapshot()
            if tuple(segment['segment_pool_id']) == (0, 0)
        ]
        return torch.cuda.mem_get_info()[0] + sum(idle)


def require_alike(record: Work, work: Work, numbers: Tensor, leaves: Sequence[Tensor]) -> None:
    """@throws RuntimeError if a record does not give what its pass gives"""
    with torch.set_grad_enabled(bool(leaves)):
        found, wanted = record(numbers, *leaves), work(numbers, *leaves)
    if not isinstance(wanted, Tensor):
        return
    _require_near('result', [found.detach()], [wanted.detach()])
    if leaves:
        slopes = torch.arange(wanted.numel(), device=wanted.device).cos().view_as(wanted).to(wanted.dtype)
        gradients = (
            torch.autograd.grad(each, leaves, slopes, allow_unused=True, materialize_grads=True)
            for each in (found, wanted)
        )
        _require_near('gradient', *gradients)


def _require_near(name: str, found: Sequence[Tensor], wanted: Sequence[Tensor]) -> None:
    size = norm_of([one.float() for one in wanted])
    apart = norm_of([one.float() - other.float() for one, other in zip(found, wanted, strict=True)])
    if not apart <= ALIKE * size:
        raise RuntimeError(f'it is {apart:.3g} away from a {name} of norm {size:.3g}')


@dataclass
class Seen:
    """A size that has come. `kept`: the most bytes that a pass kept. It is recorded after `wanted` passes that ran as
    they were."""

    kept: int = 0
    passes: int = 0
    wanted: int = FIRST


@dataclass(frozen=True)
class Record:
    """A pass as graphs, and what they read and write."""

    numbers: Tensor
    result: Any
    forward: torch.cuda.CUDAGraph
    slopes: Tensor | None = None
    backward: torch.cuda.CUDAGraph | None = None
    gradients: Sequence[Tensor] = ()

    def repeat(self, numbers: Tensor, *leaves: Tensor) -> Any:
        self.numbers.copy_(numbers)
        if leaves:
            return Repeated.apply(self, *leaves)
        self.forward.replay()
        return self.result


class Repeated(torch.autograd.Function):
    """A record as a function of its leaves."""

    @staticmethod
    def forward(ctx: Any, record: Record, *_: Tensor) -> Tensor:
        ctx.record = record
        record.forward.replay()
        return record.result.detach()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, slopes: Tensor) -> tuple[Tensor | None, ...]:
        record: Record = ctx.record
        assert record.slopes is not None and record.backward is not None
        record.slopes.copy_(slopes)
        record.backward.replay()
        return None, *record.gradients


class Graphs:
    """The graphs of one owner, whose weights stay where they are."""

    def __init__(self, device: torch.device, memory: Memory | None) -> None:
        """Without memory, passes run as they are."""
        self.device, self.memory = device, memory
        self._seen: dict[Hashable, Seen] = {}
        self._made: dict[Hashable, Work] = {}
        """What is recorded, the one used last at the end."""
        self._gradients: list[Tensor] = []
        """Where the records of updates write: one of them runs at a time."""
        if memory is not None:
            memory.owners.add(self)

    def forget(self) -> None:
        """What the graphs read and write has moved. So the next passes of each size run as they are again."""
        self._seen.clear()
        self._made.clear()
        self._gradients = []

    def run(
        self, key: Hashable, numbers: Tensor, work: Work, leaves: Sequence[Tensor] = (), repeatable: bool = True
    ) -> Any:
        """What the work makes of these numbers and leaves. Passes of one key differ in their numbers alone; those of
        None are not recorded. `leaves`: what the backward pass gives gradients to. `repeatable`: to run it twice gives
        the same."""
        on_device = sent(numbers, self.device)
        if self.memory is None or key is None:
            return work(on_device, *leaves)
        seen, made = self._seen.setdefault(key, Seen()), self._made.pop(key, None)
        if made is None and seen.passes >= seen.wanted:
            made = self._recorded(key, on_device, work, leaves, repeatable)
        if made is None:
            before = self.memory.taken()
            result = work(on_device, *leaves)
            seen.passes += 1
            seen.kept = max(seen.kept, self.memory.taken() - before + sum(leaf.nbytes for leaf in leaves))
            return result
        if len(self._made) == MOST_KEPT:
            del self._made[next(iter(self._made))]
        self._made[key] = made
        return made(on_device, *leaves)

    def _recorded(
        self, key: Hashable, numbers: Tensor, work: Work, leaves: Sequence[Tensor], repeatable: bool
    ) -> Work | None:
        memory, seen = self.memory, self._seen[key]
        assert memory is not None
        try:
            if memory.free() < memory.passes_free * seen.kept + BESIDE:
                raise RuntimeError('memory is scarce')
            if len(self._gradients) < len(leaves):
                self._gradients = [torch.empty_like(leaf, requires_grad=False) for leaf in leaves]
            made = memory.record(work, numbers, leaves, self._gradients)
            if repeatable:
                require_alike(made, work, numbers, leaves)
        except Exception as error:  # whatever it is, the pass itself can run
            memory.refused += 1
            seen.wanted = AGAIN * seen.passes
            reason = str(error).partition('\n')[0]
            if memory.refused == 1:
                memory.report(f'a pass on the card is not recorded, so it stays slow for now: {reason} (size {key})')
            return None
        memory.made += 1
        return made
