"""What the proxy has counted under the names of ingress-nginx, for its dashboards and alerts.

Names and labels are those of its controller. Requests are not counted by method here, and durations not by status, so
these labels are empty there: a query that takes all of them shows everything.
"""

import os
import resource
import socket
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.samples import Sample

from headgate.gateway.observability.names import read_route, read_upstream
from headgate.gateway.observability.traffic_metrics import Labels, family
from headgate.gateway.proxy.stats import ProxyStats
from headgate.gateway.proxy.traffic import LATENCY_BOUNDS_S, Traffic
from headgate.gateway.tls.server import CertificateStore

_PREFIX: Final = "nginx_ingress_controller"
_BOUNDS: Final = (*map(str, LATENCY_BOUNDS_S), "+Inf")
_NOT_GIVEN: Final = 499
"""The status of a request whose client left before there was an answer."""
_CLASS: Final = "k8s.io/ingress-nginx"
"""The value that the dashboards of ingress-nginx select."""
_POD_NAMESPACE: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
_STATM: Final = Path("/proc/self/statm")


class _Place(NamedTuple):
    """Where requests belong, as ingress-nginx labels them. Several routes and upstreams may be one place there."""

    host: str
    namespace: str
    ingress: str
    path: str
    service: str
    method: str = ""
    canary: str = ""


_Rows = list[tuple[Labels, Traffic]]


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
        rows = self._rows()
        yield family("unknown", f"{_PREFIX}_requests", "Requests of clients, by status", partial(_requests, rows))
        for name, text in (
            ("request_duration_seconds", "From the head of a request to the last byte of its answer"),
            ("response_duration_seconds", "The same: the share of endpoints is not counted by route"),
        ):
            yield family("histogram", f"{_PREFIX}_{name}", text, partial(_durations, rows))
        received, sent = partial(_sizes, rows, "received"), partial(_sizes, rows, "sent")
        yield family("histogram", f"{_PREFIX}_request_size", "Bytes of requests' bodies", received)
        yield family("histogram", f"{_PREFIX}_response_size", "Bytes of answers' bodies", sent)
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

    def _rows(self) -> _Rows:
        """Return what was counted by place: a series that is there twice fails a scrape."""
        places: dict[_Place, Traffic] = {}
        for traffic in self._stats.series():
            if any(traffic.buckets):
                places.setdefault(_place(traffic.route, traffic.upstream), Traffic()).add(traffic)
        return [({**self._controller, **place._asdict()}, traffic) for place, traffic in places.items()]


def _requests(rows: _Rows, name: str) -> Iterator[Sample]:
    for labels, traffic in rows:
        counts = Counter[int]()
        for status, count in traffic.by_status().items():
            counts[status or _NOT_GIVEN] += count
        for status, count in counts.items():
            yield Sample(name, {**labels, "status": str(status)}, count)


def _durations(rows: _Rows, name: str) -> Iterator[Sample]:
    for labels, traffic in rows:
        everything, total = {**labels, "status": ""}, 0
        for bound, count in zip(_BOUNDS, traffic.by_bound(), strict=True):
            total += count
            yield Sample(f"{name}_bucket", {**everything, "le": bound}, total)
        yield Sample(f"{name}_count", everything, total)
        yield Sample(f"{name}_sum", everything, traffic.seconds)


def _sizes(rows: _Rows, which: str, name: str) -> Iterator[Sample]:
    for labels, traffic in rows:
        everything, count = {**labels, "status": ""}, sum(traffic.buckets)
        yield Sample(f"{name}_bucket", {**everything, "le": "+Inf"}, count)
        yield Sample(f"{name}_count", everything, count)
        yield Sample(f"{name}_sum", everything, getattr(traffic, which))


_ENDS: Final = ("namespace", "secret_name", "cluster")


def _place(route: str, upstream: str) -> _Place:
    source, key = read_route(route), read_upstream(upstream)
    return _Place(source.host, source.namespace, source.object, source.path, "" if key is None else key.name)


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
