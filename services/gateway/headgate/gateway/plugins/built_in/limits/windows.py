"""Windows in which one worker counts requests by key."""

import math
from collections.abc import Callable

from headgate.gateway.plugins.kit.keyed import Keyed

Quota = tuple[bool, int, int, int]
"""What a limit says of a request that it has counted: whether it is within, the limit, what is left, and the seconds
until the window ends. No named tuple, which takes longer to make."""


class _Window:
    __slots__ = ("count", "ends")

    def __init__(self, ends: float) -> None:
        self.count = 0
        self.ends = ends


class FixedWindows:
    """The window of a key begins with its first request."""

    def __init__(self) -> None:
        self._windows: Keyed[_Window] = Keyed()

    def take(self, key: str, limit: int, window_s: float, now: float) -> Quota:
        """Count a request, unless its window is full."""
        window = self._windows.get(key)
        if window is None or now >= window.ends:
            window = self._windows.put(key, _Window(now + window_s))
        is_within = window.count < limit
        if is_within:
            window.count += 1
        return is_within, limit, max(limit - window.count, 0), math.ceil(window.ends - now)


class _Slide:
    __slots__ = ("before", "count", "number")

    def __init__(self, number: int) -> None:
        self.number = number
        self.count = 0
        self.before = 0


class SlidingWindows:
    """Counted is what came in the last window's length; of the window before its share that lies within."""

    def __init__(self) -> None:
        self._slides: Keyed[_Slide] = Keyed()

    def take(self, key: str, limit: int, window_s: float, now: float) -> Quota:
        """Count a request, unless too many came before."""
        current = int(now // window_s)
        slide = self._slides.get(key) or self._slides.put(key, _Slide(current))
        if slide.number != current:
            slide.before = slide.count if slide.number == current - 1 else 0
            slide.count, slide.number = 0, current
        gone = (now - current * window_s) / window_s
        used = slide.before * (1 - gone) + slide.count
        is_within = used + 1 <= limit
        if is_within:
            slide.count += 1
            used += 1
        left = max(math.floor(limit - used), 0) if is_within else 0
        return is_within, limit, left, math.ceil((1 - gone) * window_s)


Windows = FixedWindows | SlidingWindows
WINDOWS: dict[str, Callable[[], Windows]] = {"fixed": FixedWindows, "sliding": SlidingWindows}
"""By the type of window."""
