"""One end of an HTTP/2 connection (RFC 9113): frames, streams, windows and header blocks. Bytes in, calls out.

A class that inherits from `Session` overrides the methods that take what came, and writes as a `FrameWriter` does.
Nothing here reads or waits.
"""

from typing import Final

from headgate.gateway.proxy.http2.decompression import CompressionFault, Decoder, HeaderList, HeaderListTooLong
from headgate.gateway.proxy.http2.flow import Flow
from headgate.gateway.proxy.http2.frame_writer import FrameWriter
from headgate.gateway.proxy.http2.frames import (
    ACK,
    COMPRESSION_ERROR,
    CONTINUATION,
    DATA,
    ENABLE_CONNECT_PROTOCOL,
    ENABLE_PUSH,
    END_HEADERS,
    END_STREAM,
    ENHANCE_YOUR_CALM,
    FLOW_CONTROL_ERROR,
    FRAME_SIZE,
    FRAME_SIZE_ERROR,
    GOAWAY,
    HAS_PRIORITY,
    HEADERS,
    INITIAL_WINDOW_SIZE,
    LAST_STREAM,
    MAX_CONCURRENT_STREAMS,
    MAX_FRAME_SIZE,
    PADDED,
    PING,
    PREFACE,
    PRIORITY,
    PROTOCOL_ERROR,
    PUSH_PROMISE,
    RST_STREAM,
    SETTINGS,
    STREAM_CLOSED,
    WINDOW_UPDATE,
)

_LARGEST_WINDOW: Final = 2**31 - 1
_LARGEST_FRAME_SIZE: Final = 2**24 - 1
_MAX_CONTINUATIONS: Final = 64
_MAX_SETTINGS: Final = 32
"""In one frame; as nghttp2 has it since CVE-2020-11080."""
FRAMES_AT_ONCE: Final = 64
"""Read before others have a turn; frames are of 16 KiB at most, and a head is the dearest."""


class ConnectionFault(Exception):
    """The peer broke the protocol in a way that ends the connection."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code


class Session(FrameWriter):
    """State of a connection, and what the peer says."""

    __slots__ = (
        "_block",
        "_block_flags",
        "_block_id",
        "_block_size",
        "_decoder",
        "_depends_on_itself",
        "_expects_preface",
        "_expects_settings",
        "_frames_left",
        "_rest",
        "last_inbound",
        "next_id",
        "peer_max_streams",
        "peer_takes_connect",
    )

    def __init__(self, max_list: int, *, is_client: bool) -> None:
        """`max_list`: bytes of a header list, each field counted with 32 more."""
        super().__init__(is_client=is_client)
        self.last_inbound = 0
        """The newest stream that the peer has opened."""
        self.next_id = 1
        """The next stream that we open."""
        self.peer_max_streams = LAST_STREAM
        self.peer_takes_connect = False
        """The peer knows the extended CONNECT (RFC 8441)."""
        self._decoder = Decoder(max_list)
        self._rest = b""
        """The beginning of a frame, or frames that were not read yet."""
        self._frames_left = FRAMES_AT_ONCE
        """Frames that may be read before others have a turn."""
        self._expects_preface = not is_client
        self._expects_settings = True
        self._block_id = 0
        """Stream of a header block of which more frames have to come; 0: there is none."""
        self._block: list[bytes] = []
        self._block_flags = 0
        self._block_size = 0
        self._depends_on_itself = False
        """The head that is being read says so of its stream."""

    # What inheritors take

    def is_closed(self) -> bool:
        """Say whether nothing more is to be read; what was just told may have decided so."""
        raise NotImplementedError

    def take_request(self, stream_id: int, headers: HeaderList, *, done: bool) -> None:
        """Take the head of a request, and `open` its stream or reset it."""
        raise NotImplementedError

    def take_answer(self, stream_id: int, flow: Flow, headers: HeaderList, *, done: bool) -> None:
        """Take a head or the trailers of an answer."""
        raise NotImplementedError

    def take_trailers(self, stream_id: int, headers: HeaderList) -> None:
        """Take the end of a request."""
        raise NotImplementedError

    def take_data(self, stream_id: int, flow: Flow, payload: bytes, size: int, *, done: bool) -> None:
        """Take a part of a body; `size` is what it took of the windows."""
        raise NotImplementedError

    def take_reset(self, stream_id: int, code: int) -> None:
        """Note that the peer has reset a stream, or made us do so; it is no longer among `flows`."""
        raise NotImplementedError

    def take_window(self, stream_id: int) -> None:
        """Note that the peer takes more, on a stream or, for 0, altogether."""
        raise NotImplementedError

    def take_settings(self) -> None:
        """Note that the peer has said what it allows."""
        raise NotImplementedError

    def take_goaway(self, last_stream_id: int, code: int) -> None:
        """Note that the peer will close, and serve no stream beyond that."""
        raise NotImplementedError

    def take_control(self, count: int = 1) -> None:
        """Note a frame that made work without being a part of a request; `count` is how much."""
        raise NotImplementedError

    # Reading

    @property
    def yields(self) -> bool:
        """Whether frames wait until others have had a turn, after which `begin_turn` has to follow."""
        return not self._frames_left and len(self._rest) > 0

    def begin_turn(self) -> None:
        """Let as many frames be read again as one turn may have."""
        self._frames_left = FRAMES_AT_ONCE

    def receive(self, data: bytes) -> None:
        """Take bytes from the peer, and read the frames that this turn may have; raises ConnectionFault."""
        if self._rest:
            data = self._rest + data
            self._rest = b""
        at, end = 0, len(data)
        if self._expects_preface:
            if data[:24] != PREFACE[:end]:
                raise ConnectionFault(PROTOCOL_ERROR, "invalid preface")
            if end < 24:
                self._rest = data
                return
            self._expects_preface = False
            at = 24
        while end - at >= 9 and self._frames_left:
            size = data[at] << 16 | data[at + 1] << 8 | data[at + 2]
            if size > FRAME_SIZE:
                raise ConnectionFault(FRAME_SIZE_ERROR, "a frame that is too large")
            after = at + 9 + size
            if after > end:
                break
            stream_id = (data[at + 5] & 0x7F) << 24 | data[at + 6] << 16 | data[at + 7] << 8 | data[at + 8]
            self._frames_left -= 1
            self._take_frame(data[at + 3], data[at + 4], stream_id, data, at + 9, after)
            at = after
            if self.is_closed():
                return
        if at < end:
            self._rest = data[at:]

    def _take_frame(self, kind: int, flags: int, stream_id: int, data: bytes, at: int, end: int) -> None:
        if self._block_id and (kind != CONTINUATION or stream_id != self._block_id):
            raise ConnectionFault(PROTOCOL_ERROR, "a frame within a header block")
        if self._expects_settings:
            if kind != SETTINGS or flags & ACK:
                raise ConnectionFault(PROTOCOL_ERROR, "a connection that does not begin with SETTINGS")
            self._expects_settings = False
        if kind == DATA:
            self._take_data(flags, stream_id, data, at, end)
        elif kind == HEADERS:
            self._take_headers(flags, stream_id, data, at, end)
        elif kind == WINDOW_UPDATE:
            self._take_window_update(stream_id, data[at:end])
        elif kind == RST_STREAM:
            self._take_rst_stream(stream_id, data[at:end])
        elif kind == CONTINUATION:
            self._take_continuation(flags, data[at:end])
        else:
            self._take_rare(kind, flags, stream_id, data[at:end])

    def _take_rare(self, kind: int, flags: int, stream_id: int, payload: bytes) -> None:
        if kind == SETTINGS:
            self._take_settings(flags, stream_id, payload)
        elif kind == PING:
            self._take_ping(flags, stream_id, payload)
        elif kind == GOAWAY:
            if stream_id:
                raise ConnectionFault(PROTOCOL_ERROR, "a GOAWAY on a stream")
            if len(payload) < 8:
                raise ConnectionFault(FRAME_SIZE_ERROR, "a GOAWAY that is too short")
            last_stream_id = int.from_bytes(payload[:4], "big") & LAST_STREAM
            self.take_goaway(last_stream_id, int.from_bytes(payload[4:8], "big"))
        elif kind == PRIORITY:
            self._take_priority(stream_id, payload)
        elif kind == PUSH_PROMISE:
            raise ConnectionFault(PROTOCOL_ERROR, "a PUSH_PROMISE, which nobody allowed")
        else:
            self.take_control()

    def _unpadded(self, data: bytes, at: int, end: int) -> int:
        """Return where the padding begins that the byte at `at` speaks of."""
        if at >= end or data[at] >= end - at:
            raise ConnectionFault(PROTOCOL_ERROR, "padding that is longer than its frame")
        return end - data[at]

    def _take_data(self, flags: int, stream_id: int, data: bytes, at: int, end: int) -> None:
        if stream_id == 0:
            raise ConnectionFault(PROTOCOL_ERROR, "DATA on no stream")
        size = end - at
        self._inbound_room -= size
        if self._inbound_room < 0:
            raise ConnectionFault(FLOW_CONTROL_ERROR, "more DATA than the connection's window allows")
        self._unreturned += size
        if flags & PADDED:
            end = self._unpadded(data, at, end)
            at += 1
        flow = self.flows.get(stream_id)
        if flow is None or flow.peer_done:
            self._take_stray(stream_id, flow)
            return
        if size > flow.room:
            self._fault(stream_id, FLOW_CONTROL_ERROR)
            return
        if self._is_client and not flow.has_head:
            self._fault(stream_id, PROTOCOL_ERROR)
            return
        flow.room -= size
        done = flags & END_STREAM != 0
        flow.peer_done = done
        if at == end and not done:
            self.take_control()
        self.take_data(stream_id, flow, data[at:end], size, done=done)

    def _take_headers(self, flags: int, stream_id: int, data: bytes, at: int, end: int) -> None:
        if stream_id == 0:
            raise ConnectionFault(PROTOCOL_ERROR, "HEADERS on no stream")
        if flags & PADDED:
            end = self._unpadded(data, at, end)
            at += 1
        self._depends_on_itself = False
        if flags & HAS_PRIORITY:
            if end - at < 5:
                raise ConnectionFault(FRAME_SIZE_ERROR, "HEADERS that are too short for their priority")
            self._depends_on_itself = int.from_bytes(data[at : at + 4], "big") & LAST_STREAM == stream_id
            at += 5
        if flags & END_HEADERS:
            self._take_block(stream_id, flags, data[at:end])
            return
        self._block_id, self._block_flags = stream_id, flags
        self._block, self._block_size = [data[at:end]], end - at

    def _take_continuation(self, flags: int, payload: bytes) -> None:
        if not self._block_id:
            raise ConnectionFault(PROTOCOL_ERROR, "a CONTINUATION of nothing")
        self._block.append(payload)
        self._block_size += len(payload)
        if len(self._block) > _MAX_CONTINUATIONS + 1 or self._block_size > self._decoder.max_list:
            raise ConnectionFault(ENHANCE_YOUR_CALM, "a header block without end")
        if flags & END_HEADERS:
            block, self._block = b"".join(self._block), []
            stream_id, self._block_id = self._block_id, 0
            self._take_block(stream_id, self._block_flags, block)

    def _take_block(self, stream_id: int, flags: int, block: bytes) -> None:
        try:
            headers = self._decoder.decode(block)
        except CompressionFault as fault:
            raise ConnectionFault(COMPRESSION_ERROR, str(fault)) from None
        except HeaderListTooLong as excess:
            raise ConnectionFault(ENHANCE_YOUR_CALM, str(excess)) from None
        done = flags & END_STREAM != 0
        flow = self.flows.get(stream_id)
        if flow is None and not self._is_client and stream_id & 1 and stream_id > self.last_inbound:
            self.last_inbound = stream_id
            if self._depends_on_itself:
                self._fault(stream_id, PROTOCOL_ERROR)
            else:
                self.take_request(stream_id, headers, done=done)
        elif flow is None or flow.peer_done:
            self._take_stray(stream_id, flow)
        elif self._depends_on_itself or not (done or self._is_client):
            self._fault(stream_id, PROTOCOL_ERROR)
        else:
            flow.peer_done = done
            if self._is_client:
                self.take_answer(stream_id, flow, headers, done=done)
            else:
                self.take_trailers(stream_id, headers)

    def _is_idle(self, stream_id: int) -> bool:
        if stream_id & 1:
            return stream_id >= self.next_id if self._is_client else stream_id > self.last_inbound
        return True

    def _take_stray(self, stream_id: int, flow: Flow | None) -> None:
        """React to DATA or a head where neither may be (section 5.1)."""
        if flow is not None:
            self._fault(stream_id, STREAM_CLOSED)
            return
        if self._is_idle(stream_id):
            raise ConnectionFault(PROTOCOL_ERROR, "a frame on a stream that is not open")
        by_peer = self._recent_resets.get(stream_id)
        if by_peer is None:
            raise ConnectionFault(STREAM_CLOSED, "a frame behind the end of its stream")
        self.take_control()
        if by_peer:
            self._write(RST_STREAM, 0, stream_id, STREAM_CLOSED.to_bytes(4, "big"))

    def _fault(self, stream_id: int, code: int) -> None:
        """End a stream whose peer broke the rules for it."""
        self.write_reset(stream_id, code)
        self.take_reset(stream_id, code)

    def _take_rst_stream(self, stream_id: int, payload: bytes) -> None:
        if len(payload) != 4:
            raise ConnectionFault(FRAME_SIZE_ERROR, "a RST_STREAM of another size")
        if stream_id == 0 or self._is_idle(stream_id):
            raise ConnectionFault(PROTOCOL_ERROR, "a RST_STREAM on a stream that is not open")
        flow = self.flows.pop(stream_id, None)
        if flow is None:
            self.take_control()
            return
        flow.is_over = True
        self._note_reset(stream_id, by_peer=True)
        self.take_reset(stream_id, int.from_bytes(payload, "big"))

    def _take_window_update(self, stream_id: int, payload: bytes) -> None:
        if len(payload) != 4:
            raise ConnectionFault(FRAME_SIZE_ERROR, "a WINDOW_UPDATE of another size")
        size = int.from_bytes(payload, "big") & _LARGEST_WINDOW
        if stream_id == 0:
            self.window += size
            if size == 0 or self.window > _LARGEST_WINDOW:
                code = FLOW_CONTROL_ERROR if size else PROTOCOL_ERROR
                raise ConnectionFault(code, "a WINDOW_UPDATE of 0, or of too much")
            self.take_window(0)
            return
        flow = self.flows.get(stream_id)
        if flow is None:
            if self._is_idle(stream_id):
                raise ConnectionFault(PROTOCOL_ERROR, "a WINDOW_UPDATE on a stream that is not open")
            self.take_control()
            return
        flow.window += size
        if size == 0:
            self._fault(stream_id, PROTOCOL_ERROR)
        elif flow.window > _LARGEST_WINDOW:
            self._fault(stream_id, FLOW_CONTROL_ERROR)
        else:
            self.take_window(stream_id)

    def _take_ping(self, flags: int, stream_id: int, payload: bytes) -> None:
        if stream_id:
            raise ConnectionFault(PROTOCOL_ERROR, "a PING on a stream")
        if len(payload) != 8:
            raise ConnectionFault(FRAME_SIZE_ERROR, "a PING of another size")
        if not flags & ACK:
            self._write(PING, ACK, 0, payload)
        self.take_control()

    def _take_priority(self, stream_id: int, payload: bytes) -> None:
        """Check a frame that says nothing any more (section 5.3.2)."""
        if stream_id == 0:
            raise ConnectionFault(PROTOCOL_ERROR, "a PRIORITY on no stream")
        if len(payload) != 5:
            raise ConnectionFault(FRAME_SIZE_ERROR, "a PRIORITY of another size")
        if int.from_bytes(payload[:4], "big") & LAST_STREAM != stream_id:
            self.take_control()
        elif stream_id in self.flows:
            self._fault(stream_id, PROTOCOL_ERROR)
        else:
            raise ConnectionFault(PROTOCOL_ERROR, "a stream that depends on itself")

    def _take_settings(self, flags: int, stream_id: int, payload: bytes) -> None:
        if stream_id:
            raise ConnectionFault(PROTOCOL_ERROR, "SETTINGS on a stream")
        if len(payload) % 6 or (flags & ACK and payload):
            raise ConnectionFault(FRAME_SIZE_ERROR, "SETTINGS of another size")
        if flags & ACK:
            self.take_control()
            return
        count = len(payload) // 6
        if count > _MAX_SETTINGS:
            raise ConnectionFault(ENHANCE_YOUR_CALM, f"more than {_MAX_SETTINGS} settings in a frame")
        window = self.peer_window
        for at in range(0, len(payload), 6):
            number = int.from_bytes(payload[at : at + 2], "big")
            self._take_setting(number, int.from_bytes(payload[at + 2 : at + 6], "big"))
        if self.peer_window != window:
            self._move_windows(self.peer_window - window)
        self._write(SETTINGS, ACK, 0, b"")
        self.take_control(max(1, count))
        self.take_settings()

    def _move_windows(self, change: int) -> None:
        """Make the windows of open streams larger or smaller, as the peer's window for new ones was (section 6.9.2)."""
        for flow in self.flows.values():
            flow.window += change
            if flow.window > _LARGEST_WINDOW:
                raise ConnectionFault(FLOW_CONTROL_ERROR, "an initial window that is too large")

    def _take_setting(self, number: int, value: int) -> None:
        if number == INITIAL_WINDOW_SIZE:
            if value > _LARGEST_WINDOW:
                raise ConnectionFault(FLOW_CONTROL_ERROR, "an initial window that is too large")
            self.peer_window = value
        elif number == MAX_FRAME_SIZE:
            if not FRAME_SIZE <= value <= _LARGEST_FRAME_SIZE:
                raise ConnectionFault(PROTOCOL_ERROR, "a frame size out of range")
        elif number == MAX_CONCURRENT_STREAMS:
            self.peer_max_streams = value
        elif number == ENABLE_PUSH:
            if value > (0 if self._is_client else 1):
                raise ConnectionFault(PROTOCOL_ERROR, "an ENABLE_PUSH out of range")
        elif number == ENABLE_CONNECT_PROTOCOL:
            if value > 1 or (self.peer_takes_connect and not value):
                raise ConnectionFault(PROTOCOL_ERROR, "an ENABLE_CONNECT_PROTOCOL out of range")
            self.peer_takes_connect = value == 1
