"""What a service of Envoy's external authorization is told of a request: a `CheckRequest`.

Envoy fills it as follows (its documentation of `AttributeContext`): headers by their names in lower case, those of a
name joined, with the pseudo headers of HTTP/2 whatever the client speaks; the path with its query; an unknown size as
-1. Text on the wire is ISO 8859-1 here; in messages it has to be UTF-8, so bytes that are none are replaced, and a body
of such bytes is `raw_body`.
"""

import time
from collections.abc import Iterator
from typing import Any, Final

from headgate.common.plugins.authentication.ext_authz import ExtAuthzConfig
from headgate.gateway.plugins.built_in.authentication.ext_authz.messages import messages
from headgate.gateway.plugins.interface import Request

_VERSIONS: Final = {"2.0": "2"}


def check_request(request: Request, config: ExtAuthzConfig, body: bytes | None) -> bytes:
    """Return the message; `body` is None where the service is shown none."""
    message = messages().request()
    attributes = message.attributes
    _fill_peer(attributes.source, request.client, request.fact("remote_port"))
    _fill_peer(attributes.destination, request.fact("server_addr"), str(request.port))
    server_name = request.fact("ssl_server_name")
    if server_name:
        attributes.tls_session.sni = server_name
    now = time.time()
    attributes.request.time.seconds = int(now)
    attributes.request.time.nanos = int(now % 1 * 1e9)
    _fill_http(attributes.request.http, request, config, body)
    found: bytes = message.SerializeToString()
    return found


def _fill_peer(peer: Any, address: str, port: str) -> None:
    if address:
        peer.address.socket_address.address = address
    if port.isdecimal():
        peer.address.socket_address.port_value = int(port)


def _fill_http(http: Any, request: Request, config: ExtAuthzConfig, body: bytes | None) -> None:
    http.id = request.id
    http.method = request.method
    http.path = _utf8(request.target)
    http.host = _utf8(request.authority)
    http.scheme = request.scheme
    http.protocol = f"HTTP/{_VERSIONS.get(request.http_version, request.http_version)}"
    http.size = -1 if request.content_length is None else request.content_length
    shown = {name.lower() for name in config.request_headers}
    for name, value in _headers(request, has_body=body is not None).items():
        if not shown or name in shown:
            http.headers.add(key=name, value=_utf8(value))
    if body is not None:
        try:
            http.body = body.decode()
        except UnicodeDecodeError:
            http.raw_body = body


def _headers(request: Request, *, has_body: bool) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in _fields(request):
        lower = name.lower()
        joint = "; " if lower == "cookie" else ","
        found[lower] = f"{found[lower]}{joint}{value}" if lower in found else value
    if has_body:
        found["x-envoy-auth-partial-body"] = "false"
    return found


def _fields(request: Request) -> Iterator[tuple[str, str]]:
    yield ":authority", request.authority
    yield ":method", request.method
    yield ":path", request.target
    yield ":scheme", request.scheme
    if request.content_length:
        yield "content-length", str(request.content_length)
    yield "x-request-id", request.id
    yield from request.headers


def _utf8(text: str) -> str:
    """Return text of the wire as that of UTF-8 that it most likely is."""
    return text if text.isascii() else text.encode("latin-1", "replace").decode("utf-8", "replace")
