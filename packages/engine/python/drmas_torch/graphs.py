"""Passes as CUDA graphs. To start a kernel costs the host more than the kernel of a small model costs the card, and a
pass of such a model starts thousands; a graph starts them all at once.

The first pass of a size runs as it is, which compiles and chooses kernels. The second one is recorded. From then on the
record is repeated, at the same addresses, if it gave what the pass itself gives.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

ALIKE = 0.02
"""How far a record may be from its pass, as a share of the norm: kernels may be chosen anew."""

MOST_KEPT = 128
"""An owner keeps so many records, those that were used last: each takes memory of the card and of the host."""

ROOM = 3
"""A pass is recorded if there is room for so many: the record, a pass of another size that runs as it is, and more."""

NOTHING = torch.zeros(0)
"""The numbers of a pass that reads none."""

Replay = Callable[[], None]


class Memory:
    """Memory that all graphs of a place share, since one of them runs at a time."""

    def __init__(self) -> None:
        self._pool: Any = None

    def record(self, work: Callable[[], Any]) -> tuple[Replay, Any]:
        """What repeats the work, and the result that it then writes. Nothing runs yet."""
        if self._pool is None:
            self._pool = torch.cuda.graph_pool_handle()
        graph, stream = torch.cuda.CUDAGraph(), torch.cuda.current_stream()
        try:
            with torch.cuda.graph(graph, pool=self._pool):
                result = work()
        finally:
            torch.cuda.set_stream(stream)  # a capture that fails may stay on its own
        return graph.replay, result

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


def require_alike(found: Sequence[Tensor], wanted: Sequence[Tensor]) -> None:
    """@throws Unlike"""
    apart, size = (
        torch.stack([torch.linalg.vector_norm(each.float()) for each in tensors]).norm()
        for tensors in ([a - b for a, b in zip(found, wanted, strict=True)], wanted)
    )
    if not float(apart) <= ALIKE * float(size):
        raise Unlike(f'it is {float(apart / size):.3g} of the norm away')


@dataclass(frozen=True)
class Run:
    """A recorded pass without a gradient."""

    numbers: Tensor
    replay: Replay
    result: Any


class Graphs:
    """The graphs of one owner, whose weights stay where they are."""

    def __init__(self, device: torch.device, memory: Memory) -> None:
        self.device, self.memory = device, memory
        self._seen: dict[Hashable, int] = {}
        """Of each size that has come, the bytes that its pass kept."""
        self._made: dict[Hashable, Any] = {}
        """What is recorded; None: it cannot be."""
        self._gradients: list[Tensor] = []

    def forget(self) -> None:
        """What the graphs read and write has moved."""
        self._made.clear()

    def run(self, key: Hashable, numbers: Tensor, work: Callable[[Tensor], Any]) -> Any:
        """What `work` makes of these numbers on the device, without a gradient. A result is good until the next run."""

        def make() -> Run:
            kept = numbers.to(self.device, copy=True)
            made = Run(kept, *self.memory.record(lambda: work(kept)))
            if isinstance(made.result, Tensor):
                made.replay()
                require_alike([made.result], [work(kept)])
            return made

        made = self._of(key, make)
        if made is None:
            return self._first(key, lambda: work(numbers.to(self.device, non_blocking=True)))
        made.numbers.copy_(numbers, non_blocking=True)
        made.replay()
        return made.result

    def train(
        self, key: Hashable, numbers: Tensor, work: Callable[[Tensor], Tensor], leaves: Sequence[Tensor]
    ) -> Tensor:
        """The same for a pass whose backward pass adds to the gradients of `leaves`."""
        if not self._gradients:
            self._gradients = [torch.zeros_like(leaf) for leaf in leaves]

        def make() -> Pass:
            return Pass(self.memory, numbers.to(self.device, copy=True), work, leaves, self._gradients)

        made = self._of(key, make)
        if made is None:
            return self._first(key, lambda: work(numbers.to(self.device, non_blocking=True)))
        return Repeated.apply(torch.zeros(1, device=self.device, requires_grad=True), numbers, made, leaves)

    def _of(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """What was made for a key; None if it comes for the first time, or is not recorded."""
        if key not in self._seen:
            return None
        if key in self._made:
            self._made[key] = self._made.pop(key)  # the last one is the one used last
        else:
            if len(self._made) == MOST_KEPT:
                del self._made[next(iter(self._made))]
            try:
                if self.memory.free(recorded=True) < ROOM * self._seen[key]:
                    raise RuntimeError('memory is scarce')
                self._made[key] = make()
            except (RuntimeError, Unlike) as error:  # memory, or an operation that cannot be recorded
                reason = str(error).partition('\n')[0]
                print(f'a pass is not recorded, so it stays slow: {reason}. Its size is {key}', file=sys.stderr)
                self._made[key] = None
        return self._made[key]

    def _first(self, key: Hashable, work: Callable[[], Any]) -> Any:
        before = self.memory.taken()
        result = work()
        self._seen.setdefault(key, self.memory.taken() - before)
        return result


class Pass:
    """A forward and a backward pass. What the backward pass needs of the forward pass stays in the graphs' memory."""

    def __init__(
        self,
        memory: Memory,
        numbers: Tensor,
        work: Callable[[Tensor], Tensor],
        leaves: Sequence[Tensor],
        gradients: Sequence[Tensor],
    ) -> None:
        """`gradients`: where the backward pass leaves those of the leaves. @throws Unlike"""
        self.numbers = numbers
        passing: list[Tensor] = []
        """The result with what autograd knows of it, while it is recorded."""

        def forward() -> Tensor:
            passing[:] = [work(numbers)]
            return passing[0].detach()

        def backward() -> None:
            found = _gradients_of(passing[0], [leaves[i] for i in self.reached], upstream)
            torch._foreach_copy_(self.gradients, list(found))

        once = work(numbers)
        self.upstream = upstream = torch.ones_like(once)
        wanted = _gradients_of(once, leaves, upstream)
        once = once.detach()  # what its backward pass needed is free again
        self.reached = [i for i, gradient in enumerate(wanted) if gradient is not None]
        """Which leaves the pass reads."""
        self.gradients = [gradients[i] for i in self.reached]
        self.forward, self.hidden = memory.record(forward)
        self.backward, _ = memory.record(backward)
        self.forward()
        self.backward()
        passing.clear()
        require_alike([self.hidden], [once])
        require_alike(self.gradients, [gradient for gradient in wanted if gradient is not None])


def _gradients_of(result: Tensor, leaves: Sequence[Tensor], upstream: Tensor) -> Sequence[Tensor]:
    return torch.autograd.grad(result, leaves, upstream, allow_unused=True)


class Repeated(torch.autograd.Function):
    """A recorded pass. Its first input only tells autograd that there is a gradient."""

    @staticmethod
    def forward(ctx: Any, anchor: Tensor, numbers: Tensor, made: Pass, leaves: Sequence[Tensor]) -> Tensor:
        made.numbers.copy_(numbers, non_blocking=True)
        made.forward()
        ctx.made, ctx.leaves = made, leaves
        return made.hidden.detach()

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[None, ...]:
        ctx.made.upstream.copy_(upstream[0])
        ctx.made.backward()
        torch._foreach_add_([ctx.leaves[i].grad for i in ctx.made.reached], ctx.made.gradients)
        return None, None, None, None
