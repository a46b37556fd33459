"""Which slot of the cache a prompt gets, and what it need not compute again."""

from __future__ import annotations

import numpy as np


class Slots:
    """The tokens whose keys and values each slot of the cache holds. A slot that is free keeps them until it is
    needed, so that a prompt which goes on from an earlier one is not computed again."""

    def __init__(self) -> None:
        self.tokens = np.zeros((0, 0), np.int32)
        self.length, self.owner, self.used = (np.zeros(0, np.int64) for _ in range(3))
        self.busy = np.zeros(0, bool)
        self._clock = 0

    def resize(self, count: int, capacity: int) -> None:
        """Keeps the contents that still have a place."""
        tokens = np.zeros((count, capacity), np.int32)
        n, width = min(count, len(self.tokens)), min(capacity, self.tokens.shape[1])
        tokens[:n, :width] = self.tokens[:n, :width]
        self.tokens = tokens
        for name in ('length', 'owner', 'used', 'busy'):
            setattr(self, name, np.pad(getattr(self, name)[:n], (0, count - n)))

    def take(self, prompt: np.ndarray, owner: int) -> tuple[int, int, int] | None:
        """A slot for a prompt, the slot of the same owner that shares most first tokens with it, and how many (at most
        all but the last, which is always computed). None if all slots are busy."""
        free = self.free(len(self.busy))
        if len(free) == 0:
            return None
        oldest = int(free[0])
        source, shared = oldest, 0
        own = np.flatnonzero((self.owner == owner) & (self.length > 0))
        if len(own):
            width = min(len(prompt), self.tokens.shape[1])
            equal = self.tokens[own, :width] == prompt[None, :width]
            first = np.where(equal.all(1), width, np.argmin(equal, 1))
            alike = np.minimum(first, self.length[own])
            best = int(np.lexsort((self.busy[own], -alike))[0])
            if alike[best] > 0:
                source, shared = int(own[best]), int(alike[best])
        # Taking the source itself saves the copy, and loses nothing when the prompt goes on from all that it holds.
        slot = source if not self.busy[source] and shared == self.length[source] else oldest
        self.owner[slot], self.busy[slot] = owner, True
        self._touch(slot)
        shared = min(shared, len(prompt) - 1)
        self.tokens[slot, : len(prompt) - 1] = prompt[:-1]
        self.length[slot] = len(prompt) - 1
        return slot, source, shared

    def free(self, count: int) -> np.ndarray:
        """Those of the first `count` slots that nobody uses, the one used longest ago first."""
        free = np.flatnonzero(~self.busy[:count])
        return free[np.argsort(self.used[free], kind='stable')]

    def move(self, sources: np.ndarray, targets: np.ndarray) -> None:
        """What is in these slots goes to those, all at once."""
        for name in ('tokens', 'length', 'owner', 'used', 'busy'):
            of_slots = getattr(self, name)
            of_slots[targets] = of_slots[sources]

    def release(self, slot: int) -> None:
        self.busy[slot] = False
        self._touch(slot)

    def forget(self, owner: int) -> None:
        self.length[self.owner == owner] = 0

    def _touch(self, slot: int) -> None:
        self._clock += 1
        self.used[slot] = self._clock
