"""One request and its answer: from a parsed head over route, endpoint and connection to the last byte and the log line.

An exchange belongs to a client's side and may serve one request after the other there. It moves payload between two
sides and decides about retries and failures; it parses nothing and knows no version of HTTP. All its methods are called
from callbacks of the event loop, none awaits; only opening a connection is a task.

A request is sent again only if that cannot do harm: nothing of an answer went to the client, what was sent of it is
still at hand, and either no endpoint can have acted on it, or it is idempotent, or the route says so. A connection that
had been used before and dies without a word most likely died of old age: that costs no attempt.
"""

import asyncio
import math
import time
from collections.abc import Callable
from typing import Final

from headgate.gateway.health.circuit import Circuit
from headgate.gateway.health.ejection import LocalError
from headgate.gateway.plugins.run import PluginRun
from headgate.gateway.proxy.context import ProxyContext
from headgate.gateway.proxy.facts import RequestFacts
from headgate.gateway.proxy.forward import Peer, forwarded_lines, new_request_id
from headgate.gateway.proxy.head import AnswerHead, RequestFields
from headgate.gateway.proxy.own import own_answer
from headgate.gateway.proxy.paths import normalize
from headgate.gateway.proxy.policies import RetryPolicy, RoutePolicies
from headgate.gateway.proxy.pool import EndpointPool
from headgate.gateway.proxy.seam import NeedsBody, RequestTrace, RouteTarget, UpstreamState
from headgate.gateway.proxy.sides import ClientSide, UpstreamSide
from headgate.gateway.proxy.stats import RouteTraffic, latency_bucket
from headgate.gateway.tls.identity import check, identity_lines, without_claims
from headgate.gateway.tls.policy import ClientGuard

IDEMPOTENT: Final = frozenset({b"GET", b"HEAD", b"OPTIONS", b"PUT", b"DELETE"})
_CLIENT_GONE: Final = 499
"""What logs and metrics say of a client that left before its answer; nginx's number."""
_DEFAULT_RETRIES: Final = RetryPolicy()
_NO_POOLS: Final[tuple[EndpointPool, ...]] = ()


def _release(circuit: Circuit | None) -> None:
    if circuit is not None:
        circuit.release_connection()


class Exchange:
    """The request under way on one client's side."""

    __slots__ = (
        "_attempted",
        "_attempts",
        "_budgeted",
        "_buffered",
        "_buffered_limit",
        "_circuit",
        "_connecting",
        "_context",
        "_continued",
        "_early",
        "_early_end",
        "_endpoint_status",
        "_expires",
        "_facts",
        "_from_endpoint",
        "_is_counted",
        "_is_replaced",
        "_kept",
        "_limit",
        "_pace_began",
        "_paced",
        "_path",
        "_payload",
        "_received",
        "_run",
        "_started",
        "_state",
        "_trace",
        "_trailers",
        "_waited",
        "_waiting",
        "active",
        "answer_begun",
        "bytes_sent",
        "client",
        "fields",
        "has_other_host",
        "head_only",
        "lines",
        "method",
        "origin",
        "pool",
        "reason",
        "request_done",
        "request_id",
        "retried",
        "route",
        "status",
        "target",
        "tried",
        "tunnel",
        "upgrade",
        "upstream",
    )

    def __init__(self, client: ClientSide, context: ProxyContext) -> None:
        self.client = client
        self._context = context
        self.active = False
        self.upstream: UpstreamSide | None = None
        self.route: RouteTarget | None = None
        self.pool: EndpointPool | None = None
        self._connecting: asyncio.Task[None] | None = None
        self._circuit: Circuit | None = None
        """Counts the connection that is being opened."""
        self._payload = b""
        """First bytes of the body, kept until something of the answer comes, to be sent again if that is harmless."""
        self._buffered: list[bytes] | None = None
        """What came of a body that is held back until all of it is there."""
        self._buffered_limit = 0
        self._attempted = 0.0
        """When the request was sent to an endpoint whose answers are timed."""
        self._trace: RequestTrace | None = None
        """None: the request is not traced."""
        self._path = b""
        """That routes are asked for; empty for the gateway's own requests."""
        self._pace_began = 0.0
        self._paced = 0
        """What had come of the body when the period began in which enough more has to come."""
        self._early = b""
        """What the client said to an upstream that has not switched to its protocol yet."""
        self._early_end = False
        """And that it has nothing more to say."""
        self._waiting: Callable[[], None] | None = None
        """Called back by the upstream's bounds when a connection may be had."""

    def begin(self, method: bytes, target: bytes, fields: RequestFields) -> None:
        """Take on a request whose head was read; `dispatch` follows once its first body bytes are known."""
        self.active = True
        self.method = method
        self.target = target
        self.fields = fields
        peer = self.client.peer
        self.origin = peer if not peer.is_trusted else self._find_origin(peer, fields)
        """Who the request is from: the peer, or whom a trusted one names."""
        self.lines = b""
        """Header lines for the upstream; empty until they are needed."""
        self.head_only = method == b"HEAD"
        self.upgrade = b""
        """Protocol that the upstream may switch to."""
        self.tunnel = False
        self.request_id = fields.request_id or new_request_id()
        self.request_done = False
        self.answer_begun = False
        self.retried = False
        self.status = 0
        self.bytes_sent = 0
        self._endpoint_status = 0
        """What the endpoint answered, whatever plugins made of it; 0: nothing."""
        self._from_endpoint = 0
        """Bytes that came of answers' bodies."""
        self._waited = 0.0
        """Seconds from sending the request to the head of the answer, where that is measured."""
        self.reason = ""
        self.route = None
        self.pool = None
        self.has_other_host = False
        """A plugin has chosen the Host that is sent."""
        self._state: UpstreamState | None = None
        """What the upstream's health and load are told to."""
        self._is_counted = False
        """The upstream's bounds count this request."""
        self.tried: tuple[EndpointPool, ...] = _NO_POOLS
        self._attempts = 0
        self._budgeted = 0
        """Retries that the upstream's budget counts."""
        self._received = 0
        self._continued = False
        self._is_replaced = False
        """A plugin has made the whole body, and what the client sends of its own is dropped."""
        self._kept = True
        self._facts: RequestFacts | None = None
        self._run: PluginRun | None = None
        self._limit = -1
        """Longest body that is taken, in bytes; -1: the client's side alone decides."""
        self._started = time.monotonic()
        self._expires = math.inf

    def facts(self) -> RequestFacts:
        """Give what routes may look at: the header is the one that an upstream gets."""
        facts = self._facts
        if facts is None:
            origin, fields = self.origin, self.fields
            lines = forwarded_lines(fields, origin, self.client.peer)
            facts = RequestFacts(self.method, origin.scheme, fields.host, self.target, lines, origin.address)
            facts.path = self._path or facts.path
            self._facts = facts
        return facts

    def note_upstream(self, state: UpstreamState | None) -> None:
        """Hear of the upstream that is about to be chosen from."""
        if state is not self._state:
            self._part_with_state()
            self._state = state

    # From the client

    def dispatch(self, path: bytes, payload: bytes, *, done: bool, trailers: bytes = b"") -> None:
        """Find route and endpoint, and send the request with what is there of its body."""
        self.request_done = done
        self._payload = payload
        self._trailers = trailers
        self._received = len(payload)
        self._path = path
        if (b"%" in path or b"/." in path or b"//" in path or b"\\" in path) and not self._normalize(path):
            return
        if self.fields.upgrade and self.fields.wants_websocket and self.method == b"GET" and done:
            self.upgrade = self.fields.upgrade
        self._find_route()

    def _normalize(self, path: bytes) -> bool:
        """Read a path that not all servers read alike; False: the request was refused."""
        read = normalize(path, self._context.config.path_normalization)
        if read is None:
            self.refuse(400, "path that servers read in different ways")
            return False
        self._path = read[0]
        if read[1] != path:
            self.target = read[1] + self.target[len(path) :]
        return True

    def _find_origin(self, peer: Peer, fields: RequestFields) -> Peer:
        trusted = self._context.trusted
        return peer if trusted is None else trusted.origin(peer, fields)

    def _find_route(self) -> None:
        router = self._context.holder.router
        if router is None:
            self.refuse(503, "no route table yet")
            return
        route = router.match(self.fields.host, self._path, self)
        if route is None:
            self._begin_trace(None)
            self.refuse(404, "no route takes this host and path")
        elif isinstance(route, NeedsBody):
            self._hold_body()
        else:
            self.route = route
            self._begin_trace(route)
            policies = route.policies
            if policies is None or self._admit(policies):
                self._send_to_endpoint(route)

    def _begin_trace(self, route: RouteTarget | None) -> None:
        tracing = self._context.tracing
        if tracing is not None:
            self._trace = tracing.begin(self, route)

    def _admit(self, policies: RoutePolicies) -> bool:
        """Apply what the route asks before an endpoint is chosen; False: the request is answered, or waits."""
        if policies.fault:
            self.refuse(500, policies.fault)
            return False
        if policies.guard is not None and not self._check_client(policies.guard):
            return False
        if policies.max_body is not None and not self.limit_body(policies.max_body):
            return False
        if policies.request_s is not None:
            self.allow(policies.request_s)
        if not policies.websocket:
            self.upgrade = b""
        if policies.buffer_request and not self.request_done:
            self._hold_body()
            return False
        return self._start_plugins(policies)

    def _check_client(self, guard: ClientGuard) -> bool:
        """Let in whom the host's rules for client certificates let in, and tell the upstream who it is."""
        tls = self.client.peer.tls
        refusal = check(guard, tls)
        if refusal is not None:
            self.refuse(refusal[0], refusal[1], refusal[2])
            return False
        self.fields.lines = without_claims(self.fields.lines) + identity_lines(guard, tls)
        self._facts = None
        return True

    def _start_plugins(self, policies: RoutePolicies) -> bool:
        if policies.chain is None:
            return True
        self._run = PluginRun(policies.chain, self)
        return self._run.start()

    def allow(self, seconds: float) -> None:
        """Bound the time for the whole request, if it is not shorter already."""
        self._expires = min(self._expires, self._context.clock.now + seconds)

    def limit_body(self, limit: int) -> bool:
        """Take no more than so many bytes of body; False: there are more, and the request was refused."""
        self._limit = limit if self._limit < 0 else min(limit, self._limit)
        if max(self.fields.content_length, self._received) <= limit:
            return True
        self.refuse(413, f"body longer than {limit} bytes")
        return False

    def _hold_body(self) -> None:
        """Wait for all of the body."""
        if self.request_done:
            self._body_is_whole()
            return
        self.hold_body(self._context.config.max_buffered)

    def hold_body(self, limit: int) -> None:
        """Keep what comes of the body until all of it is there, at most so many bytes."""
        self._buffered = [self._payload]
        self._buffered_limit = limit
        self._ask_for_body()
        self._restart_pace()
        self._set_deadline()
        self.client.update_reading()

    def _body_is_whole(self) -> None:
        """Go on with a request whose body was waited for."""
        buffered, self._buffered = self._buffered, None
        if buffered is not None:
            self._payload = b"".join(buffered)
            fields = self.fields
            if fields.chunked and not self._trailers:
                fields.chunked = False
                fields.content_length = len(self._payload)
        route, run = self.route, self._run
        if route is None:
            self.facts().body = self._payload
            self._find_route()
        elif run is not None:
            run.body_read(self._payload, 0)
        elif route.policies is None or self._start_plugins(route.policies):
            self._send_to_endpoint(route)

    def request_data(self, payload: bytes, *, done: bool, trailers: bytes) -> None:
        """Take more of the request's body."""
        if self.upgrade and not self.tunnel:
            # Not a byte of it may pass for a request before the upstream has switched.
            self._early += payload
            self._early_end |= done
            return
        self.request_done = done
        self._received += len(payload)
        buffered = self._buffered
        if not self.tunnel and self._is_too_long(payload):
            return
        if self._is_replaced:
            self._set_deadline()
            return
        run = self._run
        if run is not None and buffered is None and not self.tunnel:
            filtered = run.request_data(payload, done=done)
            if filtered is None:
                return
            payload = filtered
        if buffered is not None:
            buffered.append(payload)
            self._trailers = trailers
            if done:
                self._body_is_whole()
            else:
                self._set_deadline()
        elif self.upstream is None:
            # Still connecting; the client is not read meanwhile, so this is at most one more read. Or a plugin thinks.
            self._payload += payload
            self._trailers = trailers
            self.client.update_reading()
        elif payload or done:
            if payload:
                self._kept = False
                self._payload = b""
            self.upstream.send_data(payload, done=done, trailers=trailers)
            self._set_deadline()

    def _is_too_long(self, payload: bytes) -> bool:
        """Refuse a body with which more came than is taken, or than can be held back."""
        limit, buffered = self._limit, self._buffered
        if limit >= 0 and self._received > limit:
            self.refuse(413, f"body longer than {limit} bytes")
            return True
        limit = self._buffered_limit
        if buffered is None or self._received <= limit:
            return False
        self._buffered = None
        # A plugin may do without it.
        self._payload = b"".join((*buffered, payload))
        if self._run is None or not self._run.body_read(None, limit):
            self.refuse(413, f"body longer than the {limit} bytes that can be held back")
        return True

    def end_tunnel(self) -> None:
        """Tell the upstream that the client has nothing more to say."""
        if self.upstream is not None:
            self.upstream.end_tunnel()

    def abandon(self) -> None:
        """Forget the request, as the client is gone."""
        if self.active:
            self._drop_upstream()
            if not self.tunnel:
                self.reason = self.reason or "client closed the connection"
            if not self.answer_begun:
                self.status = _CLIENT_GONE
            self.finish()

    def refuse(self, status: int, reason: str, extra: bytes = b"") -> None:
        """Answer by ourselves; an answer that has begun is cut off instead. `extra` are whole header lines."""
        self._drop_upstream()
        self._buffered = None
        self.reason = reason
        if self.tunnel:
            self.finish()
            self.client.end_tunnel()
        elif self.answer_begun:
            self.finish()
            self.client.cut_off()
        else:
            self.status = status
            answer, body = own_answer(status, reason, extra)
            other = self.client.own_answer(answer, status, reason)
            if other is not None:
                answer, body = other, b""
            if self._run is not None:
                self._run.own_answer(answer, body)
                return
            self.bytes_sent = 0 if self.head_only else len(body)
            body = b"" if self.head_only else body
            self.client.send_answer(answer, body, bodiless=self.head_only, done=True, trailers=b"")

    def timed_out(self) -> None:
        """Nothing moved for too long: tell apart on whom we waited."""
        upstream = self.upstream
        if self.tunnel:
            self.refuse(0, "nothing passed through the tunnel for too long")
        elif self._context.clock.now >= self._expires:
            self._note_error("timeout")
            self.refuse(504, "the request took longer than its route allows")
        elif self._run is not None and self._run.is_waiting and self._buffered is None:
            self.refuse(504, "a plugin of the route took too long")
        elif self._waiting is not None:
            self.refuse(503, "no connection to the upstream was free in time")
        elif self.client.write_paused:
            self.reason = "client took nothing of the answer in time"
            self.client.abort()
        elif not self.request_done and not (upstream is not None and upstream.write_paused):
            self.refuse(408, "the rest of the body did not come in time")
        elif upstream is not None and upstream.write_paused:
            self._failed("timeout", 504, "upstream took nothing of the request in time")
        else:
            self._failed("timeout", 504, "upstream did not answer in time")

    # Reaching an endpoint

    @property
    def takes_body(self) -> bool:
        """Whether more of the request's body could be passed on or kept."""
        if self.upgrade and not self.tunnel:
            return False
        upstream = self.upstream
        if upstream is not None:
            return self._is_replaced or not upstream.write_paused
        if self._buffered is not None or self._is_replaced:
            return True
        # So that a client that leaves while a plugin thinks is noticed.
        is_thinking = self._run is not None and self._run.is_waiting
        return is_thinking and len(self._payload) < self._context.config.buffer_high

    def _send_to_endpoint(self, route: RouteTarget) -> None:
        pool = route.choose(self.tried, self)
        if pool is None:
            self.refuse(503, route.unavailable)
        elif self._state is None or self._is_within_bounds(self._state):
            self._send_to(pool)

    def _is_within_bounds(self, state: UpstreamState) -> bool:
        if self._is_counted:
            return True
        reason = state.may_begin()
        if reason is not None:
            self._state = None
            self.refuse(503, reason)
            return False
        self._is_counted = True
        return True

    def _part_with_state(self) -> None:
        state = self._state
        if state is not None and self._is_counted:
            for _ in range(self._budgeted):
                state.retry_ended()
            state.ended()
        self._is_counted = False
        self._budgeted = 0
        self._state = None

    def _send_to(self, pool: EndpointPool) -> None:
        upstream = pool.acquire(certain=self.method not in IDEMPOTENT)
        if upstream is None:
            self._connect(pool)
        else:
            self.pool = pool
            self._send(upstream)

    def _connect(self, pool: EndpointPool) -> None:
        self.pool = pool
        if self._trace is not None:
            self._trace.attempt(self, pool)
        circuit = self._state.circuit if self._state is not None else None
        if circuit is not None and not circuit.acquire_connection():
            self._wait_for_connection(pool)
            return
        self._circuit = circuit
        self.client.deadline = math.inf
        self._connecting = asyncio.get_running_loop().create_task(self._open(pool), name=f"connect {pool.label}")
        self.client.update_reading()

    def _wait_for_connection(self, pool: EndpointPool) -> None:
        """Queue for a connection, as the upstream's bound is reached."""

        def resume() -> None:
            if self.active and self._waiting is resume:
                self._waiting = None
                self._send_to(pool)

        state = self._state
        assert state is not None
        reason = state.wait(resume)
        if reason is not None:
            self.refuse(503, reason)
            return
        self._waiting = resume
        self.client.deadline = min(self._context.clock.now + self._context.config.read_timeout_s, self._expires)
        self.client.update_reading()

    async def _open(self, pool: EndpointPool) -> None:
        route = self.route
        timeout_s = (route.connect_timeout_s if route is not None else None) or self._context.config.connect_timeout_s
        circuit = self._circuit
        remaining_s = max(0.0, self._expires - self._context.clock.now)
        try:
            async with asyncio.timeout(min(timeout_s, remaining_s)):
                upstream = await pool.connect(self.client.peer)
        except TimeoutError:
            self._connecting = None
            _release(circuit)
            if remaining_s < timeout_s:
                # That the whole request has little time says nothing about the endpoint.
                self.refuse(504, "the request took longer than its route allows")
            else:
                self._failed("connect", 504, f"no connection to {pool.label} in time")
        except (OSError, UnicodeError) as error:
            self._connecting = None
            _release(circuit)
            why = error.strerror if isinstance(error, OSError) else error
            self._failed("connect", 502, f"cannot connect to {pool.label}: {why}")
        else:
            self._connecting = None
            upstream.count_by(circuit)
            self._send(upstream)

    def _send(self, upstream: UpstreamSide) -> None:
        client = self.client
        self.upstream = upstream
        if self._context.times_endpoints or (self.pool is not None and self.pool.latency is not None):
            self._attempted = time.monotonic()
        if not self.lines:
            self.lines = forwarded_lines(self.fields, self.origin, client.peer)
        if self._trace is not None:
            self._trace.attempt(self, upstream.pool)
            self.lines = self._trace.headed(self.lines)
        is_whole = self.request_done or self._is_replaced
        upstream.begin(self, self._payload, done=is_whole, trailers=self._trailers)
        if not self.request_done:
            self._ask_for_body()
            self._restart_pace()
            client.update_reading()
        if client.write_paused:
            upstream.pause_reading()
        self._set_deadline()

    def _ask_for_body(self) -> None:
        if self.fields.expects_continue and not self._continued and not self._received:
            self._continued = True
            self.client.send_continue()

    def _failed(self, kind: LocalError, status: int, reason: str, condition: str = "") -> None:
        """Try again after a failed attempt, or answer with its failure.

        `condition` is what routes have to retry on, if it is not the kind of failure.
        """
        self._note_error("closed" if kind == "reset" else kind)
        if self._state is not None and self.pool is not None:
            self._state.report_pool(self.pool, kind)
        must_have_other = self.route is None or self.route.policies is None
        if not self._retry(condition or kind, must_have_other=must_have_other):
            self.refuse(status, reason)

    def _note_error(self, kind: str) -> None:
        self._context.stats.upstream_error(kind)
        self._traffic().count_error(kind)
        if self.pool is not None:
            self.pool.traffic.count_error(kind)
        if self._trace is not None:
            self._trace.end_attempt(self._endpoint_status, kind)

    def _note_retry(self) -> None:
        """Count that the request is sent again, and the answer that is not passed on, if there was one."""
        self._context.stats.retries += 1
        self._traffic().retries += 1
        pool = self.pool
        if pool is not None:
            pool.traffic.retries += 1
            if self._endpoint_status:
                pool.traffic.count_status(self._endpoint_status)
        if self._trace is not None:
            self._trace.end_attempt(self._endpoint_status, "" if self._endpoint_status else "closed")
        self._endpoint_status = 0

    def _traffic(self) -> RouteTraffic:
        """Where the request is counted."""
        route, facts, stats = self.route, self._facts, self._context.stats
        if route is None:
            return stats.unrouted
        if facts is not None and facts.backend:
            return stats.of_route(route, facts.backend)
        traffic = route.traffic
        return stats.of_route(route, "") if traffic is None else traffic

    def _retry(self, kind: str, *, must_have_other: bool) -> bool:
        route, pool = self.route, self.pool
        if route is None or pool is None or self.answer_begun:
            return False
        retries = route.policies.retries if route.policies is not None else _DEFAULT_RETRIES
        if self._run is not None and self._run.has_answer:
            return False
        if self._attempts >= retries.attempts or (kind != "status" and kind not in retries.reasons):
            return False
        never_began = kind in ("connect", "refused-stream")
        if not never_began and not self._may_repeat(retries.unsafe):
            return False
        if retries.total_s is not None and time.monotonic() - self._started > retries.total_s:
            return False
        self.tried = (*self.tried, pool)
        other = route.choose(self.tried, self)
        if other is None or (other in self.tried and (must_have_other or never_began)):
            return False
        if self._state is not None and not self._is_within_budget(self._state, retries.budget):
            return False
        self._attempts += 1
        self._note_retry()
        self._drop_upstream()
        self._send_to(other)
        return True

    def _is_within_budget(self, state: UpstreamState, share: float | None) -> bool:
        if not self._is_counted:
            # Another upstream than before, or the first retry to one without bounds.
            if state.may_begin() is not None:
                return False
            self._is_counted = True
        if not state.may_retry(share):
            return False
        self._budgeted += 1
        return True

    def _may_repeat(self, unsafe: bool) -> bool:
        """Say whether a request that may have got through can be sent again."""
        if not self._kept:
            return False
        return unsafe or self.method in IDEMPOTENT or not (self._payload or self.request_done)

    def _drop_upstream(self) -> None:
        if self._connecting is not None:
            self._connecting.cancel()
            self._connecting = None
            # Not the task's business, which may not have begun.
            _release(self._circuit)
        if self._waiting is not None:
            if self._state is not None and self._state.circuit is not None:
                self._state.circuit.cancel(self._waiting)
            self._waiting = None
        upstream, self.upstream = self.upstream, None
        if upstream is not None:
            upstream.discard()

    def _set_deadline(self) -> None:
        """Bound the wait for whoever has to move next."""
        config, client, route = self._context.config, self.client, self.route
        if self.tunnel:
            timeout_s = self._tunnel_idle_s()
        elif client.write_paused or route is None or not self.request_done:
            timeout_s = config.body_timeout_s if self.request_done else self._body_timeout_s()
            if route is not None and self.upstream is not None and self.upstream.write_paused:
                timeout_s = route.send_timeout_s or config.send_timeout_s
        elif self.upstream is not None and self.upstream.write_paused:
            timeout_s = route.send_timeout_s or config.send_timeout_s
        else:
            timeout_s = route.read_timeout_s or config.read_timeout_s
            policies = route.policies
            if policies is not None and policies.retries.per_try_s is not None and not self.answer_begun:
                timeout_s = min(timeout_s, policies.retries.per_try_s)
        client.deadline = min(self._context.clock.now + timeout_s, self._expires)

    def _restart_pace(self) -> None:
        self._paced = self._received
        self._pace_began = self._context.clock.now

    def _body_timeout_s(self) -> float:
        """How long to wait for more of the body: until the end of the period in which too little of it came.

        One of unknown length may be a stream of messages, and so may one that is being answered already.
        """
        config = self._context.config
        timeout_s = config.body_timeout_s
        if self.fields.content_length < 0 or self.answer_begun or not config.min_body_rate:
            return timeout_s
        if self._received - self._paced >= config.min_body_rate * timeout_s:
            self._restart_pace()
        return self._pace_began + timeout_s - self._context.clock.now

    def _tunnel_idle_s(self) -> float:
        policies = self.route.policies if self.route is not None else None
        idle_s = policies.idle_s if policies is not None else None
        return self._context.config.tunnel_idle_timeout_s if idle_s is None else idle_s

    # From the upstream

    def informational(self, answer: AnswerHead) -> None:
        """Pass a 1xx on."""
        if not self.answer_begun:
            self.client.send_informational(answer)
            self._set_deadline()

    def answer(self, answer: AnswerHead, payload: bytes, *, bodiless: bool, done: bool, trailers: bytes) -> None:
        """Pass the head of the answer on, with what is there of its body."""
        route = self.route
        policies = route.policies if route is not None else None
        pool = self.pool
        if pool is not None:
            self._endpoint_status = answer.status
            self._from_endpoint += len(payload)
            if self._context.times_endpoints:
                self._waited = time.monotonic() - self._attempted
            if self._state is not None:
                self._state.report_pool(pool, answer.status)
            if pool.latency is not None:
                now = time.monotonic()
                pool.latency.observe(now - self._attempted, now)
        if policies is not None:
            if answer.status in policies.retries.statuses and self._retry("status", must_have_other=False):
                return
            if policies.sets_cookie and route is not None and pool is not None:
                answer.lines += route.answer_lines(self, pool)
        if self._run is not None:
            self._run.answer(answer, payload, bodiless=bodiless, done=done, trailers=trailers)
        else:
            self.send_head(answer, payload, bodiless=bodiless, done=done, trailers=trailers)

    def answer_data(self, payload: bytes, *, done: bool, trailers: bytes) -> None:
        """Pass more of the answer's body on."""
        self._from_endpoint += len(payload)
        if self._run is not None and not self.tunnel:
            self._run.answer_data(payload, done=done, trailers=trailers)
        else:
            self.send_data(payload, done=done, trailers=trailers)

    def send_head(self, answer: AnswerHead, payload: bytes, *, bodiless: bool, done: bool, trailers: bytes) -> None:
        """Send the head of the answer to the client, with what is there of its body."""
        self.answer_begun = True
        self.status = answer.status
        self._payload = b""
        self.bytes_sent = len(payload)
        self.client.send_answer(answer, payload, bodiless=bodiless, done=done, trailers=trailers)
        if not done:
            self._set_deadline()

    def send_data(self, payload: bytes, *, done: bool, trailers: bytes) -> None:
        """Send more of the answer's body to the client."""
        self.bytes_sent += len(payload)
        client = self.client
        client.send_data(payload, done=done, trailers=trailers)
        if not done:
            if client.write_paused and self.upstream is not None and client.unsent() >= self._kept_for_client():
                self.upstream.pause_reading()
            self._set_deadline()

    def switch(self, answer: AnswerHead, payload: bytes) -> None:
        """Open the tunnel: the upstream has switched to the protocol that the client asked for."""
        self.answer_begun = self.tunnel = True
        self.status = self._endpoint_status = answer.status
        self.bytes_sent = len(payload)
        self.request_done = False
        self._expires = math.inf
        early, self._early = self._early, b""
        self.client.open_tunnel(answer, payload)
        if early and self.upstream is not None:
            self.upstream.send_data(early, done=False, trailers=b"")
        if self._early_end:
            self.end_tunnel()
        self.client.update_reading()
        self._set_deadline()

    def upstream_failed(self, reason: str) -> None:
        """The upstream's answer is not one; its connection is closed already."""
        self.upstream = None
        self._note_error("invalid")
        self.refuse(502, reason)

    def upstream_lost(self, upstream: UpstreamSide) -> None:
        """The upstream's connection ended before its answer did."""
        self.upstream = None
        if self.tunnel:
            self.finish()
            self.client.end_tunnel()
            return
        if not upstream.seen and upstream.reused and not self.retried and self._may_repeat(False):
            self.retried = True
            self._note_retry()
            self._connect(upstream.pool)
            return
        when = "in the middle of its answer" if upstream.seen else "without an answer"
        self._failed("reset", 502, f"upstream closed the connection {when}")

    def upstream_refused(self, upstream: UpstreamSide) -> None:
        """The upstream has not begun with the request, so that any may be sent again that is still at hand."""
        self.upstream = None
        if upstream.seen:
            self._failed("reset", 502, f"{upstream.pool.label} took back the answer that it had begun")
        elif self._kept and not self.retried:
            self.retried = True
            self._note_retry()
            self._connect(upstream.pool)
        elif self._kept:
            self._failed("connect", 502, f"{upstream.pool.label} refuses the request", "refused-stream")
        else:
            self.refuse(502, f"{upstream.pool.label} refused the request when a part of it was sent")

    def upstream_resumed(self) -> None:
        """The upstream takes more of the body again."""
        self._restart_pace()
        self.client.update_reading()
        self._set_deadline()

    def client_paused(self, paused: bool) -> None:
        """The client is slow, or takes more again."""
        upstream = self.upstream
        if upstream is not None:
            if not paused:
                if self._run is None or not self._run.is_holding:
                    upstream.resume_reading()
            elif self.client.unsent() >= self._kept_for_client():
                upstream.pause_reading()
            self._set_deadline()

    def _kept_for_client(self) -> int:
        """Bytes of the answer that the route lets wait for a slow client."""
        policies = self.route.policies if self.route is not None else None
        return policies.buffer_response if policies is not None and not self.tunnel else 0

    # For plugins

    def call(self, route: RouteTarget, body: bytes) -> None:
        """Send a request of the gateway's own, that was begun and has its lines, on a route of its own."""
        self.route = route
        self._payload = body
        self._trailers = b""
        self._received = len(body)
        self.request_done = True
        self._send_to_endpoint(route)

    @property
    def body_at_hand(self) -> bytes:
        """What came of the body so far and was not sent."""
        return self._payload

    def replace_body(self, body: bytes) -> None:
        """Send this body, as a whole, instead of what the client sends."""
        self._payload = body
        self._is_replaced = not self.request_done
        if self._trailers:
            return
        if body or self.fields.chunked or self.fields.content_length >= 0:
            self.fields.chunked = False
            self.fields.content_length = len(body)

    def filter_body_at_hand(self, feed: Callable[[bytes, bool], bytes]) -> None:
        """Replace what is there of the body by what a filter makes of it."""
        self._payload = feed(self._payload, self.request_done)

    def go_on(self) -> None:
        """Choose an endpoint for a request that waited for its plugins."""
        route = self.route
        assert route is not None
        self._send_to_endpoint(route)

    def wait_for_plugins(self) -> None:
        """Give an awaited hook as long as an upstream would get."""
        is_late = self._run is not None and self._run.is_refused
        expires = math.inf if is_late else self._expires
        self.client.deadline = min(self._context.clock.now + self._context.config.read_timeout_s, expires)
        self.client.update_reading()

    def let_go_of_upstream(self) -> None:
        """Take nothing more of the upstream's answer, as another one is sent."""
        self._drop_upstream()

    def pause_upstream(self) -> None:
        """Take no more of the answer for now."""
        if self.upstream is not None:
            self.upstream.pause_reading()

    def resume_upstream(self) -> None:
        """Go on taking the answer, unless the client is slow."""
        if self.upstream is not None and not self.client.write_paused:
            self.upstream.resume_reading()

    # The end

    def log_details(self) -> dict[str, object]:
        """What the detailed access log says of a request besides the record that is made for every log."""
        details: dict[str, object] = {"request_bytes": self._received}
        if self._endpoint_status:
            details["upstream_status"] = self._endpoint_status
            details["upstream_bytes"] = self._from_endpoint
            details["upstream_seconds"] = round(self._waited, 6)
        retries = self._attempts + (1 if self.retried else 0)
        if retries:
            details["retries"] = retries
        if self.client.peer.tls is not None:
            details["tls"] = self.client.peer.tls.version() or ""
        if self._trace is not None:
            details["trace_id"] = self._trace.trace_id
        return details

    def finish(self) -> None:
        """Count and log the request, and let go of what it held; clients' sides call this behind the last byte."""
        self.active = False
        context, route, pool = self._context, self.route, self.pool
        duration_s = time.monotonic() - self._started
        if self._run is not None:
            self._run.finish(self.status, duration_s)
            self._run = None
        traffic, bucket = self._traffic(), latency_bucket(duration_s)
        context.stats.requests += 1
        traffic.count(self.status, bucket, duration_s, self._received, self.bytes_sent)
        if pool is not None and self._endpoint_status:
            pool.traffic.count(self._endpoint_status, bucket, duration_s, self._received, self.bytes_sent)
        if self.reason:
            context.stats.refused(self.status, route is not None)
        if context.access_log is not None:
            context.access_log.append(
                (
                    context.clock.log_time,
                    self.origin.address,
                    self.method,
                    self.target,
                    self.client.version,
                    self.status,
                    self.bytes_sent,
                    duration_s,
                    self.fields,
                    self.request_id,
                    route.name if route is not None else "",
                    traffic.upstream,
                    pool.label if pool is not None else "",
                    self,
                    self.reason,
                )
            )
        if self._trace is not None:
            self._trace.end_attempt(self._endpoint_status, "" if self._endpoint_status else "given up")
            self._trace.finish(self, self._received, traffic.upstream)
            self._trace = None
        if self._state is not None:
            self._part_with_state()
        self.route = self.pool = None
        self.tried = _NO_POOLS
        self._payload = self._early = b""
        self._early_end = False
        self._facts = None
