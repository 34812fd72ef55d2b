"""An answer on its way through the plugins of a route: hooks see its head, filters change its body, a pace holds it.

Answers of the upstream, of plugins and of the gateway itself go the same way.
"""

import asyncio
from collections.abc import Awaitable
from typing import TYPE_CHECKING

from headgate.gateway.plugins.interface.errors import PluginFailed
from headgate.gateway.plugins.interface.headers import Headers
from headgate.gateway.plugins.interface.messages import Request, Response
from headgate.gateway.plugins.interface.plugin import BodyFilter
from headgate.gateway.plugins.interface.sources import BodyStream
from headgate.gateway.plugins.runtime.chain import Chain
from headgate.gateway.plugins.runtime.hook_wait import HookWait
from headgate.gateway.plugins.runtime.streamed_answer import StreamedAnswer
from headgate.gateway.proxy.errors import BodyTooLarge, BuffersFull, status_line
from headgate.gateway.proxy.exchange.buffers import BUFFERS_FULL
from headgate.gateway.proxy.heads.head import AnswerHead
from headgate.gateway.proxy.heads.own import id_line

if TYPE_CHECKING:
    from headgate.gateway.proxy.exchange.exchange import Exchange

_PIECES_PER_S = 8
"""In which a body with a limited rate goes out."""


class AnswerRun:
    """The answer to one request."""

    def __init__(self, chain: Chain, exchange: "Exchange", request: Request, wait: HookWait) -> None:
        self._chain = chain
        self._exchange = exchange
        self._request = request
        self._wait = wait
        self._filter: BodyFilter | None = None
        self._came: AnswerHead | None = None
        """The head of the upstream's answer."""
        self._came_lines = b""
        """Its lines as they came."""
        self._response: Response | None = None
        """The answer, once its head is on its way."""
        self.has_begun = False
        self._timer: asyncio.TimerHandle | None = None
        self._read: asyncio.Future[bytes] | None = None
        """For a hook that waits for the whole answer."""
        self._peek: asyncio.Future[None] | None = None
        """For a hook that waits for its beginning."""
        self._peek_size = 0
        """Bytes of that beginning that are awaited."""
        self._counted = 0
        """Bytes of that answer that are counted among all bodies that the worker holds."""
        self._room = 0
        """Bytes that the hook takes besides those that came."""
        self._held: list[tuple[bytes, bool, bytes]] = []
        """Parts of the answer's body, each with `done` and trailers, that wait for a hook or for their time."""
        self._is_held = False
        self._bodiless = False
        self._stream: BodyStream | None = None
        """Where the body of a plugin's answer comes from."""
        self._sent = 0
        self._is_over = False

    @property
    def is_holding(self) -> bool:
        """The answer waits for a hook, or for its time."""
        return self._is_held or self._timer is not None

    def begin(self, answer: AnswerHead, payload: bytes, *, bodiless: bool, done: bool, trailers: bytes) -> None:
        """Take the head of the upstream's answer, with what is there of its body."""
        lines = answer.lines
        self._came, self._came_lines = answer, lines
        self._request.upstream_status = answer.status
        self._request.upstream_head = lines
        response = Response(
            answer.status,
            Headers.from_lines(lines, answer.lines_shape),
            # One with trailers streams, so that these go on behind it.
            payload if done and not bodiless and not trailers else None,
            from_upstream=True,
            content_length=answer.content_length if answer.content_length >= 0 else None,
            source=self,
        )
        self.has_begun = True
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

    def respond(self, response: Response) -> None:
        """Answer in the place of whatever was awaited; the response hooks see it."""
        self._prepare(response)
        self._run_response_hooks(response)

    def respond_again(self, response: Response) -> None:
        """Answer once more, as the answer before it could not be sent; hooks are not asked again."""
        self._prepare(response)
        self._send_head(response)

    def _prepare(self, response: Response) -> None:
        """Put an answer that is there as a whole in the place of whatever was awaited."""
        self._wait.call_off()
        self._read = self._peek = None
        self._close_stream()
        self._stream = response.stream
        self.has_begun = True
        self._held.clear()
        self._bodiless = self._exchange.head_only or response.is_bodiless

    def _run_response_hooks(self, response: Response) -> None:
        pending = self._chain.on_response(self._request, response)
        if pending is None:
            self._send_head(response)
        else:
            self._hold_for(pending, response)

    def _hold_for(self, pending: Awaitable[None], response: Response) -> None:
        """Hold the answer until a hook has ended."""
        self._is_held = True
        self._exchange.pause_upstream()
        self._wait.wait(pending, lambda _: self._send_head(response))

    def _send_head(self, response: Response) -> None:
        exchange = self._exchange
        self._filter = self._chain.response_filter(self._request, response)
        if response.reason:
            exchange.reason = response.reason
        if exchange.explains_errors:
            # A hook may have put a refusal in the place of the answer.
            response.explain()
        self._response = response
        headers, came = response.headers, self._came
        lines = headers.to_lines()
        answer = AnswerHead(response.status, status_line(response.status))
        answer.lines = lines
        if not (response.from_upstream or headers.has_any(b"x-request-id:")):
            answer.lines += id_line(exchange.request_id)
        if came is not None and came.has_date and came.has_server and lines.startswith(self._came_lines):
            # Nothing was taken away from the upstream's head, so that it need not be searched.
            answer.has_date = answer.has_server = True
        else:
            answer.has_date = headers.has_any(b"date:")
            answer.has_server = not response.names_server or headers.has_any(b"server:")
        self._is_held = False
        if response.body is not None:
            self._send_whole(answer, response, response.body)
            return
        stream = response.stream
        if stream is not None:
            exchange.let_go_of_upstream()
            if not self._bodiless:
                exchange.upstream = StreamedAnswer(exchange, stream, self._take_streamed)
        keeps_length = self._filter is None or self._filter.keeps_length
        answer.content_length = response.content_length if keeps_length and response.content_length is not None else -1
        if self._bodiless:
            exchange.send_head(answer, b"", bodiless=True, done=True, trailers=b"")
        elif response.pacing is None and len(self._held) == 1:
            (payload, done, trailers), self._held = self._held[0], []
            filtered = self._filtered(payload, done, trailers)
            if filtered is not None:
                payload, trailers = filtered
                exchange.send_head(answer, payload, bodiless=False, done=done, trailers=trailers)
        else:
            exchange.send_head(answer, b"", bodiless=False, done=False, trailers=b"")
            self._send_held()
        if not (self._is_over or self._timer):
            exchange.resume_upstream()

    def _send_whole(self, answer: AnswerHead, response: Response, body: bytes) -> None:
        """Send an answer whose body is there."""
        exchange = self._exchange
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

    def take(self, payload: bytes, *, done: bool, trailers: bytes) -> None:
        """Take more of the answer's body."""
        if self._is_held or self._held or (self._response is not None and self._response.pacing is not None):
            self._held.append((payload, done, trailers))
            if self._read is not None:
                self._count(payload, done=done)
            elif self._peek is not None:
                self._look()
            elif not self._is_held and self._timer is None:
                self._send_held()
            return
        filtered = self._filtered(payload, done, trailers)
        if filtered is not None:
            payload, trailers = filtered
            self._exchange.send_data(payload, done=done, trailers=trailers)

    def _take_streamed(self, payload: bytes, done: bool) -> None:
        self.take(payload, done=done, trailers=b"")

    def _close_stream(self) -> None:
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.close()

    async def read_answer(self, limit: int) -> bytes:
        """Wait for the whole body of the answer; the `AnswerSource` of the response."""
        if self._bodiless:
            return b""
        waiting: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._read = waiting
        self._room = limit
        for payload, done, _ in self._held:
            self._count(payload, done=done)
        if not waiting.done():
            self._exchange.resume_upstream()
        return await waiting

    async def peek_answer(self, size: int, seconds: float) -> bytes:
        """Wait for the beginning of the answer's body; the `AnswerSource` of the response."""
        if self._bodiless:
            return b""
        self._peek = asyncio.get_running_loop().create_future()
        self._peek_size = size
        self._look()
        if not self._peek.done():
            self._exchange.resume_upstream()
            await asyncio.wait((self._peek,), timeout=seconds)
            self._exchange.pause_upstream()
        self._peek = None
        return b"".join([part for part, _, _ in self._held])

    def _look(self) -> None:
        """Let the hook that waits for the answer's beginning go on once that is there."""
        waiting = self._peek
        if waiting is None or waiting.done():
            return
        if sum([len(part) for part, _, _ in self._held]) >= self._peek_size or self._held[-1][1]:
            self._exchange.pause_upstream()
            waiting.set_result(None)

    def _count(self, payload: bytes, *, done: bool) -> None:
        """Let the hook that waits for the whole answer go on once all of it is there, or too much."""
        waiting = self._read
        self._room -= len(payload)
        if waiting is None or waiting.done():
            return
        if self._room < 0:
            self._exchange.pause_upstream()
            waiting.set_exception(BodyTooLarge("the body is too long"))
        elif not self._exchange.buffers.take(self._counted, len(payload), self._request.route):
            self._exchange.pause_upstream()
            waiting.set_exception(BuffersFull(BUFFERS_FULL))
        else:
            self._counted += len(payload)
        if done and not waiting.done():
            waiting.set_result(b"".join([part for part, _, _ in self._held]))

    def _filtered(self, payload: bytes, done: bool, trailers: bytes) -> tuple[bytes, bytes] | None:
        """Return what goes out of a part of the body and of the trailers behind it; None: it was cut off."""
        filter_ = self._filter
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
            filtered = self._filtered(payload, done, trailers)
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

    def finish(self) -> None:
        """Let go of everything, as the request is over."""
        self._is_over = True
        self._read = self._peek = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._held = []
        self._close_stream()
        if self._counted:
            self._exchange.buffers.release(self._counted)
        # Request, answer and run hold each other, and would wait for the collector.
        self._response = None
