"""What a route asks of the proxy beyond the plain way. Nearly all routes have none of it, and their requests do not pay
for those that do.
"""

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from headgate.gateway.proxy.hooks import RequestHooks

if TYPE_CHECKING:
    from headgate.gateway.tls.policy import ClientGuard


class RetryPolicy:
    """When a request is sent again; see `Retries` of the vocabulary."""

    __slots__ = (
        "attempts",
        "backoff_s",
        "budget",
        "per_try_s",
        "reasons",
        "statuses",
        "total_s",
        "unsafe",
    )

    def __init__(
        self,
        attempts: int = 1,
        reasons: frozenset[str] = frozenset({"connect", "refused-stream", "reset"}),
        statuses: frozenset[int] = frozenset(),
        unsafe: bool = False,
        per_try_s: float | None = None,
        total_s: float | None = None,
        budget: float | None = 0.2,
        backoff_s: float = 0.0,
    ) -> None:
        self.attempts = attempts
        """Besides the first."""
        self.reasons = reasons
        """`connect`, `refused-stream`, `reset`, `timeout`."""
        self.statuses = statuses
        """Of answers that are not passed on while there is an attempt left."""
        self.unsafe = unsafe
        """Repeat requests of any method that an endpoint may have acted on."""
        self.per_try_s = per_try_s
        self.total_s = total_s
        self.budget = budget
        """Retries under way as a share of the upstream's requests; None: no bound."""
        self.backoff_s = backoff_s
        """Before the first of them; the last one waits twice as long."""


@dataclass(slots=True)
class RoutePolicies:
    """Everything about a route that costs something per request. The proxy changes nothing of it."""

    fault: str = ""
    """Why the route cannot be served as written: every request is answered with `fault_status` and this."""
    fault_status: int = 500
    retries: RetryPolicy = field(default_factory=RetryPolicy)
    hooks: RequestHooks | None = None
    """Its plugins."""
    guard: "ClientGuard | None" = None
    """What the host asks of clients' certificates."""
    sets_cookie: bool = False
    """Answers may need a cookie that keeps the client with its endpoint."""
    max_body: int | None = None
    """Bytes of a request's body; None: the proxy's own limit."""
    buffer_request: bool = False
    """Read the whole body before an endpoint is chosen."""
    keeps_body: int = 0
    """Do so with bodies of so many bytes; longer ones are passed on as they come."""
    needs_length: bool = False
    """Do so with bodies of unknown length."""
    buffer_response: int = 0
    """Bytes of an answer that are kept for a client slower than its upstream."""
    log_share: float | None = None
    """Of the requests that went well, how many are logged; None: the proxy's own share."""
    trace_share: float | None = None
    """Of the requests that begin a trace of their own; None: the gateway's own share."""
    trace_heeds_parent: bool = True
    """Whether a request is traced that comes with trace context is said there, not by the share."""
    trace_attributes: tuple[str, ...] = ()
    """Variables that a traced request's span has as attributes."""
    trace_headers: tuple[str, ...] = ()
    """Names of headers that it has, in lower case; with a star at the end all that begin so."""
    websocket: bool = True
    """Let upgrades through."""
    request_trailers: bool = False
    """Pass on trailers of requests that are not gRPC."""
    nginx_headers: bool = False
    """Tell upstreams what ingress-nginx tells them besides."""
    as_traefik: bool = False
    """Tell upstreams of the request's origin as Traefik does."""
    request_s: float | None = None
    """Seconds from the head of the request to the last byte of the answer."""
    idle_s: float | None = None
    """Seconds without a byte after which a tunnel is closed; None: the proxy's own."""
    _without_hooks: "RoutePolicies | None" = field(default=None, init=False, repr=False, compare=False)

    def without_hooks(self) -> "RoutePolicies":
        """Return the same for a request that has nothing to do with the hooks."""
        if self._without_hooks is None:
            self._without_hooks = replace(self, hooks=None)
        return self._without_hooks
