"""Listeners: addresses and ports on which gateways accept connections, and which virtual hosts are asked there.

A gateway's own HTTP and HTTPS ports are the listeners `http` and `https`, which exist in every table. An entry with one
of these keys configures it. Virtual hosts name their listeners, so that a route in ten of them is stored once.
"""

from typing import Final, Literal, Self

from pydantic import Field, model_validator

from headgate.common.table.base import Entry, Provenance
from headgate.common.table.hosts import ANY_HOST, HostPattern
from headgate.common.table.plugin_use import PluginUse
from headgate.common.table.sending import Timeouts
from headgate.common.table.tls import TlsPolicy

HTTP_LISTENER: Final = "http"
HTTPS_LISTENER: Final = "https"
OWN_LISTENERS: Final = (HTTP_LISTENER, HTTPS_LISTENER)
LISTENER_KEY: Final = r"^[^\s@,|]+$"

ListenerProtocol = Literal["http", "https", "tls", "tcp", "udp"]
HostOrder = Literal["host-first", "rank-first"]


class ListenerDefaults(Entry):
    """What holds for routes on a listener that do not say it themselves."""

    plugins: tuple[PluginUse, ...] = ()
    """For routes without one of the same name."""
    max_body: int | None = Field(default=None, ge=0)
    """Bytes of a request's body (413)."""
    timeouts: Timeouts = Timeouts()


class HttpsRedirect(Entry):
    """Where requests over plain HTTP are sent."""

    port: int = Field(default=443, ge=1, le=65535)
    status: Literal[301, 302, 303, 307, 308] | None = None
    """None: 301 for GET and HEAD, 308 for other methods."""
    keep_method: bool = False
    """With 301 and 302: methods other than GET get 308 and 307, as Traefik has it."""


class ClientConnections(Entry):
    """How connections of clients are treated on a port. None leaves the gateway's own setting of this name in force."""

    real_ip_header: str | None = Field(default=None, pattern=r"^[A-Za-z0-9-]+$", max_length=128)
    """In which trusted peers name the client."""
    forwarded_address: bool | None = None
    """Whether this header of trusted peers is believed. PROXY headers are in any case."""
    forwarded_headers: bool | None = None
    """Whether `X-Forwarded-Proto`, `-Host` and `-Port` of trusted peers are believed and passed on."""
    full_forwarded_for: bool | None = None
    """Whether upstreams of routes with `nginx_headers` get all of a trusted peer's `X-Forwarded-For`, with the peer's
    address behind it, and not only the client's address."""
    append_forwarded_for: bool | None = None
    """Whether upstreams of routes with `as_traefik` get the peer's address at the end of `X-Forwarded-For`."""
    forwarded_scheme: bool | None = None
    """Whether these get `X-Scheme` and `X-Forwarded-Scheme` too."""
    encode_semicolons: bool | None = None
    """Whether these get `;` in queries as `%3B`, instead of as `&`."""
    header_timeout_s: float | None = Field(default=None, gt=0, le=3600)
    body_timeout_s: float | None = Field(default=None, gt=0, le=3600)
    idle_timeout_s: float | None = Field(default=None, gt=0, le=3600)
    keep_alive_requests: int | None = Field(default=None, ge=1)
    keep_alive_time_s: float | None = Field(default=None, gt=0, le=30 * 24 * 3600)
    """How old a connection of HTTP/1 may be when a request comes, before it is closed behind the answer."""
    max_head: int | None = Field(default=None, ge=1024, le=1024 * 1024)
    """Bytes of a request's head (431)."""
    max_streams: int | None = Field(default=None, ge=1, le=1024)
    """Requests at once on one connection of HTTP/2."""
    underscore_names: Literal["allow", "drop", "refuse"] | None = None
    """What becomes of request headers with `_` in their names."""


class AccessLogFormat(Entry):
    """Lines of the access log."""

    format: str = Field(min_length=1, max_length=8192)
    """A line with nginx's variables; one that gateways do not know is written as one without a value."""
    escape: Literal["default", "json", "none"] = "default"
    """How values are written, as nginx's `log_format` has it."""


class Listener(Entry):
    """What is accepted on one port for one host pattern.

    Several listeners may share an address and port. A request belongs to the one among them whose host pattern takes
    its host most specifically, and is matched by routes of this listener only; without such a listener it is a 404.
    """

    key: str = Field(pattern=LISTENER_KEY)
    """Unique in the table."""
    address: str = ""
    """That is listened on; empty is that of the gateway's own ports."""
    further_addresses: tuple[str, ...] = ()
    """On which it listens besides, all with the port."""
    port: int = Field(default=0, ge=0, le=65535)
    """0: the gateway's own port of the protocol, `http` or `https`, whatever its number is."""
    protocol: ListenerProtocol
    """Ports of `tls`, `tcp` and `udp` are opened for `StreamRoute` entries, which name them or this listener; such a
    listener opens none."""
    host: HostPattern = ANY_HOST
    host_order: HostOrder = "host-first"
    """`host-first`: the host decides, then the routes of that host by rank. `rank-first`: of all routes whose host
    takes the request's the one with the best rank wins, whatever it says of hosts (Traefik)."""
    tls: TlsPolicy | None = None
    """For server names whose virtual host has no policy; its client validation also for those whose policy has none."""
    certificates: tuple[str, ...] = ()
    """Keys of `Certificate` entries, of which one is presented: for the server name, else the first. None: those of all
    the table by server name."""
    proxy_protocol: bool | None = None
    """Connections of trusted peers begin with a PROXY header; None leaves the gateway's own setting in force. Of
    several listeners on one port the first by key that says so decides, the gateway's own before others."""
    trusted_proxies: tuple[str, ...] | None = None
    """Networks (CIDR) of peers whose PROXY headers, `X-Forwarded-*` and the like are believed; None leaves the
    gateway's own settings in force. Of several listeners on one port as `proxy_protocol`."""
    connections: ClientConnections = ClientConnections()
    """Of several listeners on one port as `proxy_protocol`, and so is `access_log`."""
    access_log: AccessLogFormat | None = None
    """Of a gateway whose access log is lines, or JSON; None leaves its own format in force."""
    https_redirect: HttpsRedirect | None = None
    """All requests over plain HTTP are redirected, whatever routes there are. Those that a trusted proxy has got over
    HTTPS are not."""
    defaults: ListenerDefaults = ListenerDefaults()
    provenance: Provenance

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.key in OWN_LISTENERS and (self.protocol != self.key or self.port or self.address):
            raise ValueError(f"{self.key} is the gateway's own listener: protocol {self.key}, no address and no port")
        if self.further_addresses and not self.address:
            raise ValueError("further_addresses are besides an address")
        if not self.port and (self.protocol not in OWN_LISTENERS or self.address):
            raise ValueError("port 0 is the gateway's own: of http and https, without an address")
        if (self.tls is not None or self.certificates) and self.protocol not in ("https", "tls"):
            raise ValueError(f"tls and certificates are for https and tls, not for {self.protocol}")
        if self.https_redirect is not None and self.protocol != "http":
            raise ValueError(f"https_redirect is for http, not for {self.protocol}")
        return self


_OWN: Final = Provenance(cluster="", kind="Gateway", namespace="", name="own")


def own_listener(key: str) -> Listener:
    """Return one of the gateway's own listeners as it is without an entry."""
    return Listener.model_validate({"key": key, "protocol": key, "provenance": _OWN})
