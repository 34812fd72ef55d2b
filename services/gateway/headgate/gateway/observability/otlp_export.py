"""Log records to an OpenTelemetry collector, from a thread of their own.

The event loop puts records into a bounded queue; the thread encodes them and sends them over HTTP. What does not fit
is dropped and counted. Limits are those of OpenTelemetry's batch processor for log records, `OTEL_BLRP_*`.

Rejected: the SDK's own logger and batch processor. A record costs the event loop ten times as much, what is dropped is
counted nowhere, and the end waits half a minute for a collector that does not answer.
"""

import logging
import os
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from headgate.common.errors import SettingsError
from headgate.common.service.telemetry import telemetry_resource

if TYPE_CHECKING:
    from opentelemetry.sdk.resources import Resource

_log = logging.getLogger(__name__)
Attribute = str | int | float | tuple[str, ...]
CLOSE_S: Final = 2.0
"""For what is left when the gateway ends."""


class LogEntry(NamedTuple):
    """A log record of OpenTelemetry."""

    time_ns: int
    body: bytes
    attributes: dict[str, Attribute]
    is_error: bool
    trace_id: str
    """In hex; empty if the request is not traced."""
    span_id: str


class Exporter(Protocol):
    """Sends log records to a collector."""

    def send(self, entries: Sequence[LogEntry]) -> bool:
        """Send; blocks until the collector has answered or time is up. False: they are lost."""

    def stop(self) -> None:
        """Give up what is being sent."""


class ExportLimits(NamedTuple):
    """How records are queued: the specification's batch processor."""

    delay_s: float
    queue_size: int
    batch_size: int

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> "ExportLimits":
        """Read `OTEL_BLRP_SCHEDULE_DELAY` (1000 ms), `OTEL_BLRP_MAX_QUEUE_SIZE` and `OTEL_BLRP_MAX_EXPORT_BATCH_SIZE`.

        Raises:
            SettingsError: one is no number above 0.
        """

        def read(name: str, default: int) -> int:
            value = environment.get(name) or str(default)
            if not value.isdigit() or not int(value):
                raise SettingsError(f"{name}: {value!r} is no whole number above 0")
            return int(value)

        queue_size = read("OTEL_BLRP_MAX_QUEUE_SIZE", 2048)
        batch_size = min(read("OTEL_BLRP_MAX_EXPORT_BATCH_SIZE", 512), queue_size)
        return cls(read("OTEL_BLRP_SCHEDULE_DELAY", 1000) / 1000, queue_size, batch_size)


class LogExport:
    """A bounded queue of records and the thread that sends them. `put` is called by one thread only."""

    def __init__(self, exporter: Exporter, limits: ExportLimits) -> None:
        self._exporter = exporter
        self._limits = limits
        self._queue: deque[LogEntry] = deque()
        self._is_wanted = threading.Event()
        """A batch is full, or the end has come."""
        self._is_over = False
        self._lost = 0
        self._refused = 0
        self._thread = threading.Thread(target=self._run, name="log export", daemon=True)
        self._started = False

    @property
    def dropped(self) -> int:
        """Records that came while the queue was full, or that the collector did not take."""
        return self._refused + self._lost

    def put(self, entry: LogEntry) -> None:
        """Queue a record; drop it if there is no room."""
        queue = self._queue
        if len(queue) >= self._limits.queue_size:
            self._refused += 1
            return
        queue.append(entry)
        if not self._started:
            self._started = True
            self._thread.start()
        if len(queue) >= self._limits.batch_size:
            self._is_wanted.set()

    def close(self) -> None:
        """Send what is there; waits at most `CLOSE_S`."""
        self._is_over = True
        self._is_wanted.set()
        if self._started:
            self._thread.join(CLOSE_S)
        self._exporter.stop()

    def _run(self) -> None:
        while not self._is_over:
            self._is_wanted.wait(self._limits.delay_s)
            self._is_wanted.clear()
            while self._queue:
                self._send()

    def _send(self) -> None:
        queue = self._queue
        batch = [queue.popleft() for _ in range(min(len(queue), self._limits.batch_size))]
        if not self._exporter.send(batch):
            self._lost += len(batch)


class OtlpExporter:
    """Sends records over OTLP/HTTP with the SDK's exporter; `OTEL_EXPORTER_OTLP_*` say headers, timeout, compression.

    Args:
        endpoint: base URL of the collector.
        resource: what they say of this process; by default what its spans say.
    """

    def __init__(self, endpoint: str, resource: "Resource | None" = None) -> None:
        # Imported here: protobuf and requests are megabytes that most processes never need.
        from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
        from opentelemetry.sdk.util.instrumentation import InstrumentationScope

        url = endpoint.rstrip("/").removesuffix("/v1/traces")
        self._exporter = OTLPLogExporter(endpoint=f"{url}/v1/logs")
        self._resource = resource or telemetry_resource()
        self._scope = InstrumentationScope("headgate.gateway.access_log")

    def send(self, entries: Sequence[LogEntry]) -> bool:
        """Send; blocks until the collector has answered or time is up. False: they are lost."""
        from opentelemetry._logs import LogRecord, SeverityNumber
        from opentelemetry.sdk._logs import ReadableLogRecord
        from opentelemetry.sdk._logs.export import LogRecordExportResult
        from opentelemetry.trace import TraceFlags

        records = [
            ReadableLogRecord(
                LogRecord(
                    timestamp=entry.time_ns,
                    observed_timestamp=entry.time_ns,
                    trace_id=int(entry.trace_id, 16) if entry.trace_id else 0,
                    span_id=int(entry.span_id, 16) if entry.span_id else 0,
                    trace_flags=TraceFlags(TraceFlags.SAMPLED if entry.trace_id else TraceFlags.DEFAULT),
                    severity_text="ERROR" if entry.is_error else "INFO",
                    severity_number=SeverityNumber.ERROR if entry.is_error else SeverityNumber.INFO,
                    body=entry.body.decode("utf-8", "replace"),
                    attributes=entry.attributes,
                ),
                self._resource,
                self._scope,
            )
            for entry in entries
        ]
        try:
            return self._exporter.export(records) is LogRecordExportResult.SUCCESS
        except Exception:
            # Whatever the exporter trips over costs these records, never the thread.
            _log.exception("log records were not exported")
            return False

    def stop(self) -> None:
        """Give up what is being sent."""
        self._exporter.shutdown()  # type: ignore[no-untyped-call]
