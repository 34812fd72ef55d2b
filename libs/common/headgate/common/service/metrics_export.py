"""Metrics to an OpenTelemetry collector: what `/metrics` shows, pushed over OTLP.

Counting stays where it is, in the collectors of a prometheus_client registry. When it is time to export, their families
become OTLP's own data points: counters are monotonic sums, histograms have explicit bounds, units follow from names.
Nothing here runs unless an endpoint is given.

Rejected: counting with the SDK's own instruments, of which an increment costs some microseconds; and its observable
ones, of which none is a histogram.
"""

import logging
import math
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from opentelemetry.sdk.environment_variables import OTEL_METRIC_EXPORT_INTERVAL
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricExporter,
    MetricExportResult,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from prometheus_client import REGISTRY, CollectorRegistry
from prometheus_client import Metric as Family
from prometheus_client.samples import Sample

from headgate.common.errors import SettingsError
from headgate.common.service.telemetry import resource_of

_log = logging.getLogger(__name__)
_TRIES: Final = 3
_UNITS: Final[Mapping[str, str]] = {"_seconds": "s", "_bytes": "By"}
"""By the ends of names, as UCUM has them."""


class RegistryReader:
    """The families of a registry as OTLP metrics."""

    def __init__(self, registry: CollectorRegistry, clock_ns: Callable[[], int] = time.time_ns) -> None:
        self._registry = registry
        self._clock_ns = clock_ns
        self._started_ns = clock_ns()
        self._families: Sequence[Family] = ()

    def read(self) -> list[Metric]:
        """Return what is counted now; families without a sample are left out."""
        for attempt in range(_TRIES):
            try:
                self._families = [_copied(family) for family in self._registry.collect()]
                break
            except RuntimeError as error:
                # The event loop has added a key to what this thread was going through.
                if attempt == _TRIES - 1:
                    _log.warning("metrics are exported as they were the last time", extra={"error": str(error)})
        now_ns = self._clock_ns()
        return [metric for family in self._families for metric in self._metrics(family, now_ns)]

    def _metrics(self, family: Family, now_ns: int) -> Iterator[Metric]:
        if family.type == "histogram":
            yield from self._histogram(family, now_ns)
        elif family.type in ("counter", "summary"):
            suffixes = ("_total",) if family.type == "counter" else ("_count", "_sum")
            for suffix in suffixes:
                points = self._numbers(family, family.name + suffix, now_ns)
                name = family.name if suffix == "_total" else family.name + suffix
                if points:
                    yield _metric(family, name, Sum(points, AggregationTemporality.CUMULATIVE, is_monotonic=True))
        else:
            points = self._numbers(family, family.name, now_ns)
            if points:
                yield _metric(family, family.name, Gauge(points))

    def _numbers(self, family: Family, name: str, now_ns: int) -> list[NumberDataPoint]:
        return [
            NumberDataPoint(sample.labels, self._started_ns, now_ns, sample.value)
            for sample in family.samples
            if sample.name == name and not math.isnan(sample.value)
        ]

    def _histogram(self, family: Family, now_ns: int) -> Iterator[Metric]:
        series: dict[frozenset[tuple[str, str]], list[Sample]] = {}
        for sample in family.samples:
            labels = frozenset((name, value) for name, value in sample.labels.items() if name != "le")
            series.setdefault(labels, []).append(sample)
        points = [self._point(family.name, dict(labels), samples, now_ns) for labels, samples in series.items()]
        if points:
            yield _metric(family, family.name, Histogram(points, AggregationTemporality.CUMULATIVE))

    def _point(self, name: str, labels: dict[str, str], samples: Iterable[Sample], now_ns: int) -> HistogramDataPoint:
        totals: list[tuple[float, float]] = []
        numbers = {"_count": 0.0, "_sum": 0.0}
        for sample in samples:
            if sample.name == f"{name}_bucket":
                totals.append((float(sample.labels["le"]), sample.value))
            elif (suffix := sample.name.removeprefix(name)) in numbers:
                numbers[suffix] = sample.value
        totals.sort()
        below = [0.0, *(total for _, total in totals)]
        counts = [int(total - before) for (_, total), before in zip(totals, below, strict=False)]
        bounds = [bound for bound, _ in totals if not math.isinf(bound)]
        return HistogramDataPoint(
            labels,
            self._started_ns,
            now_ns,
            int(numbers["_count"]),
            numbers["_sum"],
            counts,
            bounds,
            min=None,  # type: ignore[arg-type]  # optional in OTLP, and not known here
            max=None,  # type: ignore[arg-type]
        )


def _copied(family: Family) -> Family:
    """Return a family with its samples made: some collectors make them while they are gone through."""
    copy = Family(family.name, family.documentation, family.type)
    copy.samples = list(family.samples)
    return copy


def _metric(family: Family, name: str, data: Sum | Gauge | Histogram) -> Metric:
    unit = next((unit for end, unit in _UNITS.items() if family.name.endswith(end)), "1")
    return Metric(name, family.documentation, unit, data)


class _Exporting:
    """A thread that reads the registry and pushes what it found, again and again."""

    def __init__(self, exporter: MetricExporter, read: Callable[[], MetricsData | None]) -> None:
        self._exporter = exporter
        self._read = read
        self._interval_s = _interval_s()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="metrics export", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._over.wait(self._interval_s):
            self._export()

    def _export(self) -> None:
        found = self._read()
        if found is not None and self._exporter.export(found) is not MetricExportResult.SUCCESS:
            _log.warning("metrics were not exported: the collector did not take them")

    def end(self) -> None:
        """Export once more, and stop."""
        self._over.set()
        self._thread.join()
        self._export()
        self._exporter.shutdown()


def _interval_s() -> float:
    value = os.environ.get(OTEL_METRIC_EXPORT_INTERVAL, "60000")
    if not value.isdigit() or not int(value):
        raise SettingsError(f"{OTEL_METRIC_EXPORT_INTERVAL}: {value!r} is no number of milliseconds")
    return int(value) / 1000


def otlp_exporter(endpoint: str) -> MetricExporter:
    """Return what pushes to an OTLP/HTTP collector, by its base URL."""
    # Imported here: protobuf and requests are megabytes that most processes never need.
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter

    return OTLPMetricExporter(endpoint=f"{endpoint.rstrip('/').removesuffix('/v1/traces')}/v1/metrics")


def start_metrics_export(
    service: str, exporter: MetricExporter, registry: CollectorRegistry = REGISTRY
) -> Callable[[], None]:
    """Push a registry's metrics every `OTEL_METRIC_EXPORT_INTERVAL` milliseconds, 60,000 by default.

    Args:
        service: `service.name` of the metrics.
        exporter: takes them.
        registry: what is pushed.

    Returns:
        Ends it, with what is counted by then; blocks for a few seconds at most.

    Raises:
        SettingsError: the interval is none.
    """
    reader, resource = RegistryReader(registry), resource_of(service)
    scope = InstrumentationScope(__name__)

    def read() -> MetricsData | None:
        metrics = reader.read()
        return MetricsData([ResourceMetrics(resource, [ScopeMetrics(scope, metrics, "")], "")]) if metrics else None

    return _Exporting(exporter, read).end
