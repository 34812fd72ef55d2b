"""How fast one client may ask."""

import time
from collections.abc import Callable
from typing import Final

_MAX_CLIENTS: Final = 10_000


class Pace:
    """A bucket of tokens for each client.

    Args:
        rate: tokens that come back each second.
        burst: that there are at most.
        clock: seconds.
    """

    def __init__(self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._burst, self._clock = rate, burst, clock
        self._buckets: dict[str, tuple[float, float]] = {}

    def take(self, client: str) -> bool:
        """Take a token; False if there is none."""
        now = self._clock()
        left, at = self._buckets.pop(client, (self._burst, now))
        left = min(self._burst, left + (now - at) * self._rate)
        while len(self._buckets) >= _MAX_CLIENTS:
            del self._buckets[next(iter(self._buckets))]
        self._buckets[client] = (left - 1 if left >= 1 else left, now)
        return left >= 1
