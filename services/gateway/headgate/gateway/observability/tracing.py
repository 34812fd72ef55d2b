"""Traces of requests, with the trace context that they bring (`trace_context`).

A request that comes with a sampled one is traced as a part of its trace. One that comes with an unsampled one
is not, and its header goes to the upstream as it is. One that comes with none, or with one that cannot be read, begins
a trace by lot: the route's share, or else the gateway's. On a route that does not heed the flag, the lot falls for
requests with trace context too, and for all of one trace alike.

A traced request has a server span, and a client span for each attempt to have an endpoint answer it; the endpoint gets
the client span as its parent. Attributes are those of OpenTelemetry's conventions for HTTP. Spans go to the collector
from a thread of the SDK's.
"""

import random
from collections.abc import Callable
from typing import TYPE_CHECKING

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import NonRecordingSpan, Span, SpanContext, SpanKind, Status, StatusCode, TraceFlags
from opentelemetry.util.types import AttributeValue

from headgate.common.service.telemetry import tracer
from headgate.gateway.observability.trace_context import NOT_SAMPLED, Propagation
from headgate.gateway.plugins.interface.messages import Request
from headgate.gateway.plugins.interface.variables import variable
from headgate.gateway.plugins.runtime.requests import request_of

if TYPE_CHECKING:
    from headgate.gateway.proxy.endpoint_pool import EndpointPool
    from headgate.gateway.proxy.exchange.active_request import ActiveRequest
    from headgate.gateway.proxy.policies import RoutePolicies
    from headgate.gateway.proxy.seam import RouteTarget

_LOW_64_BITS = (1 << 64) - 1
_METHODS = frozenset({"CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE", "QUERY"})
"""All others are `_OTHER`, as the conventions want the attribute to have few values."""


class RequestTrace:
    """The spans of one request; the proxy's `RequestTrace`."""

    def __init__(
        self,
        exchange: "ActiveRequest",
        route: "RouteTarget | None",
        parent: SpanContext | None,
        propagation: Propagation,
    ) -> None:
        self._propagation = propagation
        self._tracer = tracer(__name__)
        self._keeps_state = parent is not None
        context = trace.set_span_in_context(NonRecordingSpan(_sampled(parent)), Context()) if parent else Context()
        method = exchange.method.decode("latin-1")
        self._method = method if method in _METHODS else "_OTHER"
        self._server = self._tracer.start_span(
            self._span_name(route), context, SpanKind.SERVER, _server_attributes(exchange, route, self._method)
        )
        self._context = trace.set_span_in_context(self._server, Context())
        self._attempt: Span | None = None
        self._attempts = 0

    @property
    def trace_id(self) -> str:
        """In hex."""
        return format(self._server.get_span_context().trace_id, "032x")

    @property
    def span_id(self) -> str:
        """In hex, of the server span."""
        return format(self._server.get_span_context().span_id, "016x")

    def rerouted(self, exchange: "ActiveRequest", route: "RouteTarget | None") -> None:
        """Name the span by the route that takes the request over; its attributes count too."""
        self._server.update_name(self._span_name(route))
        self._server.set_attributes(_server_attributes(exchange, route, self._method))

    def _span_name(self, route: "RouteTarget | None") -> str:
        shown = self._method if self._method != "_OTHER" else "HTTP"
        return shown if route is None else f"{shown} {route.name}"

    def attempt(self, exchange: "ActiveRequest", pool: "EndpointPool") -> None:
        """Begin an attempt, unless one is under way."""
        if self._attempt is not None:
            return
        scheme = "http" if pool.spec.tls is None else "https"
        attributes: dict[str, AttributeValue] = {
            "http.request.method": self._method,
            "server.address": pool.address,
            "server.port": pool.port,
            "url.full": f"{scheme}://{pool.label}{exchange.target.decode('latin-1')}",
            "network.protocol.name": "http",
        }
        if self._attempts:
            attributes["http.request.resend_count"] = self._attempts
        self._attempts += 1
        name = self._method if self._method != "_OTHER" else "HTTP"
        self._attempt = self._tracer.start_span(name, self._context, SpanKind.CLIENT, attributes)

    def headed(self, lines: bytes) -> bytes:
        """Return header lines for an endpoint with the attempt as the parent of what it does."""
        assert self._attempt is not None
        return self._propagation.write(lines, self._attempt.get_span_context(), keeps_state=self._keeps_state)

    def end_attempt(self, status: int, error: str) -> None:
        """End the attempt under way, if any, with the status of its answer, or 0 and what went wrong."""
        span, self._attempt = self._attempt, None
        if span is not None:
            _end(span, status, error, is_failure=status >= 400)

    def finish(self, exchange: "ActiveRequest", received: int, upstream: str) -> None:
        """End the trace of a request that is counted."""
        span = self._server
        if upstream:
            span.set_attribute("headgate.upstream", upstream)
        span.set_attribute("http.request.body.size", received)
        span.set_attribute("http.response.body.size", exchange.bytes_sent)
        if exchange.reason:
            span.set_attribute("headgate.reason", exchange.reason)
        _end(span, exchange.status, "" if exchange.status else "cut off", is_failure=exchange.status >= 500)


def _server_attributes(
    exchange: "ActiveRequest", route: "RouteTarget | None", method: str
) -> dict[str, AttributeValue]:
    fields, origin = exchange.fields, exchange.origin
    path, _, query = exchange.target.decode("latin-1").partition("?")
    attributes: dict[str, AttributeValue] = {
        "http.request.method": method,
        "url.scheme": origin.scheme.decode(),
        "url.path": path,
        "server.address": fields.host.decode("latin-1"),
        "client.address": origin.address.decode(),
        "network.protocol.name": "http",
        "network.protocol.version": exchange.client.version.decode().removesuffix(".0"),
        "headgate.request_id": exchange.request_id.decode("latin-1"),
    }
    if method == "_OTHER":
        attributes["http.request.method_original"] = exchange.method.decode("latin-1")
    if query:
        attributes["url.query"] = query
    if fields.agent:
        attributes["user_agent.original"] = fields.agent.decode("latin-1")
    if route is not None:
        attributes["headgate.route"] = route.name
        policies = route.policies
        if policies is not None and (policies.trace_attributes or policies.trace_headers):
            attributes |= _additional_attributes(request_of(exchange), policies)
    return attributes


def _additional_attributes(request: Request, policies: "RoutePolicies") -> dict[str, str]:
    """Return what a route wants besides: variables and headers that the request has."""
    found: dict[str, str] = {}
    for name in policies.trace_attributes:
        value = variable(request, name)
        if value is not None:
            found[name] = value
    for wanted in policies.trace_headers:
        begins = wanted.removesuffix("*") if len(wanted) > 1 else wanted
        for name, value in request.headers:
            lower = name.lower()
            if lower == wanted or (begins != wanted and lower.startswith(begins)):
                found[lower] = f"{found[lower]}, {value}" if lower in found else value
    return found


def _sampled(context: SpanContext) -> SpanContext:
    """Return trace context with the flag that says that the trace is recorded, as it is from here on."""
    flags = TraceFlags(context.trace_flags | TraceFlags.SAMPLED)
    return SpanContext(context.trace_id, context.span_id, context.is_remote, flags, context.trace_state)


def _end(span: Span, status: int, error: str, *, is_failure: bool) -> None:
    if status:
        span.set_attribute("http.response.status_code", status)
    if error or is_failure:
        span.set_attribute("error.type", error or str(status))
        span.set_status(Status(StatusCode.ERROR))
    span.end()


class Tracing:
    """Decides which requests are traced; the proxy's `Tracing`.

    Args:
        share: of the requests without trace context, for routes that say nothing else.
        propagation: the formats of trace context; W3C's by default.
        chance: gives numbers from 0 up to 1.
    """

    def __init__(
        self, share: float, propagation: Propagation | None = None, chance: Callable[[], float] = random.random
    ) -> None:
        self._propagation = propagation or Propagation()
        self._share = share
        self._chance = chance

    def begin(self, exchange: "ActiveRequest", route: "RouteTarget | None") -> RequestTrace | None:
        """Begin to trace a request; None: it is not traced."""
        parent = self._propagation.read(exchange.fields.lines)
        policies = route.policies if route is not None else None
        if parent is not None and (policies is None or policies.trace_heeds_parent):
            return self._trace(exchange, route, parent) if parent.trace_flags.sampled else None
        if parent is NOT_SAMPLED:
            parent = None  # there is no trace to go on with
        share = policies.trace_share if policies is not None else None
        # Of a trace all that ask for the same share decide the same, as OpenTelemetry's TraceIdRatioBased has it.
        drawn = self._chance() if parent is None else (parent.trace_id & _LOW_64_BITS) / (1 << 64)
        return self._trace(exchange, route, parent) if drawn < (self._share if share is None else share) else None

    def _trace(
        self, exchange: "ActiveRequest", route: "RouteTarget | None", parent: SpanContext | None
    ) -> RequestTrace:
        return RequestTrace(exchange, route, parent, self._propagation)
