"""What a gateway says about its table. Traffic is counted by the proxy."""

import time
from collections.abc import Callable, Iterable
from typing import Protocol

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from headgate.common.snapshot import Version


class TableMetrics:
    """The metrics of one worker's table."""

    def __init__(self, registry: CollectorRegistry = REGISTRY) -> None:
        def gauge(name: str, text: str) -> Gauge:
            return Gauge(name, text, registry=registry)

        self._epoch = gauge("headgate_table_epoch", "Epoch of the table that is served")
        self._revision = gauge("headgate_table_revision", "Revision, within its epoch, of the table that is served")
        self._applied = gauge(
            "headgate_table_applied_timestamp_seconds",
            "When the table that is served was applied, in seconds since 1970",
        )
        self.age_s = gauge(
            "headgate_table_age_seconds", "Time since the store last confirmed that the table is current"
        )
        self.age_s.set(float("nan"))
        self.in_sync = gauge(
            "headgate_table_in_sync", "1 while the store can be read and names the table that is served"
        )
        self.behind_s = gauge(
            "headgate_table_behind_seconds",
            "Time since this gateway knows of a newer revision than the one that it serves; 0: it knows of none",
        )
        self.hosts = gauge("headgate_table_hosts", "Virtual hosts of the table that this gateway holds")
        self._listener_ports = Gauge(
            "headgate_listener_ports",
            "Ports of the table's HTTP listeners besides the gateway's own, `open` or `failed`",
            ["state"],
            registry=registry,
        )
        self.endpoints = gauge(
            "headgate_table_endpoints", "Endpoints of all upstreams of the table; one that several name counts for each"
        )
        self.serves_next = gauge(
            "headgate_table_rollout_next",
            "1 while this gateway is one of those that a rollout gives the next table first",
        )
        self.refused_certificates = gauge(
            "headgate_table_refused_certificates", "Certificates whose newest version cannot be used by this gateway"
        )
        self.consumers = gauge("headgate_table_consumers", "Consumers in the table")
        self.refusals = Counter("headgate_table_refusals", "Snapshots that could not be applied", registry=registry)
        self.swaps = Counter("headgate_table_swaps", "Snapshots that were applied", registry=registry)
        self.apply_s = Histogram(
            "headgate_table_apply_duration_seconds",
            "Time from a pointer to the swap: fetching, decoding, compiling",
            registry=registry,
            buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
        )
        self.longest_step_s = gauge(
            "headgate_table_longest_step_seconds", "Longest time that the last swap kept the event loop from traffic"
        )

    def count_ports(self, opened: int, failed: int) -> None:
        """Set how many ports of listeners are open, and how many could not be opened."""
        self._listener_ports.labels("open").set(opened)
        self._listener_ports.labels("failed").set(failed)

    def show_version(self, version: Version) -> None:
        """Set epoch and revision of a table that was applied just now."""
        self._applied.set_to_current_time()
        self._epoch.set(version.epoch)
        self._revision.set(version.revision)


class Stopwatch:
    """The longest of several steps, in seconds."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._started = clock()
        self.longest_s = 0.0

    def begin(self) -> None:
        """Begin a step."""
        self._started = self._clock()

    def end(self) -> None:
        """End the step."""
        self.longest_s = max(self.longest_s, self._clock() - self._started)


class Collects(Protocol):
    """Anything that yields metric families, as the proxy's counters do."""

    def collect(self) -> Iterable[Metric]:
        """Return the families."""


class ProxyCollector(Collector):
    """The proxy's counters for a registry."""

    def __init__(self, source: Collects) -> None:
        self._source = source

    def collect(self) -> Iterable[Metric]:
        """Return the families."""
        return self._source.collect()
