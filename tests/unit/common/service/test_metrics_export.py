"""Metrics of a registry, pushed to an exporter."""

import math
import time
from collections.abc import Iterator

import pytest
from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics
from opentelemetry.sdk.metrics.export import Histogram as HistogramData
from opentelemetry.sdk.metrics.export import (
    HistogramDataPoint,
    MetricExporter,
    MetricExportResult,
    MetricsData,
    ResourceMetrics,
    ScopeMetrics,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.metrics_core import CounterMetricFamily, Metric

from headgate.common.errors import SettingsError
from headgate.common.service.metrics_export import RegistryReader, start_metrics_export

Points = dict[str, dict[frozenset[tuple[str, object]], float]]


class KeptMetrics(MetricExporter):
    """Keeps what was exported last."""

    def __init__(self) -> None:
        super().__init__()
        self.points: Points = {}
        self.histograms: dict[str, list[HistogramDataPoint]] = {}
        self.units: dict[str, str | None] = {}
        self.resource: dict[str, object] = {}

    def export(self, metrics_data: MetricsData, timeout_millis: float = 0, **kwargs: object) -> MetricExportResult:
        for resource in metrics_data.resource_metrics:
            self.resource = dict(resource.resource.attributes)
            for metric in (metric for scope in resource.scope_metrics for metric in scope.metrics):
                self.units[metric.name] = metric.unit
                points = metric.data.data_points
                if isinstance(metric.data, HistogramData):
                    self.histograms[metric.name] = list(points)
                else:
                    self.points[metric.name] = {frozenset((one.attributes or {}).items()): one.value for one in points}
        return MetricExportResult.SUCCESS

    def force_flush(self, timeout_millis: float = 0) -> bool:
        return True

    def shutdown(self, timeout_millis: float = 0, **kwargs: object) -> None:
        pass


def exported(registry: CollectorRegistry) -> KeptMetrics:
    exporter = KeptMetrics()
    start_metrics_export("demo", exporter, registry)()
    return exporter


def labels(**values: object) -> frozenset[tuple[str, object]]:
    return frozenset(values.items())


def test_counters_and_gauges_keep_names_labels_and_values() -> None:
    registry = CollectorRegistry()
    Counter("done", "Work done", ["kind"], registry=registry).labels("a").inc(3)
    Gauge("level", "Level", registry=registry).set(1.5)
    points = exported(registry).points
    assert points["done"] == {labels(kind="a"): 3}
    assert points["level"] == {labels(): 1.5}


def test_a_histogram_stays_one_with_its_bounds() -> None:
    registry = CollectorRegistry()
    took = Histogram("took_seconds", "Seconds", ["kind"], registry=registry, buckets=(1, 2))
    for kind, seconds in (("a", 0.5), ("a", 1.5), ("a", 9.0), ("b", 1.0)):
        took.labels(kind).observe(seconds)
    found = exported(registry)
    points = {point.attributes["kind"]: point for point in found.histograms["took_seconds"]}
    assert points["a"].bucket_counts == [1, 1, 1]
    assert (points["a"].explicit_bounds, points["a"].count, points["a"].sum) == ([1.0, 2.0], 3, 11.0)
    assert points["b"].bucket_counts == [1, 0, 0]
    assert found.units == {"took_seconds": "s"}


def test_histograms_pass_through_the_encoder_of_otlp() -> None:
    registry = CollectorRegistry()
    Histogram("took_seconds", "Seconds", registry=registry, buckets=(1, 2)).observe(1.5)
    (metric,) = RegistryReader(registry).read()
    resource = ResourceMetrics(Resource({}), [ScopeMetrics(InstrumentationScope("x"), [metric], "")], "")
    (point,) = (
        encode_metrics(MetricsData([resource])).resource_metrics[0].scope_metrics[0].metrics[0].histogram.data_points
    )
    assert (list(point.bucket_counts), list(point.explicit_bounds)) == ([0, 1, 0], [1.0, 2.0])
    assert not point.HasField("min")


def test_what_is_not_known_yet_is_not_exported() -> None:
    registry = CollectorRegistry()
    Gauge("age", "Age", registry=registry).set(math.nan)
    assert "age" not in exported(registry).points


def test_thousands_of_series_are_exported_apart() -> None:
    registry = CollectorRegistry()
    counter = Counter("done", "Work done", ["route"], registry=registry)
    for number in range(3000):
        counter.labels(str(number)).inc()
    assert len(exported(registry).points["done"]) == 3000


def test_the_process_is_named() -> None:
    registry = CollectorRegistry()
    Gauge("level", "Level", registry=registry).set(1)
    resource = exported(registry).resource
    assert resource["service.name"] == "demo"
    assert "/" in str(resource["service.instance.id"])


def test_the_standard_variables_name_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_SERVICE_NAME", "edge")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=test,service.instance.id=one")
    registry = CollectorRegistry()
    Gauge("level", "Level", registry=registry).set(1)
    resource = exported(registry).resource
    assert (resource["service.name"], resource["service.instance.id"]) == ("edge", "one")
    assert resource["deployment.environment"] == "test"
    assert resource["service.version"]


def test_a_collector_that_is_changed_while_it_is_read_is_read_again() -> None:
    class Moving:
        tries = 0

        def collect(self) -> Iterator[Metric]:
            self.tries += 1
            if self.tries == 1:
                raise RuntimeError("dictionary changed size during iteration")
            yield CounterMetricFamily("done", "Work done", value=self.tries)

    registry = CollectorRegistry()
    registry.register(Moving())
    assert exported(registry).points["done"] == {labels(): 2}


@pytest.mark.parametrize("value", ["soon", "0", "-1"])
def test_an_interval_that_is_none_is_an_error(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", value)
    with pytest.raises(SettingsError, match="OTEL_METRIC_EXPORT_INTERVAL"):
        start_metrics_export("demo", KeptMetrics(), CollectorRegistry())


def test_metrics_are_pushed_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "1")
    exporter, registry = KeptMetrics(), CollectorRegistry()
    end = start_metrics_export("demo", exporter, registry)
    Gauge("late", "Registered behind the start", registry=registry).set(1)
    bound = time.monotonic() + 10
    while "late" not in exporter.points and time.monotonic() < bound:
        time.sleep(0.005)
    assert "late" in exporter.points
    end()
