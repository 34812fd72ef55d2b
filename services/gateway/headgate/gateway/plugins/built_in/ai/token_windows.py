"""Windows in which tokens are counted by key: looked at before a request, and filled when its answer has ended."""

import math
from typing import NamedTuple

from headgate.gateway.plugins.kit.keyed import Keyed


class Filling(NamedTuple):
    """What a window holds."""

    used: int
    ends_s: float
    """Seconds until it ends."""


class _Window:
    __slots__ = ("ends", "used")

    def __init__(self, ends: float) -> None:
        self.used = 0
        self.ends = ends


class TokenWindows:
    """Those of one limit in one worker; a window begins with the first tokens."""

    def __init__(self) -> None:
        self._windows: Keyed[_Window] = Keyed()

    def look(self, key: str, window_s: float, now: float) -> Filling:
        """Return what the window of a key holds."""
        window = self._windows.get(key)
        if window is None or now >= window.ends:
            return Filling(0, window_s)
        return Filling(window.used, window.ends - now)

    def add(self, key: str, tokens: int, window_s: float, now: float) -> None:
        """Count tokens, however full the window is."""
        window = self._windows.get(key)
        if window is None or now >= window.ends:
            window = self._windows.put(key, _Window(now + window_s))
        window.used += tokens


def header_lines(filling: Filling, limit: int) -> tuple[str, str, str]:
    """Return limit, what is left, and the seconds until the window ends, as headers say them."""
    return str(limit), str(max(limit - filling.used, 0)), str(math.ceil(filling.ends_s))
