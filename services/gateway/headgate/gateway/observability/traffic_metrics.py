"""What the proxy has counted, as metric families: put together when somebody asks.

Thousands of routes make tens of thousands of samples. They are made one by one while the page is written, which lets
traffic run in between, rather than all at once.
"""

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.samples import Sample

from headgate.gateway.balancing.endpoints import EndpointDirectory
from headgate.gateway.proxy.endpoint_pool import EndpointPool
from headgate.gateway.proxy.pools import PoolRegistry
from headgate.gateway.proxy.stats import MAX_SERIES, OTHER_ROUTES, ProxyStats
from headgate.gateway.proxy.traffic import LATENCY_BOUNDS_S, Traffic

if TYPE_CHECKING:
    from headgate.gateway.model.persistent_map import PersistentMap
    from headgate.gateway.table.compile import CompiledHost

_BOUNDS = (*map(str, LATENCY_BOUNDS_S), "+Inf")

Labels = dict[str, str]
Rows = list[tuple[Labels, Traffic]]


class _MadeAnew:
    """Samples that are made each time when somebody goes through them."""

    def __init__(self, make: Callable[[], Iterator[Sample]]) -> None:
        self._make = make

    def __iter__(self) -> Iterator[Sample]:
        return self._make()


def family(kind: str, name: str, text: str, make: Callable[[str], Iterator[Sample]]) -> Metric:
    """Return a family whose samples a function makes; it is given the family's name."""
    family = Metric(name, text, kind)
    samples: Any = _MadeAnew(lambda: make(name))
    family.samples = samples
    return family


class _TrafficFamilies:
    """Families of several `Traffic`, told apart by labels."""

    def __init__(self, rows: Rows, prefix: str, of: str, errors: str) -> None:
        """Prepare them; `prefix` is that of their names, `of` says whose requests they are, `errors` names failures."""
        self._rows = rows
        self._prefix = f"headgate_{prefix}"
        self._of = of
        self._errors_name = errors

    def families(self) -> Iterator[Metric]:
        """Return them all."""
        of = self._of
        yield self._counter("requests", f"Requests {of}, by status code; 0 are those without an answer", self._requests)
        yield family(
            "histogram",
            f"{self._prefix}request_duration_seconds",
            f"From the head of a request to the last byte of its answer, for requests {of}",
            self._seconds,
        )
        yield self._numbers("request_bytes", f"Bytes of the bodies of requests {of}", lambda each: each.received)
        yield self._numbers("answer_bytes", f"Bytes of the bodies of answers to requests {of}", lambda each: each.sent)
        yield self._numbers("retries", f"Requests {of} that were sent once more", lambda each: each.retries)
        yield self._counter(self._errors_name, f"Failed attempts at requests {of}, by kind", self._errors)

    def _counter(self, name: str, text: str, make: Callable[[str], Iterator[Sample]]) -> Metric:
        return family("counter", self._prefix + name, text, make)

    def _numbers(self, name: str, text: str, value: Callable[[Traffic], int]) -> Metric:
        return self._counter(
            name, text, lambda full: (Sample(f"{full}_total", labels, value(each)) for labels, each in self._rows)
        )

    def _requests(self, name: str) -> Iterator[Sample]:
        for labels, traffic in self._rows:
            for status, count in traffic.by_status().items():
                yield Sample(f"{name}_total", {**labels, "code": str(status)}, count)

    def _errors(self, name: str) -> Iterator[Sample]:
        for labels, traffic in self._rows:
            for kind, count in list(traffic.errors.items()):
                yield Sample(f"{name}_total", {**labels, "kind": kind}, count)

    def _seconds(self, name: str) -> Iterator[Sample]:
        for labels, traffic in self._rows:
            total = 0
            for bound, count in zip(_BOUNDS, list(traffic.by_bound()), strict=True):
                total += count
                yield Sample(f"{name}_bucket", {**labels, "le": bound}, total)
            yield Sample(f"{name}_count", labels, total)
            yield Sample(f"{name}_sum", labels, traffic.seconds)


class RouteFamilies:
    """The families of a proxy's counters by route and upstream, and of its clients' connections."""

    def __init__(self, stats: ProxyStats) -> None:
        self._stats = stats

    def collect(self) -> Iterable[Metric]:
        """Return the families."""
        stats = self._stats
        yield GaugeMetricFamily("headgate_connections", "Client connections that are open", stats.open_connections)
        yield CounterMetricFamily("headgate_connections_accepted", "Client connections accepted", stats.connections)
        yield GaugeMetricFamily(
            "headgate_routes_folded", f"Pairs of route and upstream that are shown as {OTHER_ROUTES}", stats.folded
        )
        rows: Rows = [
            ({"route": traffic.route, "upstream": traffic.upstream}, traffic)
            for traffic in stats.series()
            if any(traffic.buckets) or traffic.errors
        ]
        yield from _TrafficFamilies(rows, "", "of a route", "upstream_errors").families()
        refused = CounterMetricFamily(
            "headgate_refused", "Answers of the gateway's own, before or behind a route", labels=["status", "before"]
        )
        for (status, what), count in list(stats.refusals.items()):
            refused.add_metric([str(status), what], count)
        yield refused
        closed = CounterMetricFamily("headgate_connections_refused", "Connections over a limit", labels=["limit"])
        for limit, count in list(stats.refused_connections.items()):
            closed.add_metric([limit], count)
        yield closed
        yield GaugeMetricFamily(
            "headgate_buffered_bytes", "Bytes of bodies that are held in memory", stats.buffers.used
        )
        yield CounterMetricFamily(
            "headgate_buffers_refused", "Bodies for which max_buffered_bytes left no room", stats.buffers.refused
        )
        errors = CounterMetricFamily(
            "headgate_client_errors", "Connections ended for what clients did to them", labels=["kind"]
        )
        for kind, count in list(stats.client_errors.items()):
            errors.add_metric([kind], count)
        yield errors


class EndpointFamilies:
    """The families of what is counted by endpoint, with the upstreams that name it.

    An endpoint that several upstreams name is counted once, as they share its connections; `headgate_endpoint_upstream`
    says which they are. Endpoints without a request so far are absent, and so are those that left the table.

    Args:
        pools: of the proxy.
        directory: says which upstreams name an endpoint.
        max_endpoints: shown, those with the most requests.
    """

    def __init__(self, pools: PoolRegistry, directory: EndpointDirectory, max_endpoints: int = MAX_SERIES) -> None:
        self._pools = pools
        self._directory = directory
        self._max_endpoints = max_endpoints

    def collect(self) -> Iterable[Metric]:
        """Return the families."""
        found = self._found()
        most = self._most(found)
        hidden = len(found) - len(most)
        yield GaugeMetricFamily("headgate_endpoints_folded", "Endpoints not shown: others have more requests", hidden)
        upstreams = GaugeMetricFamily(
            "headgate_endpoint_upstream", "1 for each upstream that names an endpoint", labels=["endpoint", "upstream"]
        )
        for each in most:
            for upstream in sorted(each.upstreams):
                upstreams.add_metric([each.label, upstream], 1)
        yield upstreams
        rows: Rows = [({"endpoint": each.label}, each.traffic) for each in most]
        yield from _TrafficFamilies(rows, "endpoint_", "that an endpoint answered", "errors").families()

        def numbers(kind: str, name: str, text: str, value: Callable[[EndpointPool], int]) -> Metric:
            suffix = "_total" if kind == "counter" else ""
            return family(
                kind,
                name,
                text,
                lambda full: (
                    Sample(full + suffix, {"endpoint": each.label}, sum(map(value, each.pools))) for each in most
                ),
            )

        yield numbers("gauge", "headgate_endpoint_connections", "Open connections", lambda pool: pool.connection_count)
        yield numbers("gauge", "headgate_endpoint_connections_idle", "Those at rest", lambda pool: pool.idle_count)
        yield numbers("counter", "headgate_endpoint_connects", "Connections begun", lambda pool: pool.connects)
        yield numbers("gauge", "headgate_endpoint_requests_active", "Requests under way", lambda pool: pool.in_flight)

    def busiest(self) -> Iterator[tuple[str, Traffic]]:
        """Yield `address:port` of the endpoints that are shown, with what was counted of each."""
        return ((each.label, each.traffic) for each in self._most(self._found()))

    def _most(self, found: "Mapping[str, _Endpoint]") -> "list[_Endpoint]":
        return heapq.nlargest(self._max_endpoints, found.values(), key=lambda each: sum(each.traffic.buckets))

    def _found(self) -> dict[str, "_Endpoint"]:
        """Return all endpoints that some upstream names, by label."""
        found: dict[str, _Endpoint] = {}
        for key, pool in self._pools.pools():
            if upstreams := self._directory.upstreams(key):
                endpoint = found.setdefault(pool.label, _Endpoint(pool.label))
                endpoint.pools.append(pool)
                endpoint.upstreams.update(upstreams)
        return found


class _Endpoint:
    """An address and port, with the ways to connect to it: in plain text, over TLS, …"""

    def __init__(self, label: str) -> None:
        self.label = label
        self.pools: list[EndpointPool] = []
        self.upstreams: set[str] = set()

    @property
    def traffic(self) -> Traffic:
        """What was counted of it."""
        if len(self.pools) == 1:
            return self.pools[0].traffic
        total = Traffic()
        for pool in self.pools:
            total.add(pool.traffic)
        return total


def gone_routes(
    counted: Iterable[tuple[str, str]], hosts: "PersistentMap[bytes, CompiledHost]"
) -> Iterator[tuple[str, str]]:
    """Yield which of some pairs of route and upstream are counted for routes that are not in the table.

    What has no `|` in its name is no route of a table, and stays.
    """
    there: dict[str, set[str]] = {}
    for name, upstream in counted:
        host, bar, _ = name.partition("|")
        if bar and host not in there:
            compiled = hosts.get(host.encode())
            there[host] = {route.name for _, route in compiled.routes} if compiled is not None else set()
        if bar and name not in there[host]:
            yield name, upstream
