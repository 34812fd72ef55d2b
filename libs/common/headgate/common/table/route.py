"""What happens to a request: hosts, their routes, and the policies of a route."""

from typing import Annotated, Any, Literal

from pydantic import AliasChoices, BeforeValidator, Field

from headgate.common.table.backend import Backend
from headgate.common.table.base import Entry, Provenance
from headgate.common.table.hosts import HostKey, HostPattern
from headgate.common.table.listener import LISTENER_KEY
from headgate.common.table.match import Condition, PathMatch
from headgate.common.table.mirror import Mirror
from headgate.common.table.plugin_use import PluginUse
from headgate.common.table.rank import Rank, RouteRank
from headgate.common.table.sending import Retries, Stickiness, Timeouts
from headgate.common.table.tls import TlsPolicy
from headgate.common.table.tracing import RouteTracing, Tracing

ListenerKey = Annotated[str, Field(pattern=LISTENER_KEY)]


class Canary(Entry):
    """A backend that some requests go to before the split is asked. The first canary that takes a request has it."""

    upstream: str
    when: Condition | None = None
    """Requests that always go there."""
    unless: Condition | None = None
    """Requests that never do; looked at after `when`."""
    share: float = Field(default=0.0, ge=0, le=1)
    """Of the requests for which neither decides."""
    needs_main: bool = False
    """Whether it takes requests only while a backend of the route has an endpoint."""
    keeps_sessions: bool = True
    """Whether a client that it served keeps to it by the route's `stickiness`; if not, it gives no cookies."""


class Route(Entry):
    """What happens to the requests of one host that match.

    Of the routes of a virtual host that match a request the first in this order wins: higher `rank.priority`; exact
    path, then regex, then prefixes; longer path; of equal paths the other fields of `rank`, in their order; position
    in the host. Of patterns of one length position alone decides.
    """

    name: str
    """Unique within the virtual host and stable over revisions."""
    path: PathMatch
    when: Condition | None = None
    """What a request has to satisfy besides its path."""
    rank: RouteRank = Rank()
    backends: tuple[Backend, ...] = ()
    """None: some plugin answers every request."""
    canaries: tuple[Canary, ...] = ()
    timeouts: Timeouts = Timeouts()
    retries: Retries = Retries()
    stickiness: Stickiness | None = None
    plugins: tuple[PluginUse, ...] = ()
    mirrors: tuple[Mirror, ...] = ()
    """Where copies of its requests go, as plugins have made them."""
    max_body: int | None = Field(default=None, ge=0)
    """Bytes of a request's body (413); None leaves the gateway's own setting in force."""
    buffer_request: bool = False
    """Read the whole body before the upstream is chosen, so that it can be sent again."""
    keeps_body: int = Field(default=0, ge=0)
    """The same with bodies of so many bytes, if the gateway can hold them; a longer one is passed on as it comes, and
    sent once."""
    needs_length: bool = False
    """Do so with bodies of unknown length, for upstreams that have to be told it first (FastCGI)."""
    buffer_response: int = Field(default=0, ge=0)
    """Bytes of an answer that are kept for a client slower than its upstream, which is free the sooner; 0: no more than
    passes through."""
    websocket: bool = True
    """Upgrades to WebSocket are let through."""
    request_trailers: bool = False
    """Trailers of requests other than gRPC are passed on to the upstream; gateways drop them otherwise."""
    nginx_headers: bool = False
    """Upstreams get the headers that ingress-nginx adds: `X-Scheme`, `X-Forwarded-Scheme`, and `X-Forwarded-For` and
    `-Host` of the client as `X-Original-Forwarded-For` and `-Host`."""
    as_traefik: bool = False
    """Upstreams get `X-Forwarded-*` and `X-Real-Ip` as Traefik writes them: with `X-Forwarded-Server`, the port of the
    request's host, and `ws` or `wss` as the scheme of a WebSocket."""
    tracing: RouteTracing = Tracing()
    access_log_share: float | None = Field(default=None, ge=0, le=1)
    """Of the requests that went well, how many the access log has; those that failed are there as well, unless it is 0.
    None leaves the gateway's own setting in force."""
    provenance: Provenance


Unmatched = Literal["404", "next-host"]


def _from_schema_6(value: Any) -> Any:
    return ("404", "next-host")[value] if isinstance(value, bool) else value


class VirtualHost(Entry):
    """The routes of one host on some listeners.

    On a listener that is `host-first` the host is decided first, then the path: a path that no route of the matched
    host takes is a 404, never another host's business, unless `unmatched` says so. Several virtual hosts of one host
    on one listener are asked as one; of their routes of equal rank those of the lesser key go first.
    """

    host: HostPattern
    """Lower case; see `headgate.common.table.hosts` for patterns and their order."""
    listeners: tuple[ListenerKey, ...] = ()
    """Keys of `Listener` entries, sorted; none: the gateway's own two, `http` and `https`."""
    routes: tuple[Route, ...]
    tls: TlsPolicy | None = None
    """For connections whose server name is this host."""
    unmatched: Annotated[
        Unmatched,
        BeforeValidator(_from_schema_6),
        Field(validation_alias=AliasChoices("unmatched", "falls_through")),
    ] = "404"
    """Requests that none of its routes takes get a 404, or go to the next host that would take them (Apache APISIX). If
    a route of such a host has a priority, its routes compete with those of the next hosts, and the best rank wins
    (Traefik), up to a host whose own is 404. Tables up to schema 6 have a boolean `falls_through`."""

    @property
    def key(self) -> str:
        """Unique in the table: the host, and `@` with the listeners where it names some."""
        return str(HostKey(self.host, self.listeners))
