"""One client connection: bytes in, one request after the other out to its exchange.

Requests are served strictly in order, one at a time; what a client sends meanwhile waits in a bounded buffer.
"""

import asyncio
from typing import Final, cast

from headgate.gateway.proxy.connection_limits import ConnectionLimits
from headgate.gateway.proxy.context import ProxyContext
from headgate.gateway.proxy.errors import BadMessage, LimitExceeded
from headgate.gateway.proxy.exchange.exchange import Exchange
from headgate.gateway.proxy.heads.forward import answer_framing, answer_head
from headgate.gateway.proxy.heads.head import AnswerHead
from headgate.gateway.proxy.http1.closing import ClosingSide
from headgate.gateway.proxy.http1.ends import ends_of_connection
from headgate.gateway.proxy.http1.framing import encode_chunk, last_chunk
from headgate.gateway.proxy.http1.request_reader import HAS_BEGUN, HTTP2, REQUEST, RequestReader
from headgate.gateway.proxy.http1.states import ANSWERING, BODY, CLOSED, HEAD, LINGERING, TUNNEL
from headgate.gateway.proxy.http2.server import Http2Connection
from headgate.gateway.proxy.outbox import OutboxTransport
from headgate.gateway.proxy.peer import Peer
from headgate.gateway.proxy.sides import NO_FIELDS

_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
_JOIN_LIMIT: Final = 16 * 1024
"""Up to this length head and body are joined to one buffer; longer ones are not copied."""
_ALLOWED: Final = b"Allow: GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS\r\n"
_REFUSED_METHODS: Final = frozenset({b"CONNECT", b"TRACE"})
_QUESTION_MARK: Final = 0x3F
_BURST: Final = 32
"""Pipelined requests taken in one turn of the event loop, however often it reads, before others have theirs."""


class ClientConnection(ClosingSide):
    """An HTTP/1.1 connection: reads requests, keeps order, writes answers and decides how the connection ends."""

    __slots__ = (
        "_chunking",
        "_client",
        "_closing",
        "_eof",
        "_exchange",
        "_idle_until",
        "_minor",
        "_names_https",
        "_port",
        "_processing",
        "_raw_transport",
        "_reading_paused",
        "_requests",
        "_scheme",
        "_since",
        "_taken",
        "_turn",
        "_waits_for_turn",
        "_wants_close",
    )

    def __init__(
        self, context: ProxyContext, scheme: bytes, port: bytes, client: bytes = b"", *, names_https: bool = False
    ) -> None:
        """Begin to serve a connection to a port; `client` is its address, if a PROXY header named both.

        `names_https`: the header named port 443.
        """
        super().__init__(context)
        self._scheme = scheme
        self._port = port
        self._client = client
        self._names_https = names_https
        self._exchange = Exchange(self, context)
        self._requests = RequestReader(context.config, context.rules, may_be_http2=scheme == b"http")
        self._processing = False
        self._turn = -1
        """That of the event loop in which a request was read last."""
        self._taken = 0
        """Requests read in it."""
        self._waits_for_turn = False
        """Requests that are here are read in a later turn."""
        self._reading_paused = False
        self._eof = False
        self._since = context.clock.now
        self._idle_until = 0.0
        """When the connection has rested for too long."""
        self._minor = 1
        self._wants_close = False
        """The client wants no request after this one, or may not have one."""
        self._closing = False
        """The answer under way is the last."""
        self._chunking = False

    @property
    def version(self) -> bytes:
        """As the access log writes it."""
        return b"1.1" if self._minor else b"1.0"

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport."""
        context = self._context
        context.stats.connections += 1
        address, addresses = ends_of_connection(transport, self._client.decode())
        tls = transport.get_extra_info("ssl_object") if self._scheme == b"https" else None
        trusted = context.trusted is not None and context.trusted.includes(address)
        # A load balancer that names port 443 on a plain connection has ended TLS before.
        https = self._names_https
        scheme = b"https" if https else self._scheme
        self.peer = Peer(address.encode(), scheme, self._port, addresses, tls, is_trusted=trusted, names_https=https)
        if context.alt_svc and tls is not None and (tls.tls is None or tls.tls.suits_quic):
            self.peer.alt_svc = context.alt_svc
        self._raw_transport = cast(asyncio.Transport, transport)
        if context.limits is not None and not self._enter(context.limits):
            return
        if tls is not None and tls.selected_alpn_protocol() == "h2":
            self._switch_to_http2(b"")
            return
        self.transport = OutboxTransport(self._raw_transport, context.outbox, context.config.buffer_high)
        self.deadline = context.clock.now + context.config.header_timeout_s
        context.connections.add(self)

    def _enter(self, limits: ConnectionLimits) -> bool:
        """Close at once, without a word, if there are too many connections: an answer would cost what is scarce."""
        exceeded = limits.enter(self.peer)
        if exceeded:
            self._context.stats.refused_connection(exceeded)
            self.state = CLOSED
            self._raw_transport.abort()
        return not exceeded

    def _switch_to_http2(self, data: bytes) -> None:
        """Hand the connection over to HTTP/2, with what came of it."""
        self.state = CLOSED
        self._requests.close()
        self._context.connections.discard(self)
        connection = Http2Connection(self._context, self.peer)
        self._raw_transport.set_protocol(cast(asyncio.Protocol, connection))
        connection.connection_made(self._raw_transport)
        if data:
            connection.data_received(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection and what it was waiting for."""
        self.state = CLOSED
        self._requests.close()
        self._context.forget(self)
        self._exchange.abandon()

    def data_received(self, data: bytes) -> None:
        """Take bytes for what they are in the current state."""
        state = self.state
        if state == HEAD:
            self._requests.feed(data)
            self._process()
        elif state == BODY:
            try:
                self._read_body(data)
            except BadMessage as bad:
                self._exchange.refuse(bad.status, bad.reason)
        elif state == TUNNEL:
            self._exchange.request_data(data, done=False, trailers=b"")
        elif state == ANSWERING:
            self._requests.feed(data)
            self.update_reading()

    def eof_received(self) -> bool:
        """Finish the request under way, if it is whole, for a client that closed its sending half."""
        self._eof = True
        if self.state == TUNNEL:
            self._exchange.end_tunnel()
            return self._scheme == b"http"
        if self.state == HEAD:
            # The loop closes now, before the end of the turn: answers that were given in it go first.
            self.transport.flush()
        return (self.state == ANSWERING or self._waits_for_turn) and self._scheme == b"http"

    def pause_writing(self) -> None:
        """Stop taking the answer from the upstream."""
        self.write_paused = True
        self._exchange.client_paused(True)
        if self.state == HEAD:
            self.update_reading()

    def resume_writing(self) -> None:
        """Go on taking the answer."""
        self.write_paused = False
        self._exchange.client_paused(False)
        if self.state == HEAD:
            self.update_reading()
            if self._requests.pending:
                self._process()

    # Reading requests

    def _process(self) -> None:
        """Read requests from the buffer as long as each is answered at once."""
        if self._processing or self._waits_for_turn:
            return
        self._processing = True
        # Answers that are given at once are written, so that the next turn has another number.
        turn = self._context.outbox.turn
        if turn != self._turn:
            self._turn, self._taken = turn, 0
        try:
            while self.state == HEAD and not self.write_paused:
                if self._taken >= _BURST:
                    self._wait_for_turn()
                    break
                if not self._read_head():
                    break
                self._taken += 1
        except BadMessage as bad:
            self._refuse(bad)
        finally:
            self._processing = False
        if self._eof and self.state == HEAD and not self._waits_for_turn:
            self.transport.close()

    def _wait_for_turn(self) -> None:
        """Let other connections go first."""
        self._waits_for_turn = True
        self.update_reading()
        asyncio.get_running_loop().call_soon(self._take_turn)

    def _take_turn(self) -> None:
        """Go on reading requests."""
        self._waits_for_turn = False
        self._taken = 0
        if self.state == HEAD:
            self.update_reading()
            self._process()

    def _read_head(self) -> bool:
        """Read one request's head and start it; False: more bytes are needed."""
        found = self._requests.next()
        if found == REQUEST:
            self._start_request(self._requests)
            return True
        if found == HAS_BEGUN:
            self.deadline = self._context.clock.now + self._context.config.header_timeout_s
        elif found == HTTP2:
            self._switch_to_http2(self._requests.take())
        return False

    def _start_request(self, found: RequestReader) -> None:
        method, target, fields, minor = found.method, found.target, found.fields, found.minor
        options = fields.options
        self._minor = minor
        self._wants_close = (
            b"close" in options
            or (minor == 0 and b"keep-alive" not in options)
            or found.count >= self._context.config.keep_alive_requests
            or self._is_old()
        )
        path = target.partition(b"?")[0] if _QUESTION_MARK in target else target
        exchange = self._exchange
        if found.has_body:
            self._start_body(found, path)
            return
        self.state = ANSWERING
        exchange.begin(method, target, fields)
        if method in _REFUSED_METHODS:
            exchange.request_done = True
            exchange.refuse(405, "method not allowed", _ALLOWED)
        elif target == b"*":
            exchange.request_done = True
            exchange.refuse(200, "the server as a whole", _ALLOWED)
        else:
            exchange.dispatch(path, b"", done=True)

    def _is_old(self) -> bool:
        longest = self._context.config.keep_alive_time_s
        return 0.0 < longest <= self._context.clock.now - self._since

    def _start_body(self, found: RequestReader, path: bytes) -> None:
        """Start a request with a body, with what is there of it."""
        payload = found.begin_body()
        is_done = found.body_is_done
        self.state = ANSWERING if is_done else BODY
        exchange = self._exchange
        exchange.begin(found.method, found.target, found.fields)
        if found.method in _REFUSED_METHODS or found.target == b"*":
            exchange.refuse(405, "method not allowed", _ALLOWED)
        else:
            exchange.dispatch(path, payload, done=is_done, trailers=found.trailers)

    def _read_body(self, data: bytes) -> None:
        requests = self._requests
        payload = requests.read_body(data)
        is_done = requests.body_is_done
        self.state = ANSWERING if is_done else BODY
        self._exchange.request_data(payload, done=is_done, trailers=requests.trailers)

    def update_reading(self) -> None:
        """Read from the client, or not."""
        if self.state == BODY or self.state == TUNNEL:
            pause = not self._exchange.takes_body
        elif self.state == ANSWERING:
            pause = self._requests.pending > self._context.config.max_pipelined
        elif self.state == HEAD:
            # A client that does not read answers gets no more of them.
            pause = self.write_paused or self._waits_for_turn
        else:
            pause = False
        if pause is not self._reading_paused and not self.transport.is_closing():
            self._reading_paused = pause
            if pause:
                self.transport.pause_reading()
            else:
                self.transport.resume_reading()

    # Writing answers

    def send_answer(self, answer: AnswerHead, payload: bytes, *, bodiless: bool, done: bool, trailers: bytes) -> None:
        """Send head and first bytes in one piece, unless that would copy much."""
        minor = self._minor
        answer.lines += self.peer.alt_svc
        closing = self._wants_close or not self._exchange.request_done or self._context.draining
        if answer.content_length < 0 and not bodiless:
            self._chunking = minor == 1
            self._until_close = minor == 0
            closing = closing or self._until_close
            if self._chunking:
                payload = encode_chunk(payload) + (last_chunk(trailers) if done else b"")
        else:
            self._chunking = self._until_close = False
        connection = b"Connection: close\r\n" if closing else b"" if minor else b"Connection: keep-alive\r\n"
        date_line = self._context.clock.date_line
        framing = answer_framing(answer, bodiless=bodiless, minor=minor)
        if len(payload) <= _JOIN_LIMIT:
            self.transport.write(answer_head(answer, date_line, framing, connection, payload))
        else:
            self.transport.write(answer_head(answer, date_line, framing, connection))
            self.transport.write(payload)
        if done:
            self._answered(closing)
        else:
            self._closing = closing

    def send_data(self, payload: bytes, *, done: bool, trailers: bytes) -> None:
        """Send more of the body."""
        if self._chunking:
            payload = encode_chunk(payload) + (last_chunk(trailers) if done else b"")
        if payload:
            self.transport.write(payload)
        if done:
            self._answered(self._closing or not self._exchange.request_done)

    def send_informational(self, answer: AnswerHead) -> None:
        """Pass a 1xx on; HTTP/1.0 does not know them."""
        if self._minor:
            self.transport.write(b"%b%b\r\n" % (answer.status_line, answer.lines))

    def send_continue(self) -> None:
        """Answered by us, so never forwarded: the field is not among those passed on."""
        if self._minor:
            self.transport.write(_CONTINUE)

    def open_tunnel(self, answer: AnswerHead, payload: bytes) -> None:
        """Pass the 101 on, and then what comes as it comes."""
        head = answer.status_line + answer.lines
        switch = b"%bConnection: Upgrade\r\nUpgrade: %b\r\n\r\n%b" % (head, answer.upgrade, payload)
        self.transport.write(switch)
        self.state = TUNNEL
        early = self._requests.take()
        if early:
            self._exchange.request_data(early, done=False, trailers=b"")
        self.update_reading()

    def end_tunnel(self) -> None:
        """Close behind the last byte."""
        self._close_transport()

    # Ends

    def _answered(self, closing: bool) -> None:
        """Go on to the next request after the last byte of an answer, or close."""
        self._exchange.finish()
        if closing:
            self._close()
            return
        self.state = HEAD
        context = self._context
        self.deadline = context.clock.now + context.first_look_s
        self._idle_until = context.clock.now + context.config.idle_timeout_s
        self.transport.delivery = None
        if self._reading_paused:
            self.update_reading()
        if self._requests.pending or self._eof:
            self._process()

    def timed_out(self) -> None:
        """React to a deadline that passed."""
        if self._exchange.active:
            self._exchange.timed_out()
        elif self.state == HEAD and self._requests.pending:
            self._refuse(LimitExceeded("the rest of the head did not come in time", 408))
        elif self._is_about_to_read():
            return
        else:
            self._look()

    def _look(self) -> None:
        """Look at a connection that rests, or closes: its client has to take what it was sent, and may then rest."""
        config, now = self._context.config, self._context.clock.now
        ends = self.transport.delivery_ends(config, now)
        if ends > now:
            self.deadline = ends
            self._idle_until = now + config.idle_timeout_s
        elif ends:
            self.transport.reset()
        elif self.state == HEAD and self._idle_until > now:
            self.deadline = self._idle_until
        else:
            self.transport.abort()

    def drain(self) -> None:
        """Close if nothing is under way; otherwise the answer will close."""
        if self.state == HEAD and not self._requests.pending and not self._is_about_to_read():
            self._close_transport()

    def _is_about_to_read(self) -> bool:
        """Tell whether a request has come in this very turn of the event loop, so that the next one will read it."""
        return self.state == HEAD and not self._reading_paused and self.transport.has_unread()

    def _refuse(self, bad: BadMessage) -> None:
        """Answer a message that has no exchange, as its head was refused."""
        exchange = self._exchange
        if not exchange.active:
            self.state = BODY
            self._minor = 1
            exchange.begin(b"-", b"-", NO_FIELDS)
        exchange.refuse(bad.status, bad.reason)

    def _close(self) -> None:
        """Close so that the client can read what was written: unread bytes would turn the close into a reset."""
        unread = self.state == BODY or self._requests.pending > 0 or self._reading_paused
        if not unread or not self.transport.can_write_eof():
            self._close_transport()
            return
        self.state = LINGERING
        self._requests.take()
        self.deadline = self._context.clock.now + self._context.config.lingering_s
        self.update_reading()
        self.transport.write_eof()
