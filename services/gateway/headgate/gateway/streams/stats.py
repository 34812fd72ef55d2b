"""Counters of streams: plain numbers, turned into Prometheus metrics only when somebody asks."""

from collections.abc import Callable, Iterable

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from headgate.common.table import StreamRoute
from headgate.gateway.counting.peers import Peers
from headgate.gateway.counting.tally import Tally

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


def _per_client(entry: StreamRoute) -> int | None:
    return entry.max_connections_per_client if entry.protocol != "udp" else None


def _of_client(entry: StreamRoute, address: str) -> str:
    return f"{entry.key}\0{address}"


class StreamStats:
    """Counters of one process; a collector for a prometheus_client registry.

    Args:
        max_routes: that are counted apart.
        peers: how other workers of the gateway are heard; None: there are none.
    """

    def __init__(self, max_routes: int = _MAX_ROUTES, peers: Peers | None = None) -> None:
        self._max_routes = max_routes
        self._routes: dict[str, StreamCounters] = {}
        self._bounded = Tally(peers, "streams")
        """Open connections and sessions of routes that bound these, in all workers."""
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

    def begin(self, entry: StreamRoute, address: str) -> str:
        """Count a connection or session for the bounds of its route; if it must not begin, say why, and count nothing.

        Counted are those that began under a bound.
        """
        bounded, most, per_client = self._bounded, entry.max_connections, _per_client(entry)
        if most is not None and bounded.enter(entry.key) > most:
            bounded.leave(entry.key)
            return f"{most} connections are open"
        if per_client is not None and bounded.enter(_of_client(entry, address)) > per_client:
            bounded.leave(_of_client(entry, address))
            if most is not None:
                bounded.leave(entry.key)
            return f"{per_client} connections of the client are open"
        return ""

    def end(self, entry: StreamRoute, address: str) -> None:
        """Count the end of one that began."""
        if entry.max_connections is not None:
            self._bounded.leave(entry.key)
        if _per_client(entry) is not None:
            self._bounded.leave(_of_client(entry, address))

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
