"""The access log over OTLP, to a collector on a real socket that decodes protobuf."""

import json
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from time import monotonic

import pytest
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind

from fakes.gateway.proxied import OK, Proxied, answering, proxied
from fakes.peers.log_collector import LogCollector, log_collector, values
from fakes.waiting import until
from headgate.common.errors import SettingsError
from headgate.common.service.telemetry import configure_telemetry
from headgate.common.table.listener import AccessLogFormat
from headgate.gateway.observability.access_log import AccessLog
from headgate.gateway.observability.log_metrics import LogFamilies
from headgate.gateway.observability.otlp_export import CLOSE_S, ExportLimits, LogEntry, LogExport, OtlpExporter
from headgate.gateway.observability.otlp_log import OtlpLog, request_attributes
from headgate.gateway.observability.tracing import Tracing
from headgate.gateway.proxy.heads.head import RequestFields
from headgate.gateway.settings import GatewaySettings
from headgate.gateway.streams.log import Status, StreamRecord

REQUEST = (
    b"GET /x?y=1 HTTP/1.1\r\nHost: a\r\nUser-Agent: curl\r\nReferer: http://b/\r\nX-Request-ID: id-1\r\n"
    b"Connection: close\r\n\r\n"
)
SOON = ExportLimits(delay_s=0.02, queue_size=100, batch_size=10)


@pytest.fixture
def collector() -> Iterator[LogCollector]:
    with log_collector() as collecting:
        yield collecting


@asynccontextmanager
async def logging_to(
    collector: LogCollector, log: AccessLog | None = None, limits: ExportLimits = SOON
) -> AsyncIterator[tuple[Proxied, OtlpLog]]:
    lines = log or AccessLog("combined")
    otlp = OtlpLog(lines, LogExport(OtlpExporter(collector.url), limits), writes=log is not None)
    async with proxied(answering(OK)) as proxy:
        proxy.server.context.access_log = otlp
        proxy.server.context.times_endpoints = otlp.is_detailed
        yield proxy, otlp
        otlp.close()


async def test_a_record_has_the_line_as_its_body_and_what_it_says_as_attributes(collector: LogCollector) -> None:
    async with logging_to(collector) as (proxy, _):
        await proxy.talk(REQUEST)
        await until(lambda: collector.records)
    [record] = collector.records
    assert collector.paths == {"/v1/logs"}
    assert '"GET /x?y=1 HTTP/1.1" 200 2' in record.body.string_value
    assert not record.body.string_value.endswith("\n")
    found = values(record.attributes)
    assert found["http.request.method"] == "GET"
    assert (found["url.path"], found["url.query"], found["server.address"]) == ("/x", "y=1", "a")
    assert (found["http.response.status_code"], found["http.response.body.size"]) == (200, 2)
    assert (found["client.address"], found["user_agent.original"]) == ("127.0.0.1", "curl")
    assert (found["headgate.route"], found["headgate.request_id"]) == ("test|all", "id-1")
    assert found["http.request.header.referer"] == ["http://b/"]
    assert found["headgate.upstream.status"] == 200
    assert 0 < found["headgate.duration"] < 30
    assert not any(value == "" for value in found.values())
    assert (record.severity_text, record.trace_id, record.span_id) == ("INFO", b"", b"")
    assert record.time_unix_nano > 0


async def test_a_record_of_a_traced_request_has_the_ids_of_its_server_span(collector: LogCollector) -> None:
    spans = InMemorySpanExporter()
    configure_telemetry("gateway", processor=SimpleSpanProcessor(spans))
    async with logging_to(collector) as (proxy, _):
        proxy.server.context.tracing = Tracing(1.0)
        await proxy.talk(REQUEST)
        await until(lambda: collector.records)
    configure_telemetry("headgate")
    [server] = [span for span in spans.get_finished_spans() if span.kind is SpanKind.SERVER]
    [record] = collector.records
    assert server.context is not None
    assert int.from_bytes(record.trace_id) == server.context.trace_id
    assert int.from_bytes(record.span_id) == server.context.span_id
    assert record.flags == 1
    assert collector.resource == dict(server.resource.attributes)
    assert collector.resource["service.name"] == "gateway"


async def test_what_fails_is_an_error_with_its_reason(collector: LogCollector) -> None:
    async with logging_to(collector) as (proxy, _):
        await proxy.origin.stop()
        await proxy.talk(REQUEST)
        await until(lambda: collector.records)
    [record] = collector.records
    assert record.severity_text == "ERROR"
    assert values(record.attributes)["http.response.status_code"] == 502
    assert values(record.attributes)["headgate.reason"]


async def test_lines_are_written_as_before_beside_records(collector: LogCollector) -> None:
    reading, writing = os.pipe()
    async with logging_to(collector, AccessLog("json", writing)) as (proxy, _):
        await proxy.talk(REQUEST)
        await until(lambda: collector.records)
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        line = file.read()
    assert json.loads(line)["target"] == "/x?y=1"
    assert collector.records[0].body.string_value == line.decode().rstrip("\n")


async def test_a_listener_may_have_lines_of_its_own(collector: LogCollector) -> None:
    async with logging_to(collector) as (proxy, otlp):
        proxy.server.context.access_log = otlp.formatted(AccessLogFormat(format="$status $trace_id $span_id $uri"))
        await proxy.talk(REQUEST)
        await until(lambda: collector.records)
    assert collector.records[0].body.string_value == "200 - - /x"
    assert values(collector.records[0].attributes)["url.path"] == "/x"


async def test_streams_have_records_too(collector: LogCollector) -> None:
    async with logging_to(collector) as (_, otlp):
        otlp.stream(StreamRecord("tls", "10.0.0.1", 5432, "db.example", Status.OK, 7, 9, 1.25, "r", "u", "e", ""))
        await until(lambda: collector.records)
    found = values(collector.records[0].attributes)
    assert (found["network.transport"], found["tls.client.server_name"]) == ("tcp", "db.example")
    assert (found["server.port"], found["headgate.received"], found["headgate.sent"]) == (5432, 7, 9)
    assert '"TLS 5432 db.example" 200 7 9' in collector.records[0].body.string_value


async def test_a_collector_that_does_not_answer_delays_no_request_and_what_it_loses_is_counted(
    collector: LogCollector,
) -> None:
    collector.may_answer.clear()
    limits = ExportLimits(delay_s=0.01, queue_size=4, batch_size=2)
    async with logging_to(collector, limits=limits) as (proxy, otlp):
        for _ in range(20):
            assert (await proxy.talk(REQUEST)).endswith(b"ok")
        # Two are on their way at most, and four wait.
        assert otlp.lost["otlp"] >= 14
        assert f"headgate_access_log_dropped_total {{'output': 'otlp'}} {otlp.lost['otlp']}" in shown(otlp)
        began = monotonic()
        otlp.close()
        assert monotonic() - began < CLOSE_S + 10


def shown(log: OtlpLog) -> list[str]:
    [family] = LogFamilies(log).collect()
    return [f"{sample.name} {sample.labels} {sample.value}" for sample in family.samples]


async def test_records_that_a_collector_refuses_are_counted(collector: LogCollector) -> None:
    collector.status = 400
    async with logging_to(collector) as (proxy, otlp):
        await proxy.talk(REQUEST)
        await until(lambda: otlp.lost["otlp"] == 1)


async def test_a_collector_that_comes_back_gets_what_came_since(collector: LogCollector) -> None:
    collector.status = 400
    async with logging_to(collector) as (proxy, otlp):
        await proxy.talk(REQUEST)
        await until(lambda: otlp.lost["otlp"] == 1)
        collector.status = 200
        await proxy.talk(REQUEST)
        await until(lambda: len(collector.records) == 1)
        assert otlp.lost["otlp"] == 1


def test_the_end_sends_what_is_there(collector: LogCollector) -> None:
    export = LogExport(OtlpExporter(collector.url), ExportLimits(60.0, 100, 50))
    for number in range(7):
        export.put(LogEntry(number, b"line %d" % number, {"n": number}, False, "", ""))
    export.close()
    assert [record.body.string_value for record in collector.records] == [f"line {number}" for number in range(7)]


def test_batches_have_the_size_that_is_set(collector: LogCollector) -> None:
    export = LogExport(OtlpExporter(collector.url), ExportLimits(60.0, 100, 3))
    for number in range(7):
        export.put(LogEntry(number, b"", {}, False, "", ""))
    export.close()
    assert len(collector.records) == 7
    assert collector.asked >= 3


@pytest.mark.parametrize("name", ["OTEL_BLRP_SCHEDULE_DELAY", "OTEL_BLRP_MAX_QUEUE_SIZE"])
def test_limits_are_those_of_the_specification(name: str) -> None:
    assert ExportLimits.from_environment({}) == (1.0, 2048, 512)
    assert ExportLimits.from_environment({"OTEL_BLRP_MAX_QUEUE_SIZE": "8"}) == (1.0, 8, 8)
    with pytest.raises(SettingsError, match=f"{name}: 'soon' is no whole number above 0"):
        ExportLimits.from_environment({name: "soon"})


def test_headers_of_the_environment_are_sent(collector: LogCollector, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_LOGS_HEADERS", "authorization=Bearer%20x")
    export = LogExport(OtlpExporter(f"{collector.url}/v1/traces"), SOON)
    export.put(LogEntry(1, b"", {}, False, "", ""))
    export.close()
    assert collector.headers["authorization"] == "Bearer x"
    assert collector.paths == {"/v1/logs"}


def test_a_log_that_has_nowhere_to_go_is_refused() -> None:
    with pytest.raises(ValueError, match="access_log_otlp needs otlp_endpoint"):
        GatewaySettings(access_log_otlp=True)
    assert GatewaySettings(access_log_otlp=True, otlp_endpoint="http://127.0.0.1:4318").access_log == "off"


class Notes:
    """`RequestNotes` of a request that came over TLS, and was sent twice."""

    scheme = b"https"
    port = b"443"

    def details(self) -> dict[str, object]:
        return {"request_bytes": 5, "user": "ann", "tls": "TLSv1.3", "retries": 1, "upstream_seconds": 0.25}


def test_what_only_some_requests_have_is_named_by_the_conventions() -> None:
    notes, fields = Notes(), RequestFields()
    fields.host = b"a"
    record = (b"", b"::1", b"PUT", b"/", b"2.0", 0, 0, 0.5, fields, b"id", "", "", "", notes, "gone")
    assert request_attributes(record, notes.details()) == {  # type: ignore[arg-type]
        "http.request.method": "PUT",
        "url.scheme": "https",
        "url.path": "/",
        "server.address": "a",
        "client.address": "::1",
        "network.protocol.name": "http",
        "network.protocol.version": "2",
        "http.request.body.size": 5,
        "http.response.body.size": 0,
        "enduser.id": "ann",
        "tls.protocol.version": "1.3",
        "headgate.duration": 0.5,
        "headgate.request_id": "id",
        "headgate.retries": 1,
        "headgate.upstream.seconds": 0.25,
        "headgate.reason": "gone",
    }
