"""Structured logs over the standard library: one line for each record.

Modules write `logging.getLogger(__name__).info("applied", extra={"revision": 3})`; every `extra` becomes a field.
Text is for people, `2026-01-01T12:00:00.000Z INFO gateway applied revision=3`; JSON is for machines and has the keys
`time`, `level`, `service`, `logger`, `message`, the fields, and `trace_id` inside a traced operation.
"""

import json
import logging
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Literal, TextIO

from headgate.common.service.telemetry import current_trace_id

LogFormat = Literal["text", "json"]

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_QUOTED = frozenset(' ="\n\r\t\\')
_NOISY = ("asyncio", "nats", "urllib3", "opentelemetry", "aiohttp.access", "kubernetes_asyncio")


def configure_logging(
    service: str, level: str = "info", format: LogFormat = "text", stream: TextIO | None = None
) -> None:
    """Send all logs of this process to one stream (standard error by default), replacing what was configured before.

    Args:
        service: name that every line carries.
        level: least severity, `debug` to `error`.
        format: `text` or `json`.
        stream: where to write.
    """
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter(service) if format == "json" else TextFormatter(service))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for name in _NOISY:
        logging.getLogger(name).setLevel(max(logging.WARNING, root.level))


class TextFormatter(logging.Formatter):
    """`time LEVEL service message key=value`."""

    def __init__(self, service: str) -> None:
        super().__init__()
        self._service = service

    def format(self, record: logging.LogRecord) -> str:
        """Return the line; a traceback follows on lines of its own."""
        head = f"{_timestamp(record)} {record.levelname:<7} {self._service} {_one_line(record.getMessage())}"
        line = " ".join([head, *(f"{key}={_text_value(value)}" for key, value in _fields(record).items())])
        traceback = self._traceback(record)
        return f"{line}\n{traceback}" if traceback else line

    def _traceback(self, record: logging.LogRecord) -> str:
        return self.formatException(record.exc_info) if record.exc_info and record.exc_info[0] else ""


class JsonFormatter(TextFormatter):
    """One JSON object for each record."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the object; a traceback is its `error`."""
        entry: dict[str, Any] = {
            "time": _timestamp(record),
            "level": record.levelname.lower(),
            "service": self._service,
            "logger": record.name,
            "message": record.getMessage(),
        }
        entry |= {key: value for key, value in _fields(record).items() if key not in entry}
        if trace_id := current_trace_id():
            entry["trace_id"] = trace_id
        if traceback := self._traceback(record):
            entry["error"] = traceback
        return json.dumps(entry, default=str, ensure_ascii=False)


def _timestamp(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _fields(record: logging.LogRecord) -> Mapping[str, Any]:
    return {key: value for key, value in vars(record).items() if key not in _STANDARD}


def _one_line(text: str) -> str:
    # What a user wrote may be in a message: it must not look like a line of the log of its own.
    return (
        text.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r") if "\n" in text or "\r" in text else text
    )


def _text_value(value: object) -> str:
    text = str(value)
    return json.dumps(text, ensure_ascii=False) if not text or not _QUOTED.isdisjoint(text) else text
