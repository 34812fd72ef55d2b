"""What traffic there is now: what all workers of a table say, added up over the last seconds."""

import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from typing import Final, NamedTuple

from headgate.common.traffic import Counts, TrafficSummary, added, percentile

MAX_HEARD: Final = 100_000
"""Summaries that are kept at once: those of a hundred workers in a quarter of an hour."""


class Grouping(StrEnum):
    """What has a line of its own."""

    ROUTE = "route"
    HOST = "host"
    ENDPOINT = "endpoint"


class Order(StrEnum):
    """Which lines come first."""

    REQUESTS = "requests"
    ERRORS = "errors"
    P99 = "p99"
    BYTES = "bytes"


class TrafficLine(NamedTuple):
    """The requests of a route to an upstream, of a host, or of an endpoint."""

    name: str
    """Route as `host|name`, host, or `address:port`; empty: requests that no route took."""
    upstream: str
    """Of a route; empty where none was chosen, and of all else."""
    counts: Counts

    @property
    def failed(self) -> int:
        """Answers of 500 and above."""
        return self.counts.answers[5]

    def percentile_ms(self, share: float) -> float:
        """Return the milliseconds within which a share of the requests was over."""
        return percentile(self.counts.durations, share) * 1000


class TrafficReport(NamedTuple):
    """What was heard within some time."""

    seconds: float
    """How long that was; rates are by it."""
    workers: int
    """That said something."""
    lines: tuple[TrafficLine, ...]
    others: Counts
    """Requests of routes that are in no line, as there are so many."""
    all: Counts
    """Of all routes."""


_ORDERS: Final[dict[Order, Callable[[TrafficLine], float]]] = {
    Order.REQUESTS: lambda line: line.counts.requests,
    Order.ERRORS: lambda line: line.failed,
    Order.P99: lambda line: line.percentile_ms(0.99),
    Order.BYTES: lambda line: line.counts.received + line.counts.sent,
}


class TrafficWindow:
    """What was heard in the last seconds.

    Args:
        seconds: that count.
        clock: seconds, of when something is heard; the clocks of gateways need not agree with it.
    """

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds, self._clock = seconds, clock
        self._heard: deque[tuple[float, TrafficSummary]] = deque(maxlen=MAX_HEARD)
        self._began = clock()

    def note(self, summary: TrafficSummary) -> None:
        """Take what a worker said."""
        self._heard.append((self._clock(), summary))

    def report(self, grouping: Grouping, order: Order) -> TrafficReport:
        """Add up what was heard; lines with as much of what they are ordered by are ordered by requests, then names."""
        now = self._clock()
        while self._heard and self._heard[0][0] < now - self._seconds:
            self._heard.popleft()
        summaries = [summary for _, summary in self._heard]
        lines = sorted(_lines(summaries, grouping), key=lambda line: (line.name, line.upstream))
        lines.sort(key=lambda line: line.counts.requests, reverse=True)
        lines.sort(key=_ORDERS[order], reverse=True)
        others = added(summary.others for summary in summaries)
        routed = (row.counts for summary in summaries for row in summary.routes)
        return TrafficReport(
            seconds=max(1.0, min(self._seconds, now - self._began)),
            workers=len({(summary.replica, summary.worker) for summary in summaries}),
            lines=tuple(lines),
            others=others if grouping is not Grouping.ENDPOINT else Counts(),
            all=added((*routed, others)),
        )


def _lines(summaries: Iterable[TrafficSummary], grouping: Grouping) -> list[TrafficLine]:
    found: dict[tuple[str, str], list[Counts]] = defaultdict(list)
    for summary in summaries:
        for key, counts in _rows(summary, grouping):
            found[key].append(counts)
    return [TrafficLine(name, upstream, added(parts)) for (name, upstream), parts in found.items()]


def _rows(summary: TrafficSummary, grouping: Grouping) -> Iterator[tuple[tuple[str, str], Counts]]:
    match grouping:
        case Grouping.ROUTE:
            yield from (((row.route, row.upstream), row.counts) for row in summary.routes)
        case Grouping.HOST:
            yield from (((host_of(row.route), ""), row.counts) for row in summary.routes)
        case Grouping.ENDPOINT:
            yield from (((row.endpoint, ""), row.counts) for row in summary.endpoints)


def host_of(route: str) -> str:
    """Return the host of a route's name, without the listeners that a key may have behind it."""
    return route.partition("|")[0].partition("@")[0]
