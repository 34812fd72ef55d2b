"""What the proxy asks of the route table, and nothing more.

The proxy knows neither hosts nor paths nor balancing: per request it asks the current `Router` for a `RouteTarget`, and
the target for an `EndpointPool`. The table's compiler implements these protocols; tests implement them in ten lines.
Everything here is called on the event loop for every request, so implementations must neither block nor await.
"""

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from headgate.gateway.health.circuit import Circuit
    from headgate.gateway.health.ejection import Outcome
    from headgate.gateway.observability.access_log import LogRecord
    from headgate.gateway.proxy.exchange import Exchange
    from headgate.gateway.proxy.facts import RequestFacts
    from headgate.gateway.proxy.policies import RoutePolicies
    from headgate.gateway.proxy.pool import EndpointPool
    from headgate.gateway.proxy.stats import RouteTraffic


class RequestSource(Protocol):
    """A request that can be looked at beyond its host and path; most never are."""

    def facts(self) -> "RequestFacts":
        """Give what is known of the request, the same object for as long as the request lasts."""

    def note_upstream(self, state: "UpstreamState | None") -> None:
        """Hear of the upstream that is about to be chosen from, if anything is to be told to it."""


class UpstreamState(Protocol):
    """What is remembered of one upstream's load and failures: `health.state.UpstreamState`."""

    @property
    def circuit(self) -> "Circuit | None":
        """Bounds of its connections; None: there are none."""

    def report_pool(self, pool: object, outcome: "Outcome") -> None:
        """Learn how a request to an endpoint went: the answer's status, or `connect`, `reset` or `timeout`."""

    def may_begin(self) -> str | None:
        """Count a request that begins; why it must not, if so."""

    def ended(self) -> None:
        """Count the end of one that began."""

    def wait(self, resume: Callable[[], None]) -> str | None:
        """Have `resume` called when a connection may be had; why that is not possible, if so."""

    def may_retry(self, share: float | None) -> bool:
        """Count a retry that begins; False: it would be more than this share of the requests under way."""

    def retry_ended(self) -> None:
        """Count the end of a retry."""


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


class RouterHolder:
    """Where the current router is. A hot swap is one attribute store; requests keep the target that they began with."""

    __slots__ = ("router",)

    def __init__(self, router: Router | None = None) -> None:
        self.router: Router | None = router
        """None: no table yet, every request is answered with 503."""


class RequestTrace(Protocol):
    """The spans of one request that is traced: `tracing.RequestTrace`."""

    @property
    def trace_id(self) -> str:
        """In hex, for logs."""

    def attempt(self, exchange: "Exchange", pool: "EndpointPool") -> None:
        """Begin an attempt to have an endpoint answer, unless one is under way."""

    def headed(self, lines: bytes) -> bytes:
        """Return header lines for an endpoint, with the attempt as the parent of what it does."""

    def end_attempt(self, status: int, error: str) -> None:
        """End the attempt under way, if any, with the status of its answer, or 0 and what went wrong."""

    def finish(self, exchange: "Exchange", received: int, upstream: str) -> None:
        """End the trace of a request that is over; `received` are bytes of its body."""


class Tracing(Protocol):
    """Decides which requests are traced: `tracing.Tracing`."""

    def begin(self, exchange: "Exchange", route: RouteTarget | None) -> RequestTrace | None:
        """Begin to trace a request that was matched to a route, or to none; None: it is not traced."""


class RequestLog(Protocol):
    """Takes a record per finished request: the access log."""

    @property
    def is_detailed(self) -> bool:
        """Whether it asks for the `details` of requests."""

    def append(self, record: "LogRecord") -> None:
        """Note one finished request."""
