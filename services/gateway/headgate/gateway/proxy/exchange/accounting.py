"""What is written down of a request: for the counters of its route and endpoint, the endpoint's health, the trace, and
the access log.
"""

import random
import time
from typing import Final

from headgate.common.traffic import Attempt
from headgate.gateway.proxy.context import ProxyContext
from headgate.gateway.proxy.endpoint_pool import EndpointPool
from headgate.gateway.proxy.exchange.active_request import ActiveRequest
from headgate.gateway.proxy.reports import LogRecord, RequestNotes, RequestTrace
from headgate.gateway.proxy.seam import RouteTarget
from headgate.gateway.proxy.traffic import RouteTraffic, latency_bucket

NOBODY: Final = b"-"
_MAX_ATTEMPTS: Final = 10
"""That are noted of a request."""


class Accounting(RequestNotes):
    """The notes of one exchange. They decide nothing."""

    __slots__ = ("_context", "_exchange", "_from_endpoint", "_sent_at", "_status", "_trace", "_waited_s")

    def __init__(self, exchange: ActiveRequest, context: ProxyContext) -> None:
        self._exchange = exchange
        self._context = context
        self._trace: RequestTrace | None = None
        """None: the request is not traced."""
        self._sent_at = 0.0
        """When the request was sent to an endpoint whose answers are timed."""
        self.begin()

    def begin(self) -> None:
        """Begin with a request."""
        self._status = 0
        """What the endpoint answered, whatever plugins made of it; 0: nothing."""
        self.user = NOBODY
        self.attempts = None
        self._from_endpoint = 0
        """Bytes that came of answers' bodies."""
        self._waited_s = 0.0
        """Seconds from sending the request to the head of the answer, where that is measured."""

    def routed(self, route: RouteTarget | None) -> None:
        """Note which route takes the request, or takes it over from another; None: none does."""
        tracing = self._context.tracing
        if self._trace is not None:
            self._trace.rerouted(self._exchange, route)
        elif tracing is not None:
            self._trace = tracing.begin(self._exchange, route)

    def connecting(self, pool: EndpointPool) -> None:
        """Note that a connection to an endpoint is opened for the request."""
        if self._trace is not None:
            self._trace.attempt(self._exchange, pool)

    def sending(self, pool: EndpointPool) -> None:
        """Note that the request goes out to an endpoint now; its lines get the trace's."""
        if self._context.times_endpoints or pool.latency is not None:
            self._sent_at = time.monotonic()
        trace = self._trace
        if trace is not None:
            exchange = self._exchange
            trace.attempt(exchange, pool)
            exchange.lines = trace.headed(exchange.lines)

    def answered(self, pool: EndpointPool, status: int, size: int) -> None:
        """Note the head of an endpoint's answer, with so many bytes of its body."""
        self._status = status
        self._from_endpoint += size
        if self._context.times_endpoints:
            self._waited_s = time.monotonic() - self._sent_at
        state = self._exchange.upstream_state
        if state is not None:
            state.report_pool(pool, status)
        if pool.latency is not None:
            now = time.monotonic()
            pool.latency.observe(now - self._sent_at, now)

    def switched(self, status: int) -> None:
        """Note that an endpoint has switched protocols."""
        self._status = status

    def took(self, size: int) -> None:
        """Note that so many bytes more came of an answer's body."""
        self._from_endpoint += size

    def failed(self, kind: str) -> None:
        """Note that an attempt failed: `connect`, `closed`, `invalid` or `timeout`."""
        self._context.stats.upstream_error(kind)
        self._traffic().count_error(kind)
        pool = self._exchange.pool
        if pool is not None:
            pool.traffic.count_error(kind)
        self._attempted(kind)
        if self._trace is not None:
            self._trace.end_attempt(self._status, kind)

    def _attempted(self, outcome: str) -> None:
        exchange = self._exchange
        attempts = self.attempts
        if attempts is None:
            attempts = self.attempts = []
        if len(attempts) < _MAX_ATTEMPTS:
            label = exchange.pool.label if exchange.pool is not None else ""
            attempts.append(Attempt(label, outcome, time.monotonic() - exchange.began))

    def retrying(self, lost: str = "") -> None:
        """Note that the request is sent again, and the answer that is not passed on, if there was one.

        `lost` says what became of an attempt that does not count as failed.
        """
        self._context.stats.retries += 1
        self._traffic().count_retry()
        pool = self._exchange.pool
        if pool is not None:
            pool.traffic.count_retry()
            if self._status:
                pool.traffic.count_status(self._status)
        if self._status or lost:
            self._attempted(str(self._status) if self._status else lost)
        if self._trace is not None:
            self._trace.end_attempt(self._status, "" if self._status else "closed")
        self._status = 0

    def recognised(self, consumer: str, duration_s: float) -> None:
        """Note whose request it was, which is over, where consumers are counted."""
        exchange, consumers = self._exchange, self._context.stats.consumers
        if consumers is not None:
            bucket, received = latency_bucket(duration_s), exchange.body.received
            consumers.count(
                self._traffic(), consumer, exchange.status, bucket, duration_s, received, exchange.bytes_sent
            )

    def _traffic(self) -> RouteTraffic:
        """Where the request is counted."""
        exchange, stats = self._exchange, self._context.stats
        route, backend = exchange.route, exchange.backend
        if route is None:
            return stats.unrouted_of(exchange.fields.host)
        if backend:
            return stats.of_route(route, backend)
        traffic = route.traffic
        return stats.of_route(route, "") if traffic is None else traffic

    def close(self, duration_s: float) -> None:
        """Count and log the request, which is over."""
        exchange, context = self._exchange, self._context
        route, pool, received = exchange.route, exchange.pool, exchange.body.received
        traffic, bucket = self._traffic(), latency_bucket(duration_s)
        context.stats.requests += 1
        traffic.count(exchange.status, bucket, duration_s, received, exchange.bytes_sent)
        if pool is not None and self._status:
            pool.traffic.count(self._status, bucket, duration_s, received, exchange.bytes_sent)
        if exchange.reason:
            context.stats.refused(exchange.status, route is not None)
        tap = context.stats.tap
        if context.access_log is not None and self._is_logged(route):
            context.access_log.append(self._record(duration_s, traffic.upstream))
        if tap is not None:
            tap(self._record(duration_s, traffic.upstream), exchange.fields.host)
        failures = context.stats.failures
        if failures is not None and (exchange.status >= 500 or exchange.reason):
            failures(self._record(duration_s, traffic.upstream), exchange.fields.host)
        trace = self._trace
        if trace is not None:
            trace.end_attempt(self._status, "" if self._status else "given up")
            trace.finish(exchange, received, traffic.upstream)
            self._trace = None

    def _record(self, duration_s: float, upstream: str) -> LogRecord:
        """Return what logs get of the request."""
        exchange, context = self._exchange, self._context
        route, pool = exchange.route, exchange.pool
        return (
            context.clock.log_time,
            exchange.origin.address,
            exchange.method,
            exchange.target,
            exchange.client.version,
            exchange.status,
            exchange.bytes_sent,
            duration_s,
            exchange.fields,
            exchange.request_id,
            route.name if route is not None else "",
            upstream,
            pool.label if pool is not None else "",
            self,
            exchange.reason,
        )

    @property
    def scheme(self) -> bytes:
        """Of the request, as the client, or the trusted proxy before it, used it."""
        return self._exchange.origin.scheme

    @property
    def port(self) -> bytes:
        """Port that the client connected to."""
        return self._exchange.origin.port

    def _is_logged(self, route: RouteTarget | None) -> bool:
        """Draw whether a request is logged; what went wrong always is, unless its route has no log at all."""
        policies = route.policies if route is not None else None
        share = self._context.config.access_log_share
        if policies is not None and policies.log_share is not None:
            share = policies.log_share
        if share >= 1:
            return True
        exchange = self._exchange
        return share > 0 and (exchange.status >= 400 or bool(exchange.reason) or random.random() < share)  # noqa: S311 - a sample

    def details(self) -> dict[str, object]:
        """What the detailed access log says of a request besides the record that is made for every log."""
        exchange = self._exchange
        details: dict[str, object] = {"request_bytes": exchange.body.received}
        if self.user != NOBODY:
            details["user"] = self.user.decode()
        if self._status:
            details["upstream_status"] = self._status
            details["upstream_bytes"] = self._from_endpoint
            details["upstream_seconds"] = round(self._waited_s, 6)
        retries = exchange.retries
        if retries:
            details["retries"] = retries
        tls = exchange.client.peer.tls
        if tls is not None:
            details["tls"] = tls.version() or ""
        if self._trace is not None:
            details["trace_id"] = self._trace.trace_id
            details["span_id"] = self._trace.span_id
        return details
