"""What takes reports of requests: the access log and traces."""

from typing import TYPE_CHECKING, Protocol

from headgate.common.traffic import Attempt
from headgate.gateway.proxy.heads.head import RequestFields

if TYPE_CHECKING:
    from headgate.common.table.listener import AccessLogFormat
    from headgate.gateway.proxy.endpoint_pool import EndpointPool
    from headgate.gateway.proxy.exchange.active_request import ActiveRequest
    from headgate.gateway.proxy.seam import RouteTarget


class RequestNotes:
    """What can be told of a request besides its record: `Books`. A class for the reason that `sides` gives."""

    __slots__ = ("attempts", "user")

    attempts: list[Attempt] | None
    """Those that failed, or whose answers were not passed on; None: there was none."""
    user: bytes
    """Whose request it is, as far as plugins have found that out; visible ASCII without spaces."""

    @property
    def scheme(self) -> bytes:
        """Of the request, as the client, or the trusted proxy before it, used it."""
        raise NotImplementedError

    @property
    def port(self) -> bytes:
        """Port that the client connected to."""
        raise NotImplementedError

    def details(self) -> dict[str, object]:
        """What the detailed access log says of a request besides the record that is made for every log."""
        raise NotImplementedError


LogRecord = tuple[
    bytes, bytes, bytes, bytes, bytes, int, int, float, RequestFields, bytes, str, str, str, RequestNotes, str
]
"""Time, client address, method, target, version, status, body bytes, seconds, fields, request id, route name,
upstream, endpoint, what can tell more until the next request, reason."""


class RequestTrace(Protocol):
    """The spans of one request that is traced: `tracing.RequestTrace`."""

    @property
    def trace_id(self) -> str:
        """In hex, for logs."""

    @property
    def span_id(self) -> str:
        """In hex, for logs: of the span that the whole request is."""

    def rerouted(self, exchange: "ActiveRequest", route: "RouteTarget | None") -> None:
        """Note that another route takes the request, or none does."""

    def attempt(self, exchange: "ActiveRequest", pool: "EndpointPool") -> None:
        """Begin an attempt to have an endpoint answer, unless one is under way."""

    def headed(self, lines: bytes) -> bytes:
        """Return header lines for an endpoint, with the attempt as the parent of what it does."""

    def end_attempt(self, status: int, error: str) -> None:
        """End the attempt under way, if any, with the status of its answer, or 0 and what went wrong."""

    def finish(self, exchange: "ActiveRequest", received: int, upstream: str) -> None:
        """End the trace of a request that is over; `received` are bytes of its body."""


class Tracing(Protocol):
    """Decides which requests are traced: `tracing.Tracing`."""

    def begin(self, exchange: "ActiveRequest", route: "RouteTarget | None") -> RequestTrace | None:
        """Begin to trace a request that was matched to a route, or to none; None: it is not traced."""


class RequestLog(Protocol):
    """Takes a record per finished request: the access log."""

    @property
    def is_detailed(self) -> bool:
        """Whether it asks for the `details` of requests."""

    def append(self, record: LogRecord) -> None:
        """Note one finished request."""

    def formatted(self, line: "AccessLogFormat") -> "RequestLog":
        """Return the same log with lines of another format."""
        ...
