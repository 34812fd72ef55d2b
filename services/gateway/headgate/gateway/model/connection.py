"""How connections to an endpoint are opened and kept."""

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import ssl


class FastCgiSettings(NamedTuple):
    """What applications are told by FastCGI beside the request."""

    script: str = ""
    """Name of the script of paths that end with a slash."""
    params: tuple[tuple[str, str], ...] = ()
    """Parameters, with variables of nginx in their values; they go before the usual ones."""


class ConnectionSpec(NamedTuple):
    """Endpoints with equal address, port and spec share their connections, whatever upstreams name them."""

    protocol: str = "http"
    """`http`, `https`, `h2c`, `h2` or `fcgi`; streams have others."""
    tls: "ssl.SSLContext | None" = None
    """None: plain."""
    server_name: str | None = None
    """Sent as SNI and compared; None: the endpoint's address."""
    host: str | None = None
    """Sent as Host instead of the client's; empty: the endpoint's own address."""
    proxy_protocol: int = 0
    """Version of the header that every connection begins with. Such a connection is one client's, and not kept."""
    max_idle: int | None = None
    """Connections kept at rest; None: the proxy's own number."""
    idle_timeout_s: float | None = None
    max_requests: int | None = None
    """Of one connection."""
    name: str = ""
    """DNS name that the endpoint's address was found under."""
    connection_line: bytes = b""
    """Header line of HTTP/1.1 requests, with its CRLF, that says whether the connection is kept."""
    is_hop: bool = False
    """A gateway of another cluster, which gets requests as they came."""
    fastcgi: FastCgiSettings = FastCgiSettings()
    """For `fcgi`."""


PLAIN = ConnectionSpec()
