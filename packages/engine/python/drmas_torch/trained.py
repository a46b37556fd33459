"""Weights that are trained: one flat buffer in float32 with its gradient and its optimiser."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import accumulate

import torch
from torch import Tensor

from .config import Shapes, views, widest
from .messages import OptimizerSettings, Step, Stepped

WIDENED = 2**26
"""A card copies numbers to sum them in another type: so many at a time."""

BUFFERS = {'adamw': ('first_moment', 'second_moment'), 'sgd': ('momentum',), 'nigt': ('direction', 'ahead')}


class NonFinite(Exception):
    """A weight, or a number that an optimiser remembers, is not finite."""


@dataclass(frozen=True)
class Slice:
    """A part of the weights with its own factor of the learning rate."""

    start: int
    end: int
    rate: float


@dataclass
class OptimizerState:
    type: str = 'adamw'
    step: int = 0
    buffers: dict[str, Tensor] = field(default_factory=dict)

    def copy(self) -> OptimizerState:
        return OptimizerState(self.type, self.step, {name: buffer.clone() for name, buffer in self.buffers.items()})


class Trained:
    """Weights in one flat buffer [parameters] that one optimiser moves along one gradient."""

    def __init__(self, flat: Tensor, shapes: Shapes) -> None:
        self.flat, self.shapes = flat, shapes
        # As leaves, not as views: compiled code asks whether a tensor is one, and a record reads leaves of its own.
        self.tensors = {name: tensor.detach() for name, tensor in views(flat, shapes).items()}
        self.optimizer = OptimizerState()
        self._gradient: Tensor | None = None
        self._of_call: Tensor | None = None
        self._accumulated = False

    @property
    def gradient(self) -> Tensor:
        """The gradient so far, before clipping; it is allocated when it is first needed."""
        if self._gradient is None:
            self._gradient = torch.zeros_like(self.flat)
        return self._gradient

    @contextmanager
    def call(self) -> Iterator[Tensor]:
        """Lets autograd add the gradient of one call to the buffer that this gives. Afterwards it joins those before
        it; if the call fails, the gradient is what it was before."""
        target = self.gradient
        if self._accumulated:
            if self._of_call is None:
                self._of_call = torch.zeros_like(self.flat)
            target = self._of_call.zero_()
        for leaf, gradient in zip(self.tensors.values(), views(target, self.shapes).values(), strict=True):
            leaf.requires_grad_(True)
            leaf.grad = gradient
        try:
            yield target
        except BaseException:
            if not self._accumulated:
                self.discard()
            raise
        finally:
            for leaf in self.tensors.values():
                leaf.requires_grad_(False)
                leaf.grad = None
        if self._accumulated:
            self.gradient.add_(target)
        self._accumulated = True

    def discard(self) -> None:
        if self._gradient is not None:
            self._gradient.zero_()
        self._accumulated = False

    def load(self, weights: Tensor, optimizer: OptimizerState | None) -> None:
        self.flat.copy_(weights)
        self.optimizer = optimizer or OptimizerState(self.optimizer.type)

    def prepare(self, settings: OptimizerSettings) -> None:
        """Makes the buffers that a step with these settings changes. Another type than before clears the state."""
        if self.optimizer.type != settings['type']:
            self.optimizer = OptimizerState(settings['type'])
        for name in buffers_of(settings):
            if name not in self.optimizer.buffers:
                self.optimizer.buffers[name] = torch.zeros_like(self.flat)

    def require_finite(self, with_optimizer: bool) -> None:
        """@throws NonFinite naming the tensor"""
        buffers = {'weights': self.flat, **(self.optimizer.buffers if with_optimizer else {})}
        for name, buffer in buffers.items():
            # The norm is NaN if a number is, and takes no memory.
            if not buffer.numel() or math.isfinite(float(torch.linalg.vector_norm(buffer, math.inf))):
                continue
            at = int((~torch.isfinite(buffer)).nonzero()[0])
            what = 'a weight' if name == 'weights' else f"the optimiser's {name.replace('_', ' ')}"
            value = str(float(buffer[at])).replace('nan', 'NaN').replace('inf', 'Infinity')
            raise NonFinite(f'{what} of {self._tensor_at(at)} is {value}')

    def _tensor_at(self, at: int) -> str:
        ends = accumulate(math.prod(shape) for _, shape in self.shapes)
        return next(name for (name, _), end in zip(self.shapes, ends, strict=True) if at < end)


def buffers_of(settings: OptimizerSettings) -> tuple[str, ...]:
    """What an optimiser with these settings remembers."""
    kind = settings['type']
    return BUFFERS[kind] if kind != 'sgd' or settings['momentum'] > 0 else ()


def norm_of(gradients: Sequence[Tensor]) -> float:
    """The L2 norm of all gradients together, summed in double precision. Of each some numbers are widened at a time."""
    parts = [part for gradient in gradients for part in gradient.reshape(-1).split(WIDENED)]
    norms = [float(torch.linalg.vector_norm(part, dtype=widest(part.device))) for part in parts]
    return math.sqrt(sum(norm * norm for norm in norms))


def clipped_step(parts: Sequence[Trained], settings: Step, slices: Sequence[Slice] | None = None) -> Stepped:
    """Clips the gradients of the parts by their common norm, updates the parts, and clears the gradients. If it finds
    no memory for its buffers it changes nothing.

    A norm that is not finite or above `skipAboveNorm` updates nothing. `slices` are
    those of the only part. @throws NonFinite; with `undoNonFinite` the update was undone
    """
    optimizer, clip, limit = settings['optimizer'], settings['clipNorm'], settings.get('skipAboveNorm')
    if slices is not None:
        _clear_between(parts[0].gradient, slices)
    norm = norm_of([part.gradient for part in parts])
    if not math.isfinite(norm) or (limit is not None and norm > limit):
        for part in parts:
            part.discard()
        if not math.isfinite(norm):
            return {'applied': False, 'why': 'not-finite'}
        return {'applied': False, 'why': 'above-limit', 'norm': norm}
    copies = [(part.flat.clone(), part.optimizer.copy()) for part in parts] if settings.get('undoNonFinite') else []
    for part in parts:
        part.prepare(optimizer)
    # From here on hardly anything needs memory.
    try:
        scale = min(1.0, clip / (norm + 1e-6)) if clip > 0 else 1.0
        for part in parts:
            _update(part, optimizer, scale, [Slice(0, part.flat.numel(), 1)] if slices is None else slices)
        for part in parts:
            part.require_finite(False)
        return {'applied': True, 'norm': norm}
    except NonFinite:
        for part, (flat, state) in zip(parts, copies, strict=False):
            part.flat.copy_(flat)
            part.optimizer = state
        raise
    except torch.OutOfMemoryError as error:
        # As it is, it would let this run again, and the weights would change twice.
        raise RuntimeError('an update found no memory halfway: go on from the last checkpoint') from error
    finally:
        for part in parts:
            part.discard()


def _clear_between(gradient: Tensor, slices: Sequence[Slice]) -> None:
    """Weights between the slices stay as they are, and do not count in the norm."""
    end = 0
    for one in [*slices, Slice(gradient.numel(), 0, 0)]:
        gradient[end : one.start] = 0
        end = one.end


def _update(part: Trained, settings: OptimizerSettings, scale: float, slices: Sequence[Slice]) -> None:
    """One step on the gradient, which is multiplied by `scale`."""
    kind, state = settings['type'], part.optimizer
    state.step += 1
    for one in slices:
        some = slice(one.start, one.end)
        buffers = [state.buffers[name][some] for name in buffers_of(settings)]
        rate = settings['learningRate'] * one.rate
        gradient = part.gradient[some].mul_(scale)
        STEPS[kind](part.flat[some], gradient, buffers, {**settings, 'learningRate': rate}, state.step)


# Steps write what they need in between to the gradient, which is cleared afterwards.


def _adamw(w: Tensor, g: Tensor, buffers: list[Tensor], s: OptimizerSettings, step: int) -> None:
    """AdamW (Loshchilov and Hutter 2019)."""
    m, v = buffers
    m.mul_(s['beta1']).add_(g, alpha=1 - s['beta1'])
    v.mul_(s['beta2']).addcmul_(g, g, value=1 - s['beta2'])
    root = torch.sqrt(v, out=g).div_(math.sqrt(1 - s['beta2'] ** step)).add_(s['epsilon'])
    w.mul_(1 - s['learningRate'] * s['weightDecay'])
    w.addcdiv_(m, root, value=-s['learningRate'] / (1 - s['beta1'] ** step))


def _sgd(w: Tensor, g: Tensor, buffers: list[Tensor], s: OptimizerSettings, step: int) -> None:
    """torch.optim.SGD without dampening."""
    change = g.add_(w, alpha=s['weightDecay'])
    if buffers:
        direction = buffers[0].mul_(s['momentum']).add_(change)
        change = change.add_(direction, alpha=s['momentum']) if s['nesterov'] else direction
    w.sub_(change, alpha=s['learningRate'])


def _nigt(w: Tensor, g: Tensor, buffers: list[Tensor], s: OptimizerSettings, step: int) -> None:
    """N-PG-IGT (Fatkhullin, Barakat, Kireeva, He 2023, arXiv 2302.01734, algorithm 1)."""
    direction, ahead = buffers
    kept = 0.0 if step == 1 else s['momentum']
    direction.mul_(kept).add_(g, alpha=1 - kept)
    norm = float(torch.linalg.vector_norm(direction))
    move = torch.mul(direction, -s['learningRate'] / norm if norm > 0 else 0.0, out=g)
    further = s['momentum'] / (1 - s['momentum'])
    w.sub_(ahead).add_(move, alpha=1 + further)
    ahead.copy_(move).mul_(further)


STEPS = {'adamw': _adamw, 'sgd': _sgd, 'nigt': _nigt}
