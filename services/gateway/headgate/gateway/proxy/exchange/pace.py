"""Whether what should move does so fast enough: so much in each period, so that a trickle holds nothing for ever."""


class Pace:
    """The current period of something that moves, by a count that only grows."""

    __slots__ = ("_began", "_count")

    def __init__(self, count: int, now: float) -> None:
        self._count = count
        self._began = now

    def ends(self, count: int, least: int, period_s: float, now: float) -> float:
        """Say when the current period is over; a new one has begun if at least so much has moved in this one."""
        if count - self._count >= least:
            self._count = count
            self._began = now
        return self._began + period_s
