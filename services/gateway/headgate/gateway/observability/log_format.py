"""Formats of one's own for the access log: texts with nginx's variables, as a line or as the fields of a JSON object.

A format is compiled once to a list of constant parts and of functions that read a value from the record of a request.
In a line what a request did not have is `-`, and quotes, backslashes and bytes that are not printable ASCII are in
hexadecimal, as by nginx; in JSON such a field is left out, and a field that is one variable keeps its type. Values are
read as UTF-8; bytes that are none are kept, and written as they came.
"""

import difflib
import json
import os
import re
import socket
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, Literal

from headgate.common.log_variables import LOG_VARIABLE
from headgate.gateway.observability.log_entry import Entry, Value, decoded, encoded
from headgate.gateway.observability.names import read_route, read_upstream
from headgate.gateway.plugins.interface.variables import cookie_value, query_value

if TYPE_CHECKING:
    from headgate.gateway.proxy.reports import LogRecord

Read = Callable[[Entry], Value]
_UNSAFE: Final = re.compile(r'["\\\x00-\x1f\x7f-\U0010ffff]')
_LINE_BREAKS: Final = re.compile("[\r\n]")
LogEscape = Literal["default", "json", "none"]
MAX_FORMAT: Final = 8192
"""Characters of a format."""


def _iso_time(entry: Entry) -> Value:
    from headgate.gateway.observability.access_log import iso_time

    return iso_time(entry.record[0])


def _upstream_name(key: str) -> str | None:
    """Return the name of an upstream as ingress-nginx has it."""
    upstream = read_upstream(key)
    return f"{upstream.namespace}-{upstream.name}-{_port(key)}" if upstream is not None else None


def _service(key: str) -> str | None:
    upstream = read_upstream(key)
    return upstream.name if upstream is not None else None


def _port(key: str) -> str | None:
    upstream = read_upstream(key)
    if upstream is None:
        return None
    return "" if upstream.port is None else str(upstream.port)


def _part(index: int) -> Read:
    """Return what reads a part of the record that is bytes."""
    return lambda entry: entry.text(index) or None


_HOSTNAME: Final = socket.gethostname()
VARIABLES: Final[Mapping[str, Read]] = {
    "args": lambda entry: entry.target[1] or None,
    "body_bytes_sent": lambda entry: entry.record[6],
    "best_http_host": lambda entry: decoded(entry.record[8].forwarded_host) or entry.header("host"),
    "hostname": lambda _: _HOSTNAME,
    "ingress_name": lambda entry: read_route(entry.record[10]).object or None,
    "msec": lambda _: f"{time.time():.3f}",
    "namespace": lambda entry: read_route(entry.record[10]).namespace or None,
    "pass_access_scheme": lambda entry: entry.record[13].scheme.decode(),
    "pass_server_port": lambda entry: entry.record[13].port.decode(),
    "pid": lambda _: os.getpid(),
    "proxy_alternative_upstream_name": lambda _: "",
    "proxy_upstream_name": lambda entry: _upstream_name(entry.record[11]),
    "service_name": lambda entry: _service(entry.record[11]),
    "service_port": lambda entry: _port(entry.record[11]),
    "host": lambda entry: decoded(entry.record[8].host) or None,
    "query_string": lambda entry: entry.target[1] or None,
    "reason": lambda entry: entry.record[14] or None,
    "remote_addr": _part(1),
    "the_real_ip": _part(1),
    "remote_user": lambda entry: entry.detail("user"),
    "request": lambda entry: f"{entry.text(2)} {entry.text(3)} HTTP/{entry.text(4)}",
    "request_id": _part(9),
    "req_id": _part(9),
    "request_length": lambda entry: entry.detail("request_bytes"),
    "request_method": _part(2),
    "request_time": lambda entry: round(entry.record[7], 3),
    "request_uri": _part(3),
    "retries": lambda entry: entry.detail("retries") or 0,
    "route_name": lambda entry: entry.record[10] or None,
    "scheme": lambda entry: entry.record[13].scheme.decode(),
    "server_name": lambda entry: decoded(entry.record[8].host) or None,
    "server_port": lambda entry: int(entry.record[13].port),
    "server_protocol": lambda entry: f"HTTP/{entry.text(4)}",
    "ssl_protocol": lambda entry: entry.detail("tls") or None,
    "status": lambda entry: entry.record[5],
    "time_iso8601": _iso_time,
    "time_local": _part(0),
    "trace_id": lambda entry: entry.detail("trace_id"),
    "span_id": lambda entry: entry.detail("span_id"),
    "upstream_addr": lambda entry: entry.record[12] or None,
    "upstream_name": lambda entry: entry.record[11] or None,
    "upstream_response_length": lambda entry: entry.detail("upstream_bytes"),
    "upstream_response_time": lambda entry: entry.detail("upstream_seconds"),
    "upstream_status": lambda entry: entry.detail("upstream_status"),
    "uri": lambda entry: entry.target[0] or None,
}
"""By their names; `http_<name>`, `arg_<name>` and `cookie_<name>` are headers, query parameters and cookies."""


class BadFormat(ValueError):
    """A format that cannot be followed; the text says what is wrong and what would be right."""


class LogFormat:
    """A compiled format."""

    def __init__(self, text: str, *, as_json: bool, escape: LogEscape = "default", is_lenient: bool = False) -> None:
        """Compile.

        Args:
            text: a line; or, in JSON, an object of field names with the text of each.
            as_json: which of the two.
            escape: how values are written in a line.
            is_lenient: an unknown variable is one that no request has.

        Raises:
            BadFormat: an unknown variable, or no such object.
        """
        if len(text) > MAX_FORMAT:
            raise BadFormat(f"must have at most {MAX_FORMAT} characters, but has {len(text)}")
        find = _find_known if is_lenient else _find
        self._fields = {name: _compile(value, find) for name, value in _read_fields(text).items()} if as_json else None
        self._line = [] if as_json else _compile(text, find)
        self._show = _SHOWN[escape]
        self.times_endpoints = "$upstream_response_time" in text or "${upstream_response_time}" in text
        """Whether how long endpoints take has to be measured."""

    def write(self, record: "LogRecord") -> bytes:
        """Write the line of a request."""
        entry = Entry(record)
        if self._fields is None:
            show = self._show
            return encoded("".join(part if isinstance(part, str) else show(part(entry)) for part in self._line)) + b"\n"
        found = {name: _value_of(parts, entry) for name, parts in self._fields.items()}
        present = {name: value for name, value in found.items() if value not in (None, "")}
        return json.dumps(present, separators=(",", ":")).encode() + b"\n"


Parts = list[str | Read]


def _read_fields(text: str) -> Mapping[str, str]:
    try:
        fields = json.loads(text)
    except ValueError as error:
        raise BadFormat(f'must be a JSON object such as {{"status": "$status"}}: {error}') from error
    if not isinstance(fields, dict) or not fields or not all(isinstance(value, str) for value in fields.values()):
        raise BadFormat('must be a JSON object of texts, such as {"status": "$status"}')
    return fields


def _compile(text: str, find: Callable[[str], Read]) -> Parts:
    parts: Parts = []
    position = 0
    for found in LOG_VARIABLE.finditer(text):
        parts += [text[position : found.start()], find(found[1] or found[2])]
        position = found.end()
    parts.append(text[position:])
    return [part for part in parts if part != ""]


def _find(name: str) -> Read:
    read = VARIABLES.get(name)
    if read is not None:
        return read
    if name.startswith("http_"):
        header = name[5:].replace("_", "-")
        return lambda entry: entry.header(header)
    if name.startswith("arg_"):
        return lambda entry: query_value(entry.target[1], name[4:])
    if name.startswith("cookie_"):
        return lambda entry: cookie_value(entry.header("cookie") or "", name[7:])
    near = difflib.get_close_matches(name, VARIABLES, 1)
    hint = f"the nearest is ${near[0]}" if near else f"there are {', '.join(VARIABLES)}, http_*, arg_*, cookie_*"
    raise BadFormat(f"there is no variable ${name}; {hint}")


def _find_known(name: str) -> Read:
    try:
        return _find(name)
    except BadFormat:
        return lambda _: None


def _value_of(parts: Parts, entry: Entry) -> Value:
    """Return a field: the value of its only variable, or a text in which absent values are empty; always Unicode."""
    values = [part if isinstance(part, str) else part(entry) for part in parts]
    if len(values) == 1 and not isinstance(values[0], str):
        return values[0]
    return encoded("".join("" if value is None else str(value) for value in values)).decode("utf-8", "replace")


def _shown(value: Value) -> str:
    if value is None:
        return "-"
    return _UNSAFE.sub(_escape, str(value)) if isinstance(value, str) else str(value)


def _escape(found: re.Match[str]) -> str:
    return "".join(f"\\x{byte:02X}" for byte in encoded(found[0]))


def _shown_in_json(value: Value) -> str:
    return json.dumps(str(value), ensure_ascii=False)[1:-1] if value is not None else ""


def _shown_as_it_is(value: Value) -> str:
    """Return a value without what would end the line: nothing that a client sends makes a line of its own."""
    return _LINE_BREAKS.sub(" ", str(value)) if value is not None else ""


_SHOWN: Final[Mapping[LogEscape, Callable[[Value], str]]] = {
    "default": _shown,
    "json": _shown_in_json,
    "none": _shown_as_it_is,
}
