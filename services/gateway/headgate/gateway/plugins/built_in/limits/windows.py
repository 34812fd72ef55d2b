"""Windows in which requests are counted by key, together with the other workers of the gateway if there are any.

Each worker counts what it lets through, and adds what the others show. Two that take a request at the same instant may
not see each other: a window lets through one request more for each other worker at most, and for each time that this
happens.
"""

import math
from collections import OrderedDict
from collections.abc import Callable

from headgate.gateway.counting.peers import Peers
from headgate.gateway.plugins.kit.keyed import MAX_KEYS

Quota = tuple[bool, int, int]
"""What a limit says of a request that it has counted: whether it is within, what is left, and the seconds until the
window ends. No named tuple, which takes longer to make."""


class _Window:
    __slots__ = ("count", "ends", "place")

    def __init__(self, place: int) -> None:
        self.count = 0
        """In this worker."""
        self.ends = -math.inf
        self.place = place


class Windows:
    """Windows by key."""

    def take(self, key: str, limit: int, window_s: float, now: float) -> Quota:
        """Count a request if that keeps the limit, and say how it stands."""
        raise NotImplementedError


class FixedWindows(Windows):
    """The window of a key begins with its first request.

    Args:
        peers: how other workers are heard; None: there are none.
        name: of the limit, the same in all workers.
    """

    def __init__(self, peers: Peers | None = None, name: str = "") -> None:
        self._windows: OrderedDict[str, _Window] = OrderedDict()
        self._peers = peers
        self._name = name

    def take(self, key: str, limit: int, window_s: float, now: float) -> Quota:
        """Count a request, unless its window is full."""
        window = self._windows.get(key)
        peers = self._peers
        if window is None:
            place = 0 if peers is None else peers.place(f"{self._name}\0{key}")
            window = self._windows[key] = _Window(place)
            if len(self._windows) > MAX_KEYS:
                self._windows.popitem(last=False)
        else:
            self._windows.move_to_end(key)
        if now >= window.ends:
            window.count, window.ends = 0, now + window_s
        elsewhere = 0 if peers is None else _join(window, peers, now)
        is_within = window.count + elsewhere < limit
        if is_within:
            window.count += 1
            if peers is not None:
                peers.write(window.place, window.count, 0.0, 0.0, window.ends)
        left_s = window.ends - now
        if left_s > window_s:  # (now + window_s) - now may be rounded up, and the next second would be told
            left_s = window_s
        return is_within, max(limit - window.count - elsewhere, 0), math.ceil(left_s)


def _join(window: _Window, peers: Peers, now: float) -> int:
    """Return what other workers have counted in a window, which ends with theirs if they have begun it before."""
    elsewhere = 0.0
    for count, _, _, ends in peers.read(window.place):
        if ends > now:
            elsewhere += count
            window.ends = min(window.ends, ends)
    return int(elsewhere)


class _Slide:
    __slots__ = ("before", "count", "number", "place")

    def __init__(self, number: int, place: int) -> None:
        self.number = number
        self.count = 0
        self.before = 0
        self.place = place


class SlidingWindows(Windows):
    """Counted is what came in the last window's length; of the window before its share that lies within.

    Args:
        peers: how other workers are heard; None: there are none.
        name: of the limit, the same in all workers.
    """

    def __init__(self, peers: Peers | None = None, name: str = "") -> None:
        self._slides: OrderedDict[str, _Slide] = OrderedDict()
        self._peers = peers
        self._name = name

    def take(self, key: str, limit: int, window_s: float, now: float) -> Quota:
        """Count a request, unless too many came before."""
        current = int(now // window_s)
        peers = self._peers
        slide = self._slides.get(key)
        if slide is None:
            place = 0 if peers is None else peers.place(f"{self._name}\0{key}")
            slide = self._slides[key] = _Slide(current, place)
            if len(self._slides) > MAX_KEYS:
                self._slides.popitem(last=False)
        else:
            self._slides.move_to_end(key)
        if slide.number != current:
            slide.before = slide.count if slide.number == current - 1 else 0
            slide.count, slide.number = 0, current
        gone = (now - current * window_s) / window_s
        used = slide.before * (1 - gone) + slide.count
        if peers is not None:
            used += _used_elsewhere(peers, slide, gone)
        is_within = used + 1 <= limit
        if is_within:
            slide.count += 1
            used += 1
            if peers is not None:
                peers.write(slide.place, current, slide.count, slide.before, (current + 2) * window_s)
        left = max(math.floor(limit - used), 0) if is_within else 0
        return is_within, left, math.ceil((1 - gone) * window_s)


def _used_elsewhere(peers: Peers, slide: _Slide, gone: float) -> float:
    used = 0.0
    for number, count, before, _ in peers.read(slide.place):
        if number == slide.number:
            used += before * (1 - gone) + count
        elif number == slide.number - 1:
            used += count * (1 - gone)
    return used


WINDOWS: dict[str, Callable[[Peers | None, str], Windows]] = {"fixed": FixedWindows, "sliding": SlidingWindows}
"""By the type of window."""
