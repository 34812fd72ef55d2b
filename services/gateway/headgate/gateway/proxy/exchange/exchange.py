"""One request and its answer: from a parsed head over route, endpoint and connection to the last byte and the log line.

An exchange belongs to a client's side and may serve one request after the other there. It moves payload between two
sides; it parses nothing and knows no version of HTTP. All its methods are called from callbacks of the event loop, none
awaits; only opening a connection is a task.

`admission` leads a request to its route. An exchange has a `RequestBody`, which keeps what came of the body, with a
`BodyIntake` that bounds it, `Attempts`, which find an endpoint and decide about retries, `Deadlines`, which bound every
wait, and `Books`. These know the exchange as the `ActiveRequest` that it is.
"""

import math
import time
from typing import Final

from headgate.gateway.model.memory_budget import MemoryBudget
from headgate.gateway.proxy.context import ProxyContext
from headgate.gateway.proxy.exchange.accounting import Accounting
from headgate.gateway.proxy.exchange.active_request import ActiveRequest
from headgate.gateway.proxy.exchange.admission import admit, admit_with_body
from headgate.gateway.proxy.exchange.attempts import Attempts
from headgate.gateway.proxy.exchange.body_intake import BodyIntake
from headgate.gateway.proxy.exchange.deadlines import Deadlines
from headgate.gateway.proxy.exchange.expiry import expire
from headgate.gateway.proxy.exchange.request_body import RequestBody
from headgate.gateway.proxy.heads.forward import forwarded_lines, new_request_id
from headgate.gateway.proxy.heads.head import AnswerHead, RequestFields
from headgate.gateway.proxy.heads.own import id_line, own_answer, shown_reason
from headgate.gateway.proxy.peer import Peer
from headgate.gateway.proxy.request_source import UpstreamState
from headgate.gateway.proxy.seam import RouteTarget
from headgate.gateway.proxy.sides import ClientSide, UpstreamSide

_CLIENT_GONE: Final = 499
"""What logs and metrics say of a client that left before its answer; nginx's number."""


class Exchange(ActiveRequest):
    """The request under way on one client's side."""

    __slots__ = ("_context", "_early", "_early_end", "accounting", "attempts", "deadlines", "intake")

    def __init__(self, client: ClientSide, context: ProxyContext) -> None:
        super().__init__(client, RequestBody(context.buffers))
        self._context = context
        self.accounting = Accounting(self, context)
        self.deadlines = Deadlines(self, context)
        self.attempts = Attempts(self, context, self.accounting, self.deadlines)
        self.intake = BodyIntake(self, context, self.deadlines)
        self._early: list[bytes] | None = None
        """What the client said to an upstream that has not switched to its protocol yet; None: nothing."""
        self._early_end = False
        """And that it has nothing more to say."""

    def begin(self, method: bytes, target: bytes, fields: RequestFields) -> None:
        """Take on a request whose head was read; `dispatch` follows once its first body bytes are known."""
        self.active = True
        self.method = method
        self.target = target
        self.fields = fields
        peer = self.client.peer
        self.origin = self._find_origin(peer, fields) if peer.is_trusted else peer
        self.lines = self.upgrade = b""
        self.head_only = method == b"HEAD"
        self.request_id = fields.request_id or new_request_id()
        self.tunnel = self.request_done = self.answer_begun = self.has_other_host = False
        self.status = self.bytes_sent = 0
        self.reason = ""
        self.route = None
        self._facts = None
        self.run = None
        self.rerouting = None
        self.body.begin()
        self.attempts.begin()
        self.accounting.begin()
        self.deadlines.begin()
        self.began = time.monotonic()

    def note_upstream(self, state: UpstreamState | None) -> None:
        """Hear of the upstream that is about to be chosen from."""
        self.attempts.note_upstream(state)

    @property
    def context(self) -> ProxyContext:
        """What its connection has in common with others."""
        return self._context

    @property
    def buffers(self) -> MemoryBudget:
        """What all bodies that the worker holds may take."""
        return self._context.buffers

    @property
    def explains_errors(self) -> bool:
        """Whether clients may read why a request failed behind the gateway."""
        return self._context.config.detailed_errors

    # From the client

    def dispatch(self, path: bytes, payload: bytes, *, done: bool, trailers: bytes = b"") -> None:
        """Find route and endpoint, and send the request with what is there of its body."""
        self.request_done = done
        self.body.start(payload, trailers)
        admit(self, self._context, path)

    def _find_origin(self, peer: Peer, fields: RequestFields) -> Peer:
        trusted = self._context.trusted
        return peer if trusted is None else trusted.origin(peer, fields)

    def allow(self, seconds: float) -> None:
        """Bound the time for the whole request, if it is not shorter already."""
        self.deadlines.allow(seconds)

    def request_data(self, payload: bytes, *, done: bool, trailers: bytes) -> None:
        """Take more of the request's body."""
        if self.upgrade and not self.tunnel:
            # Not a byte of it may pass for a request before the upstream has switched.
            if self._early is None:
                self._early = []
            self._early.append(payload)
            self._early_end |= done
            return
        self.request_done = done
        body = self.body
        body.received += len(payload)
        if not self.tunnel and self.intake.is_too_long(payload):
            return
        if body.is_replaced:
            self.deadlines.set()
            return
        run = self.run
        if run is not None and not body.is_held and not self.tunnel:
            filtered = run.request_data(payload, done=done)
            if filtered is None:
                return
            payload = filtered
        if body.is_held:
            if self.intake.keep(payload, done, trailers):
                admit_with_body(self, self._context)
        elif self.upstream is None:
            # Still connecting; the client is not read meanwhile, so this is at most one more read. Or a plugin thinks.
            body.keep(payload)
            body.trailers = trailers
            self.client.update_reading()
        elif payload or done:
            if payload:
                body.is_kept = False
                body.drop()
            passed = self.intake.passed_trailers(trailers) if trailers else b""
            self.upstream.send_data(payload, done=done, trailers=passed)
            self.deadlines.set()

    def end_tunnel(self) -> None:
        """Tell the upstream that the client has nothing more to say."""
        if self.upstream is not None:
            self.upstream.end_tunnel()

    def abandon(self) -> None:
        """Forget the request, as the client is gone."""
        if self.active:
            self.attempts.drop()
            if not self.tunnel:
                self.reason = self.reason or "client closed the connection"
            if not self.answer_begun:
                self.status = _CLIENT_GONE
            self.finish()

    def refuse(self, status: int, reason: str, extra: bytes = b"") -> None:
        """Answer by ourselves; an answer that has begun is cut off instead. `extra` are whole header lines."""
        self.attempts.drop()
        self.body.is_held = False
        self.reason = reason
        if self.tunnel:
            self.finish()
            self.client.end_tunnel()
        elif self.answer_begun:
            self.finish()
            self.client.cut_off()
        else:
            self.status = status
            detailed = self.explains_errors
            answer, body = own_answer(status, reason, self.request_id, extra, detailed=detailed)
            other = self.client.own_answer(answer, status, shown_reason(status, reason, detailed=detailed))
            if other is not None:
                other.lines += id_line(self.request_id)
                answer, body = other, b""
            if self.run is not None:
                self.run.own_answer(answer, body)
                return
            self.bytes_sent = 0 if self.head_only else len(body)
            body = b"" if self.head_only else body
            self.client.send_answer(answer, body, bodiless=self.head_only, done=True, trailers=b"")

    def timed_out(self) -> None:
        """Nothing moved for too long."""
        expire(self, self.attempts, self.deadlines, self.accounting)

    # To the endpoint

    @property
    def takes_body(self) -> bool:
        """Whether more of the request's body could be passed on or kept."""
        if self.upgrade and not self.tunnel:
            return False
        upstream, body = self.upstream, self.body
        if upstream is not None:
            return body.is_replaced or not upstream.write_paused
        if body.is_held or body.is_replaced:
            return True
        # So that a client that leaves while a plugin thinks is noticed.
        is_thinking = self.run is not None and self.run.is_waiting
        return is_thinking and body.size < self._context.config.buffer_high

    def send(self, upstream: UpstreamSide) -> None:
        """Send the request, with what is there of its body."""
        client, body = self.client, self.body
        self.upstream = upstream
        if not self.lines:
            self.lines = forwarded_lines(self.fields, self.origin, client.peer)
        self.accounting.sending(upstream.pool)
        is_whole = self.request_done or body.is_replaced
        trailers = self.intake.passed_trailers(body.trailers) if body.trailers else b""
        upstream.begin(self, body.at_hand(), done=is_whole, trailers=trailers)
        if not self.request_done:
            self.intake.ask()
            self.deadlines.restart_pace()
            client.update_reading()
        if client.write_paused:
            upstream.pause_reading()
        self.deadlines.set()

    # From the upstream

    def informational(self, answer: AnswerHead) -> None:
        """Pass a 1xx on."""
        if not self.answer_begun:
            self.client.send_informational(answer)
            self.deadlines.set()

    def answer(self, answer: AnswerHead, payload: bytes, *, bodiless: bool, done: bool, trailers: bytes) -> None:
        """Pass the head of the answer on, with what is there of its body."""
        pool, route = self.pool, self.route
        if pool is not None:
            self.accounting.answered(pool, answer.status, len(payload))
        policies = route.policies if route is not None else None
        if policies is not None:
            if answer.status in policies.retries.statuses and self.attempts.retry_status():
                return
            if policies.sets_cookie and route is not None and pool is not None:
                answer.lines += route.answer_lines(self, pool)
        if self.run is not None:
            self.run.answer(answer, payload, bodiless=bodiless, done=done, trailers=trailers)
        else:
            self.send_head(answer, payload, bodiless=bodiless, done=done, trailers=trailers)

    def answer_data(self, payload: bytes, *, done: bool, trailers: bytes) -> None:
        """Pass more of the answer's body on."""
        self.accounting.took(len(payload))
        if self.run is not None and not self.tunnel:
            self.run.answer_data(payload, done=done, trailers=trailers)
        else:
            self.send_data(payload, done=done, trailers=trailers)

    def send_head(self, answer: AnswerHead, payload: bytes, *, bodiless: bool, done: bool, trailers: bytes) -> None:
        """Send the head of the answer to the client, with what is there of its body."""
        self.answer_begun = True
        self.status = answer.status
        if not (self.body.counted and self._is_body_read()):
            self.body.drop()
        self.bytes_sent = len(payload)
        self.client.send_answer(answer, payload, bodiless=bodiless, done=done, trailers=trailers)
        if not done:
            self.deadlines.set()

    def _is_body_read(self) -> bool:
        """Plugins or conditions have the whole body, and keep it until the request has ended."""
        if self._facts is not None and self._facts.body is not None:
            return True
        return self.run is not None and self.run.has_body

    def send_data(self, payload: bytes, *, done: bool, trailers: bytes) -> None:
        """Send more of the answer's body to the client."""
        self.bytes_sent += len(payload)
        client = self.client
        client.send_data(payload, done=done, trailers=trailers)
        if not done:
            if client.write_paused and self.upstream is not None and client.unsent() >= self._kept_for_client():
                self.upstream.pause_reading()
            self.deadlines.set()

    def switch(self, answer: AnswerHead, payload: bytes) -> None:
        """Open the tunnel: the upstream has switched to the protocol that the client asked for."""
        self.answer_begun = self.tunnel = True
        self.status = answer.status
        self.accounting.switched(answer.status)
        self.bytes_sent = len(payload)
        self.request_done = False
        self.deadlines.expires = math.inf
        early, self._early = self._early, None
        self.client.open_tunnel(answer, payload)
        if early is not None and self.upstream is not None:
            self.upstream.send_data(b"".join(early), done=False, trailers=b"")
        if self._early_end:
            self.end_tunnel()
        self.client.update_reading()
        self.deadlines.set()

    def upstream_failed(self, reason: str) -> None:
        """The upstream's answer is not one; its connection is closed already."""
        self.upstream = None
        self.accounting.failed("invalid")
        self.refuse(502, reason)

    def upstream_lost(self, upstream: UpstreamSide) -> None:
        """The upstream's connection ended before its answer did."""
        self.upstream = None
        if self.tunnel:
            self.finish()
            self.client.end_tunnel()
        else:
            self.attempts.lost(upstream)

    def upstream_refused(self, upstream: UpstreamSide) -> None:
        """The upstream has not begun with the request, so that any may be sent again that is still at hand."""
        self.upstream = None
        self.attempts.refused(upstream)

    def upstream_resumed(self) -> None:
        """The upstream takes more of the body again."""
        self.deadlines.restart_pace()
        self.client.update_reading()
        self.deadlines.set()

    def client_paused(self, paused: bool) -> None:
        """The client is slow, or takes more again."""
        upstream = self.upstream
        if upstream is not None:
            if not paused:
                if self.run is None or not self.run.is_holding:
                    upstream.resume_reading()
            elif self.client.unsent() >= self._kept_for_client():
                upstream.pause_reading()
            self.deadlines.set()

    def _kept_for_client(self) -> int:
        """Bytes of the answer that the route lets wait for a slow client."""
        policies = self.route.policies if self.route is not None else None
        return policies.buffer_response if policies is not None and not self.tunnel else 0

    # For hooks

    def call(self, route: RouteTarget, body: bytes) -> None:
        """Send a request of the gateway's own, that was begun and has its lines, on a route of its own."""
        self.route = route
        self.body.start(body, b"")
        self.request_done = True
        self.attempts.choose(route)

    def go_on(self) -> None:
        """Choose an endpoint for a request that waited for its plugins."""
        route = self.route
        assert route is not None
        self.attempts.choose(route)

    def route_again(self, target: bytes, original: tuple[bytes, bytes, bytes], variables: dict[str, object]) -> bool:
        """Choose a route for another target; see `reroute`."""
        if not self.reroute(target, original, variables):
            return False
        admit(self, self._context, target.partition(b"?")[0])
        return True

    def start_over(self, *, unsafe: bool = False) -> bool:
        """Give up what was tried, so that the request can go elsewhere by `go_on`; False: it has to be answered.

        `unsafe`: also if its method is not idempotent and an endpoint may have acted on it.
        """
        if self.deadlines.is_expired or not self.attempts.may_start_over(unsafe):
            return False
        self.attempts.start_over()
        self.lines = b""
        self.reason = ""
        self.status = 0
        return True

    def wait_for_hooks(self) -> None:
        """Give an awaited hook as long as an upstream would get."""
        if self.run is not None and not self.run.has_answer and self.body.size and not self.intake.count():
            return
        is_late = self.run is not None and self.run.is_refused
        self.deadlines.wait(self._context.config.read_timeout_s, is_late=is_late)
        self.client.update_reading()

    def let_go_of_upstream(self) -> None:
        """Take nothing more of the upstream's answer, as another one is sent."""
        self.attempts.drop()

    def pause_upstream(self) -> None:
        """Take no more of the answer for now."""
        if self.upstream is not None:
            self.upstream.pause_reading()

    def resume_upstream(self) -> None:
        """Go on taking the answer, unless the client is slow."""
        if self.upstream is not None and not self.client.write_paused:
            self.upstream.resume_reading()

    # The end

    def finish(self) -> None:
        """Count and log the request, and let go of what it held; clients' sides call this behind the last byte."""
        self.active = False
        duration_s = time.monotonic() - self.began
        if self.run is not None:
            self.run.finish(self.status, duration_s)
            self.run = None
        elif self.rerouting is not None:
            self.target = self.rerouting.original[1]
        self.accounting.close(duration_s)
        self.attempts.close()
        self.route = None
        self.body.drop()
        self._early = None
        self._early_end = False
        self._facts = None
