"""What both ends of an HTTP/2 connection have in common beside the protocol: sending in turn, by windows and transport.

Payload waits in a queue per stream until the peer's windows let it through. Windows towards the peer are opened as what
came is passed on, so a stream whose taker is slow holds at most its own window, and never the others'.
"""

import asyncio
from typing import cast

from headgate.gateway.proxy.config import ProxyConfig
from headgate.gateway.proxy.http2.compression import FORGET, compress_lines
from headgate.gateway.proxy.http2.flow import Flow
from headgate.gateway.proxy.http2.frames import (
    ENABLE_CONNECT_PROTOCOL,
    ENABLE_PUSH,
    FRAME_SIZE,
    INITIAL_WINDOW_SIZE,
    MAX_CONCURRENT_STREAMS,
    MAX_HEADER_LIST_SIZE,
    STREAM_WINDOW,
)
from headgate.gateway.proxy.http2.session import ConnectionFault, Session
from headgate.gateway.proxy.outbox import Outbox, OutboxTransport


class Link(Session):
    """One connection."""

    __slots__ = (
        "_flushing",
        "_has_sent_block",
        "_outbox",
        "_waits_for_turn",
        "closed",
        "config",
        "frames",
        "transport",
        "write_paused",
    )

    def __init__(self, config: ProxyConfig, outbox: Outbox, *, is_client: bool) -> None:
        super().__init__(config.max_head, is_client=is_client)
        self.config = config
        self._outbox = outbox
        self.transport: OutboxTransport
        self.closed = False
        self.write_paused = False
        self.frames = 0
        """DATA frames sent."""
        self._flushing = False
        self._has_sent_block = False
        self._waits_for_turn = False
        """Frames that are here are read in a later turn of the event loop."""

    def start(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport, and send our settings."""
        self.transport = OutboxTransport(cast(asyncio.Transport, transport), self._outbox, self.config.buffer_high)
        settings = {
            MAX_CONCURRENT_STREAMS: self.config.max_streams,
            INITIAL_WINDOW_SIZE: STREAM_WINDOW,
            MAX_HEADER_LIST_SIZE: self.config.max_head,
        }
        if self._is_client:
            settings[ENABLE_PUSH] = 0
        else:
            settings[ENABLE_CONNECT_PROTOCOL] = 1
        self.write_greeting(settings)
        self.flush()

    # asyncio.Protocol

    def data_received(self, data: bytes) -> None:
        """Read what came."""
        if self.closed:
            return
        self._flushing = True
        try:
            self.receive(data)
        except ConnectionFault as fault:
            if not self.is_closed():
                self.write_goaway(self.last_inbound, fault.code)
                self.broken(str(fault))
            return
        finally:
            self._flushing = False
        if not self.is_closed():
            self.return_connection_window()
            self.flush()
            if self.yields and not self._waits_for_turn:
                self._wait_for_turn()

    def _wait_for_turn(self) -> None:
        """Let other connections go first: a peer that sends fast would have its frames read until it stops."""
        self._waits_for_turn = True
        self.transport.pause_reading()
        asyncio.get_running_loop().call_soon(self._take_turn)

    def _take_turn(self) -> None:
        """Go on reading."""
        self._waits_for_turn = False
        if self.closed or self.transport.is_closing():
            return
        self.begin_turn()
        self.data_received(b"")
        if not (self._waits_for_turn or self.closed or self.transport.is_closing()):
            self.transport.resume_reading()

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
        """Say whether nothing more is to be read or sent."""
        return self.closed

    def broken(self, reason: str) -> None:
        """End a connection whose peer broke the protocol; a GOAWAY that says so is written."""
        raise NotImplementedError

    def writing_changed(self) -> None:
        """Tell whom it concerns that the peer takes nothing for now, or takes more again."""
        raise NotImplementedError

    def pumped(self, stream_id: int, flow: Flow) -> None:
        """Note that the peer has opened a window, so that the queue may be shorter or over."""
        raise NotImplementedError

    # Sending

    def flush(self) -> None:
        """Hand what is written to the transport; while frames are read, once behind them all."""
        if not self._flushing:
            data = self.take_written()
            if data:
                self.transport.write(data)

    def close(self) -> None:
        """Close behind what is written."""
        self.closed = True
        data = self.take_written()
        if data:
            self.transport.write(data)
        self.transport.close()

    def say_goaway(self, last_stream_id: int, code: int) -> None:
        """Say which streams were or will be served."""
        self.write_goaway(last_stream_id, code)
        self.flush()

    def send_headers(self, stream_id: int, block: bytes, *, end: bool) -> bool:
        """Send a head; False: the stream takes nothing any more."""
        flow = self.flows.get(stream_id)
        if flow is None or flow.is_over or self.closed:
            return False
        if end:
            flow.ended = flow.is_over = True
        self._write_block(stream_id, block, end=end)
        self.flush()
        return True

    def _write_block(self, stream_id: int, block: bytes, *, end: bool) -> None:
        if not self._has_sent_block:
            self._has_sent_block = True
            block = FORGET + block
        self.write_headers(stream_id, block, end=end)

    def send(self, stream_id: int, payload: bytes, *, end: bool, trailers: bytes = b"") -> None:
        """Send payload, as the windows allow, and trailers as header lines."""
        flow = self.flows.get(stream_id)
        if flow is None or flow.is_over or self.closed:
            return
        if payload:
            flow.pieces.append(payload)
            flow.size += len(payload)
        if end:
            flow.ended = True
            flow.trailers = trailers
        self.pump(stream_id, flow)
        self.flush()

    def pump(self, stream_id: int, flow: Flow) -> None:
        """Send what the windows let through."""
        pieces = flow.pieces
        while pieces:
            room = min(flow.window, self.window, FRAME_SIZE)
            if room <= 0 or self.write_paused:
                return
            offset = flow.offset
            piece = pieces[0]
            if len(piece) - offset > room:
                piece = piece[offset : offset + room]
                flow.offset = offset + room
            else:
                if offset:
                    piece = piece[offset:]
                    flow.offset = 0
                del pieces[0]
            flow.size -= len(piece)
            is_last = flow.ended and not pieces and not flow.trailers
            self.write_data(stream_id, flow, piece, end=is_last)
            self.frames += 1
            if is_last:
                flow.is_over = True
                return
        if flow.ended and not flow.is_over:
            flow.is_over = True
            if flow.trailers:
                self._write_block(stream_id, compress_lines(flow.trailers), end=True)
            else:
                self.write_data(stream_id, flow, b"", end=True)

    def pump_all(self) -> None:
        """Send what windows and transport let through of all streams."""
        for stream_id, flow in list(self.flows.items()):
            if flow.pieces:
                self.pump(stream_id, flow)
                self.pumped(stream_id, flow)
        self.flush()

    def pump_one(self, stream_id: int) -> None:
        """Send what a stream's window lets through."""
        flow = self.flows.get(stream_id)
        if flow is not None and flow.pieces:
            self.pump(stream_id, flow)
            self.pumped(stream_id, flow)

    def reset(self, stream_id: int, code: int) -> None:
        """Let nothing more pass on a stream."""
        if self.closed:
            flow = self.flows.pop(stream_id, None)
            if flow is not None:
                flow.is_over = True
            return
        self.write_reset(stream_id, code)
        self.flush()

    def return_window(self, stream_id: int, flow: Flow) -> None:
        """Open a stream's window again for what was passed on, half a window at a time."""
        size = flow.unreturned
        if size >= STREAM_WINDOW // 2 and not self.closed:
            flow.unreturned = 0
            # The peer has no use for it behind its end.
            if stream_id in self.flows and not flow.peer_done:
                flow.room += size
                self.write_window(stream_id, size)
                self.flush()
