"""Connections to endpoints that speak HTTP/2, and what requests share of them."""

import asyncio
import errno
import time
from typing import TYPE_CHECKING

from headgate.gateway.proxy.config import ProxyConfig
from headgate.gateway.proxy.http2.decompression import HeaderList
from headgate.gateway.proxy.http2.flow import Flow
from headgate.gateway.proxy.http2.frames import CANCEL, LAST_STREAM, NO_ERROR
from headgate.gateway.proxy.http2.link import Link
from headgate.gateway.proxy.http2.upstream import Http2Upstream
from headgate.gateway.proxy.outbox import Outbox

if TYPE_CHECKING:
    from headgate.gateway.health.circuit import Circuit


class UpstreamLink(Link):
    """A connection to an endpoint."""

    __slots__ = (
        "_is_ready",
        "_is_started",
        "_room",
        "circuit",
        "has_answered",
        "idle_since",
        "leaving",
        "max_requests",
        "ready",
        "requests",
        "streams",
    )

    def __init__(self, config: ProxyConfig, outbox: Outbox, max_requests: int) -> None:
        super().__init__(config, outbox, is_client=True)
        self.max_requests = max_requests
        self.requests = 0
        self.streams: dict[int, Http2Upstream] = {}
        self.circuit: Circuit | None = None
        """Counts this connection; None: nobody does."""
        self.has_answered = False
        self.leaving = False
        """No more streams are opened; closed behind the last."""
        self.idle_since = 0.0
        self._room = 0
        """Streams at once; 0 until the endpoint's SETTINGS are there."""
        self._is_ready = False
        self._is_started = False
        self.ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done with the endpoint's SETTINGS, or with an OSError that says why there are none."""

    @property
    def has_room(self) -> bool:
        """Whether one more stream can be opened."""
        return (
            len(self.flows) < self._room
            and not self.leaving
            and not self.closed
            and self.requests < self.max_requests
            and self.next_id < LAST_STREAM
            and not self.transport.is_closing()
        )

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Greet."""
        self._is_started = True
        self.start(transport)

    def data_received(self, data: bytes) -> None:
        """Take frames, unless the endpoint answers in another language: as a frame that would be a very long one."""
        if not self._is_ready and data.startswith(b"HTTP/"):
            self.broken("it answers in HTTP/1.1")
        else:
            super().data_received(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell all requests that are under way."""
        self.closed = True
        self._not_ready("the endpoint does not speak HTTP/2")
        streams, self.streams = self.streams, {}
        self.flows = {}
        for stream in list(streams.values()):
            stream.lose()
        circuit, self.circuit = self.circuit, None
        if circuit is not None:
            circuit.unrest(self)
            circuit.release_connection()

    def writing_changed(self) -> None:
        """Stop or go on taking bodies."""
        for stream in list(self.streams.values()):
            stream.pause_if_full()

    # Frames

    def take_request(self, stream_id: int, headers: HeaderList, *, done: bool) -> None:
        """Not told to clients."""

    def take_trailers(self, stream_id: int, headers: HeaderList) -> None:
        """Not told to clients."""

    def take_answer(self, stream_id: int, flow: Flow, headers: HeaderList, *, done: bool) -> None:
        """Pass a head or trailers on."""
        stream = self.streams.get(stream_id)
        if flow.has_head:
            if stream is not None:
                stream.take_trailers(headers, done=done)
        elif headers and headers[0][1][:1] == b"1" and headers[0][0] == b":status":
            if stream is not None:
                stream.take_informational(headers, done=done)
        else:
            flow.has_head = True
            if stream is not None:
                stream.take_head(headers, done=done)

    def take_data(self, stream_id: int, flow: Flow, payload: bytes, size: int, *, done: bool) -> None:
        """Pass a part of an answer's body on."""
        stream = self.streams.get(stream_id)
        if stream is not None:
            stream.take_data(payload, size, done=done)

    def take_window(self, stream_id: int) -> None:
        """Send what waited for the endpoint."""
        if stream_id:
            self.pump_one(stream_id)
        else:
            self.pump_all()

    def take_reset(self, stream_id: int, code: int) -> None:
        """Tell the request."""
        stream = self.streams.get(stream_id)
        if stream is not None:
            stream.take_reset(code)
        self.rest()

    def take_control(self, count: int = 1) -> None:
        """Endpoints are trusted with such."""

    def take_settings(self) -> None:
        """Take how many streams there may be, and send what the endpoint's windows held back."""
        self._room = min(self.config.max_streams, self.peer_max_streams)
        if not self._is_ready:
            self._is_ready = True
            if not self.ready.done():
                self.ready.set_result(None)
        self.pump_all()

    def take_goaway(self, last_stream_id: int, code: int) -> None:
        """Open no more streams, and tell those that the endpoint will not look at (RFC 9113 section 6.8)."""
        self.leaving = True
        for stream_id, stream in list(self.streams.items()):
            if stream_id > last_stream_id:
                self.flows.pop(stream_id, None)
                self._note_reset(stream_id, by_peer=False)
                stream.was_ignored()
        self.rest()

    def broken(self, reason: str) -> None:
        """Close a connection whose other end broke the protocol."""
        self.close()
        self._not_ready(f"the endpoint does not speak HTTP/2: {reason}")

    def _not_ready(self, reason: str) -> None:
        if not self._is_ready:
            self._is_ready = True
            if not self.ready.done():
                self.ready.set_exception(ConnectionResetError(errno.EPROTO, reason))
                # Whoever waited may be gone.
                self.ready.exception()

    def pumped(self, stream_id: int, flow: Flow) -> None:
        """Let a body go on that waited for the window."""
        stream = self.streams.get(stream_id)
        if stream is not None:
            stream.pause_if_full()
        elif flow.is_over:
            self.finished(stream_id, flow)

    # Streams

    def begin(self, stream: Http2Upstream) -> int:
        """Give a stream its number."""
        stream_id = self.next_id
        self.next_id = stream_id + 2
        self.requests += 1
        self.streams[stream_id] = stream
        self.open(stream_id)
        if self.circuit is not None:
            self.circuit.unrest(self)
        return stream_id

    def finished(self, stream_id: int, flow: Flow) -> None:
        """Forget a stream whose request is out and whose answer is here."""
        if flow.is_over and self.flows.pop(stream_id, None) is not None:
            if flow.drops_rest:
                self.reset(stream_id, CANCEL)
            self.rest()

    def rest(self) -> None:
        """Note that a stream has ended: there is room, or nothing left to do."""
        is_idle = not self.flows and not self.streams and not self.closed
        if is_idle:
            self.idle_since = time.monotonic()
            if self.leaving or self.requests >= self.max_requests:
                self.leave()
        circuit = self.circuit
        if circuit is not None:
            if is_idle and not self.closed:
                circuit.rest(self)
            else:
                circuit.wake()

    def make_room(self) -> None:
        """Close, as a connection to somebody else is wanted more than one that rests, which takes its place."""
        self.circuit = None
        self.leave()

    def leave(self) -> None:
        """Open no more streams, and close behind the last."""
        self.leaving = True
        if not self.flows and not self.streams and not self.closed:
            self.say_goaway(0, NO_ERROR)
            self.close()

    def abort(self) -> None:
        """Close at once, if there is anything to close."""
        self.closed = True
        if self._is_started:
            self.transport.abort()

    def count_by(self, circuit: "Circuit") -> None:
        """Be counted as one connection, however many requests waited for it."""
        if self.circuit is not None or self.closed:
            circuit.release_connection()
            return
        self.circuit = circuit
        for _ in range(min(circuit.pending, self._room - 1)):
            circuit.wake()
