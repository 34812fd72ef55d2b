"""Windows in which tokens are counted by key: looked at before a request, and filled when its answer has ended."""

import math
from typing import NamedTuple

from headgate.gateway.counting.peers import Peers
from headgate.gateway.plugins.kit.keyed import Keyed


class Filling(NamedTuple):
    """What a window holds."""

    used: int
    ends_s: float
    """Seconds until it ends."""


class _Window:
    __slots__ = ("ends", "place", "used")

    def __init__(self, place: int) -> None:
        self.used = 0
        """In this worker."""
        self.ends = -math.inf
        self.place = place


class TokenWindows:
    """Those of one limit; a window begins with the first tokens.

    Args:
        peers: how other workers of the gateway are heard; None: there are none.
        name: of the limit, the same in all workers.
    """

    def __init__(self, peers: Peers | None = None, name: str = "") -> None:
        self._windows: Keyed[_Window] = Keyed()
        self._peers = peers
        self._name = name

    def look(self, key: str, window_s: float, now: float) -> Filling:
        """Return what the window of a key holds."""
        window = self._windows.get(key)
        used, ends = (window.used, window.ends) if window is not None and now < window.ends else (0, math.inf)
        if self._peers is not None:
            place = window.place if window is not None else self._place(key)
            for count, _, _, end in self._peers.read(place):
                if end > now:
                    used, ends = used + int(count), min(ends, end)
        return Filling(used, min(ends - now, window_s))

    def add(self, key: str, tokens: int, window_s: float, now: float) -> None:
        """Count tokens, however full the window is."""
        window = self._windows.get(key) or self._windows.put(key, _Window(self._place(key)))
        if now >= window.ends:
            window.used, window.ends = 0, now + self.look(key, window_s, now).ends_s
        window.used += tokens
        if self._peers is not None:
            self._peers.write(window.place, window.used, 0.0, 0.0, window.ends)

    def _place(self, key: str) -> int:
        return 0 if self._peers is None else self._peers.place(f"{self._name}\0{key}")


def header_lines(filling: Filling, limit: int) -> tuple[str, str, str]:
    """Return limit, what is left, and the seconds until the window ends, as headers say them."""
    return str(limit), str(max(limit - filling.used, 0)), str(math.ceil(filling.ends_s))
