"""What traffic there was: what all workers of a table said, added up by the second and by the minute.

A slot is kept as packed bytes, as 900 seconds and 1,440 minutes of 500 routes would otherwise take some hundred MB.
What is read is unpacked again, slot by slot.
"""

import time
import zlib
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

import msgspec

from headgate.common.traffic import MAX_ROWS, Counts, EndpointCounts, RouteCounts, TrafficSummary, added, percentile
from headgate.operations.traffic.window import Grouping, host_of

SECONDS_KEPT: Final = 15 * 60
MINUTES_KEPT: Final = 24 * 60
_MINUTE_S: Final = 60
MAX_POINTS: Final = 2000
"""Of one series."""
SPARK_STEP_S: Final = 15
MAX_SPARKS: Final = 5000
"""Routes whose lines are kept; those without requests for longest are forgotten first."""


class _Slot(msgspec.Struct, array_like=True, frozen=True):
    """The requests that were over within a second or a minute."""

    routes: tuple[RouteCounts, ...]
    endpoints: tuple[EndpointCounts, ...]
    others: Counts


class Point(NamedTuple):
    """What was over within one step of a series."""

    at: float
    """When the step began, seconds since 1970."""
    requests: int
    failed: int
    """Answers of 500 and above."""
    refused: int
    """Answers from 400 to 499."""
    sent: int
    """Bytes of answers' bodies."""
    p50_ms: float
    p99_ms: float


class _Sum:
    """Counts that are being added up."""

    def __init__(self) -> None:
        self.routes: dict[tuple[str, str], list[Counts]] = defaultdict(list)
        self.endpoints: dict[str, list[Counts]] = defaultdict(list)
        self.others: list[Counts] = []

    def take(self, routes: Iterable[RouteCounts], endpoints: Iterable[EndpointCounts], others: Counts) -> None:
        """Add counts."""
        for row in routes:
            self.routes[row.route, row.upstream].append(row.counts)
        for each in endpoints:
            self.endpoints[each.endpoint].append(each.counts)
        if others.requests:
            self.others.append(others)

    def slot(self) -> _Slot:
        """Return all of it; of more than `MAX_ROWS` routes those with the most requests by name."""
        rows = [RouteCounts(*key, added(parts)) for key, parts in self.routes.items()]
        rows.sort(key=lambda row: row.counts.requests, reverse=True)
        others = added([*self.others, *(row.counts for row in rows[MAX_ROWS:])])
        ends = [EndpointCounts(name, added(parts)) for name, parts in self.endpoints.items()]
        ends.sort(key=lambda each: each.counts.requests, reverse=True)
        return _Slot(tuple(rows[:MAX_ROWS]), tuple(ends[:MAX_ROWS]), others)


class _Ring:
    """Slots of one length, the newest last."""

    def __init__(self, step_s: int, kept: int) -> None:
        self.step_s = step_s
        self._slots: deque[tuple[int, bytes]] = deque(maxlen=kept)

    def put(self, at: int, slot: _Slot) -> None:
        """Keep what was over within the step that began then."""
        self._slots.append((at, zlib.compress(msgspec.msgpack.encode(slot), 1)))

    def read(self, since: float) -> Iterator[tuple[int, _Slot]]:
        """Yield the slots that begin then or later, oldest first."""
        for at, packed in list(self._slots):
            if at >= since:
                yield at, msgspec.msgpack.decode(zlib.decompress(packed), type=_Slot)

    @property
    def size(self) -> int:
        """Bytes that are kept."""
        return sum(len(packed) for _, packed in self._slots)


class _Sparks:
    """Short lines of many routes, kept ready: lists of routes show a line for each."""

    def __init__(self) -> None:
        self._open: dict[str, list[Counts]] = defaultdict(list)
        self._step = 0
        self._lines: dict[str, deque[Point]] = {}

    def take(self, second: int, routes: Iterable[RouteCounts]) -> None:
        """Add what was over within a second."""
        step = second // SPARK_STEP_S * SPARK_STEP_S
        if step != self._step:
            self._close()
            self._step = step
        for row in routes:
            self._open[row.route].append(row.counts)

    def _close(self) -> None:
        for name, parts in self._open.items():
            line = self._lines.pop(name, None)
            if line is None:
                line = deque(maxlen=SECONDS_KEPT // SPARK_STEP_S)
            line.append(_point(self._step, added(parts)))
            self._lines[name] = line  # at the end: those that were used longest ago go first
        self._open.clear()
        while len(self._lines) > MAX_SPARKS:
            del self._lines[next(iter(self._lines))]

    def line(self, name: str, now: int) -> list[Point]:
        """Return a route's line up to now; nothing, if it had no requests."""
        known = {point.at: point for point in self._lines.get(name, ())}
        if parts := self._open.get(name):
            known[self._step] = _point(self._step, added(parts))
        end = now // SPARK_STEP_S * SPARK_STEP_S + SPARK_STEP_S
        steps = range(end - SECONDS_KEPT, end, SPARK_STEP_S)
        if not any(at in known for at in steps):
            return []
        return [known.get(at) or _point(at, Counts()) for at in steps]


class TrafficHistory:
    """The last 15 minutes by the second, and the last 24 hours by the minute.

    Args:
        clock: seconds since 1970, of when something is heard; the clocks of gateways need not agree with it.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._seconds, self._minutes = _Ring(1, SECONDS_KEPT), _Ring(_MINUTE_S, MINUTES_KEPT)
        self._second, self._minute = int(clock()), int(clock()) // _MINUTE_S * _MINUTE_S
        self._of_second, self._of_minute = _Sum(), _Sum()
        self._sparks = _Sparks()

    def note(self, summary: TrafficSummary) -> None:
        """Take what a worker said."""
        self.roll()
        self._of_second.take(summary.routes, summary.endpoints, summary.others)

    def roll(self) -> None:
        """Close the second and the minute that are over. Seconds without traffic have no slot."""
        now = int(self._clock())
        if now <= self._second:
            return
        if self._of_second.routes or self._of_second.others or self._of_second.endpoints:
            slot = self._of_second.slot()
            self._seconds.put(self._second, slot)
            self._sparks.take(self._second, slot.routes)
            self._of_minute.take(slot.routes, slot.endpoints, slot.others)
            self._of_second = _Sum()
        self._second = now
        minute = now // _MINUTE_S * _MINUTE_S
        if minute > self._minute:
            if self._of_minute.routes or self._of_minute.others:
                self._minutes.put(self._minute, self._of_minute.slot())
                self._of_minute = _Sum()
            self._minute = minute

    def series(self, last_s: float, step_s: int, grouping: Grouping = Grouping.ROUTE, name: str = "") -> list[Point]:
        """Return what was over in each step of the last seconds, oldest first; steps without requests too.

        Args:
            last_s: how far back; beyond 15 minutes it is read by the minute.
            step_s: length of a step, at least that of a slot.
            grouping: what the name is one of.
            name: of a route, a host or an endpoint; empty: all requests.

        Raises:
            ValueError: that would be more than `MAX_POINTS`.
        """
        self.roll()
        ring = self._seconds if last_s <= SECONDS_KEPT else self._minutes
        step = max(step_s, ring.step_s)
        end = self._second // step * step
        begin = end - int(last_s) // step * step
        if (end - begin) // step > MAX_POINTS:
            raise ValueError(f"{(end - begin) // step} steps are too many, at most {MAX_POINTS}: give a longer step")
        found: dict[int, list[Counts]] = defaultdict(list)
        for at, slot in ring.read(begin):
            found[at // step * step] += _counts(slot, grouping, name)
        return [_point(at, added(found.get(at, ()))) for at in range(begin, end, step)]

    def spark(self, name: str) -> list[Point]:
        """Return the last 15 minutes of a route in steps of `SPARK_STEP_S`; nothing, if it had no requests."""
        self.roll()
        return self._sparks.line(name, self._second)

    @property
    def size(self) -> int:
        """Bytes that are kept."""
        return self._seconds.size + self._minutes.size


def _counts(slot: _Slot, grouping: Grouping, name: str) -> Iterator[Counts]:
    if grouping is Grouping.ENDPOINT and name:
        yield from (each.counts for each in slot.endpoints if each.endpoint == name)
        return
    for row in slot.routes:
        if not name or name == (row.route if grouping is Grouping.ROUTE else host_of(row.route)):
            yield row.counts
    if not name:
        yield slot.others


def _point(at: int, counts: Counts) -> Point:
    return Point(
        at=at,
        requests=counts.requests,
        failed=counts.answers[5],
        refused=counts.answers[4],
        sent=counts.sent,
        p50_ms=percentile(counts.durations, 0.5) * 1000,
        p99_ms=percentile(counts.durations, 0.99) * 1000,
    )
