"""What loggers say of a request: all that Apache APISIX says, or what a format asks for.

Times are taken by the loggers' own hooks: a request of a route without any costs nothing.
"""

import json
import time
from collections.abc import Callable
from typing import Any, Final, TypeVar
from urllib.parse import parse_qsl

from headgate.common.plugins.expressions import looks_at_body
from headgate.common.plugins.observability.loggers import LoggerConfig
from headgate.gateway.plugins.interface import BodyFilter, BodyTooLarge, Plugin, PluginServices, Request, Response
from headgate.gateway.plugins.interface.headers import Headers
from headgate.gateway.plugins.interface.variables import HOSTNAME, variable
from headgate.gateway.plugins.kit.conditions import compile_expressions, with_body
from headgate.gateway.plugins.kit.patterns import Template

MAX_BODY: Final = 1 << 20
"""Bytes of a request's body that is waited for; a longer one is not logged."""

ADDED: Final = "log.added"
"""Variable of a request: a function of its seconds that returns further fields of entries, for loggers of all kinds."""

C = TypeVar("C", bound=LoggerConfig)
_Value = Callable[[Request], Any]
_Object = Callable[[Request], dict[str, Any]]


class LoggerPlugin(Plugin[C]):
    """Base of all loggers: makes an entry of each request that has ended, and hands it to `write`."""

    answer_order = 100_000
    preview = "passes"

    def __init__(self, config: C, services: PluginServices) -> None:
        super().__init__(config, services)
        self._format = _compile_object(config.log_format) if config.log_format is not None else None
        self._extra = _compile_object(config.log_format_extra) if config.log_format_extra else None
        self._takes_request = compile_expressions(config.include_req_body_expr)
        self._needs_body = looks_at_body(config.include_req_body_expr)
        self._takes_response = compile_expressions(config.include_resp_body_expr)
        self._place = f"log.{id(self)}"
        """Where a request's `_Seen` is."""

    def write(self, entry: bytes, request: Request) -> None:
        """Take an entry in JSON."""
        raise NotImplementedError

    def on_request(self, request: Request) -> Any:
        """Wait for the body, if it is to be logged."""
        config = self.config
        seen = request.variables[self._place] = _Seen(self.services.clock)
        if not config.include_req_body or request.content_length == 0:
            return None
        if self._needs_body:
            return with_body(request, lambda request: self._note_body(request, seen), is_guard=False)
        return self._note_body(request, seen)

    def _note_body(self, request: Request, seen: "_Seen") -> Any:
        if self._takes_request is not None and not self._takes_request(request, None):
            return None
        return self._read_body(request, seen)

    async def _read_body(self, request: Request, seen: "_Seen") -> None:
        try:
            body = await request.read_body(MAX_BODY)
        except BodyTooLarge:
            return
        seen.sent()
        request.variables["request_body"] = body[: self.config.max_req_body_bytes].decode("utf-8", "replace")

    def on_response(self, request: Request, response: Response) -> None:
        """Note the head."""
        seen = self._seen(request)
        seen.headers = response.headers
        if request.upstream_status:
            seen.answered()

    def body_filter(self, request: Request, response: Response) -> BodyFilter | None:
        """Note when the body ends and, if it is to be logged, what it is."""
        takes = self._takes_response
        kept = None
        if self.config.include_resp_body and (takes is None or takes(request, response)):
            kept = request.variables["response_body"] = bytearray()
        elif not response.from_upstream:
            return None
        return _Noting(self._seen(request), kept, self.config.max_resp_body_bytes)

    def on_finish(self, request: Request, status: int, seconds: float) -> None:
        """Make the entry."""
        _note_end(request, seconds, self._seen(request))
        kept = request.variables.get("response_body")
        if isinstance(kept, bytearray):
            text = kept.decode("utf-8", "replace")
            request.variables["response_body"] = request.variables["resp_body"] = text
        self.write(self.entry(request, status, seconds), request)

    def entry(self, request: Request, status: int, seconds: float) -> bytes:
        """Make the entry of a request that has ended, in JSON."""
        if self._format is None:
            entry = self._full(request, status, seconds)
            if self._extra is not None:
                entry = {**self._extra(request), **entry}
        else:
            entry = self._format(request)
            entry.setdefault("route_id", request.route)
        for name, variable_name in (("request", "request_body"), ("response", "response_body")):
            body = request.variables.get(variable_name)
            if body is not None:
                within = entry.setdefault(name, {})
                if isinstance(within, dict):
                    within["body"] = body
        added = request.variables.get(ADDED)
        if callable(added):
            entry |= added(seconds)
        return as_json(entry)

    def _seen(self, request: Request) -> "_Seen":
        """Return what was noted; nothing was where another plugin answered before."""
        seen = request.variables.get(self._place)
        if not isinstance(seen, _Seen):
            seen = request.variables[self._place] = _Seen(self.services.clock)
        return seen

    def _full(self, request: Request, status: int, seconds: float) -> dict[str, Any]:
        seen = self._seen(request)
        consumer = variable(request, "consumer_name")
        latencies = {"latency": seconds, "apisix_latency": max(0.0, seconds - (seen.body_s or 0.0))}
        if seen.body_s is not None:
            latencies["upstream_latency"] = seen.body_s
        return {
            "client_ip": request.client,
            "route_id": request.route,
            "service_id": request.upstreams,
            **({"consumer": {"username": consumer}} if consumer else {}),
            "start_time": round((time.time() - seconds) * 1000),
            **{name: round(value * 1000, 3) for name, value in latencies.items()},
            "upstream": request.upstream_address,
            "request": {
                "method": request.method,
                "uri": request.original_target,
                "url": f"{request.scheme}://{request.host}:{request.port}{request.original_target}",
                "querystring": dict(parse_qsl(request.original_query, keep_blank_values=True)),
                "headers": _headers_of(request),
                "size": request.content_length or 0,
            },
            "response": {
                "status": status,
                "headers": {name.lower(): value for name, value in seen.headers or ()},
                "size": request.bytes_sent,
            },
            "server": {"hostname": HOSTNAME, "version": "headgate"},
        }


def as_json(value: object) -> bytes:
    """Write JSON without spaces, on one line. Characters of bodies that UTF-8 has no bytes for become `?`."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "replace")


def original_text(request: Request, *, with_body: bool) -> str:
    """Return a request as text: its line, its head, and its body as far as a logger has read it."""
    lines = [f"{request.method} {request.original_target} HTTP/{request.http_version}"]
    lines += [f"{name}: {value}" for name, value in _headers_of(request).items()]
    body = request.variables.get("request_body") if with_body else None
    return "\r\n".join([*lines, "", body if isinstance(body, str) else ""])


def _headers_of(request: Request) -> dict[str, str]:
    """Return a request's fields by their names in lower case, with those that plugins see elsewhere."""
    length = {"content-length": str(request.content_length)} if request.content_length else {}
    return {"host": request.authority, **length, **{name.lower(): value for name, value in request.headers}}


class _Seen:
    """What a logger noted of one request. The upstream's times are seconds since the logger's turn had come."""

    __slots__ = ("_clock", "_sent_at", "body_s", "head_s", "headers")

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self.headers: Headers | None = None
        """Of the answer."""
        self.head_s: float | None = None
        """Until the upstream's answer began, or it was clear that it has none; None if it was not asked."""
        self.body_s: float | None = None
        """Until that ended."""
        self.sent()

    def sent(self) -> None:
        """Begin to count: the request goes on."""
        self._sent_at = self._clock()

    def answered(self) -> None:
        """Note the beginning of the upstream's answer; perhaps it is all of it."""
        self.head_s = self.body_s = self._clock() - self._sent_at

    def ended(self) -> None:
        """Note the end of an answer that has begun."""
        if self.head_s is not None:
            self.body_s = self._clock() - self._sent_at


class _Noting(BodyFilter):
    """Lets the body pass, notes its end, and keeps its beginning if it has where."""

    keeps_length = True

    def __init__(self, seen: _Seen, kept: bytearray | None, limit: int) -> None:
        self._seen = seen
        self._kept = kept
        self._limit = limit

    def feed(self, data: bytes) -> bytes:
        if self._kept is not None and len(self._kept) < self._limit:
            self._kept += data[: self._limit - len(self._kept)]
        return data

    def finish(self) -> bytes:
        self._seen.ended()
        return b""


def _compile(written: Any) -> _Value:
    """Compile a format: texts are templates, at any depth."""
    if isinstance(written, dict):
        return _compile_object(written)
    if isinstance(written, list):
        members = [_compile(value) for value in written]
        return lambda request: [value(request) for value in members]
    if isinstance(written, str):
        return Template(written).render
    return lambda request: written


def _compile_object(written: dict[str, Any]) -> _Object:
    inner = {name: _compile(value) for name, value in written.items()}
    return lambda request: {name: value(request) for name, value in inner.items()}


def _note_end(request: Request, seconds: float, seen: _Seen) -> None:
    """Put into variables what only loggers know when a request has ended."""
    response_time = _seconds(seen.body_s)
    request.variables.update(
        {
            "upstream_header_time": _seconds(seen.head_s),
            "upstream_response_time": response_time,
            "apisix_upstream_response_time": response_time,
            "request_time": f"{seconds:.3f}",
        }
    )


def _seconds(value: float | None) -> str:
    """Write a time as nginx does; `-` where there was none."""
    return "-" if value is None else f"{value:.3f}"
