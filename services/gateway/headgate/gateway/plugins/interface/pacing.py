"""How fast the body of an answer goes out."""


class Pacing:
    """How fast a body may go out: nginx's `limit_rate` and `limit_rate_after`."""

    __slots__ = ("_after", "_rate", "_started")

    def __init__(self, rate: int, after: int, started: float) -> None:
        self._rate = rate
        self._after = after
        self._started = started

    def wait_s(self, sent: int, now: float) -> float:
        """Return the seconds to wait before more of the body may be sent, with `sent` bytes of it gone.

        `now` is monotonic, as the start given to the constructor. The first second's share may go at once.
        """
        ahead = sent - self._after - self._rate * (now - self._started + 1)
        return ahead / self._rate if ahead > 0 else 0.0

    def piece(self, per_second: int) -> int:
        """Return the bytes that may go out at once, if so many pieces go out in a second."""
        return max(1, self._rate // per_second)
