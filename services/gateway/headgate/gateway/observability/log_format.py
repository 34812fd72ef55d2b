"""Formats of one's own for the access log: texts with nginx's variables, as a line or as the fields of a JSON object.

A format is compiled once to a list of constant parts and of functions that read a value from the record of a request.
In a line what a request did not have is `-`, and quotes, backslashes and what is not printable are in hexadecimal, as
by nginx; in JSON such a field is left out, and a field that is one variable keeps its type.
"""

import difflib
import json
import os
import re
import socket
import time
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Literal

from headgate.common.log_variables import LOG_VARIABLE
from headgate.common.table.upstream_key import UpstreamKey
from headgate.gateway.plugins.interface.variables import cookie_value, query_value

if TYPE_CHECKING:
    from headgate.gateway.proxy.reports import LogRecord

Value = str | int | float | None
Read = Callable[["Entry"], Value]
_UNSAFE: Final = re.compile(r'["\\\x00-\x1f\x7f-\U0010ffff]')
_LINE_BREAKS: Final = re.compile("[\r\n]")
LogEscape = Literal["default", "json", "none"]
MAX_FORMAT: Final = 8192
"""Characters of a format."""


class Entry:
    """A finished request, as variables look at it."""

    __slots__ = ("_details", "record")

    def __init__(self, record: "LogRecord") -> None:
        self.record = record
        self._details: Mapping[str, object] | None = None

    def text(self, index: int) -> str:
        """Return a part of the record that is bytes."""
        part: Any = self.record[index]
        return str(part, "latin-1")

    def detail(self, name: str) -> Value:
        """Return what `Books.details` has under a name."""
        if self._details is None:
            self._details = self.record[13].details()
        found: Any = self._details.get(name)
        return found  # type: ignore[no-any-return]

    def header(self, name: str) -> str | None:
        """Return a header of the request as it was passed on; several lines are joined."""
        fields = self.record[8]
        kept = {"host": fields.host_line, "referer": fields.referer, "user-agent": fields.agent}.get(name)
        if kept is not None:
            return kept.decode("latin-1") or None
        prefix = name.encode("latin-1") + b":"
        found = [line[len(prefix) :].strip() for line in fields.lines.splitlines() if line.lower().startswith(prefix)]
        return b", ".join(found).decode("latin-1") if found else None

    @property
    def target(self) -> tuple[str, str]:
        """Path and query as the client sent them."""
        path, _, query = self.text(3).partition("?")
        return path, query


def _iso_time(entry: Entry) -> Value:
    from headgate.gateway.observability.access_log import iso_time

    return iso_time(entry.record[0])


def _named(route: str, position: int) -> str | None:
    """Return the namespace or the name of the object of a route, whose name begins with `cluster/namespace/name`."""
    parts = route.partition(" ")[0].split("/")
    return parts[position] if len(parts) > position else None


@lru_cache(maxsize=1024)
def _upstream_parts(key: str) -> tuple[str | None, str | None, str | None]:
    """Return of an upstream its name as ingress-nginx has it, its Service and port."""
    try:
        upstream = UpstreamKey.parse(key)
    except ValueError:
        return None, None, None
    port = "" if upstream.port is None else str(upstream.port)
    return f"{upstream.namespace}-{upstream.name}-{port}", upstream.name, port


_HOSTNAME: Final = socket.gethostname()
VARIABLES: Final[Mapping[str, Read]] = {
    "args": lambda entry: entry.target[1] or None,
    "body_bytes_sent": lambda entry: entry.record[6],
    "best_http_host": lambda entry: entry.record[8].host_line.decode("latin-1") or None,
    "hostname": lambda _: _HOSTNAME,
    "ingress_name": lambda entry: _named(entry.record[10], 2),
    "msec": lambda _: f"{time.time():.3f}",
    "namespace": lambda entry: _named(entry.record[10], 1),
    "pass_access_scheme": lambda entry: entry.record[13].scheme.decode(),
    "pass_server_port": lambda entry: entry.record[13].port.decode(),
    "pid": lambda _: os.getpid(),
    "proxy_upstream_name": lambda entry: _upstream_parts(entry.record[11])[0],
    "service_name": lambda entry: _upstream_parts(entry.record[11])[1],
    "service_port": lambda entry: _upstream_parts(entry.record[11])[2],
    "host": lambda entry: entry.record[8].host.decode("latin-1") or None,
    "query_string": lambda entry: entry.target[1] or None,
    "reason": lambda entry: entry.record[14] or None,
    "remote_addr": lambda entry: entry.text(1),
    "the_real_ip": lambda entry: entry.text(1),
    "remote_user": lambda entry: entry.detail("user"),
    "request": lambda entry: f"{entry.text(2)} {entry.text(3)} HTTP/{entry.text(4)}",
    "request_id": lambda entry: entry.text(9),
    "req_id": lambda entry: entry.text(9),
    "request_length": lambda entry: entry.detail("request_bytes"),
    "request_method": lambda entry: entry.text(2),
    "request_time": lambda entry: round(entry.record[7], 3),
    "request_uri": lambda entry: entry.text(3),
    "retries": lambda entry: entry.detail("retries") or 0,
    "route_name": lambda entry: entry.record[10] or None,
    "scheme": lambda entry: entry.record[13].scheme.decode(),
    "server_name": lambda entry: entry.record[8].host.decode("latin-1") or None,
    "server_port": lambda entry: int(entry.record[13].port),
    "server_protocol": lambda entry: f"HTTP/{entry.text(4)}",
    "ssl_protocol": lambda entry: entry.detail("tls"),
    "status": lambda entry: entry.record[5],
    "time_iso8601": _iso_time,
    "time_local": lambda entry: entry.text(0),
    "trace_id": lambda entry: entry.detail("trace_id"),
    "upstream_addr": lambda entry: entry.record[12] or None,
    "upstream_name": lambda entry: entry.record[11] or None,
    "upstream_response_length": lambda entry: entry.detail("upstream_bytes"),
    "upstream_response_time": lambda entry: entry.detail("upstream_seconds"),
    "upstream_status": lambda entry: entry.detail("upstream_status"),
    "uri": lambda entry: entry.target[0],
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
            return "".join(part if isinstance(part, str) else show(part(entry)) for part in self._line).encode() + b"\n"
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
    """Return a field: the value of its only variable, or a text in which absent values are empty."""
    if len(parts) == 1 and not isinstance(parts[0], str):
        return parts[0](entry)
    values = [part if isinstance(part, str) else part(entry) for part in parts]
    return "".join("" if value is None else str(value) for value in values)


def _shown(value: Value) -> str:
    if value is None or value == "":
        return "-"
    return _UNSAFE.sub(_escape, str(value)) if isinstance(value, str) else str(value)


def _escape(found: re.Match[str]) -> str:
    return "".join(f"\\x{byte:02X}" for byte in found[0].encode("utf-8", "backslashreplace"))


def _shown_in_json(value: Value) -> str:
    return json.dumps(str(value))[1:-1] if value is not None else ""


def _shown_as_it_is(value: Value) -> str:
    """Without what would end the line: nothing that a client sends makes a line of its own."""
    return _LINE_BREAKS.sub(" ", str(value)) if value is not None else ""


_SHOWN: Final[Mapping[LogEscape, Callable[[Value], str]]] = {
    "default": _shown,
    "json": _shown_in_json,
    "none": _shown_as_it_is,
}
