"""The latency to expect of an endpoint: an average that decays with time and jumps up with every slower answer.

As Finagle's and ingress-nginx's peak EWMA: a slow answer counts at once, a fast one by and by, and the expectation
falls towards 0 while nothing is heard, so that an endpoint that was slow gets another chance.
"""

import math

DECAY_S = 10.0
"""Time in which an observation loses all but 1/e of its weight, as in ingress-nginx."""


class PeakLatency:
    """What was observed of one endpoint."""

    __slots__ = ("_at", "_seconds")

    def __init__(self, seconds: float, now: float) -> None:
        self._seconds = seconds
        self._at = now

    def observe(self, seconds: float, now: float) -> None:
        """Take in the time that an answer took."""
        if seconds >= self._seconds:
            self._seconds = seconds
        else:
            kept = math.exp(-max(0.0, now - self._at) / DECAY_S)
            self._seconds = self._seconds * kept + seconds * (1.0 - kept)
        self._at = now

    def expected(self, now: float) -> float:
        """Return the seconds that the next answer is expected to take."""
        return self._seconds * math.exp(-max(0.0, now - self._at) / DECAY_S)
