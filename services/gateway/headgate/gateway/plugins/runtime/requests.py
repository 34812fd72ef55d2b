"""Requests of the proxy as plugins see them."""

import base64
from typing import TYPE_CHECKING

from headgate.gateway.plugins.interface.headers import Headers
from headgate.gateway.plugins.interface.messages import Request
from headgate.gateway.plugins.interface.sources import BodySource, Wire
from headgate.gateway.proxy.heads.facts import QUESTION_MARK
from headgate.gateway.proxy.peer import Peer

if TYPE_CHECKING:
    from headgate.gateway.proxy.exchange.active_request import ActiveRequest


def fact_of(peer: Peer, name: str, *, is_client: bool) -> str:
    """Return what a connection knows; see `Wire.fact`. `is_client`: it is the client's own."""
    addresses, tls = peer.addresses, peer.tls
    if name == "peer_addr":
        return peer.address.decode("latin-1")
    if name == "ssl_protocol":
        return (tls.version() or "") if tls is not None else ""
    if name == "ssl_server_name":
        return tls.server_name if tls is not None else ""
    if name == "client_certificate":
        return "".join(tls.identity.pem.splitlines()[1:-1]) if tls is not None else ""
    if name == "client_certificates":
        return ",".join([base64.b64encode(each).decode() for each in tls.chain]) if tls is not None else ""
    if addresses is None:
        return ""
    if name == "server_addr":
        return addresses.destination[0]
    if name == "peer_port" or (name == "remote_port" and is_client):
        return str(addresses.source[1])
    return ""


def request_of(exchange: "ActiveRequest", source: BodySource | None = None, wire: Wire | None = None) -> Request:
    """Return a request as plugins see it; its body comes from `source`, without one there is none.

    What `wire` knows it has besides.
    """
    fields, origin = exchange.fields, exchange.origin
    lines, shape = exchange.lines_to_send()
    path, query = exchange.target, b""
    if QUESTION_MARK in path:
        path, _, query = path.partition(b"?")
    host, route = fields.host.decode("latin-1"), exchange.route
    length: int | None = 0
    if fields.chunked:
        length = None
    elif fields.content_length > 0:
        length = fields.content_length
    return Request(
        method=exchange.method.decode("latin-1"),
        scheme="https" if origin.scheme == b"https" else "http",
        host=host,
        authority=host if fields.host_line == fields.host else fields.host_line.decode("latin-1"),
        port=origin.port_number,
        path=path.decode("latin-1"),
        query=query.decode("latin-1"),
        headers=Headers.from_lines(lines, shape),
        client=exchange.client_address,
        request_id=exchange.request_id.decode("latin-1"),
        route=route.name if route is not None else "",
        upstreams=route.upstream_label if route is not None else "",
        content_length=length,
        source=source,
        wire=wire,
        is_id_given=bool(fields.request_id),
        http_version=exchange.client.version.decode("latin-1"),
        claims=fields.forwarded,
        forwarded_host=fields.forwarded_host.decode("latin-1"),
    )
