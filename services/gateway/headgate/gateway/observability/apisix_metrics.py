"""What the proxy has counted under the names of Apache APISIX, for its dashboards and alerts.

Names and labels are those of its plugin `prometheus`. Requests are not counted by node and route together here, so one
of these labels is empty: a dashboard that takes all of them shows everything.
"""

import socket
from collections.abc import Callable, Iterable, Iterator
from importlib.metadata import version
from typing import TYPE_CHECKING

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.samples import Sample

from headgate.common.table import HostKey
from headgate.gateway.observability.traffic_metrics import EndpointFamilies, Labels, family
from headgate.gateway.proxy.stats import ProxyStats
from headgate.gateway.proxy.traffic import LATENCY_BOUNDS_S, RouteTraffic, Traffic

if TYPE_CHECKING:
    from headgate.gateway.model.persistent_map import PersistentMap
    from headgate.gateway.table.compile import CompiledHost

_BOUNDS_MS = (*(f"{bound * 1000:g}" for bound in LATENCY_BOUNDS_S), "+Inf")
_NOT_GIVEN = "499"
"""The status of a request whose client left before there was an answer."""
_CONNECTIONS = "apisix_nginx_http_current_connections"


class ApisixFamilies:
    """The families that the dashboard of Apache APISIX looks for.

    Args:
        stats: of the proxy.
        endpoints: what is counted of them.
        hosts: returns the table that is served; paths of routes are looked up there.
    """

    def __init__(
        self, stats: ProxyStats, endpoints: EndpointFamilies, hosts: "Callable[[], PersistentMap[bytes, CompiledHost]]"
    ) -> None:
        self._stats = stats
        self._endpoints = endpoints
        self._hosts = hosts

    def collect(self) -> Iterable[Metric]:
        """Return the families. Counters have no `_total` there, which only untyped ones may be without."""
        stats = self._stats
        yield family("unknown", "apisix_http_status", "HTTP status codes of answers", self._statuses)
        yield family("histogram", "apisix_http_latency", "Latency of requests in milliseconds", self._latencies)
        yield family("unknown", "apisix_bandwidth", "Bytes of bodies of requests and answers", self._bytes)
        requests = sum(sum(each.buckets) for each in stats.series())
        yield GaugeMetricFamily("apisix_http_requests_total", "Requests since the start", requests)
        connections = GaugeMetricFamily(_CONNECTIONS, "Connections of clients", labels=["state"])
        accepted = stats.connections
        for state, count in (
            ("accepted", accepted),
            ("active", stats.open_connections),
            ("handled", accepted - sum(stats.refused_connections.values())),
        ):
            connections.add_metric([state], count)
        yield connections
        node = GaugeMetricFamily("apisix_node_info", "1, with the release that runs", labels=["hostname", "version"])
        node.add_metric([socket.gethostname(), version("headgate-ingress-gateway")], 1)
        yield node

    def _rows(self) -> Iterator[tuple[RouteTraffic, str, Traffic]]:
        """Yield what was counted of each route and upstream, by consumer."""
        consumers = self._stats.consumers
        for route in self._stats.series():
            for consumer, traffic in [("", route)] if consumers is None else consumers.rows(route):
                if any(traffic.buckets):
                    yield route, consumer, traffic

    def _statuses(self, name: str) -> Iterator[Sample]:
        paths: dict[str, dict[str, str]] = {}
        for route, consumer, traffic in self._rows():
            host = route.route.partition("|")[0]
            if host not in paths:
                paths[host] = _paths_of(self._hosts().get(host.encode()))
            labels = {
                **_labels(route, consumer),
                "matched_uri": paths[host].get(route.route, ""),
                "matched_host": HostKey.read(host).host if "|" in route.route and host != "*" else "",
            }
            for status, count in traffic.by_status().items():
                yield Sample(name, {"code": str(status or _NOT_GIVEN), **labels}, count)

    def _bytes(self, name: str) -> Iterator[Sample]:
        for route, consumer, traffic in self._rows():
            labels = _labels(route, consumer)
            yield Sample(name, {"type": "ingress", **labels}, traffic.received)
            yield Sample(name, {"type": "egress", **labels}, traffic.sent)

    def _latencies(self, name: str) -> Iterator[Sample]:
        for route, consumer, traffic in self._rows():
            yield from _histogram(name, {"type": "request", **_labels(route, consumer)}, traffic)
        nodes: dict[str, Traffic] = {}
        for label, part in self._endpoints.busiest():
            if not any(part.buckets):
                continue
            nodes.setdefault(label.rpartition(":")[0].strip("[]"), Traffic()).add(part)
        for node, whole in nodes.items():
            labels = {"type": "upstream", "route": "", "service": "", "consumer": "", "node": node}
            yield from _histogram(name, labels, whole)


def _labels(route: RouteTraffic, consumer: str) -> Labels:
    return {"route": route.route, "service": route.upstream, "consumer": consumer, "node": ""}


def _histogram(name: str, labels: Labels, traffic: Traffic) -> Iterator[Sample]:
    total = 0
    for bound, count in zip(_BOUNDS_MS, list(traffic.by_bound()), strict=True):
        total += count
        yield Sample(f"{name}_bucket", {**labels, "le": bound}, total)
    yield Sample(f"{name}_count", labels, total)
    yield Sample(f"{name}_sum", labels, traffic.seconds * 1000)


def _paths_of(host: "CompiledHost | None") -> dict[str, str]:
    """Return the paths of a host's routes, by the names that they are counted under."""
    if host is None:
        return {}
    return {route.name: rule.value.decode("utf-8", "replace") for rule, route in host.routes}
