"""What loggers say of a request: all that Apache APISIX says, or what a format asks for."""

import json
import socket
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final, TypeVar
from urllib.parse import parse_qsl

from headgate.common.plugins.loggers import LoggerConfig
from headgate.gateway.plugins.conditions import compile_expressions
from headgate.gateway.plugins.interface import BodyFilter, BodyTooLarge, Plugin, PluginServices, Request, Response
from headgate.gateway.plugins.patterns import Template
from headgate.gateway.plugins.variables import variable

MAX_BODY: Final = 1 << 20
"""Bytes of a request's body that is waited for; a longer one is not logged."""
_HOST: Final = socket.gethostname()

C = TypeVar("C", bound=LoggerConfig)
_Value = Callable[[Request], Any]


class LoggerPlugin(Plugin[C]):
    """Base of all loggers: makes an entry of each request that has ended, and hands it to `write`."""

    answer_order = 100_000

    def __init__(self, config: C, services: PluginServices) -> None:
        super().__init__(config, services)
        self._format = _compile(config.log_format) if config.log_format is not None else None
        self._takes_request = compile_expressions(config.include_req_body_expr)
        self._takes_response = compile_expressions(config.include_resp_body_expr)
        self._place = f"log.{id(self)}"

    def write(self, entry: bytes, request: Request) -> None:
        """Take an entry in JSON."""
        raise NotImplementedError

    def on_request(self, request: Request) -> Any:
        """Wait for the body, if it is to be logged."""
        config = self.config
        if not config.include_req_body or request.content_length == 0:
            return None
        if self._takes_request is not None and not self._takes_request(request, None):
            return None
        return self._read_body(request)

    async def _read_body(self, request: Request) -> None:
        try:
            body = await request.read_body(MAX_BODY)
        except BodyTooLarge:
            return
        request.variables["request_body"] = body[: self.config.max_req_body_bytes].decode("utf-8", "replace")

    def on_response(self, request: Request, response: Response) -> None:
        """Note the head."""
        request.variables[self._place] = response.headers

    def body_filter(self, request: Request, response: Response) -> BodyFilter | None:
        """Note the body, if it is to be logged."""
        if not self.config.include_resp_body:
            return None
        if self._takes_response is not None and not self._takes_response(request, response):
            return None
        return _Noting(request, self.config.max_resp_body_bytes)

    def on_finish(self, request: Request, status: int, seconds: float) -> None:
        """Make the entry."""
        _note_end(request, status, seconds)
        kept = request.variables.get("response_body")
        if isinstance(kept, bytearray):
            request.variables["response_body"] = kept.decode("utf-8", "replace")
        entry = self._full(request, status, seconds) if self._format is None else self._format(request)
        for name, variable_name in (("request", "request_body"), ("response", "response_body")):
            body = request.variables.get(variable_name)
            if body is not None and isinstance(entry, dict):
                within = entry.setdefault(name, {})
                if isinstance(within, dict):
                    within["body"] = body
        self.write(json.dumps(entry, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "replace"), request)

    def _full(self, request: Request, status: int, seconds: float) -> dict[str, Any]:
        answer = request.variables.get(self._place)
        return {
            "client_ip": request.client,
            "route_id": request.route,
            "consumer": {"username": variable(request, "consumer_name") or ""},
            "start_time": round((time.time() - seconds) * 1000),
            "latency": round(seconds * 1000, 3),
            "upstream": request.upstream_address,
            "request": {
                "method": request.method,
                "uri": request.original_target,
                "url": f"{request.scheme}://{request.authority}{request.original_target}",
                "querystring": dict(parse_qsl(request.original_query, keep_blank_values=True)),
                "headers": {name.lower(): value for name, value in request.headers},
                "size": request.content_length or 0,
            },
            "response": {
                "status": status,
                "headers": {name.lower(): value for name, value in answer or ()},  # type: ignore[attr-defined]
                "size": request.bytes_sent,
            },
            "server": {"hostname": _HOST, "version": "headgate"},
        }


class _Noting(BodyFilter):
    """Lets the body pass and keeps its beginning."""

    keeps_length = True

    def __init__(self, request: Request, limit: int) -> None:
        self._kept = request.variables["response_body"] = bytearray()
        self._limit = limit

    def feed(self, data: bytes) -> bytes:
        if len(self._kept) < self._limit:
            self._kept += data[: self._limit - len(self._kept)]
        return data


def _compile(written: Any) -> _Value:
    """Compile a format: texts are templates, at any depth."""
    if isinstance(written, dict):
        inner = {name: _compile(value) for name, value in written.items()}
        return lambda request: {name: value(request) for name, value in inner.items()}
    if isinstance(written, list):
        members = [_compile(value) for value in written]
        return lambda request: [value(request) for value in members]
    if isinstance(written, str):
        return Template(written).render
    return lambda request: written


def _note_end(request: Request, status: int, seconds: float) -> None:
    """Put into variables what is known when a request has ended, under nginx' names."""
    now = datetime.now(UTC)
    request.variables.update(
        {
            "status": str(status),
            "request_time": f"{seconds:.3f}",
            "body_bytes_sent": str(request.bytes_sent),
            "bytes_sent": str(request.bytes_sent),
            "upstream_addr": request.upstream_address,
            "upstream_status": str(request.upstream_status) if request.upstream_status else "",
            "time_iso8601": now.strftime("%Y-%m-%dT%H:%M:%S+00:00"),
            "time_local": now.strftime("%d/%b/%Y:%H:%M:%S +0000"),
            "msec": f"{now.timestamp():.3f}",
            "hostname": _HOST,
        }
    )
