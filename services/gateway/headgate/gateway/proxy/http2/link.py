"""What both ends of an HTTP/2 connection have in common: the state machine, flow control, and sending in turn.

Payload waits in a queue per stream until the peer's windows let it through. Windows towards the peer are opened as what
came is passed on, so a stream whose taker is slow holds at most its own window, and never the others'.
"""

import asyncio
from typing import Final, cast

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions
import h2.settings

from headgate.gateway.proxy.config import ProxyConfig
from headgate.gateway.proxy.http2.heads import HeaderList
from headgate.gateway.proxy.outbox import Outbox, OutboxTransport

STREAM_WINDOW: Final = 256 * 1024
CONNECTION_WINDOW: Final = 4 * 1024 * 1024


class Queue:
    """What one stream has yet to send, and what it has yet to give back of its window."""

    __slots__ = ("ended", "is_over", "pieces", "size", "trailers", "unreturned")

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.size = 0
        self.trailers: HeaderList | None = None
        self.ended = False
        """Nothing more will be added."""
        self.is_over = False
        """The end was sent, or the stream was reset."""
        self.unreturned = 0
        """Bytes received and passed on, for which the window was not opened again yet."""

    def is_sending(self) -> bool:
        """Say whether something may still be sent."""
        return not self.is_over


class Link:
    """One connection."""

    __slots__ = ("_flushing", "_outbox", "_unreturned", "closed", "config", "h2", "queues", "transport")

    def __init__(self, config: ProxyConfig, outbox: Outbox, *, client_side: bool) -> None:
        self.config = config
        self._outbox = outbox
        self.h2 = h2.connection.H2Connection(
            h2.config.H2Configuration(
                client_side=client_side,
                header_encoding=None,
                validate_outbound_headers=False,
                normalize_outbound_headers=False,
            )
        )
        self.transport: OutboxTransport
        self.queues: dict[int, Queue] = {}
        self.closed = False
        self._flushing = False
        self._unreturned = 0

    def start(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport, and send our settings."""
        self.transport = OutboxTransport(cast(asyncio.Transport, transport), self._outbox, self.config.buffer_high)
        settings = {
            h2.settings.SettingCodes.MAX_CONCURRENT_STREAMS: self.config.max_streams,
            h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: STREAM_WINDOW,
            h2.settings.SettingCodes.MAX_HEADER_LIST_SIZE: self.config.max_head,
            h2.settings.SettingCodes.ENABLE_PUSH: 0,
        }
        if not self.h2.config.client_side:
            settings[h2.settings.SettingCodes.ENABLE_CONNECT_PROTOCOL] = 1
            del settings[h2.settings.SettingCodes.ENABLE_PUSH]
        self.h2.local_settings = h2.settings.Settings(client=self.h2.config.client_side, initial_values=settings)
        self.h2.initiate_connection()
        self.h2.decoder.max_header_list_size = self.config.max_head
        self.h2.increment_flow_control_window(CONNECTION_WINDOW - 65_535)
        self.flush()

    def receive(self, data: bytes) -> None:
        """Run the state machine over what came."""
        if self.closed:
            return
        self._flushing = True
        try:
            for event in self.h2.receive_data(data):
                self.handle(event)
                if self.is_closed():
                    return
        except h2.exceptions.ProtocolError as error:
            # h2 has written a GOAWAY that says why.
            self.failed(str(error) or type(error).__name__)
            self.close()
            return
        finally:
            self._flushing = False
        if self._unreturned >= CONNECTION_WINDOW // 2:
            self.h2.increment_flow_control_window(self._unreturned)
            self._unreturned = 0
        self.flush()

    def is_closed(self) -> bool:
        """Say whether nothing more is to be sent; a handler may have decided so."""
        return self.closed

    def handle(self, event: h2.events.Event) -> None:
        """React to one event."""
        raise NotImplementedError

    def failed(self, reason: str) -> None:
        """Note that the peer broke the protocol."""
        raise NotImplementedError

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

    # Sending

    def open(self, stream_id: int) -> Queue:
        """Begin to keep what a stream has to send."""
        queue = Queue()
        self.queues[stream_id] = queue
        return queue

    def send_headers(self, stream_id: int, headers: HeaderList, *, end: bool) -> None:
        """Send a head."""
        queue = self.queues.get(stream_id)
        if queue is None or queue.is_over:
            return
        self.h2.send_headers(stream_id, headers, end_stream=end)
        if end:
            queue.ended = queue.is_over = True
        self.flush()

    def send(self, stream_id: int, payload: bytes, *, end: bool, trailers: HeaderList | None = None) -> None:
        """Send payload, as the windows allow."""
        queue = self.queues.get(stream_id)
        if queue is None or queue.is_over:
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
        machine = self.h2
        while queue.pieces:
            room = min(machine.local_flow_control_window(stream_id), machine.max_outbound_frame_size)
            if room <= 0:
                return
            piece = queue.pieces[0]
            if len(piece) > room:
                queue.pieces[0] = piece[room:]
                piece = piece[:room]
            else:
                del queue.pieces[0]
            queue.size -= len(piece)
            is_last = queue.ended and not queue.pieces and not queue.trailers
            machine.send_data(stream_id, piece, end_stream=is_last)
            if is_last:
                queue.is_over = True
                return
        if queue.ended and not queue.is_over:
            queue.is_over = True
            if queue.trailers:
                machine.send_headers(stream_id, queue.trailers, end_stream=True)
            else:
                machine.end_stream(stream_id)

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
