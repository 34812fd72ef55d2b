"""Traces through OpenTelemetry; trace context in plain headers.

Context always travels, also when nothing is exported: spans then are non-recording, which costs some microseconds,
and their ids still join the log lines, deltas and revisions of one change. With an OTLP endpoint every new trace is
recorded and exported over HTTP from a thread of the SDK's own.

Ask for `tracer(name)` where a span is begun, not at import: `configure_telemetry` may come later.
"""

import concurrent.futures.thread  # noqa: F401 - in a forked child it has to be mended before the SDK starts threads
import os
import socket
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON, ParentBased
from opentelemetry.trace import Span, Tracer
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from headgate.common.release import release

TRACEPARENT = "traceparent"
_PROPAGATOR = TraceContextTextMapPropagator()


def resource_of(service: str) -> Resource:
    """Return what tells this process's spans and metrics from others'.

    `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES` go before what is said here.
    """
    ours = {
        "service.name": service,
        "service.namespace": "headgate",
        "service.version": release(),
        "service.instance.id": f"{socket.gethostname()}/{os.getpid()}",
    }
    return Resource(ours).merge(OTELResourceDetector().detect())


def _provider_for(service: str, processor: SpanProcessor | None) -> TracerProvider:
    provider = TracerProvider(
        resource=resource_of(service),
        sampler=ParentBased(ALWAYS_ON if processor else ALWAYS_OFF),
        shutdown_on_exit=False,
    )
    if processor:
        provider.add_span_processor(processor)
    return provider


_provider = _provider_for("headgate", None)


def configure_telemetry(service: str, otlp_endpoint: str = "", processor: SpanProcessor | None = None) -> None:
    """Choose where this process's spans go; replaces what was configured before.

    Args:
        service: `service.name` of the spans.
        otlp_endpoint: base URL of an OTLP/HTTP collector (`http://collector:4318`); empty exports nothing.
        processor: takes the spans instead of an exporter, as in tests.
    """
    global _provider
    if processor is None and otlp_endpoint:
        processor = _otlp_processor(otlp_endpoint)
    shutdown_telemetry()
    _provider = _provider_for(service, processor)


def _otlp_processor(endpoint: str) -> SpanProcessor:
    # Imported here: protobuf and requests are megabytes that most processes never need.
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    url = endpoint.rstrip("/")
    return BatchSpanProcessor(OTLPSpanExporter(endpoint=url if url.endswith("/v1/traces") else f"{url}/v1/traces"))


def telemetry_resource() -> Resource:
    """Return what this process's spans say of it; other signals say the same."""
    return _provider.resource


def shutdown_telemetry() -> None:
    """Export what is pending; blocks for a few seconds at most."""
    _provider.shutdown()


def tracer(name: str) -> Tracer:
    """Return the tracer of a module; `name` is its `__name__`."""
    return _provider.get_tracer(name)


def inject(headers: MutableMapping[str, str]) -> None:
    """Write the current trace context into headers, if there is one."""
    _PROPAGATOR.inject(headers)


def extract(headers: Mapping[str, str]) -> Context:
    """Read a trace context from headers; an empty context if there is none or it is malformed."""
    return _PROPAGATOR.extract(headers, Context())


def current_traceparent() -> str | None:
    """Return the current trace context as a W3C `traceparent`, if there is one."""
    headers: dict[str, str] = {}
    inject(headers)
    return headers.get(TRACEPARENT)


def current_trace_id() -> str | None:
    """Return the current trace's id in hex, if there is one."""
    context = trace.get_current_span().get_span_context()
    return format(context.trace_id, "032x") if context.is_valid else None


@contextmanager
def span_from(traceparent: str | None, name: str) -> Iterator[Span]:
    """Run a block in a span that continues the given trace; without one it begins a new trace."""
    context = extract({TRACEPARENT: traceparent}) if traceparent else Context()
    with tracer(__name__).start_as_current_span(name, context=context) as span:
        yield span
