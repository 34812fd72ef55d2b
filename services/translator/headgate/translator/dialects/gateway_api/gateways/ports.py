"""Ports of listeners.

Ports 80 for HTTP and 443 for HTTPS stand for the gateways' own ports, whatever numbers these have: a Service or a load
balancer in front of the gateways has these. Any other port is opened, by one listener of the table for all Gateways
that name it.

On addresses of a Gateway's own every port is opened under its number, and is the Gateway's alone.
"""

from collections.abc import Iterable
from typing import Final, Literal

from headgate.common.table import HTTP_LISTENER, HTTPS_LISTENER, Listener, Provenance
from headgate.translator.world.entry_points import EntryPoint

Transport = Literal["http", "https"]
"""Of requests."""
StreamTransport = Literal["tls", "tcp", "udp"]
TRANSPORTS: Final[dict[str, Transport | StreamTransport]] = {
    "HTTP": "http",
    "HTTPS": "https",
    "TLS": "tls",
    "TCP": "tcp",
    "UDP": "udp",
}
"""By the protocol of a listener: the protocols that are served."""
_OWN: Final = {("http", 80): HTTP_LISTENER, ("https", 443): HTTPS_LISTENER}
_HTTPS_PORT: Final = 443


def listener_key(transport: Transport | StreamTransport, port: int) -> str:
    """Return the key of the table's listener for a port."""
    return _OWN.get((transport, port)) or f"gateway-api/{transport}:{port}"


def port_listener(transport: Transport, port: int, provenance: Provenance) -> Listener | None:
    """Return the table's listener for a port; None for the gateways' own, which are there in any case."""
    if (transport, port) in _OWN:
        return None
    return Listener(key=listener_key(transport, port), port=port, protocol=transport, provenance=provenance)


def stream_port(transport: StreamTransport, port: int) -> int:
    """Return a port as stream routes name it: 0 is the gateways' own one for HTTPS, which TLS shares by server name."""
    return 0 if (transport, port) == ("tls", _HTTPS_PORT) else port


def why_unavailable(transport: Transport | StreamTransport, port: int, entry_points: Iterable[EntryPoint]) -> str:
    """Say why a port cannot be had; empty if it can."""
    spoken = "https" if transport == "tls" else transport
    for (own, number), _ in _OWN.items():
        if number == port and own != spoken and transport != "udp":
            return f"port {port} is the gateways' port for {own.upper()}; name another one"
    for point in entry_points:
        if point.port == port and point.protocol == ("udp" if transport == "udp" else "tcp"):
            return f"port {port} is that of the entry point {point.name} of the setting entrypoints; name another one"
    return ""
