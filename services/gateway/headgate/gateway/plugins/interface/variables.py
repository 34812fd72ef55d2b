"""Values of a request by name, for templates and keys: the names of nginx and Apache APISIX.

`http_<name>`, `arg_<name>` and `cookie_<name>` look at a header (with `_` for `-`), a query parameter (the first, as it
stands) and a cookie, `sent_http_<name>` and `upstream_http_<name>` at the answer's headers as they go out and as they
came, `post_arg.<path>` at a field of the body; the others are in the table below. What plugins put into
`request.variables` goes first. `headgate.common.plugins.variables` says from when on each is known.
"""

import socket
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final
from urllib.parse import quote, unquote_plus

from headgate.common.plugins.variables import field_of_body
from headgate.gateway.plugins.interface.headers import Headers
from headgate.gateway.plugins.interface.messages import Request
from headgate.gateway.proxy.heads.body_fields import BodyFields, has_fields

HOSTNAME: Final = socket.gethostname()
_FIELDS: Final = "variables.body"
"""Variable of a request that keeps what was read of its body."""


def _line_of(request: Request) -> str:
    return f"{request.method} {request.original_target} HTTP/{request.http_version}"


def _status_of(request: Request) -> str:
    response = request.response
    status = request.final_status or (response.status if response is not None else 0)
    return str(status) if status else ""


def _time(form: str) -> str:
    return datetime.now(UTC).strftime(form)


_OF_REQUEST: dict[str, Callable[[Request], str]] = {
    "apisix_request_id": lambda request: request.id,
    "args": lambda request: request.query,
    "balancer_ip": lambda request: request.endpoint.rpartition(":")[0].strip("[]"),
    "balancer_port": lambda request: request.endpoint.rpartition(":")[2],
    "best_http_host": lambda request: request.forwarded_host or request.authority,
    "body_bytes_sent": lambda request: str(request.bytes_sent),
    "bytes_sent": lambda request: str(request.bytes_sent),
    "content_length": lambda request: str(request.content_length or ""),
    "content_type": lambda request: request.headers.get("Content-Type") or "",
    "document_uri": lambda request: request.path,
    "escaped_request_uri": lambda request: quote(request.original_target, safe=""),
    "host": lambda request: request.host,
    "hostname": lambda request: HOSTNAME,
    "http_host": lambda request: request.authority,
    "http_x_request_id": lambda request: request.id,
    "https": lambda request: "on" if request.scheme == "https" else "",
    "is_args": lambda request: "?" if request.query else "",
    "method": lambda request: request.method,
    "msec": lambda request: f"{time.time():.3f}",
    "opentelemetry_trace_id": lambda request: request.fact("trace_id"),
    "original_x_forwarded_for": lambda request: request.claims.get(b"x-forwarded-for", b"").decode("latin-1"),
    "pass_access_scheme": lambda request: request.scheme,
    "query_string": lambda request: request.query,
    "real_request_uri": lambda request: request.original_target,
    "realip_remote_addr": lambda request: request.fact("peer_addr") or request.client,
    "realip_remote_port": lambda request: request.fact("peer_port"),
    "remote_addr": lambda request: request.client,
    "remote_port": lambda request: request.fact("remote_port"),
    "request": _line_of,
    "request_id": lambda request: request.id,
    "request_length": lambda request: request.fact("request_length"),
    "request_line": _line_of,
    "request_method": lambda request: request.method,
    "request_uri": lambda request: request.original_target,
    "route_id": lambda request: request.route,
    "route_name": lambda request: request.route,
    "scheme": lambda request: request.scheme,
    "server_addr": lambda request: request.fact("server_addr"),
    "server_name": lambda request: request.host,
    "server_port": lambda request: str(request.port),
    "server_protocol": lambda request: f"HTTP/{request.http_version}",
    "service_id": lambda request: request.upstreams,
    "service_name": lambda request: request.upstreams,
    "ssl_protocol": lambda request: request.fact("ssl_protocol"),
    "ssl_server_name": lambda request: request.fact("ssl_server_name"),
    "status": _status_of,
    "time_iso8601": lambda request: _time("%Y-%m-%dT%H:%M:%S+00:00"),
    "time_local": lambda request: _time("%d/%b/%Y:%H:%M:%S +0000"),
    "upstream_addr": lambda request: request.endpoint,
    "upstream_host": lambda request: request.upstream_host or request.authority,
    "upstream_status": lambda request: str(request.upstream_status or ""),
    "upstream_uri": lambda request: request.target,
    "uri": lambda request: request.path,
}
SET_BY_PLUGINS: Final = frozenset(
    (
        "apisix_upstream_response_time",
        "consumer_group_id",
        "consumer_name",
        "jwt_auth_payload",
        "llm_completion_tokens",
        "llm_model",
        "llm_prompt_tokens",
        "llm_stream",
        "llm_time_to_first_token",
        "llm_total_tokens",
        "remote_user",
        "request_body",
        "request_llm_model",
        "request_time",
        "request_type",
        "resp_body",
        "response_body",
        "upstream_header_time",
        "upstream_response_time",
    )
)
"""Those that are in `request.variables`, if they are anything."""


def variable(request: Request, name: str) -> str | None:
    """Return a variable's value; None if the request has none, or if there is no such variable."""
    own = request.variables.get(name)
    if isinstance(own, str):
        return own
    read = _OF_REQUEST.get(name)
    if read is not None:
        return read(request)
    if name.startswith("http_"):
        return request.headers.get(name[5:].replace("_", "-"))
    if name.startswith("arg_"):
        return query_value(request.query, name[4:])
    if name.startswith("cookie_"):
        return cookie_value("; ".join(request.headers.get_all("Cookie")), name[7:])
    if name.startswith("sent_http_"):
        response = request.response
        return response.headers.get(name[10:].replace("_", "-")) if response is not None else None
    if name.startswith("upstream_http_"):
        return request.upstream_headers().get(name[14:].replace("_", "-"))
    if name.startswith("post_arg"):
        field = field_of_body(name)
        return body_fields(request).first(field) if field is not None else None
    return None


def table_names() -> frozenset[str]:
    """Return the variables that a request has by itself."""
    return frozenset(_OF_REQUEST)


def body_fields(request: Request) -> BodyFields:
    """Return the fields of a request's body, none if it was not read; parsed again if a plugin has replaced it."""
    body = request.body or b""
    kept = request.variables.get(_FIELDS)
    if isinstance(kept, tuple) and kept[0] is body:
        known: BodyFields = kept[1]
        return known
    fields = BodyFields(body_type(request), body)
    request.variables[_FIELDS] = (body, fields)
    return fields


def body_type(request: Request) -> bytes:
    """Return the type of the body; of several the one that has fields, as an upstream may go by any of them."""
    given = [each.encode("latin-1") for each in request.headers.get_all("Content-Type")]
    return next(filter(has_fields, given), given[0] if given else b"")


def query_value(query: str, name: str) -> str | None:
    """Return the first value of a query parameter as it stands, not decoded."""
    for part in query.split("&"):
        key, _, value = part.partition("=")
        if key == name:
            return value
    return None


def without_query_value(query: str, name: str) -> str:
    """Return a query without a parameter, however its name is escaped: an upstream decodes it."""
    return "&".join(part for part in query.split("&") if name not in _readings(part.partition("=")[0]))


def _readings(key: str) -> tuple[str, ...]:
    return (key, unquote_plus(key)) if "%" in key or "+" in key else (key,)


def cookie_value(cookies: str, name: str) -> str | None:
    """Return the first cookie of a name in a Cookie header."""
    for part in cookies.split(";"):
        key, _, value = part.strip(" \t").partition("=")
        if key == name:
            return value
    return None


def without_cookie(headers: Headers, name: str) -> None:
    """Take a cookie out of a head; the Cookie header too where nothing is left in it."""
    parts = [part.strip(" \t") for part in ";".join(headers.get_all("Cookie")).split(";")]
    left = [part for part in parts if part and part.partition("=")[0] != name]
    if left:
        headers.set("Cookie", "; ".join(left))
    else:
        headers.remove("Cookie")
