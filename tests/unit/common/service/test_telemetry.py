"""Trace context in headers, spans to an exporter."""

from collections.abc import Iterator

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from headgate.common.service.telemetry import (
    configure_telemetry,
    current_trace_id,
    current_traceparent,
    extract,
    inject,
    span_from,
    tracer,
)

PARENT = f"00-{'a' * 32}-{'b' * 16}-01"


@pytest.fixture
def exported() -> Iterator[InMemorySpanExporter]:
    exporter = InMemorySpanExporter()
    configure_telemetry("demo", processor=SimpleSpanProcessor(exporter))
    yield exporter
    configure_telemetry("headgate")


def test_without_a_trace_there_is_no_context() -> None:
    headers: dict[str, str] = {}
    inject(headers)
    assert headers == {}
    assert current_traceparent() is None
    assert current_trace_id() is None


def test_a_trace_goes_on_through_headers_though_nothing_is_exported() -> None:
    headers: dict[str, str] = {}
    with span_from(PARENT, "hop"):
        inject(headers)
        assert current_trace_id() == "a" * 32
    assert headers["traceparent"].startswith(f"00-{'a' * 32}-")
    assert headers["traceparent"] != PARENT
    assert trace.get_current_span(extract(headers)).get_span_context().trace_id == int("a" * 32, 16)


@pytest.mark.parametrize("parent", [None, "", "nonsense", "00-0-0-00"])
def test_without_a_usable_parent_a_new_trace_begins(parent: str | None) -> None:
    with span_from(parent, "begin"):
        traceparent = current_traceparent()
    assert traceparent is not None
    assert "a" * 32 not in traceparent


def test_a_span_that_is_open_is_no_parent_of_another_trace() -> None:
    with span_from(PARENT, "outer"), span_from(None, "inner"):
        assert current_trace_id() != "a" * 32


def test_spans_are_exported_with_service_and_parent(exported: InMemorySpanExporter) -> None:
    with span_from(PARENT, "swap") as span:
        span.set_attribute("revision", 3)
    [done] = exported.get_finished_spans()
    assert (done.name, done.attributes) == ("swap", {"revision": 3})
    assert done.parent is not None
    assert done.parent.span_id == int("b" * 16, 16)
    assert done.resource.attributes["service.name"] == "demo"


def test_an_error_is_recorded_on_its_span(exported: InMemorySpanExporter) -> None:
    with pytest.raises(ValueError, match="boom"), span_from(None, "work"):
        raise ValueError("boom")
    [done] = exported.get_finished_spans()
    assert not done.status.is_ok


def test_a_tracer_belongs_to_the_configuration_of_now(exported: InMemorySpanExporter) -> None:
    with tracer("module").start_as_current_span("x"):
        assert current_trace_id()
    assert [span.name for span in exported.get_finished_spans()] == ["x"]
