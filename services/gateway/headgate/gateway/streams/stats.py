"""Counters of streams: plain numbers, turned into Prometheus metrics only when somebody asks."""

from collections.abc import Callable, Iterable

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric

_MAX_ROUTES = 10_000
_OTHER_ROUTES = "other"


class StreamCounters:
    """What is counted per stream route. Kept by the route's key, so that it outlives swaps of the table."""

    __slots__ = ("accepted", "active", "dropped", "finished", "received", "sent")

    def __init__(self) -> None:
        self.accepted = 0
        """Connections, or UDP sessions, that began."""
        self.active = 0
        self.finished: dict[int, int] = {}
        """By status."""
        self.received = 0
        """Bytes from clients."""
        self.sent = 0
        """Bytes to clients."""
        self.dropped = 0
        """Datagrams that were not passed on."""


class ClientConnections:
    """Open connections by route and address, of routes that bound these."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, str], int] = {}

    def count(self, route: str, address: str) -> int:
        """Return how many are open."""
        return self._open.get((route, address), 0)

    def enter(self, route: str, address: str) -> None:
        """Count one that begins."""
        self._open[route, address] = self.count(route, address) + 1

    def leave(self, route: str, address: str) -> None:
        """Count one that ends."""
        left = self._open.pop((route, address)) - 1
        if left:
            self._open[route, address] = left


class StreamStats:
    """Counters of one process; a collector for a prometheus_client registry."""

    def __init__(self, max_routes: int = _MAX_ROUTES) -> None:
        self._max_routes = max_routes
        self._routes: dict[str, StreamCounters] = {}
        self.clients = ClientConnections()
        self.ports_open = 0
        self.ports_failed = 0
        """Ports of the table that could not be bound, and are tried again."""
        self.unrouted = 0
        """Connections that no route took: no hello, no such server name, no PROXY header where one is due."""

        self._bring_up_to_date: Callable[[], None] = lambda: None

    def watch(self, bring_up_to_date: Callable[[], None]) -> None:
        """Call this before counters are read: connections count their bytes for themselves."""
        self._bring_up_to_date = bring_up_to_date

    def route(self, key: str) -> StreamCounters:
        """Return the counters of a route, making them on first use."""
        counters = self._routes.get(key)
        if counters is None:
            if len(self._routes) >= self._max_routes:
                key = _OTHER_ROUTES
            counters = self._routes.setdefault(key, StreamCounters())
        return counters

    @property
    def active(self) -> int:
        """Connections and sessions that are open."""
        return sum(counters.active for counters in self._routes.values())

    def collect(self) -> Iterable[Metric]:
        """Give all counters as metric families; prometheus_client calls this per scrape."""
        self._bring_up_to_date()
        ports = GaugeMetricFamily("headgate_stream_ports", "Ports of stream routes.", labels=["state"])
        ports.add_metric(["open"], self.ports_open)
        ports.add_metric(["failed"], self.ports_failed)
        yield ports
        yield CounterMetricFamily(
            "headgate_stream_unrouted",
            "Connections that no stream route took, and datagrams without their PROXY header.",
            self.unrouted,
        )
        active = GaugeMetricFamily("headgate_stream_active", "Open connections and UDP sessions.", labels=["route"])
        accepted = CounterMetricFamily("headgate_streams", "Connections and UDP sessions.", labels=["route"])
        finished = CounterMetricFamily("headgate_streams_ended", "Those that ended.", labels=["route", "status"])
        received = CounterMetricFamily("headgate_stream_received_bytes", "Bytes from clients.", labels=["route"])
        sent = CounterMetricFamily("headgate_stream_sent_bytes", "Bytes to clients.", labels=["route"])
        dropped = CounterMetricFamily("headgate_stream_dropped_datagrams", "Not passed on.", labels=["route"])
        for key, counters in self._routes.items():
            active.add_metric([key], counters.active)
            accepted.add_metric([key], counters.accepted)
            received.add_metric([key], counters.received)
            sent.add_metric([key], counters.sent)
            dropped.add_metric([key], counters.dropped)
            for status, count in counters.finished.items():
                finished.add_metric([key, str(status)], count)
        yield from (active, accepted, finished, received, sent, dropped)
