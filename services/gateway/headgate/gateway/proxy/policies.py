"""What a route asks of the proxy beyond the plain way. Nearly all routes have none of it, and their requests do not pay
for those that do.
"""

from typing import TYPE_CHECKING

from headgate.gateway.plugins.runtime.chain import PluginChain

if TYPE_CHECKING:
    from headgate.gateway.tls.policy import ClientGuard


class RetryPolicy:
    """When a request is sent again; see `Retries` of the vocabulary."""

    __slots__ = ("attempts", "budget", "per_try_s", "reasons", "statuses", "total_s", "unsafe")

    def __init__(
        self,
        attempts: int = 1,
        reasons: frozenset[str] = frozenset({"connect", "refused-stream", "reset"}),
        statuses: frozenset[int] = frozenset(),
        unsafe: bool = False,
        per_try_s: float | None = None,
        total_s: float | None = None,
        budget: float | None = 0.2,
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


class RoutePolicies:
    """Everything about a route that costs something per request."""

    __slots__ = (
        "buffer_request",
        "buffer_response",
        "chain",
        "fault",
        "guard",
        "idle_s",
        "log_share",
        "max_body",
        "request_s",
        "request_trailers",
        "retries",
        "sets_cookie",
        "trace_attributes",
        "trace_headers",
        "trace_heeds_parent",
        "trace_share",
        "websocket",
    )

    def __init__(self) -> None:
        self.fault = ""
        """Why the route cannot be served as written: every request is answered with 500 and this."""
        self.retries = RetryPolicy()
        self.chain: PluginChain | None = None
        self.guard: ClientGuard | None = None
        """What the host asks of clients' certificates."""
        self.sets_cookie = False
        """Answers may need a cookie that keeps the client with its endpoint."""
        self.max_body: int | None = None
        """Bytes of a request's body; None: the proxy's own limit."""
        self.buffer_request = False
        """Read the whole body before an endpoint is chosen."""
        self.buffer_response = 0
        """Bytes of an answer that are kept for a client slower than its upstream."""
        self.log_share: float | None = None
        """Of the requests that went well, how many are logged; None: the proxy's own share."""
        self.trace_share: float | None = None
        """Of the requests that begin a trace of their own; None: the gateway's own share."""
        self.trace_heeds_parent = True
        """Whether a request is traced that comes with trace context is said there, not by the share."""
        self.trace_attributes: tuple[str, ...] = ()
        """Variables that a traced request's span has as attributes."""
        self.trace_headers: tuple[str, ...] = ()
        """Names of headers that it has, in lower case; with a star at the end all that begin so."""
        self.websocket = True
        """Let upgrades through."""
        self.request_trailers = False
        """Pass on trailers of requests that are not gRPC."""
        self.request_s: float | None = None
        """Seconds from the head of the request to the last byte of the answer."""
        self.idle_s: float | None = None
        """Seconds without a byte after which a tunnel is closed; None: the proxy's own."""
