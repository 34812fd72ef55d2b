"""Counters of the hot path: plain numbers in lists, turned into Prometheus metrics only when somebody asks.

`prometheus_client` counters take a lock and a dictionary look-up per increment; here an increment is one list store.
One process has one `ProxyStats`, updated on its event loop only.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric

# The annotation is for mypyc, which would take this for a struct and make a tuple of it at each use.
LATENCY_BOUNDS_S: Final[tuple[float, ...]] = (
    *(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25),
    *(0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0),
)
_CLASSES: Final = ("none", "1xx", "2xx", "3xx", "4xx", "5xx")
_MAX_ROUTES: Final = 20_000
_OTHER_ROUTES: Final = "other"


class RouteCounters:
    """What is counted per route."""

    __slots__ = ("by_class", "bytes_sent", "seconds")

    def __init__(self) -> None:
        self.by_class = [0] * len(_CLASSES)
        self.bytes_sent = 0
        self.seconds = 0.0


class ProxyStats:
    """Counters of one proxy; a collector for a prometheus_client registry.

    Args:
        max_routes: routes counted apart; names of routes that left the table stay, so this bounds what churn can pile
            up.
    """

    def __init__(self, max_routes: int = _MAX_ROUTES) -> None:
        self._max_routes = max_routes
        self.connections = 0
        """Client connections accepted since the start."""
        self.retries = 0
        self.routes: dict[str, RouteCounters] = {}
        self.refusals: dict[tuple[int, str], int] = {}
        self.upstream_errors: dict[str, int] = {}
        self._buckets = [0] * (len(LATENCY_BOUNDS_S) + 1)
        self._seconds = 0.0
        self._open_connections: Callable[[], int] = lambda: 0

    def watch_connections(self, count: Callable[[], int]) -> None:
        """Take the number of open connections from there."""
        self._open_connections = count

    def observe(self, route: str, status: int, duration_s: float, bytes_sent: int) -> None:
        """Count one finished request. `route` is empty if none matched."""
        counters = self.routes.get(route)
        if counters is None:
            counters = self._new_route(route)
        counters.by_class[status // 100] += 1
        counters.bytes_sent += bytes_sent
        counters.seconds += duration_s
        self._buckets[bisect_left(LATENCY_BOUNDS_S, duration_s)] += 1
        self._seconds += duration_s

    def refused(self, status: int, routed: bool) -> None:
        """Count one answer of our own, or one that we cut off."""
        key = (status, "route" if routed else "request")
        self.refusals[key] = self.refusals.get(key, 0) + 1

    def upstream_error(self, kind: str) -> None:
        """Count one failure of an upstream: `connect`, `closed`, `invalid` or `timeout`."""
        self.upstream_errors[kind] = self.upstream_errors.get(kind, 0) + 1

    @property
    def requests(self) -> int:
        """Requests finished since the start."""
        return sum(sum(counters.by_class) for counters in self.routes.values())

    def _new_route(self, route: str) -> RouteCounters:
        if len(self.routes) >= self._max_routes:
            return self.routes.setdefault(_OTHER_ROUTES, RouteCounters())
        return self.routes.setdefault(route, RouteCounters())

    def collect(self) -> Iterable[Metric]:
        """Give all counters as metric families; prometheus_client calls this per scrape."""
        yield GaugeMetricFamily("headgate_connections", "Open client connections.", self._open_connections())
        yield CounterMetricFamily("headgate_connections_accepted", "Client connections accepted.", self.connections)
        yield CounterMetricFamily("headgate_retries", "Requests sent a second time.", self.retries)
        requests = CounterMetricFamily("headgate_requests", "Requests by route and class.", labels=["route", "class"])
        sent = CounterMetricFamily("headgate_sent_bytes", "Body bytes sent to clients.", labels=["route"])
        for route, counters in self.routes.items():
            for name, count in zip(_CLASSES, counters.by_class, strict=True):
                if count:
                    requests.add_metric([route, name], count)
            sent.add_metric([route], counters.bytes_sent)
        yield requests
        yield sent
        refused = CounterMetricFamily("headgate_refused", "Answers of our own.", labels=["status", "before"])
        for (status, what), count in self.refusals.items():
            refused.add_metric([str(status), what], count)
        yield refused
        errors = CounterMetricFamily("headgate_upstream_errors", "Failures of upstreams.", labels=["kind"])
        for kind, count in self.upstream_errors.items():
            errors.add_metric([kind], count)
        yield errors
        yield self._latency()

    def _latency(self) -> Metric:
        total, buckets = 0, []
        for bound, count in zip((*map(str, LATENCY_BOUNDS_S), "+Inf"), self._buckets, strict=True):
            total += count
            buckets.append((bound, total))
        family = HistogramMetricFamily("headgate_request_seconds", "From a request's head to its answer's last byte.")
        family.add_metric([], buckets=buckets, sum_value=self._seconds)
        return family
