"""A gateway process pushes its metrics, traces and access log to a collector."""

import gzip
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from fakes.gateway.process import GatewayProcess, commit, open_stores
from fakes.gateway.table import ORIGIN, host, route
from fakes.peers.echo import EchoServer
from fakes.waiting import until
from headgate.cli.up.embedded_nats import EmbeddedNats
from headgate.common.table import Endpoint, Upstream
from headgate.common.table_image import TableImage


class Collector:
    """An OTLP/HTTP collector."""

    def __init__(self) -> None:
        self.spans: set[str] = set()
        self.metrics: dict[str, float] = {}
        self.lines: list[str] = []
        self.logged: set[tuple[bytes, bytes]] = set()
        self.traces: set[tuple[bytes, bytes]] = set()
        self.port = 0

    async def take_spans(self, request: web.Request) -> web.Response:
        body = ExportTraceServiceRequest.FromString(_plain(await request.read()))
        self.spans |= {
            span.name for resource in body.resource_spans for scope in resource.scope_spans for span in scope.spans
        }
        self.traces |= {
            (span.trace_id, span.span_id)
            for resource in body.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        }
        return web.Response()

    async def take_logs(self, request: web.Request) -> web.Response:
        body = ExportLogsServiceRequest.FromString(_plain(await request.read()))
        for resource in body.resource_logs:
            for record in (record for scope in resource.scope_logs for record in scope.log_records):
                self.lines.append(record.body.string_value)
                self.logged.add((record.trace_id, record.span_id))
        return web.Response()

    async def take_metrics(self, request: web.Request) -> web.Response:
        body = ExportMetricsServiceRequest.FromString(_plain(await request.read()))
        for resource in body.resource_metrics:
            for metric in (metric for scope in resource.scope_metrics for metric in scope.metrics):
                points = metric.sum.data_points or metric.gauge.data_points
                self.metrics[metric.name] = sum(point.as_int + point.as_double for point in points)
                self.metrics[metric.name] += sum(point.count for point in metric.histogram.data_points)
        return web.Response()


def _plain(body: bytes) -> bytes:
    return gzip.decompress(body) if body.startswith(b"\x1f\x8b") else body


@pytest.fixture
async def collector() -> AsyncIterator[Collector]:
    collecting = Collector()
    app = web.Application()
    app.router.add_post("/v1/traces", collecting.take_spans)
    app.router.add_post("/v1/metrics", collecting.take_metrics)
    app.router.add_post("/v1/logs", collecting.take_logs)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    collecting.port = runner.addresses[0][1]
    yield collecting
    await runner.cleanup()


async def test_a_gateway_pushes_its_metrics_spans_and_log(
    tmp_path: Path, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "100")
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "100")
    monkeypatch.setenv("OTEL_BLRP_SCHEDULE_DELAY", "100")
    broker = EmbeddedNats(tmp_path / "nats")
    await broker.start()
    bus, stores = await open_stores(broker.url)
    flags = (f"--otlp-endpoint=http://127.0.0.1:{collector.port}", "--trace-share=1", "--access-log-otlp")
    async with EchoServer("one") as echo, GatewayProcess(tmp_path / "data", broker.url, *flags) as gateway:
        up = Upstream(key="up", endpoints=(Endpoint(address="127.0.0.1", port=echo.port),), provenance=ORIGIN)
        await commit(stores.snapshots, TableImage([host("foo.com", route("/", "prefix", "up")), up]), (1, 1))
        await gateway.ready()
        assert (await gateway.get())["name"] == "one"
        await until(lambda: collector.metrics.get("headgate_requests") == 1)
        await until(lambda: {"GET foo.com|prefix /", "GET"} <= collector.spans)
        await until(lambda: collector.logged)
        assert '"GET / HTTP/1.1" 200' in collector.lines[0]
        assert collector.logged <= collector.traces
        assert collector.metrics["headgate_endpoint_requests"] == 1
        assert collector.metrics["headgate_request_duration_seconds"] == 1
        assert await gateway.stop() == 0
    await bus.close()
    await broker.stop()
