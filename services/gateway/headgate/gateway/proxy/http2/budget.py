"""How much a client may ask of a connection that is not a request.

Each kind of cheap frame that makes us work has a bucket that refills with time; a client that empties one is told to
calm down with a GOAWAY. Numbers as nghttp2 has them for resets; ordinary clients stay far below.
"""

import time
from typing import Final


class Bucket:
    """Tokens that refill steadily."""

    __slots__ = ("_at", "_burst", "_left", "_rate")

    def __init__(self, burst: float, rate: float) -> None:
        self._burst = burst
        self._rate = rate
        self._left = burst
        self._at = time.monotonic()

    def take(self, count: int = 1) -> bool:
        """Take tokens; False: there are not so many."""
        if self._left < count:
            now = time.monotonic()
            self._left = min(self._burst, self._left + (now - self._at) * self._rate)
            self._at = now
            if self._left < count:
                return False
        self._left -= count
        return True


RESETS: Final[tuple[float, ...]] = (1000.0, 33.0)
"""Streams reset by the client, or by us for what the client did wrong (CVE-2023-44487, CVE-2025-8671): burst, a
second."""
CONTROL: Final[tuple[float, ...]] = (1000.0, 100.0)
"""PING, PRIORITY and empty DATA frames, entries of SETTINGS, refused streams, and whatever else h2 answers."""
WINDOW_UPDATES_PER_FRAME: Final = 10
"""WINDOW_UPDATE frames that a DATA frame of ours allows for, Envoy's number; those beyond are counted as control
frames."""
