"""Metrics to an OpenTelemetry collector: what `/metrics` shows, pushed over OTLP.

Counting stays where it is, in the collectors of a prometheus_client registry. Every family becomes an observable
instrument of the same name, which the SDK asks for its numbers when it is time to export; a histogram becomes three
counters, `_bucket` (with `le`), `_count` and `_sum`, as the API knows no observable histogram. Nothing here runs unless
an endpoint is given.

Rejected: counting with the SDK's own instruments, of which an increment costs some microseconds.
"""

import logging
import math
import os
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from opentelemetry.metrics import CallbackOptions, Meter, Observation
from opentelemetry.sdk.environment_variables import OTEL_METRIC_EXPORT_INTERVAL
from opentelemetry.sdk.metrics import MeterProvider, MetricsTimeoutError, ObservableCounter, ObservableGauge
from opentelemetry.sdk.metrics.export import MetricExporter, PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from prometheus_client import REGISTRY, CollectorRegistry
from prometheus_client.metrics_core import Metric

from headgate.common.errors import SettingsError

_log = logging.getLogger(__name__)

_COUNTERS = {"counter": ("_total",), "histogram": ("_bucket", "_count", "_sum"), "summary": ("_count", "_sum")}
_TRIES = 3
_LIMIT = 200_000
"""Of time series in one family. The collectors have bounds of their own; the SDK's is 2,000."""


class RegistryInstruments:
    """The families of a registry as observable instruments."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self._families: dict[str, Metric] = {}
        self._known: set[str] = set()

    def refresh(self, meter: Meter) -> None:
        """Take what is counted now, and make instruments for families that are new."""
        for attempt in range(_TRIES):
            try:
                self._families = {family.name: family for family in self._registry.collect()}
                break
            except RuntimeError as error:
                # The event loop has added a key to what this thread was going through.
                if attempt == _TRIES - 1:
                    _log.warning("metrics are exported as they were the last time", extra={"error": str(error)})
        for family in self._families.values():
            if family.name not in self._known:
                self._known.add(family.name)
                self._add(meter, family)

    def _add(self, meter: Meter, family: Metric) -> None:
        suffixes = _COUNTERS.get(family.type)
        if suffixes is None:
            meter.create_observable_gauge(
                family.name, [self._reading(family.name, "")], description=family.documentation
            )
            return
        for suffix in suffixes:
            name = family.name if suffix == "_total" else family.name + suffix
            callback = self._reading(family.name, suffix)
            meter.create_observable_counter(name, [callback], description=family.documentation)

    def _reading(self, name: str, suffix: str) -> Callable[[CallbackOptions], Iterable[Observation]]:
        def observe(options: CallbackOptions) -> Iterator[Observation]:
            family = self._families.get(name)
            for sample in family.samples if family is not None else ():
                if sample.name == name + suffix and not math.isnan(sample.value):
                    yield Observation(sample.value, sample.labels)

        return observe


class _Exporting:
    """A thread that brings the instruments up to date, then has them read: the SDK's own does only the latter."""

    def __init__(
        self, provider: MeterProvider, reader: PeriodicExportingMetricReader, refresh: Callable[[], None]
    ) -> None:
        self._provider = provider
        self._reader = reader
        self._refresh = refresh
        self._interval_s = _interval_s()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="metrics export", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._over.wait(self._interval_s):
            self._export()

    def _export(self) -> None:
        self._refresh()
        try:
            self._reader.collect()
        except MetricsTimeoutError as error:
            _log.warning("metrics were not exported in time", extra={"error": str(error)})

    def end(self) -> None:
        """Export once more, and stop."""
        self._over.set()
        self._thread.join()
        self._export()
        self._provider.shutdown()


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
    limits: Any = {ObservableCounter: _LIMIT, ObservableGauge: _LIMIT}
    reader = PeriodicExportingMetricReader(exporter, export_interval_millis=math.inf, cardinality_limits=limits)
    instance = f"{socket.gethostname()}/{os.getpid()}"
    resource = Resource({"service.name": service, "service.namespace": "headgate", "service.instance.id": instance})
    provider = MeterProvider([reader], resource, shutdown_on_exit=False)
    instruments = RegistryInstruments(registry)
    meter = provider.get_meter(__name__)
    return _Exporting(provider, reader, lambda: instruments.refresh(meter)).end
