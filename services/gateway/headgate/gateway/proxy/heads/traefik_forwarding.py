"""What upstreams of Traefik's routes hear of a request's origin, written as Traefik's entry points write it.

The other dialects name the client that trusted proxies name, and the port that it connected to. Traefik names the peer,
fills in what a trusted peer does not say, and takes the port from the host (its `pkg/middlewares/forwardedheaders`).
"""

import socket
from typing import TYPE_CHECKING, Final

from headgate.gateway.proxy.heads.head import RequestFields

if TYPE_CHECKING:
    from headgate.gateway.proxy.config import ProxyConfig
    from headgate.gateway.proxy.peer import Peer

_SERVER: Final = socket.gethostname().encode("ascii", "replace") or b"localhost"
_NO_CLAIMS: Final[dict[bytes, bytes]] = {}
_SECURE: Final = frozenset({b"https", b"wss"})
_WRITTEN: Final = frozenset(
    {
        b"x-forwarded-for",
        b"x-forwarded-host",
        b"x-forwarded-port",
        b"x-forwarded-proto",
        b"x-forwarded-server",
        b"x-real-ip",
    }
)


def traefik_lines(fields: RequestFields, peer: "Peer", config: "ProxyConfig") -> bytes:
    """Build these lines; `peer` is who is connected."""
    claims = fields.forwarded if fields.passes_claims else _NO_CLAIMS
    is_secure = peer.scheme == b"https"
    scheme = b"" if peer.names_https else claims.get(b"x-forwarded-proto", b"")
    if not scheme:
        kind = b"ws" if fields.wants_websocket else b"http"
        scheme = kind + b"s" if is_secure else kind
    port = claims.get(b"x-forwarded-port", b"") or _port(fields.host_line)
    if not port:
        port = b"443" if is_secure or scheme in _SECURE else b"80"
    lines = b"X-Forwarded-Port: %b\r\nX-Forwarded-Proto: %b\r\nX-Forwarded-Server: %b\r\nX-Real-Ip: %b\r\n" % (
        port,
        scheme,
        _SERVER,
        claims.get(b"x-real-ip", b"") or peer.address,
    )
    host = claims.get(b"x-forwarded-host", b"") or fields.host_line
    if host:
        lines += b"X-Forwarded-Host: %b\r\n" % host
    chain = claims.get(b"x-forwarded-for", b"")
    if config.append_forwarded_for:
        chain = b"%b, %b" % (chain, peer.address) if chain else peer.address
    if chain:
        lines += b"X-Forwarded-For: %b\r\n" % chain
    if config.forwarded_scheme:
        lines += b"X-Forwarded-Scheme: %b\r\nX-Scheme: %b\r\n" % (scheme, scheme)
    for name, value in claims.items():
        if b"_" in name or name in _WRITTEN or (config.forwarded_scheme and name in _SCHEMES):
            # Servers that take `_` for `-` would read a client's name for one of the above.
            continue
        if value:
            lines += b"%b: %b\r\n" % (name, value)
    return lines


_SCHEMES: Final = frozenset({b"x-forwarded-scheme", b"x-scheme"})


def _port(authority: bytes) -> bytes:
    """Return the port of an authority that was checked; empty if it has none."""
    host, colon, port = authority.rpartition(b":")
    return port if colon and (host.endswith(b"]") or b":" not in host) else b""
