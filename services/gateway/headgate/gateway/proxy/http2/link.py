"""What both ends of an HTTP/2 connection have in common: the state machine, flow control, and sending in turn.

Payload waits in a queue per stream until the peer's windows let it through. Windows towards the peer are opened as what
came is passed on, so a stream whose taker is slow holds at most its own window, and never the others'.
"""

import asyncio
import time
from typing import Any, Final, cast

import h2.config
import h2.connection
import h2.events
import h2.exceptions
import h2.settings
import hyperframe.frame
from h2.utilities import SizeLimitDict

from headgate.gateway.proxy.config import ProxyConfig
from headgate.gateway.proxy.http2.compression import StaticEncoder
from headgate.gateway.proxy.http2.heads import HeaderList
from headgate.gateway.proxy.outbox import Outbox, OutboxTransport

STREAM_WINDOW: Final = 256 * 1024
CONNECTION_WINDOW: Final = 4 * 1024 * 1024
LAST_STREAM: Final = 2**31 - 1
_REMEMBERED_STREAMS: Final = 1024
"""Closed streams of which h2 keeps how they ended; its own number is 65,536 for each connection."""
_SURPLUS_STREAMS: Final = 1024
"""Streams over the limit that are refused one by one, and not with the connection: a peer may open them before it knows
of the limit."""

NO_ERROR: Final = 0
PROTOCOL_ERROR: Final = 1
INTERNAL_ERROR: Final = 2
REFUSED_STREAM: Final = 7
CANCEL: Final = 8
ENHANCE_YOUR_CALM: Final = 11


class Queue:
    """What one stream has yet to send, and what it has yet to give back of its window."""

    __slots__ = ("drops_rest", "ended", "is_over", "moved_at", "offset", "pieces", "size", "trailers", "unreturned")

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.offset = 0
        """What of the first piece was sent."""
        self.size = 0
        self.trailers: HeaderList | None = None
        self.ended = False
        """Nothing more will be added."""
        self.is_over = False
        """The end was sent, or the stream was reset."""
        self.unreturned = 0
        """Bytes received and passed on, for which the window was not opened again yet."""
        self.moved_at = 0.0
        """Monotonic time at which the peer last took something, while something waits."""
        self.drops_rest = False
        """Whatever the peer may still send is not wanted."""


class Link:
    """One connection."""

    __slots__ = (
        "_flushing",
        "_outbox",
        "_unreturned",
        "closed",
        "config",
        "frames",
        "h2",
        "queues",
        "transport",
        "write_paused",
    )

    def __init__(self, config: ProxyConfig, outbox: Outbox, *, client_side: bool) -> None:
        self.config = config
        self._outbox = outbox
        # What h2 checks of headers it would answer by closing the connection, with everybody else's streams: `heads`
        # checks instead, and only the stream ends.
        self.h2 = h2.connection.H2Connection(
            h2.config.H2Configuration(
                client_side=client_side,
                header_encoding=None,
                validate_inbound_headers=False,
                normalize_inbound_headers=False,
                validate_outbound_headers=False,
                normalize_outbound_headers=False,
            )
        )
        self.h2.encoder = cast(Any, StaticEncoder())
        self.transport: OutboxTransport
        self.queues: dict[int, Queue] = {}
        self.closed = False
        self.write_paused = False
        self.frames = 0
        """DATA frames sent."""
        self._flushing = False
        self._unreturned = 0

    def start(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport, and send our settings."""
        self.transport = OutboxTransport(cast(asyncio.Transport, transport), self._outbox, self.config.buffer_high)
        machine = self.h2
        is_client = machine.config.client_side
        codes = h2.settings.SettingCodes
        settings: dict[h2.settings.SettingCodes, int] = {
            codes.MAX_CONCURRENT_STREAMS: self.config.max_streams,
            codes.INITIAL_WINDOW_SIZE: STREAM_WINDOW,
            codes.MAX_HEADER_LIST_SIZE: self.config.max_head,
        }
        if is_client:
            settings[codes.ENABLE_PUSH] = 0
        else:
            settings[codes.ENABLE_CONNECT_PROTOCOL] = 1
        machine.local_settings = h2.settings.Settings(client=is_client, initial_values=settings)
        machine.initiate_connection()
        settings[codes.MAX_CONCURRENT_STREAMS] = self.config.max_streams + _SURPLUS_STREAMS
        machine.local_settings = h2.settings.Settings(client=is_client, initial_values=settings)
        machine.decoder.max_header_list_size = self.config.max_head
        machine._closed_streams = SizeLimitDict(size_limit=_REMEMBERED_STREAMS)
        machine._frame_dispatch_table[hyperframe.frame.GoAwayFrame] = self._take_goaway
        machine.increment_flow_control_window(CONNECTION_WINDOW - 65_535)
        self.flush()

    def _take_goaway(
        self, frame: hyperframe.frame.GoAwayFrame
    ) -> tuple[list[hyperframe.frame.Frame], list[h2.events.Event]]:
        """Note a GOAWAY. h2 would let nothing more pass, but the streams under way go on (RFC 9113 section 6.8)."""
        event = h2.events.ConnectionTerminated()
        event.error_code = frame.error_code
        event.last_stream_id = frame.last_stream_id
        return [], [event]

    # asyncio.Protocol

    def data_received(self, data: bytes) -> None:
        """Run the state machine over what came."""
        if self.closed:
            return
        machine = self.h2
        try:
            events = machine.receive_data(data)
        except h2.exceptions.ProtocolError as error:
            # h2 has written a GOAWAY that says why.
            self.transport.write(machine.data_to_send())
            self.broken(str(error) or type(error).__name__)
            return
        self._flushing = True
        try:
            replies = machine.data_to_send()
            if replies:
                self.transport.write(replies)
                self.replied(len(replies))
            for event in events:
                if self.is_closed():
                    return
                self.handle(event)
        finally:
            self._flushing = False
        if self._unreturned >= CONNECTION_WINDOW // 2 and not self.is_closed():
            machine.increment_flow_control_window(self._unreturned)
            self._unreturned = 0
        self.flush()

    def eof_received(self) -> bool:
        """Close, as HTTP/2 knows no half-closed connections."""
        return False

    def pause_writing(self) -> None:
        """Let payload wait in the queues."""
        self.write_paused = True
        self.writing_changed()

    def resume_writing(self) -> None:
        """Send what waits."""
        self.write_paused = False
        self.pump_all()
        self.writing_changed()

    # What sides do

    def is_closed(self) -> bool:
        """Say whether nothing more is to be sent; a handler may have decided so."""
        return self.closed

    def handle(self, event: h2.events.Event) -> None:
        """React to one event."""
        raise NotImplementedError

    def replied(self, size: int) -> None:
        """Note that the state machine has answered what came with so many bytes by itself."""

    def broken(self, reason: str) -> None:
        """End a connection whose peer broke the protocol."""
        raise NotImplementedError

    def writing_changed(self) -> None:
        """Tell whom it concerns that the peer takes nothing for now, or takes more again."""
        raise NotImplementedError

    def pumped(self, stream_id: int, queue: Queue) -> None:
        """Note that the peer has opened a window, so that the queue may be shorter or over."""
        raise NotImplementedError

    # Sending

    def flush(self) -> None:
        """Hand what the state machine has written to the transport; while events are handled, once behind them all."""
        if not self._flushing:
            data = self.h2.data_to_send()
            if data:
                self.transport.write(data)

    def close(self) -> None:
        """Close behind what is written."""
        self.closed = True
        data = self.h2.data_to_send()
        if data:
            self.transport.write(data)
        self.transport.close()

    def say_goaway(self, last_stream_id: int, code: int) -> None:
        """Say which streams were or will be served; h2's own way would end those under way too."""
        data = self.h2.data_to_send()
        frame = hyperframe.frame.GoAwayFrame(0, last_stream_id=last_stream_id, error_code=code)
        self.transport.write(data + frame.serialize())

    def open(self, stream_id: int) -> Queue:
        """Begin to keep what a stream has to send."""
        queue = Queue()
        self.queues[stream_id] = queue
        return queue

    def send_headers(self, stream_id: int, headers: HeaderList, *, end: bool) -> bool:
        """Send a head; False: the stream takes nothing any more."""
        queue = self.queues.get(stream_id)
        if queue is None or queue.is_over or self.closed:
            return False
        try:
            self.h2.send_headers(stream_id, headers, end_stream=end)
        except h2.exceptions.ProtocolError:
            # The peer has reset the stream, and its event is not handled yet.
            queue.is_over = True
            return False
        if end:
            queue.ended = queue.is_over = True
        self.flush()
        return True

    def send(self, stream_id: int, payload: bytes, *, end: bool, trailers: HeaderList | None = None) -> None:
        """Send payload, as the windows allow."""
        queue = self.queues.get(stream_id)
        if queue is None or queue.is_over or self.closed:
            return
        if payload:
            queue.pieces.append(payload)
            queue.size += len(payload)
        if end:
            queue.ended = True
            queue.trailers = trailers
        self.pump(stream_id, queue)
        self.flush()

    def pump(self, stream_id: int, queue: Queue) -> None:
        """Send what the windows let through."""
        try:
            self._pump(stream_id, queue)
        except h2.exceptions.ProtocolError:
            # The peer has reset the stream, and its event is not handled yet.
            queue.is_over = True

    def _pump(self, stream_id: int, queue: Queue) -> None:
        machine = self.h2
        while queue.pieces:
            room = min(machine.local_flow_control_window(stream_id), machine.max_outbound_frame_size)
            if room <= 0 or self.write_paused:
                if not queue.moved_at:
                    queue.moved_at = time.monotonic()
                return
            offset = queue.offset
            piece = queue.pieces[0]
            if len(piece) - offset > room:
                piece = piece[offset : offset + room]
                queue.offset = offset + room
            else:
                if offset:
                    piece = piece[offset:]
                    queue.offset = 0
                del queue.pieces[0]
            queue.size -= len(piece)
            queue.moved_at = 0.0
            is_last = queue.ended and not queue.pieces and not queue.trailers
            machine.send_data(stream_id, piece, end_stream=is_last)
            self.frames += 1
            if is_last:
                queue.is_over = True
                return
        if queue.ended and not queue.is_over:
            queue.is_over = True
            if queue.trailers:
                machine.send_headers(stream_id, queue.trailers, end_stream=True)
            else:
                machine.end_stream(stream_id)

    def pump_all(self) -> None:
        """Send what windows and transport let through of all streams."""
        for stream_id, queue in list(self.queues.items()):
            if queue.pieces:
                self.pump(stream_id, queue)
                self.pumped(stream_id, queue)
        self.flush()

    def pump_one(self, stream_id: int) -> None:
        """Send what a stream's window lets through."""
        queue = self.queues.get(stream_id)
        if queue is not None and queue.pieces:
            self.pump(stream_id, queue)
            self.pumped(stream_id, queue)

    def reset(self, stream_id: int, code: int) -> None:
        """Let nothing more pass on a stream."""
        queue = self.queues.pop(stream_id, None)
        if queue is not None:
            queue.is_over = True
        if not self.closed:
            try:
                self.h2.reset_stream(stream_id, code)
            except h2.exceptions.ProtocolError:
                # It ended meanwhile.
                return
            self.flush()

    # Receiving

    def received(self, size: int) -> None:
        """Count what came into the connection's window."""
        self._unreturned += size

    def return_window(self, stream_id: int, queue: Queue) -> None:
        """Open a stream's window again for what was passed on, half a window at a time."""
        if queue.unreturned >= STREAM_WINDOW // 2 and not self.closed:
            try:
                self.h2.increment_flow_control_window(queue.unreturned, stream_id)
            except h2.exceptions.ProtocolError:
                return
            queue.unreturned = 0
            self.flush()
