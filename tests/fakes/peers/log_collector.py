"""An OTLP/HTTP collector of log records, which may be slow or refuse."""

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest, ExportLogsServiceResponse
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord


class LogCollector:
    """What came, decoded."""

    def __init__(self) -> None:
        self.records: list[LogRecord] = []
        self.resource: dict[str, object] = {}
        self.paths: set[str] = set()
        self.headers: dict[str, str] = {}
        self.status = 200
        self.may_answer = threading.Event()
        """Requests wait for it."""
        self.may_answer.set()
        self.asked = 0
        self.url = ""

    def take(self, path: str, headers: dict[str, str], body: bytes) -> None:
        """Decode a request."""
        self.asked += 1
        self.paths.add(path)
        self.headers = headers
        plain = gzip.decompress(body) if headers.get("content-encoding") == "gzip" else body
        for resource in ExportLogsServiceRequest.FromString(plain).resource_logs:
            self.resource = values(resource.resource.attributes)
            for scope in resource.scope_logs:
                self.records.extend(scope.log_records)


def values(attributes: "Iterator[KeyValue] | object") -> dict[str, object]:
    """Attributes as a dictionary."""
    return {one.key: _value(one.value) for one in attributes}  # type: ignore[attr-defined]


def _value(value: AnyValue) -> object:
    kind = value.WhichOneof("value")
    return [_value(one) for one in value.array_value.values] if kind == "array_value" else getattr(value, kind or "")


@contextmanager
def log_collector() -> Iterator[LogCollector]:
    """Collect on a port of loopback."""
    collector = LogCollector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            collector.may_answer.wait(30)
            if collector.status == 200:
                headers = {name.lower(): value for name, value in self.headers.items()}
                collector.take(self.path, headers, body)
            answer = ExportLogsServiceResponse().SerializeToString()
            self.send_response(collector.status)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    collector.url = f"http://127.0.0.1:{server.server_address[1]}"
    serving = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    serving.start()
    try:
        yield collector
    finally:
        collector.may_answer.set()
        server.shutdown()
        serving.join()
        server.server_close()
