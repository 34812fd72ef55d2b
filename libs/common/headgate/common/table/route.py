"""What happens to a request: hosts, their routes, and the policies of a route."""

from typing import Annotated, Any, ClassVar, Literal, Protocol, Self

from pydantic import AliasChoices, BeforeValidator, Field, JsonValue

from headgate.common.sealing import ClusterValue
from headgate.common.table.base import Entry, Provenance
from headgate.common.table.match import Condition, PathMatch
from headgate.common.table.mirror import Mirror
from headgate.common.table.rank import Rank, RouteRank
from headgate.common.table.tls import TlsPolicy
from headgate.common.table.tracing import RouteTracing, Tracing

ANY_HOST = "*"


class WeightedBackend(Entry):
    """One choice of a route's split."""

    upstream: str
    """Key of an `Upstream` entry."""
    weight: int = Field(default=1, ge=0, le=1_000_000)


class Canary(Entry):
    """A backend that some requests go to before the split is asked. The first canary that takes a request has it."""

    upstream: str
    when: Condition | None = None
    """Requests that always go there."""
    unless: Condition | None = None
    """Requests that never do; looked at after `when`."""
    share: float = Field(default=0.0, ge=0, le=1)
    """Of the requests for which neither decides."""


class Timeouts(Entry):
    """Seconds; None leaves the gateway's own setting in force."""

    connect_s: float | None = Field(default=None, gt=0)
    send_s: float | None = Field(default=None, gt=0)
    """Between two successful writes to the upstream."""
    read_s: float | None = Field(default=None, gt=0)
    """Between two successful reads from the upstream."""
    request_s: float | None = Field(default=None, gt=0)
    """From the request's head to the answer's last byte, retries included. Not for tunnels once they are open."""
    idle_s: float | None = Field(default=None, gt=0)
    """A tunnel (WebSocket) over which nothing passes for so long is closed."""


RetryCondition = Literal["connect", "reset", "timeout", "refused-stream", "gateway-error", "status"]


class Retries(Entry):
    """When a request is sent again, to another endpoint if there is one.

    Only while nothing of the answer went to the client and the body can be sent again. A request that an endpoint may
    have acted on is repeated only if its method is idempotent or `unsafe` is set; one that never got through always
    may.
    """

    attempts: int = Field(default=1, ge=0, le=10)
    """Besides the first."""
    on: tuple[RetryCondition, ...] = ("connect", "reset")
    """`connect`: no connection, or a stream that HTTP/2 refused; the latter alone is `refused-stream`. `gateway-error`:
    502, 503 and 504. `status`: one of `statuses`."""
    statuses: tuple[int, ...] = ()
    unsafe: bool = False
    per_try_s: float | None = Field(default=None, gt=0)
    """Seconds for one attempt to bring the head of an answer."""
    total_s: float | None = Field(default=None, gt=0)
    """Seconds after the first attempt in which others may begin."""
    budget: float | None = Field(default=0.2, ge=0, le=1)
    """Retries under way as a share of the upstream's requests under way, above a floor of 3; None is no limit."""


class Stickiness(Entry):
    """Keeps a client with the endpoint that served it first, by a cookie of ours."""

    cookie: str
    mode: Literal["balanced", "persistent"] = "balanced"
    """`balanced`: an endpoint that is unhealthy, or neither ready nor draining, is left for another. `persistent`: for
    as long as it exists."""
    path: str = "/"
    domain: str = ""
    max_age_s: int | None = Field(default=None, ge=0)
    """None is a session cookie."""
    secure: bool | None = None
    """None: as the request's scheme."""
    http_only: bool = True
    same_site: Literal["", "Strict", "Lax", "None"] = ""


class TypedConfig(Protocol):
    """A plugin's configuration as a value: a model of `headgate.common.plugins`."""

    plugin: ClassVar[str]

    def written(self) -> dict[str, JsonValue]:
        """Return it as a user would write it."""


class PluginUse(Entry):
    """A plugin and its configuration, as a user wrote it or, made by `of`, as a dialect says it."""

    name: str
    """Under which the plugin is registered: `cors`."""
    config: dict[str, JsonValue] = Field(default_factory=dict)
    secrets: dict[str, ClusterValue] = Field(default_factory=dict)
    """Values that gateways open and put into the config, by their place in it: `users.0.password`."""
    order: int | None = None
    """Instead of the plugin's own; greater runs earlier."""
    fault: str = ""
    """Why nobody can follow it, where requests must not come through without it: gateways refuse them."""
    is_global: bool = False
    """Runs before the plugins of routes, whatever the orders; no route's and no consumer's of the same name stands
    in its place."""

    @classmethod
    def of(cls, config: TypedConfig) -> Self:
        """Return the use of the plugin whose configuration it is."""
        return cls(name=config.plugin, config=config.written())


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
    backends: tuple[WeightedBackend, ...] = ()
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
    buffer_response: int = Field(default=0, ge=0)
    """Bytes of an answer that are kept for a client slower than its upstream, which is free the sooner; 0: no more than
    passes through."""
    websocket: bool = True
    """Upgrades to WebSocket are let through."""
    request_trailers: bool = False
    """Trailers of requests other than gRPC are passed on to the upstream; gateways drop them otherwise."""
    tracing: RouteTracing = Tracing()
    access_log_share: float | None = Field(default=None, ge=0, le=1)
    """Of the requests that went well, how many the access log has; those that failed are there as well, unless it is 0.
    None leaves the gateway's own setting in force."""
    provenance: Provenance


Unmatched = Literal["404", "next-host"]


def _from_schema_6(value: Any) -> Any:
    return ("404", "next-host")[value] if isinstance(value, bool) else value


class VirtualHost(Entry):
    """The routes of one host.

    The host is decided first, then the path: a path that no route of the matched host takes is a 404, never another
    host's business, unless `unmatched` says so. Exact hosts go before wildcards; of wildcards the longer suffix
    goes first, and of equal ones that for one label.
    """

    host: str
    """Lower case. `foo.com`; `*.foo.com` for exactly one more label; `**.foo.com` for one or more; `*` for requests
    that no other host takes."""
    routes: tuple[Route, ...]
    tls: TlsPolicy | None = None
    """For connections whose server name is this host."""
    unmatched: Annotated[
        Unmatched,
        BeforeValidator(_from_schema_6),
        Field(validation_alias=AliasChoices("unmatched", "falls_through")),
    ] = "404"
    """Requests that none of its routes takes get a 404, or go to the next host that would take them (Apache APISIX).
    Tables up to schema 6 have a boolean `falls_through`."""
