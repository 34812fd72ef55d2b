"""Keys that want work, each at most once in work at a time; the idea of client-go's work queue."""

import asyncio
from collections.abc import Hashable
from functools import partial
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class WorkQueue(Generic[K]):
    """First come, first served, what is urgent before the rest.

    A key that is added while in work is worked on again afterwards.
    """

    def __init__(self) -> None:
        self._urgent: dict[K, None] = {}
        self._waiting: dict[K, None] = {}
        self._working: set[K] = set()
        self._again: set[K] = set()
        self._later: dict[K, asyncio.TimerHandle] = {}
        self._news = asyncio.Event()

    def __len__(self) -> int:
        """How many keys want work or are in work."""
        return len(self._urgent) + len(self._waiting) + len(self._working) + len(self._later)

    def add(self, key: K, *, is_urgent: bool = True) -> None:
        """Want work for a key, now; a delay that it has is over."""
        if timer := self._later.pop(key, None):
            timer.cancel()
        if key in self._working:
            self._again.add(key)
            return
        if is_urgent:
            self._waiting.pop(key, None)
        if key not in self._urgent:
            (self._urgent if is_urgent else self._waiting)[key] = None
        self._news.set()

    def add_later(self, key: K, delay_s: float, *, is_urgent: bool = True) -> None:
        """Want work for a key in a while, unless it is wanted sooner."""
        if not (key in self._urgent or key in self._waiting or key in self._again or key in self._later):
            add = partial(self.add, key, is_urgent=is_urgent)
            self._later[key] = asyncio.get_running_loop().call_later(delay_s, add)

    async def get(self) -> K:
        """Wait for a key and take it into work; `done` must follow."""
        while not (self._urgent or self._waiting):
            self._news.clear()
            await self._news.wait()
        lane = self._urgent or self._waiting
        key = next(iter(lane))
        del lane[key]
        self._working.add(key)
        return key

    def done(self, key: K) -> None:
        """Say that the work on a key has ended."""
        self._working.discard(key)
        if key in self._again:
            self._again.discard(key)
            self.add(key)

    def close(self) -> None:
        """Forget what waits."""
        for timer in self._later.values():
            timer.cancel()
        self._later.clear()
        self._urgent.clear()
        self._waiting.clear()
