"""A request that goes through plugins: what joins a chain of plugins to an exchange.

The exchange hands over what passes; what the chain makes of it goes on. Nothing waits for plugins that do not ask for
it: only a hook that returns an awaitable makes the request wait, and only then is there a task.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING
from urllib.parse import quote

from headgate.gateway.plugins.interface import BodyFilter
from headgate.gateway.plugins.interface.errors import PluginFailed
from headgate.gateway.plugins.interface.headers import Headers
from headgate.gateway.plugins.interface.messages import BodySource, BodyTooLarge, BuffersFull, Request, Response, Wire
from headgate.gateway.plugins.interface.targets import ChosenUpstream
from headgate.gateway.plugins.runtime.chain import PluginChain
from headgate.gateway.proxy.buffers import BUFFERS_FULL
from headgate.gateway.proxy.errors import phrase
from headgate.gateway.proxy.forward import Peer
from headgate.gateway.proxy.head import AnswerHead
from headgate.gateway.proxy.own import id_line

if TYPE_CHECKING:
    from headgate.gateway.proxy.exchange import Exchange

_OF_UPSTREAM = (502, 504)
"""What the gateway answers for an upstream that did not."""
_VISIBLE = "!#$%&'()*+,/:;<=>?@[]^`{|}"
"""Of a user's name, besides letters, digits and `_.-~`, that stand in the access log as they are."""
_PIECES_PER_S = 8
"""In which a body with a limited rate goes out."""


class PluginRun:
    """One request on its way through the plugins of its route."""

    def __init__(self, chain: PluginChain, exchange: "Exchange") -> None:
        self._chain = chain
        self._exchange = exchange
        self.original = exchange.method, exchange.target, exchange.fields.host_line
        """Method, target and host as they came."""
        self._request = request_of(exchange, self, self)
        self._client = self._request.client
        self._lines = self._request.headers.to_lines()
        self._request_filter: BodyFilter | None = None
        self._answer_filter: BodyFilter | None = None
        self._response: Response | None = None
        """The answer, once its head is on its way."""
        self._is_answered = False
        self.is_refused = False
        """The gateway has answered by itself."""
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._body_read: asyncio.Future[bytes] | None = None
        self._answer_read: asyncio.Future[bytes] | None = None
        self._answer_counted = 0
        """Bytes of that answer that are counted among all bodies that the worker holds."""
        self._answer_room = 0
        """Bytes that the hook that waits for the whole answer takes besides those that came."""
        self._held: list[tuple[bytes, bool, bytes]] = []
        """Parts of the answer's body, each with `done` and trailers, that wait for a hook or for their time."""
        self._is_held = False
        self._bodiless = False
        self._sent = 0
        self._turn = 0
        """Of what is being awaited: a hook whose turn is over has nothing to say any more."""
        self._has_begun = False
        """The task has made its first step."""
        self._is_over = False

    @property
    def is_holding(self) -> bool:
        """The answer waits for a hook, or for its time."""
        return self._is_held or self._timer is not None

    @property
    def is_waiting(self) -> bool:
        """A hook is being awaited."""
        return self._task is not None

    @property
    def has_body(self) -> bool:
        """Plugins have the whole body of the request."""
        return bool(self._request.body)

    @property
    def has_answer(self) -> bool:
        """The upstream's answer has come, or the request was answered otherwise."""
        return self._is_answered

    # The request

    def start(self) -> bool:
        """Run the request hooks; False: the request is answered, or goes on by itself later."""
        outcome = self._chain.on_request(self._request)
        if outcome is None:
            if not self._take_changes():
                return False
            if self._request.endpoints is None:
                return True
            self._exchange.go_on()
        elif isinstance(outcome, Response):
            self._answer_request(outcome)
        else:
            self._await(outcome, self._after_request_hooks)
        return False

    def _after_request_hooks(self, response: Response | None) -> None:
        if response is not None:
            self._answer_request(response)
        elif self._take_changes():
            self._exchange.go_on()

    def _answer_request(self, response: Response) -> None:
        """Answer for a plugin that took the request."""
        exchange = self._exchange
        exchange.request_id = self._take_id().encode("latin-1")
        self._explain(response)
        self._respond(response)

    def _explain(self, response: Response) -> None:
        if self._exchange.explains_errors:
            response.explain()

    def _take_changes(self) -> bool:
        """Give the exchange what the hooks made of the request; False: it was answered instead."""
        request, exchange = self._request, self._exchange
        if exchange.request_done and request.body is None:
            request.body = exchange.body.at_hand()
            was_whole = True
        else:
            was_whole = request.body is not None
        try:
            self._request_filter = self._chain.request_filter(request)
        except PluginFailed as error:
            exchange.refuse(500, str(error))
            return False
        exchange.method = request.method.encode("latin-1")
        if request.is_target_changed:
            exchange.target = request.target.encode("latin-1")
        self._take_choices()
        exchange.request_id = self._take_id().encode("latin-1")
        exchange.lines = request.headers.to_lines()
        fields = exchange.fields
        if request.upstream_host is not None:
            fields.host_line = request.upstream_host.encode("latin-1")
            exchange.has_other_host = True
        whole = request.body if was_whole else None
        if whole is not None:
            if whole or request.is_body_replaced:
                exchange.replace_body(whole)
        elif self._request_filter is not None:
            if not self._request_filter.keeps_length:
                fields.chunked, fields.content_length = True, -1
            try:
                exchange.body.replace(self._filter_request(exchange.body.at_hand(), exchange.request_done))
            except PluginFailed as error:
                exchange.refuse(500, str(error))
                return False
        if request.max_body is not None:
            return exchange.limit_body(request.max_body)
        return True

    def _take_id(self) -> str:
        """Return the request's id: a header that a plugin has set goes before the one that there was."""
        headers = self._request.headers
        if headers.to_lines() is self._lines:
            return self._request.id
        given = headers.get("X-Request-ID")
        headers.remove("X-Request-ID")
        return given or self._request.id

    def _take_choices(self) -> None:
        """Give the exchange what the hooks said of who asks, and where to."""
        request, exchange = self._request, self._exchange
        if request.client != self._client:
            exchange.facts().client = request.client.encode("latin-1")
        if request.consumer is not None:
            exchange.facts().consumer = request.consumer.name.encode()
        if request.endpoints is not None and exchange.route is not None:
            exchange.route = ChosenUpstream(exchange.route, request.endpoints)

    def request_data(self, payload: bytes, *, done: bool) -> bytes | None:
        """Give what goes to the upstream for more of the client's body; None: the request was answered instead."""
        if self._request_filter is None:
            return payload
        try:
            return self._filter_request(payload, done)
        except PluginFailed as error:
            self._exchange.refuse(500, str(error))
            return None

    def _filter_request(self, payload: bytes, done: bool) -> bytes:
        filter_ = self._request_filter
        assert filter_ is not None
        return filter_.feed(payload) + (filter_.finish() if done else b"")

    async def read_body(self, limit: int) -> bytes:
        """Wait for the whole body; the `BodySource` of the request."""
        exchange = self._exchange
        waiting: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._body_read = waiting
        if not exchange.request_done:
            exchange.hold_body(limit)
        elif exchange.count_body():
            self.body_read(exchange.body.at_hand())
        return await waiting

    def fact(self, name: str) -> str:
        """Look at the connections; the `Wire` of the request."""
        exchange = self._exchange
        if name == "upstream_addr":
            pool = exchange.attempts.pool
            return pool.label if pool is not None else ""
        if name == "request_length":
            return str(exchange.body.received)
        if name == "trace_id":
            return str(exchange.books.details().get("trace_id", ""))
        return _fact_of(exchange.client.peer, name, is_client=exchange.origin is exchange.client.peer)

    def body_read(self, body: bytes) -> None:
        """Take the body that a hook waits for."""
        waiting, self._body_read = self._body_read, None
        if waiting is not None and not waiting.done():
            waiting.set_result(body)

    def body_refused(self, fault: BodyTooLarge) -> bool:
        """Hear why the body that a hook waits for cannot be held; False: none waits."""
        waiting, self._body_read = self._body_read, None
        if waiting is None or waiting.done():
            return False
        waiting.set_exception(fault)
        return True

    # The answer

    def answer(self, answer: AnswerHead, payload: bytes, *, bodiless: bool, done: bool, trailers: bytes) -> None:
        """Take the head of the upstream's answer, with what is there of its body."""
        lines = answer.lines
        self._request.upstream_status = answer.status
        self._request.upstream_head = lines
        response = Response(
            answer.status,
            Headers.from_lines(lines[lines.index(b"\n") + 1 :]),
            # One with trailers streams, so that these go on behind it.
            payload if done and not bodiless and not trailers else None,
            from_upstream=True,
            content_length=answer.content_length if answer.content_length >= 0 else None,
            source=self,
        )
        self._is_answered = True
        is_for_head = self._exchange.head_only
        self._bodiless = bodiless or is_for_head
        if bodiless and not (is_for_head or response.is_bodiless):
            # A plugin has made a HEAD of the request.
            response.body = b""
        elif is_for_head and not bodiless:
            # A plugin has made something else of a HEAD, and its answer has a body that nobody wants.
            self._exchange.let_go_of_upstream()
            response.body = None
        elif response.body is None:
            self._held.append((payload, done, trailers))
        self._is_held = response.body is None
        self._run_response_hooks(response)

    def own_answer(self, answer: AnswerHead, body: bytes) -> None:
        """Take an answer of the gateway's own; hooks that let it come to a second one are not asked again."""
        if answer.status in _OF_UPSTREAM and self._exchange.attempts.pool is not None:
            self._request.upstream_status = answer.status
        lines = answer.lines
        response = Response(answer.status, Headers.from_lines(lines[lines.index(b"\n") + 1 :]), body)
        if self.is_refused:
            self._prepare(response)
            self._send_head(response)
        else:
            self.is_refused = True
            self._respond(response)

    def _respond(self, response: Response) -> None:
        self._prepare(response)
        self._run_response_hooks(response)

    def _prepare(self, response: Response) -> None:
        """Put an answer that is there as a whole in the place of whatever was awaited."""
        self._call_off()
        self._is_answered = True
        self._held.clear()
        self._bodiless = self._exchange.head_only or response.is_bodiless

    def _run_response_hooks(self, response: Response) -> None:
        pending = self._chain.on_response(self._request, response)
        if pending is None:
            self._send_head(response)
        else:
            self._is_held = True
            self._exchange.pause_upstream()
            self._await(pending, lambda _: self._send_head(response))

    def _send_head(self, response: Response) -> None:
        exchange = self._exchange
        self._answer_filter = self._chain.response_filter(self._request, response)
        if response.reason:
            exchange.reason = response.reason
        # A hook may have put a refusal in the place of the answer.
        self._explain(response)
        self._response = response
        answer = AnswerHead(response.status, 1)
        names_request = response.from_upstream or response.headers.has_any(b"x-request-id:")
        answer.lines = b"HTTP/1.1 %d %b\r\n%b%b" % (
            response.status,
            phrase(response.status).encode(),
            response.headers.to_lines(),
            b"" if names_request else id_line(exchange.request_id),
        )
        answer.has_date = response.headers.has_any(b"date:")
        answer.has_server = response.headers.has_any(b"server:")
        self._is_held = False
        body = response.body
        if body is not None:
            exchange.let_go_of_upstream()
            self._held = []
            is_bodiless = exchange.head_only or response.is_bodiless
            answer.content_length = len(body) if not response.is_bodiless else -1
            if is_bodiless:
                exchange.send_head(answer, b"", bodiless=True, done=True, trailers=b"")
            elif response.pacing is None:
                exchange.send_head(answer, body, bodiless=False, done=True, trailers=b"")
            else:
                exchange.send_head(answer, b"", bodiless=False, done=False, trailers=b"")
                self._held.append((body, True, b""))
                self._send_held()
            return
        keeps_length = self._answer_filter is None or self._answer_filter.keeps_length
        answer.content_length = response.content_length if keeps_length and response.content_length is not None else -1
        if self._bodiless:
            exchange.send_head(answer, b"", bodiless=True, done=True, trailers=b"")
        elif response.pacing is None and len(self._held) == 1:
            (payload, done, trailers), self._held = self._held[0], []
            filtered = self._filter_answer(payload, done, trailers)
            if filtered is not None:
                payload, trailers = filtered
                exchange.send_head(answer, payload, bodiless=False, done=done, trailers=trailers)
        else:
            exchange.send_head(answer, b"", bodiless=False, done=False, trailers=b"")
            self._send_held()
        if not (self._is_over or self._timer):
            exchange.resume_upstream()

    def answer_data(self, payload: bytes, *, done: bool, trailers: bytes) -> None:
        """Take more of the answer's body."""
        if self._is_held or self._held or (self._response is not None and self._response.pacing is not None):
            self._held.append((payload, done, trailers))
            if self._answer_read is not None:
                self._count_answer(payload, done=done)
            elif not self._is_held and self._timer is None:
                self._send_held()
            return
        filtered = self._filter_answer(payload, done, trailers)
        if filtered is not None:
            payload, trailers = filtered
            self._exchange.send_data(payload, done=done, trailers=trailers)

    async def read_answer(self, limit: int) -> bytes:
        """Wait for the whole body of the answer; the `AnswerSource` of the response."""
        if self._bodiless:
            return b""
        waiting: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._answer_read = waiting
        self._answer_room = limit
        for payload, done, _ in self._held:
            self._count_answer(payload, done=done)
        if not waiting.done():
            self._exchange.resume_upstream()
        return await waiting

    def _count_answer(self, payload: bytes, *, done: bool) -> None:
        """Let the hook that waits for the whole answer go on once all of it is there, or too much."""
        waiting = self._answer_read
        self._answer_room -= len(payload)
        if waiting is None or waiting.done():
            return
        if self._answer_room < 0:
            self._exchange.pause_upstream()
            waiting.set_exception(BodyTooLarge("the body is too long"))
        elif not self._exchange.buffers.take(self._answer_counted, len(payload), self._request.route):
            self._exchange.pause_upstream()
            waiting.set_exception(BuffersFull(BUFFERS_FULL))
        else:
            self._answer_counted += len(payload)
        if done and not waiting.done():
            waiting.set_result(b"".join([part for part, _, _ in self._held]))

    def _filter_answer(self, payload: bytes, done: bool, trailers: bytes) -> tuple[bytes, bytes] | None:
        """Return what goes out of a part of the body and of the trailers behind it; None: it was cut off."""
        filter_ = self._answer_filter
        if filter_ is None:
            return payload, trailers
        try:
            payload = filter_.feed(payload)
            if trailers:
                headers = Headers.from_lines(trailers)
                filter_.take_trailers(headers)
                trailers = headers.to_lines()
            return payload + (filter_.finish() if done else b""), trailers
        except PluginFailed as error:
            self._exchange.refuse(500, str(error))
            return None

    def _send_held(self) -> None:
        """Send what was held back, as fast as the answer's pace allows."""
        exchange, response = self._exchange, self._response
        loop = asyncio.get_running_loop()
        pacing = response.pacing if response is not None else None
        self._timer = None
        while self._held and not self._is_held:
            payload, done, trailers = self._held.pop(0)
            if pacing is not None:
                wait_s = pacing.wait_s(self._sent, loop.time())
                if wait_s > 0:
                    self._held.insert(0, (payload, done, trailers))
                    exchange.pause_upstream()
                    self._timer = loop.call_later(max(wait_s, 1 / _PIECES_PER_S), self._send_held)
                    return
                payload, done, trailers = self._cut(payload, done, trailers, pacing.piece(_PIECES_PER_S))
            filtered = self._filter_answer(payload, done, trailers)
            if filtered is None:
                return
            payload, trailers = filtered
            self._sent += len(payload)
            exchange.send_data(payload, done=done, trailers=trailers)
        if not self._is_over:
            exchange.resume_upstream()

    def _cut(self, payload: bytes, done: bool, trailers: bytes, size: int) -> tuple[bytes, bool, bytes]:
        """Take a piece of a part, and put the rest back."""
        if len(payload) <= size:
            return payload, done, trailers
        self._held.insert(0, (payload[size:], done, trailers))
        return payload[:size], False, b""

    # The end

    def finish(self, status: int, duration_s: float) -> None:
        """Tell the plugins, and give the exchange back what the client sent, for the log."""
        self._is_over = True
        self._call_off()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._held = []
        exchange, request = self._exchange, self._request
        exchange.buffers.release(self._answer_counted)
        exchange.method, exchange.target, _ = self.original
        request.bytes_sent = exchange.bytes_sent
        pool = exchange.attempts.pool
        request.upstream_address = pool.label if pool is not None else ""
        if request.client != self._client:
            origin = exchange.origin
            exchange.origin = Peer(request.client.encode("latin-1"), origin.scheme, origin.port, tls=origin.tls)
        user = request.variables.get("remote_user")
        if isinstance(user, str) and user:
            exchange.books.user = quote(user.encode("latin-1", "replace"), safe=_VISIBLE).encode()
        if request.consumer is not None:
            exchange.books.recognised(request.consumer.name, duration_s)
        self._chain.on_finish(request, status, duration_s)
        # Request, answer and run hold each other, and would wait for the collector.
        request.forget_source()
        self._response = None

    def _await(self, pending: Awaitable[Response | None], then: Callable[[Response | None], None]) -> None:
        self._turn += 1
        self._has_begun = False
        waiting = self._wait(pending, then, self._turn)
        self._task = asyncio.get_running_loop().create_task(waiting, name=f"plugins of {self._request.route}")
        self._exchange.wait_for_plugins()

    async def _wait(
        self, pending: Awaitable[Response | None], then: Callable[[Response | None], None], turn: int
    ) -> None:
        self._has_begun = True
        if turn != self._turn:
            # Called off before the first step: the hook gets as far as its first wait, and ends there.
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
        outcome = await pending
        if turn == self._turn:
            self._task = None
            then(outcome)

    def _call_off(self) -> None:
        """Take no notice any more of the hook that is being awaited, if there is one, and end it."""
        self._turn += 1
        self._answer_read = None
        task, self._task = self._task, None
        if task is not None and self._has_begun:
            task.cancel()


def _fact_of(peer: Peer, name: str, *, is_client: bool) -> str:
    addresses, tls = peer.addresses, peer.tls
    if name == "peer_addr":
        return peer.address.decode("latin-1")
    if name == "ssl_protocol":
        return (tls.version() or "") if tls is not None else ""
    if addresses is None:
        return ""
    if name == "server_addr":
        return addresses.destination[0]
    if name == "peer_port" or (name == "remote_port" and is_client):
        return str(addresses.source[1])
    return ""


def request_of(exchange: "Exchange", source: BodySource | None = None, wire: Wire | None = None) -> Request:
    """Return a request as plugins see it; its body comes from `source`, without one there is none.

    What `wire` knows it has besides.
    """
    facts = exchange.facts()
    fields = exchange.fields
    path, _, query = exchange.target.partition(b"?")
    length: int | None = 0
    if fields.chunked:
        length = None
    elif fields.content_length > 0:
        length = fields.content_length
    return Request(
        method=exchange.method.decode("latin-1"),
        scheme=facts.scheme.decode("latin-1"),
        host=fields.host.decode("latin-1"),
        authority=fields.host_line.decode("latin-1"),
        port=int(exchange.origin.port),
        path=path.decode("latin-1"),
        query=query.decode("latin-1"),
        headers=Headers.from_lines(facts.lines),
        client=facts.client.decode("latin-1"),
        request_id=exchange.request_id.decode("latin-1"),
        route=exchange.route.name if exchange.route is not None else "",
        upstreams=exchange.route.upstream_label if exchange.route is not None else "",
        content_length=length,
        source=source,
        wire=wire,
        is_id_given=bool(fields.request_id),
        http_version=exchange.client.version.decode(),
        claims=fields.forwarded,
    )
