"""How long to wait before the API server is asked again.

Every way back to the server passes a `Backoff`, also the harmless ones (a watch that ended early), so that no answer
whatsoever can make a hot loop.
"""

import asyncio
from random import Random


class Backoff:
    """Exponential with jitter: up to 0.8 s, then twice that, and so on up to 30 s; anew after 2 min without need."""

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
