"""The access log: a line per request, written off the hot path.

A finished request leaves one line. Lines are written in batches by a thread, so that a slow reader of our output delays
nobody; lines that pile up behind one are dropped and counted. A closed output costs its lines, never a request.

Rejected: keeping records and formatting them by the batch. It saves nothing that could be measured, and keeps what
hundreds of requests were made of alive.
"""

import asyncio
import json
import os
import queue
import re
import threading
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Literal, Protocol

from headgate.gateway.observability.log_format import LogFormat
from headgate.gateway.proxy.heads.head import RequestFields
from headgate.gateway.proxy.reports import LogRecord
from headgate.gateway.streams.log import StreamRecord, combined_line, json_line

if TYPE_CHECKING:
    from headgate.common.table.listener import AccessLogFormat

_QUOTE: Final = 0x22
_BACKSLASH: Final = 0x5C
_TAB: Final = 0x09
_CONTROLS: Final = re.compile("[\x00-\x1f\x7f]")
_BATCH: Final = 1024
_FLUSH_S: Final = 0.25
_MAX_BACKLOG: Final = 64
"""Batches that may wait for the thread."""


class AccessLog:
    """Takes records on the event loop and writes lines to a file descriptor."""

    def __init__(
        self, log_format: Literal["combined", "json"], descriptor: int = 1, own: "LogFormat | None" = None
    ) -> None:
        """Prepare to write.

        Args:
            log_format: of lines.
            descriptor: of the file that they go to.
            own: how requests are written, in place of that.
        """
        self._is_json = log_format == "json"
        self._own = own
        self._descriptor = descriptor
        self._lines: list[bytes] = []
        self._batches: queue.Queue[bytes | None] = queue.Queue(_MAX_BACKLOG)
        self._timer: asyncio.TimerHandle | None = None
        self._writer = threading.Thread(target=self._write_batches, name="access log", daemon=True)
        self._started = False
        self.dropped = 0
        """Lines lost to a slow or closed output."""

    @property
    def lost(self) -> dict[str, int]:
        """Lines that were dropped, by where they should have gone."""
        return {"stdout": self.dropped}

    @property
    def is_detailed(self) -> bool:
        """Whether lines say all that is known."""
        return self._is_json if self._own is None else self._own.times_endpoints

    def append(self, record: LogRecord) -> None:
        """Note one finished request."""
        self.append_line(self.line(record))

    def line(self, record: LogRecord) -> bytes:
        """Return the line of a finished request."""
        own = self._own
        if own is not None:
            return own.write(record)
        return _json(record) if self._is_json else _combined(record)

    def append_written(self, record: LogRecord, line: bytes) -> None:
        """Note one finished request with a line of another format."""
        self.append_line(line)

    def formatted(self, line: "AccessLogFormat") -> "FormattedLog":
        """Return the same log with lines of another format."""
        return FormattedLog(self, LogFormat(line.format, as_json=False, escape=line.escape, is_lenient=True))

    def stream(self, record: StreamRecord) -> None:
        """Note one finished connection or UDP session of a stream route."""
        self.append_line(self.stream_line(record))

    def stream_line(self, record: StreamRecord) -> bytes:
        """Return the line of a finished connection or session."""
        return json_line(record) if self._is_json else combined_line(record)

    def append_line(self, line: bytes) -> None:
        """Note a line as it is written."""
        lines = self._lines
        lines.append(line)
        if len(lines) >= _BATCH:
            self.flush()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_FLUSH_S, self.flush)

    def flush(self) -> None:
        """Hand what is there to the thread."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        lines, self._lines = self._lines, []
        if not lines:
            return
        if not self._started:
            self._started = True
            self._writer.start()
        try:
            self._batches.put_nowait(b"".join(lines))
        except queue.Full:
            self.dropped += len(lines)

    def close(self) -> None:
        """Write what is there; waits for the thread, at most a second."""
        self.flush()
        if self._started:
            try:
                self._batches.put(None, timeout=1.0)
            except queue.Full:
                return
            self._writer.join(timeout=1.0)

    def _write_batches(self) -> None:
        while (batch := self._batches.get()) is not None:
            try:
                view = memoryview(batch)
                while view:
                    written = os.write(self._descriptor, view)
                    view = view[written:]
            except OSError:
                # Nobody reads any more (EPIPE, EBADF) or no space is left: the lines are lost, the service goes on.
                self.dropped += batch.count(b"\n")


class LineLog(Protocol):
    """Takes requests with their lines, and can be had with another format."""

    def append_written(self, record: LogRecord, line: bytes) -> None:
        """Note one finished request with a line of another format."""

    def formatted(self, line: "AccessLogFormat") -> "FormattedLog":
        """Return the same log with lines of another format."""
        ...


class FormattedLog:
    """The access log with lines of a format of its own."""

    def __init__(self, log: "LineLog", line: LogFormat) -> None:
        """Write lines of a format to a log."""
        self._log, self._line = log, line

    @property
    def is_detailed(self) -> bool:
        """Whether lines say how long endpoints took."""
        return self._line.times_endpoints

    def append(self, record: LogRecord) -> None:
        """Note one finished request."""
        self._log.append_written(record, self._line.write(record))

    def formatted(self, line: "AccessLogFormat") -> "FormattedLog":
        """Return the same log with lines of another format."""
        return self._log.formatted(line)


def _combined(record: LogRecord) -> bytes:
    """Format as Apache and nginx do, with the seconds, the route and the request id behind."""
    (
        when,
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
        _,
        endpoint,
        notes,
        reason,
    ) = record
    referer, agent = _logged_fields(fields)
    line = b'%b - %b [%b] "%b %b HTTP/%b" %d %d "%b" "%b" %b "%b" "%b" %b' % (
        client,
        notes.user,
        when,
        method,
        target if _QUOTE not in target else _escape(target),
        version,
        status,
        sent,
        referer,
        agent,
        _seconds(seconds),
        route.encode() or b"-",
        endpoint.encode() or b"-",
        request_id,
    )
    if not reason:
        return line + b"\n"
    # It may quote what a client sent, which must not look like a line of its own.
    shown = _CONTROLS.sub("?", reason).encode("utf-8", "backslashreplace")
    return b'%b "%b"\n' % (line, _escape(shown))


def _logged_fields(fields: RequestFields) -> tuple[bytes, bytes]:
    """Give Referer and User-Agent as the access log writes them (`-` for none)."""
    return _logged_value(fields.referer), _logged_value(fields.agent)


def _logged_value(value: bytes) -> bytes:
    if _QUOTE in value or _BACKSLASH in value or _TAB in value:
        for byte in _LOG_UNSAFE:
            value = value.replace(bytes((byte,)), b"\\x%02x" % byte)
    return value or b"-"


_LOG_UNSAFE: Final = b'\\"\t'
"""The backslash first, as the others are written with one."""


def _seconds(seconds: float) -> bytes:
    """Write a duration to the millisecond; nearly all are below a second, of which the text is at hand."""
    thousandths = int(seconds * 1000 + 0.5)
    return _BELOW_A_SECOND[thousandths] if thousandths < 1000 else b"%.3f" % seconds


_BELOW_A_SECOND: Final[list[bytes]] = [b"0.%03d" % thousandths for thousandths in range(1000)]


def _json(record: LogRecord) -> bytes:
    """Format as one JSON object; fields that a request did not have are left out."""
    (
        when,
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
    entry = {
        "time": iso_time(when),
        "client": client.decode(),
        "method": method.decode("latin-1"),
        "host": fields.host.decode("latin-1"),
        "target": target.decode("latin-1"),
        "version": version.decode(),
        "status": status,
        "bytes": sent,
        "seconds": round(seconds, 6),
        "referer": fields.referer.decode("latin-1"),
        "agent": fields.agent.decode("latin-1"),
        "request_id": request_id.decode("latin-1"),
        "route": route,
        "upstream": upstream,
        "endpoint": endpoint,
        **notes.details(),
        "reason": reason,
    }
    present = {name: value for name, value in entry.items() if value != ""}
    return json.dumps(present, separators=(",", ":")).encode() + b"\n"


@lru_cache(4)
def iso_time(when: bytes) -> str:
    """Turn the time of a log line (`20/Nov/2026:21:03:22 +0000`) into RFC 3339; once a second, lines share it."""
    return datetime.strptime(when.decode(), "%d/%b/%Y:%H:%M:%S %z").strftime("%Y-%m-%dT%H:%M:%SZ")


def _escape(text: bytes) -> bytes:
    return text.replace(b"\\", b"\\x5c").replace(b'"', b"\\x22")
