"""What the proxy has counted under the names of ingress-nginx, for its dashboards and alerts.

Names and labels are those of its controller. Requests are not counted by method here, and durations not by status, so
these labels are empty there: a query that takes all of them shows everything.
"""

import os
import resource
import socket
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.samples import Sample

from headgate.common.table import HostKey
from headgate.common.table.upstream_key import UpstreamKey
from headgate.gateway.observability.traffic_metrics import Labels, family
from headgate.gateway.proxy.stats import ProxyStats
from headgate.gateway.proxy.traffic import LATENCY_BOUNDS_S, RouteTraffic
from headgate.gateway.tls.server import CertificateStore

_PREFIX: Final = "nginx_ingress_controller"
_BOUNDS: Final = (*map(str, LATENCY_BOUNDS_S), "+Inf")
_NOT_GIVEN: Final = "499"
"""The status of a request whose client left before there was an answer."""
_CLASS: Final = "k8s.io/ingress-nginx"
"""That dashboards select, whoever serves."""
_POD_NAMESPACE: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
_STATM: Final = Path("/proc/self/statm")


class _Source(NamedTuple):
    """Where requests of a route belong, as ingress-nginx names it."""

    namespace: str
    ingress: str
    path: str


class IngressNginxFamilies:
    """The families that the dashboards of ingress-nginx look for.

    Args:
        stats: of the proxy.
        certificates: that are presented.
        is_serving: whether a table is served.
    """

    def __init__(self, stats: ProxyStats, certificates: CertificateStore, is_serving: Callable[[], bool]) -> None:
        self._stats = stats
        self._certificates = certificates
        self._is_serving = is_serving
        self._controller: Labels = {
            "controller_class": _CLASS,
            "controller_namespace": _own_namespace(),
            "controller_pod": socket.gethostname(),
        }

    def collect(self) -> Iterable[Metric]:
        """Return the families. Counters have no `_total` there, which only untyped ones may be without."""
        yield family("unknown", f"{_PREFIX}_requests", "Requests of clients, by status", self._requests)
        for name, text in (
            ("request_duration_seconds", "From the head of a request to the last byte of its answer"),
            ("response_duration_seconds", "The same: the share of endpoints is not counted by route"),
        ):
            yield family("histogram", f"{_PREFIX}_{name}", text, self._durations)
        yield family("histogram", f"{_PREFIX}_request_size", "Bytes of requests' bodies", self._sizes("received"))
        yield family("histogram", f"{_PREFIX}_response_size", "Bytes of answers' bodies", self._sizes("sent"))
        yield from self._of_process()
        ends = GaugeMetricFamily(f"{_PREFIX}_ssl_expire_time_seconds", "When certificates end", labels=["host", *_ENDS])
        for name, key, end_s in self._certificates.not_after_by_name():
            cluster, _, rest = key.partition("/")
            namespace, _, secret = rest.partition("/")
            ends.add_metric([name, namespace, secret, cluster], end_s)
        yield ends

    def _of_process(self) -> Iterator[Metric]:
        stats, prefix = self._stats, f"{_PREFIX}_nginx_process"
        accepted = stats.connections
        labels = [*self._controller, "state"]
        connections = GaugeMetricFamily(f"{prefix}_connections", "Connections of clients", labels=labels)
        connections.add_metric([*self._controller.values(), "active"], stats.open_connections)
        yield connections
        total = CounterMetricFamily(f"{prefix}_connections", "Connections of clients since the start", labels=labels)
        total.add_metric([*self._controller.values(), "accepted"], accepted)
        handled = accepted - sum(stats.refused_connections.values())
        total.add_metric([*self._controller.values(), "handled"], handled)
        yield total
        used = resource.getrusage(resource.RUSAGE_SELF)
        for kind, name, text, value in (
            (CounterMetricFamily, "requests", "Requests since the start", float(stats.requests)),
            (CounterMetricFamily, "cpu_seconds", "Processor time", used.ru_utime + used.ru_stime),
            (GaugeMetricFamily, "resident_memory_bytes", "Memory", _resident_bytes()),
        ):
            made = kind(f"{prefix}_{name}", text, labels=[*self._controller])
            made.add_metric([*self._controller.values()], value)
            yield made
        loaded = GaugeMetricFamily(
            f"{_PREFIX}_config_last_reload_successful", "Whether a table is served", labels=[*self._controller]
        )
        loaded.add_metric([*self._controller.values()], float(self._is_serving()))
        yield loaded

    def _rows(self) -> Iterator[tuple[Labels, RouteTraffic]]:
        for traffic in self._stats.series():
            if any(traffic.buckets):
                yield {**self._controller, **_labels(traffic.route, traffic.upstream)}, traffic

    def _requests(self, name: str) -> Iterator[Sample]:
        for labels, traffic in self._rows():
            for status, count in traffic.by_status().items():
                yield Sample(name, {**labels, "status": str(status or _NOT_GIVEN)}, count)

    def _durations(self, name: str) -> Iterator[Sample]:
        for labels, traffic in self._rows():
            everything, total = {**labels, "status": ""}, 0
            for bound, count in zip(_BOUNDS, list(traffic.buckets), strict=True):
                total += count
                yield Sample(f"{name}_bucket", {**everything, "le": bound}, total)
            yield Sample(f"{name}_count", everything, total)
            yield Sample(f"{name}_sum", everything, traffic.seconds)

    def _sizes(self, which: str) -> Callable[[str], Iterator[Sample]]:
        def samples(name: str) -> Iterator[Sample]:
            for labels, traffic in self._rows():
                everything, count = {**labels, "status": ""}, sum(traffic.buckets)
                yield Sample(f"{name}_bucket", {**everything, "le": "+Inf"}, count)
                yield Sample(f"{name}_count", everything, count)
                yield Sample(f"{name}_sum", everything, getattr(traffic, which))

        return samples


_ENDS: Final = ("namespace", "secret_name", "cluster")


def _labels(route: str, upstream: str) -> Labels:
    host, _, name = route.partition("|")
    source = _source(name)
    return {
        "host": HostKey.read(host).host if name and host != "*" else "",
        "namespace": source.namespace,
        "ingress": source.ingress,
        "path": source.path,
        "service": _service(upstream),
        "method": "",
        "canary": "",
    }


@lru_cache(maxsize=4096)
def _source(name: str) -> _Source:
    """Read the name of a route of an Ingress: `cluster/namespace/name`, the type of its path, and the path."""
    place, _, rest = name.partition(" ")
    parts = place.split("/")
    return _Source(parts[1], parts[2], rest.partition(" ")[2]) if len(parts) == 3 else _Source("", "", "")


@lru_cache(maxsize=4096)
def _service(upstream: str) -> str:
    try:
        return UpstreamKey.parse(upstream).name
    except ValueError:
        return ""


def _own_namespace() -> str:
    try:
        return _POD_NAMESPACE.read_text().strip()
    except OSError:
        return ""


def _resident_bytes() -> float:
    try:
        pages = int(_STATM.read_text().split()[1])
    except (OSError, IndexError, ValueError):
        return 0.0
    return float(pages * os.sysconf("SC_PAGE_SIZE"))
