"""One request and its answer: from a parsed head over route, endpoint and connection to the last byte and the log line.

An exchange belongs to a client connection and is used again for the next request on it. It moves bytes between the two
sides and decides about retries and failures; it parses nothing. All its methods are called from callbacks of the event
loop, none awaits; only opening a connection is a task.

A request is sent again at most once, and only if that cannot do harm: nothing of an answer came, the connection had
been used before (so its death was most likely old age), and the request is idempotent and still at hand, or none of its
announced body was sent. A connection that cannot be opened is replaced once by one to another endpoint.
"""

import asyncio
import math
import time
from typing import TYPE_CHECKING, Final

from headgate.gateway.proxy.context import ProxyContext
from headgate.gateway.proxy.errors import own_answer
from headgate.gateway.proxy.facts import RequestFacts
from headgate.gateway.proxy.forward import answer_framing, answer_head, new_request_id, upstream_lines
from headgate.gateway.proxy.framing import encode_chunk, last_chunk
from headgate.gateway.proxy.head import AnswerHead, RequestFields
from headgate.gateway.proxy.pool import EndpointPool
from headgate.gateway.proxy.seam import NeedsBody, RouteTarget
from headgate.gateway.proxy.upstream import UpstreamConnection

if TYPE_CHECKING:
    from headgate.gateway.proxy.downstream import ClientConnection

_IDEMPOTENT: Final = frozenset({b"GET", b"HEAD", b"OPTIONS", b"PUT", b"DELETE"})
_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
_CLIENT_GONE: Final = 499
"""What logs and metrics say of a client that left before its answer; nginx's number."""
_JOIN_LIMIT: Final = 16 * 1024
"""Up to this length head and body are joined to one buffer; longer ones are not copied."""


class Exchange:
    """The request under way on one client connection."""

    __slots__ = (
        "_chunking",
        "_closing",
        "_connecting",
        "_context",
        "_continued",
        "_facts",
        "_outgoing",
        "_started",
        "_streamed",
        "_until_close",
        "active",
        "answer_begun",
        "bytes_sent",
        "client",
        "fields",
        "head_only",
        "method",
        "minor",
        "pool",
        "reason",
        "request_done",
        "request_id",
        "retried",
        "route",
        "status",
        "target",
        "tried",
        "upstream",
    )

    def __init__(self, client: "ClientConnection", context: ProxyContext) -> None:
        self.client = client
        self._context = context
        self.active = False
        self.upstream: UpstreamConnection | None = None
        self.route: RouteTarget | None = None
        self.pool: EndpointPool | None = None
        self._connecting: asyncio.Task[None] | None = None
        self._outgoing = b""
        """Head and first body bytes, kept until something of the answer comes, to be sent again if that is harmless."""

    def begin(self, method: bytes, target: bytes, minor: int, fields: RequestFields) -> None:
        """Take on a request whose head was read; `dispatch` follows once its first body bytes are known."""
        self.active = True
        self.method = method
        self.target = target
        self.minor = minor
        self.fields = fields
        self.head_only = method == b"HEAD"
        self.request_id = fields.request_id or new_request_id()
        self.request_done = False
        self.answer_begun = False
        self.retried = False
        self.status = 0
        self.bytes_sent = 0
        self.reason = ""
        self.route = None
        self.pool = None
        self.tried: tuple[EndpointPool, ...] = ()
        self._chunking = False
        self._until_close = False
        self._continued = False
        self._streamed = False
        self._outgoing = b""
        self._facts: RequestFacts | None = None
        self._started = time.monotonic()

    def facts(self) -> RequestFacts:
        """Give what routes may look at: the header is the one that an upstream gets."""
        facts = self._facts
        if facts is None:
            peer, fields = self.client.peer, self.fields
            lines = upstream_lines(fields, peer, trusted=self._context.config.trust_forwarded)
            facts = RequestFacts(self.method, peer.scheme, fields.host, self.target, lines, peer.address)
            self._facts = facts
        return facts

    # From the client

    def dispatch(self, host: bytes, path: bytes, payload: bytes, *, done: bool, trailers: bytes = b"") -> None:
        """Find route and endpoint, and send the request with what is there of its body."""
        self.request_done = done
        router = self._context.holder.router
        if router is None:
            self.refuse(503, "no route table yet")
            return
        route = router.match(host, path, self)
        if route is None:
            self.refuse(404, "no route takes this host and path")
            return
        if isinstance(route, NeedsBody):
            self.refuse(500, "routes by the content of bodies are not served")
            return
        self.route = route
        pool = route.choose((), self)
        if pool is None:
            self.refuse(503, route.unavailable)
            return
        self._outgoing = self._request_head(pool)
        if payload or self.fields.chunked:
            self._outgoing += self._encode_request(payload, done=done, trailers=trailers)
            self._streamed = bool(payload)
        upstream = pool.acquire(certain=self.method not in _IDEMPOTENT)
        if upstream is None:
            self._connect(pool)
        else:
            self.pool = pool
            self._send(upstream)

    def request_data(self, payload: bytes, *, done: bool, trailers: bytes) -> None:
        """Send more of the request's body."""
        self.request_done = done
        data = self._encode_request(payload, done=done, trailers=trailers)
        if self.upstream is None:
            # Still connecting; the client is not read meanwhile, so this is at most one more read.
            self._outgoing += data
            self._streamed = True
        elif data:
            self._outgoing = b""
            self._streamed = True
            self.upstream.transport.write(data)
            self._set_deadline()

    def abandon(self) -> None:
        """Forget the request, as the client is gone."""
        if self.active:
            self._drop_upstream()
            self.reason = self.reason or "client closed the connection"
            if not self.answer_begun:
                self.status = _CLIENT_GONE
            self._close_books()

    def refuse(self, status: int, reason: str, extra: bytes = b"") -> None:
        """Answer by ourselves; an answer that has begun is cut off instead."""
        self._drop_upstream()
        self.reason = reason
        if self.answer_begun:
            self._close_books()
            self.client.cut_off(hard=self._until_close)
            return
        self.status = status
        closing = self._must_close()
        connection = self._connection_line(closing)
        date_line = self._context.clock.date_line
        answer = own_answer(status, reason, head_only=self.head_only, lines=date_line + extra + connection)
        self.bytes_sent = len(answer) - answer.index(b"\r\n\r\n") - 4
        self.client.transport.write(answer)
        self._finish(closing)

    def timed_out(self) -> None:
        """Nothing moved for too long: tell apart on whom we waited."""
        upstream = self.upstream
        if self.client.write_paused:
            self.reason = "client took nothing of the answer in time"
            self.client.transport.abort()
        elif not self.request_done and not (upstream is not None and upstream.write_paused):
            self.refuse(408, "the rest of the body did not come in time")
        elif upstream is not None and upstream.write_paused:
            self._context.stats.upstream_error("timeout")
            self.refuse(504, "upstream took nothing of the request in time")
        else:
            self._context.stats.upstream_error("timeout")
            self.refuse(504, "upstream did not answer in time")

    def _request_head(self, pool: EndpointPool) -> bytes:
        fields = self.fields
        lines = upstream_lines(fields, self.client.peer, trusted=self._context.config.trust_forwarded)
        # An HTTP/1.0 client may leave Host out, an HTTP/1.1 request may not.
        host = fields.host_line or pool.label.encode()
        return b"%b %b HTTP/1.1\r\nHost: %b\r\n%bX-Request-ID: %b\r\n\r\n" % (
            self.method,
            self.target,
            host,
            lines,
            self.request_id,
        )

    def _encode_request(self, payload: bytes, *, done: bool, trailers: bytes) -> bytes:
        if not self.fields.chunked:
            return payload
        return encode_chunk(payload) + (last_chunk(trailers) if done else b"")

    # Reaching an endpoint

    def _connect(self, pool: EndpointPool) -> None:
        self.pool = pool
        self.tried = (*self.tried, pool)
        self.client.deadline = math.inf
        self._connecting = asyncio.get_running_loop().create_task(self._open(pool), name=f"connect {pool.label}")
        self.client.update_reading()

    async def _open(self, pool: EndpointPool) -> None:
        route = self.route
        timeout_s = route.connect_timeout_s if route is not None else None
        try:
            async with asyncio.timeout(timeout_s or self._context.config.connect_timeout_s):
                upstream = await pool.connect()
        except (OSError, UnicodeError) as error:
            self._connecting = None
            self._connect_failed(pool, error)
        else:
            self._connecting = None
            self._send(upstream)

    def _connect_failed(self, pool: EndpointPool, error: OSError | UnicodeError) -> None:
        """Try another endpoint once; nothing was sent, so this is safe for every method."""
        self._context.stats.upstream_error("connect")
        route = self.route
        if len(self.tried) == 1 and route is not None:
            other = route.choose(self.tried, self)
            if other is not None and other is not pool:
                self._context.stats.retries += 1
                upstream = other.acquire(certain=self.method not in _IDEMPOTENT)
                if upstream is None:
                    self._connect(other)
                else:
                    self.tried = (*self.tried, other)
                    self.pool = other
                    self._send(upstream)
                return
        if isinstance(error, TimeoutError):
            self.refuse(504, f"no connection to {pool.label} in time")
        else:
            self.refuse(
                502, f"cannot connect to {pool.label}: {error.strerror if isinstance(error, OSError) else error}"
            )

    def _send(self, upstream: UpstreamConnection) -> None:
        client = self.client
        self.upstream = upstream
        upstream.begin(self, self._outgoing)
        if not self.request_done:
            if self.fields.expects_continue and not self._continued and not self._streamed and self.minor:
                # Answered by us, so never forwarded: the field is not among those passed on.
                self._continued = True
                client.transport.write(_CONTINUE)
            client.update_reading()
        if client.write_paused:
            upstream.pause_reading()
        self._set_deadline()

    def _drop_upstream(self) -> None:
        if self._connecting is not None:
            self._connecting.cancel()
            self._connecting = None
        upstream, self.upstream = self.upstream, None
        if upstream is not None:
            upstream.discard()

    def _set_deadline(self) -> None:
        """Bound the wait for whoever has to move next."""
        config, client, route = self._context.config, self.client, self.route
        assert route is not None
        if client.write_paused:
            timeout_s = config.body_timeout_s
        elif self.upstream is not None and self.upstream.write_paused:
            timeout_s = route.send_timeout_s or config.send_timeout_s
        elif self.request_done:
            timeout_s = route.read_timeout_s or config.read_timeout_s
        else:
            timeout_s = config.body_timeout_s
        client.deadline = self._context.clock.now + timeout_s

    # From the upstream

    def informational(self, answer: AnswerHead) -> None:
        """Pass a 1xx on; HTTP/1.0 does not know them."""
        if self.minor and not self.answer_begun:
            self.client.transport.write(answer.lines + b"\r\n")
            self._set_deadline()

    def answer(self, answer: AnswerHead, payload: bytes, *, bodiless: bool, done: bool, trailers: bytes) -> None:
        """Pass the head of the answer on, with what is there of its body."""
        self.answer_begun = True
        self.status = answer.status
        self._outgoing = b""
        closing = self._must_close()
        if answer.content_length < 0 and not bodiless:
            self._chunking = self.minor == 1
            self._until_close = self.minor == 0
            closing = closing or self._until_close
        date_line = self._context.clock.date_line
        framing = answer_framing(answer, bodiless=bodiless, minor=self.minor)
        connection = self._connection_line(closing) if closing or not self.minor else b""
        self.bytes_sent = len(payload)
        if self._chunking:
            payload = encode_chunk(payload) + (last_chunk(trailers) if done else b"")
        transport = self.client.transport
        if len(payload) <= _JOIN_LIMIT:
            transport.write(answer_head(answer, date_line, framing, connection, payload))
        else:
            transport.write(answer_head(answer, date_line, framing, connection))
            transport.write(payload)
        if done:
            self._finish(closing)
        else:
            self._closing = closing
            self._set_deadline()

    def answer_data(self, payload: bytes, *, done: bool, trailers: bytes) -> None:
        """Pass more of the answer's body on."""
        self.bytes_sent += len(payload)
        if self._chunking:
            payload = encode_chunk(payload) + (last_chunk(trailers) if done else b"")
        if payload:
            self.client.transport.write(payload)
        if done:
            self._finish(self._closing or not self.request_done)
        else:
            self._set_deadline()

    def upstream_failed(self, reason: str) -> None:
        """The upstream's answer is not one; its connection is closed already."""
        self.upstream = None
        self._context.stats.upstream_error("invalid")
        self.refuse(502, reason)

    def upstream_lost(self, upstream: UpstreamConnection) -> None:
        """The upstream's connection ended before its answer did."""
        self.upstream = None
        if not upstream.seen and upstream.reused and not self.retried and self._may_repeat():
            self.retried = True
            self._context.stats.retries += 1
            self._connect(upstream.pool)
            return
        self._context.stats.upstream_error("closed")
        when = "in the middle of its answer" if upstream.seen else "without an answer"
        self.refuse(502, f"upstream closed the connection {when}")

    def upstream_resumed(self) -> None:
        """The upstream takes more of the body again."""
        self.client.update_reading()
        self._set_deadline()

    def client_paused(self, paused: bool) -> None:
        """The client is slow, or takes more again."""
        upstream = self.upstream
        if upstream is not None:
            if paused:
                upstream.pause_reading()
            else:
                upstream.resume_reading()
            self._set_deadline()

    def _may_repeat(self) -> bool:
        if self._streamed:
            return self.method in _IDEMPOTENT and self.request_done and bool(self._outgoing)
        return self.method in _IDEMPOTENT or not self.request_done

    # The end

    def _must_close(self) -> bool:
        return self.client.wants_close or not self.request_done or self._context.draining

    def _connection_line(self, closing: bool) -> bytes:
        if closing:
            return b"Connection: close\r\n"
        return b"" if self.minor else b"Connection: keep-alive\r\n"

    def _finish(self, closing: bool) -> None:
        self._close_books()
        self.client.answered(closing=closing)

    def _close_books(self) -> None:
        """Count and log the request, and let go of what it held."""
        self.active = False
        context, route, pool = self._context, self.route, self.pool
        duration_s = time.monotonic() - self._started
        name = route.name if route is not None else ""
        context.stats.observe(name, self.status, duration_s, self.bytes_sent)
        if self.reason:
            context.stats.refused(self.status, self.route is not None)
        if context.access_log is not None:
            context.access_log.append(
                (
                    context.clock.log_time,
                    self.client.peer.address,
                    self.method,
                    self.target,
                    self.minor,
                    self.status,
                    self.bytes_sent,
                    duration_s,
                    self.fields,
                    self.request_id,
                    name,
                    route.upstream_label if route is not None else "",
                    pool.label if pool is not None else "",
                    self.reason,
                )
            )
        self.route = self.pool = None
        self.tried = ()
        self._outgoing = b""
        self._facts = None
