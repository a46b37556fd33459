"""Passes as CUDA graphs. To start a kernel costs the host more than the kernel of a small model costs the card, and a
pass of such a model starts thousands; a graph starts them all at once.

The first pass of a size runs as it is, which compiles and chooses kernels. The second one is recorded. From then on the
record is repeated, at the same addresses, if it gave what the pass itself gives.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import torch
from torch import Tensor

from .config import sent

ALIKE = 0.02
"""How far a record may be from its pass, as a share of the norm: kernels may be chosen anew."""

MOST_KEPT = 128
"""An owner keeps so many records, those that were used last: each takes memory of the card and of the host."""

ROOM = 3
"""A pass is recorded if there is room for so many: the record, a pass of another size that runs as it is, and more."""

NOTHING = torch.zeros(0)
"""The numbers of a pass that reads none."""

Work = Callable[[Tensor], Any]
"""A pass over numbers on the device. It reads all else where it lay when it was recorded."""


class Memory:
    """Memory that all graphs of a place share, since one of them runs at a time."""

    def __init__(self) -> None:
        self._pool: Any = None

    def record(self, work: Work, numbers: Tensor, leaves: Sequence[Tensor]) -> Work:
        """What repeats the work, which need not run now. Its result is good until the next record is repeated. With
        leaves that learn, the result has a gradient with respect to them."""
        if self._pool is None:
            self._pool = torch.cuda.graph_pool_handle()
        kept, stream = numbers.clone(), torch.cuda.current_stream()
        try:
            if leaves:
                # No warm-up: the first pass of this size was one, and here it would take a stream of its own.
                trained: Any = torch.cuda.make_graphed_callables(
                    lambda numbers, *_: work(numbers),
                    (kept, *leaves),
                    num_warmup_iters=0,
                    allow_unused_input=True,
                    pool=self._pool,
                )
                return lambda numbers: trained(numbers, *leaves)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, pool=self._pool):
                result = work(kept)
        finally:
            torch.cuda.set_stream(stream)  # a capture that fails may stay on its own

        def repeat(numbers: Tensor) -> Any:
            kept.copy_(numbers)
            graph.replay()
            return result

        return repeat

    def taken(self) -> int:
        """The bytes that tensors have now."""
        return torch.cuda.memory_allocated()

    def free(self, recorded: bool) -> int:
        """The bytes that there are for more. What graphs have taken serves only what is `recorded`."""
        idle = [
            segment['total_size'] - segment['allocated_size']
            for segment in torch.cuda.memory_snapshot()
            if recorded or tuple(segment['segment_pool_id']) == (0, 0)
        ]
        return torch.cuda.mem_get_info()[0] + sum(idle)


class Unlike(Exception):
    """A record does not give what its pass gives."""


@torch.no_grad()
def require_alike(record: Work, work: Work, numbers: Tensor) -> None:
    """@throws Unlike"""
    found, wanted = record(numbers), work(numbers)
    if isinstance(wanted, Tensor):
        apart, size = float((found.float() - wanted.float()).norm()), float(wanted.float().norm())
        if not apart <= ALIKE * size:
            raise Unlike(f'it is {apart:.3g} away from a result of norm {size:.3g}')


class Graphs:
    """The graphs of one owner, whose weights stay where they are."""

    def __init__(self, device: torch.device, memory: Memory | None) -> None:
        """Without memory, passes run as they are."""
        self.device, self.memory = device, memory
        self._seen: dict[Hashable, int] = {}
        """Of each size that has come, the bytes that its pass kept."""
        self._made: dict[Hashable, Work | None] = {}
        """What is recorded, the one used last at the end; None: it cannot be."""

    def forget(self) -> None:
        """What the graphs read and write has moved. So the next pass of each size runs as it is again."""
        self._seen.clear()
        self._made.clear()

    def run(
        self, key: Hashable, numbers: Tensor, work: Work, leaves: Sequence[Tensor] = (), repeatable: bool = True
    ) -> Any:
        """What the work makes of these numbers. Passes of one key differ in their numbers alone. `leaves`: what the
        backward pass gives gradients to. `repeatable`: to run it twice gives the same."""
        on_device = sent(numbers, self.device)
        if self.memory is None:
            return work(on_device)
        if key not in self._seen:
            before = self.memory.taken()
            result = work(on_device)
            self._seen[key] = self.memory.taken() - before + sum(leaf.nbytes for leaf in leaves)
            return result
        if key in self._made:
            made = self._made.pop(key)
        else:
            made = self._recorded(key, on_device, work, leaves, repeatable)
            if len(self._made) == MOST_KEPT:
                del self._made[next(iter(self._made))]
        self._made[key] = made
        return (made or work)(on_device)

    def _recorded(
        self, key: Hashable, numbers: Tensor, work: Work, leaves: Sequence[Tensor], repeatable: bool
    ) -> Work | None:
        try:
            if self.memory is None or self.memory.free(recorded=True) < ROOM * self._seen[key]:
                raise RuntimeError('memory is scarce')
            made = self.memory.record(work, numbers, leaves)
            if repeatable:
                require_alike(made, work, numbers)
            return made
        except (RuntimeError, Unlike) as error:  # memory, or an operation that cannot be recorded
            reason = str(error).partition('\n')[0]
            print(f'a pass is not recorded, so it stays slow: {reason}. Its size is {key}', file=sys.stderr)
            return None
