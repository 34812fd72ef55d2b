"""What the proxy asks of the route table, and nothing more.

The proxy knows neither hosts nor paths nor balancing: per request it asks the current `Router` for a `RouteTarget`, and
the target for an `EndpointPool`. The table's compiler implements these protocols; tests implement them in ten lines.
Everything here is called on the event loop for every request, so implementations must neither block nor await.
"""

from collections.abc import Collection
from typing import TYPE_CHECKING, Final, Protocol

from headgate.gateway.proxy.request_source import RequestSource

if TYPE_CHECKING:
    from headgate.gateway.proxy.endpoint_pool import EndpointPool
    from headgate.gateway.proxy.policies import RoutePolicies
    from headgate.gateway.proxy.traffic import RouteTraffic


class NeedsBody:
    """What a router answers that cannot decide before the request's body is there."""

    __slots__ = ()


NEEDS_BODY: Final = NeedsBody()
"""Read the body, set it as `RequestFacts.body`, and ask again."""


class Endpoints(Protocol):
    """One upstream, as requests find it: `balancing.upstream.UpstreamHolder`."""

    @property
    def unavailable(self) -> str:
        """Why `choose` gave None."""

    def choose(self, tried: Collection["EndpointPool"], source: RequestSource) -> "EndpointPool | None":
        """Balanced choice of an endpoint."""


class RouteTarget(Protocol):
    """What a matched request may use. Immutable for the proxy but for `traffic`; outlives the table while in use."""

    traffic: "RouteTraffic | None"
    """Where its requests are counted; None before the first one."""

    @property
    def name(self) -> str:
        """`host|route name`, for logs and metrics."""

    @property
    def upstream_label(self) -> str:
        """Key of the upstream, for logs and metrics."""

    @property
    def connect_timeout_s(self) -> float | None:
        """Bound of one connection attempt in seconds; None: the proxy's own."""

    @property
    def send_timeout_s(self) -> float | None:
        """Bound in seconds between two successful writes to the upstream; None: the proxy's own."""

    @property
    def read_timeout_s(self) -> float | None:
        """Bound in seconds between two successful reads from the upstream; None: the proxy's own."""

    def answer_lines(self, source: RequestSource, pool: "EndpointPool") -> bytes:
        """Give header lines for the answer of an endpoint: a cookie that keeps the client with it."""

    @property
    def policies(self) -> "RoutePolicies | None":
        """What the route asks beyond the plain way; None for nearly all."""

    @property
    def unavailable(self) -> str:
        """Why `choose` gave None, for the 503's log line and its `x-headgate-reason` header."""

    def choose(self, tried: Collection["EndpointPool"], source: RequestSource) -> "EndpointPool | None":
        """Balanced choice of an endpoint, one that was tried already only if there is no other; None: there is none."""


class Router(Protocol):
    """The current table, immutable."""

    @property
    def version_label(self) -> str:
        """`epoch.revision`, for logs."""

    def match(self, host: bytes, path: bytes, source: RequestSource) -> RouteTarget | NeedsBody | None:
        """Find the route of a request; None is a 404, `NEEDS_BODY` asks to be called again with the body.

        `host` is lower case without port and without trailing dot (empty if the request named none), `path` is as the
        client sent it, without the query.
        """

    def takes(self, host: bytes) -> bool:
        """Tell whether a virtual host takes a host, whatever its routes are."""


class RouterHolder:
    """Where the current router is. A hot swap is one attribute store; requests keep the target that they began with."""

    __slots__ = ("router",)

    def __init__(self, router: Router | None = None) -> None:
        self.router: Router | None = router
        """None: no table yet, every request is answered with 503."""
