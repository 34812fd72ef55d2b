"""The access log as log records of OpenTelemetry: the line as the body, and what it says as attributes.

Attributes are named as those of the server span (`tracing`), by OpenTelemetry's conventions for HTTP. The record of a
request that is traced has the ids of its trace and its server span.
"""

import time
from typing import TYPE_CHECKING

from headgate.gateway.observability.access_log import AccessLog, FormattedLog
from headgate.gateway.observability.log_format import LogFormat
from headgate.gateway.observability.otlp_export import Attribute, LogEntry, LogExport
from headgate.gateway.proxy.reports import LogRecord
from headgate.gateway.streams.log import StreamRecord

if TYPE_CHECKING:
    from headgate.common.table.listener import AccessLogFormat

_DETAILS = {
    "request_bytes": "http.request.body.size",
    "user": "enduser.id",
    "upstream_status": "headgate.upstream.status",
    "upstream_bytes": "headgate.upstream.bytes",
    "upstream_seconds": "headgate.upstream.seconds",
    "retries": "headgate.retries",
}
"""Attributes of what `Books.details` has."""


class OtlpLog:
    """Sends the access log to a collector, and writes it too if that is wanted.

    Args:
        log: how lines are written, and where to.
        export: where records go.
        writes: whether lines are written, too.
    """

    def __init__(self, log: AccessLog, export: LogExport, *, writes: bool) -> None:
        self._log = log
        self._export = export
        self._writes = writes

    @property
    def is_detailed(self) -> bool:
        """Records say all that is known."""
        return True

    @property
    def lost(self) -> dict[str, int]:
        """Lines and records that were dropped, by where they should have gone."""
        return {**(self._log.lost if self._writes else {}), "otlp": self._export.dropped}

    def append(self, record: LogRecord) -> None:
        """Note one finished request."""
        self.append_written(record, self._log.line(record))

    def append_written(self, record: LogRecord, line: bytes) -> None:
        """Note one finished request with a line of another format."""
        details = record[13].details()
        trace_id, span_id = str(details.get("trace_id", "")), str(details.get("span_id", ""))
        attributes = request_attributes(record, details)
        is_error = record[5] >= 500 or not record[5]
        self._export.put(LogEntry(time.time_ns(), line.rstrip(), attributes, is_error, trace_id, span_id))
        if self._writes:
            self._log.append_line(line)

    def formatted(self, line: "AccessLogFormat") -> FormattedLog:
        """Return the same log with lines of another format."""
        return FormattedLog(self, LogFormat(line.format, as_json=False, escape=line.escape, is_lenient=True))

    def stream(self, record: StreamRecord) -> None:
        """Note one finished connection or UDP session of a stream route."""
        line = self._log.stream_line(record)
        self._export.put(
            LogEntry(time.time_ns(), line.rstrip(), stream_attributes(record), record.status >= 500, "", "")
        )
        if self._writes:
            self._log.append_line(line)

    def close(self) -> None:
        """Send and write what is there; waits a few seconds at most."""
        self._export.close()
        self._log.close()


def request_attributes(record: LogRecord, details: dict[str, object]) -> dict[str, Attribute]:
    """Return what a record says of a request; what it did not have is left out."""
    (
        _,
        client,
        method,
        target,
        version,
        status,
        sent,
        seconds,
        fields,
        request_id,
        route,
        upstream,
        endpoint,
        notes,
        reason,
    ) = record
    path, _, query = target.decode("latin-1").partition("?")
    attributes: dict[str, Attribute] = {
        "http.request.method": method.decode("latin-1"),
        "url.scheme": notes.scheme.decode("latin-1"),
        "url.path": path,
        "url.query": query,
        "server.address": fields.host.decode("latin-1"),
        "client.address": client.decode("latin-1"),
        "network.protocol.name": "http",
        "network.protocol.version": version.decode("latin-1").removesuffix(".0"),
        "http.response.body.size": sent,
        "user_agent.original": fields.agent.decode("latin-1"),
        "headgate.duration": round(seconds, 6),
        "headgate.request_id": request_id.decode("latin-1"),
        "headgate.route": route,
        "headgate.upstream": upstream,
        "headgate.endpoint": endpoint,
        "headgate.reason": reason,
    }
    if status:
        attributes["http.response.status_code"] = status
    if fields.referer:
        attributes["http.request.header.referer"] = (fields.referer.decode("latin-1"),)
    tls = str(details.get("tls", ""))
    if tls:
        attributes["tls.protocol.version"] = tls.removeprefix("TLSv")
    for name, attribute in _DETAILS.items():
        value = details.get(name)
        if isinstance(value, str | int | float):
            attributes[attribute] = value
    return {name: value for name, value in attributes.items() if value != ""}


def stream_attributes(record: StreamRecord) -> dict[str, Attribute]:
    """Return what a record says of a connection or session; what it did not have is left out."""
    attributes: dict[str, Attribute] = {
        "network.transport": "udp" if record.protocol == "udp" else "tcp",
        "network.protocol.name": record.protocol,
        "client.address": record.client,
        "server.port": record.port,
        "tls.client.server_name": record.server_name,
        "headgate.status": int(record.status),
        "headgate.received": record.received,
        "headgate.sent": record.sent,
        "headgate.duration": round(record.seconds, 6),
        "headgate.route": record.route,
        "headgate.upstream": record.upstream,
        "headgate.endpoint": record.endpoint,
        "headgate.reason": record.reason,
    }
    return {name: value for name, value in attributes.items() if value != ""}
