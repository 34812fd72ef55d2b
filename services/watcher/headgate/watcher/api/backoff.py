"""How long to wait before the API server is asked again.

Every way back to the server passes one of these, also the harmless ones (a watch that ended early), so that no answer
whatsoever can make a hot loop.
"""

import asyncio
from random import Random


class Backoff:
    """Exponential with jitter: up to 0.8 s, then twice that, up to 30 s; again from 0.8 s after 2 min without need."""

    def __init__(
        self,
        rng: Random,
        *,
        first_s: float = 0.8,
        longest_s: float = 30.0,
        healthy_s: float = 120.0,
        jitter: float = 1.0,
    ) -> None:
        """Choose the steps; `jitter` is the part of each step that is random: 1 is all of it (full jitter)."""
        self._rng = rng
        self._first_s = first_s
        self._longest_s = longest_s
        self._healthy_s = healthy_s
        self._jitter = jitter
        self._step_s = first_s
        self._last_end: float | None = None

    def next_delay(self, now: float, at_least_s: float | None = None) -> float:
        """Return the seconds to wait; `at_least_s` is what the server asked for (`Retry-After`)."""
        if self._last_end is not None and now - self._last_end > self._healthy_s:
            self._step_s = self._first_s
        delay = self._step_s * (1 - self._jitter) + self._rng.uniform(0, self._step_s * self._jitter)
        delay += at_least_s or 0.0
        self._step_s = min(self._longest_s, self._step_s * 2)
        self._last_end = now + delay
        return delay

    async def wait(self, at_least_s: float | None = None) -> None:
        """Sleep for the next delay."""
        await asyncio.sleep(self.next_delay(asyncio.get_running_loop().time(), at_least_s))


def slow_backoff(rng: Random) -> Backoff:
    """For what a person must mend first, as a missing right or CRD: from 30 s to 5 min."""
    return Backoff(rng, first_s=60.0, longest_s=300.0, healthy_s=600.0, jitter=0.5)


class WatchPauses:
    """Between watches that end, break or expire although the server answers: `Backoff`, up to 5 s for 20 of them.

    Such trouble comes in bursts (a restarted proxy, a compaction) that are over in seconds, again and again; waiting
    for half a minute after each makes everything late and spares no server. Every 5 s that a watch lives make up for
    one that did not, so the waits of 30 s are for watches that do not live at all.
    """

    FIRST_S = 0.8
    SHORT_S = 5.0
    LONG_S = 30.0
    SHORT_ONES = 20
    FORGIVEN_AFTER_S = 5.0

    def __init__(self, rng: Random) -> None:
        """Choose where jitter comes from."""
        self._rng = rng
        self._counted = 0.0
        self._last_end: float | None = None

    def next_delay(self, now: float, list_s: float = 0.0) -> float:
        """Return the seconds to wait; `list_s` is what the list took, for which the server rests as long."""
        if self._last_end is not None:
            lived_s = max(0.0, now - self._last_end - list_s)
            self._counted = max(0.0, self._counted - lived_s / self.FORGIVEN_AFTER_S)
        longest_s = self.SHORT_S if self._counted < self.SHORT_ONES else self.LONG_S
        delay = self._rng.uniform(0, min(longest_s, self.FIRST_S * 2**self._counted)) + list_s
        self._counted = min(self._counted + 1, self.SHORT_ONES + 1)
        self._last_end = now + delay
        return delay

    async def wait(self, list_s: float = 0.0) -> None:
        """Sleep for the next delay."""
        await asyncio.sleep(self.next_delay(asyncio.get_running_loop().time(), list_s))
