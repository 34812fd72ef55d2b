"""What one end of an HTTP/2 connection says: frames, within the windows that the peer gives.

Methods that begin with `write_` note frames, and `take_written` gives what is to be sent.
"""

from typing import Final

from headgate.gateway.proxy.http2.flow import Flow
from headgate.gateway.proxy.http2.frames import (
    CONNECTION_WINDOW,
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    FRAME_SIZE,
    GOAWAY,
    HEADERS,
    PREFACE,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
)

_FIRST_WINDOW: Final = 65_535
"""Of every window before SETTINGS and WINDOW_UPDATE say something else."""
_REMEMBERED_RESETS: Final = 1024


class FrameWriter:
    """The streams and windows of a connection, and the frames that are written on it."""

    __slots__ = (
        "_inbound_room",
        "_is_client",
        "_recent_resets",
        "_unreturned",
        "_written",
        "flows",
        "peer_window",
        "window",
    )

    def __init__(self, *, is_client: bool) -> None:
        self._is_client = is_client
        self.flows: dict[int, Flow] = {}
        """Streams that are open, or of which one half is."""
        self.window = _FIRST_WINDOW
        """Bytes that the peer takes on all streams together."""
        self.peer_window = _FIRST_WINDOW
        """That of a new stream."""
        self._inbound_room = CONNECTION_WINDOW
        """Bytes that the peer may send on all streams together."""
        self._unreturned = 0
        """Bytes that came, for which the connection's window was not opened again yet."""
        self._written: list[bytes] = []
        self._recent_resets: dict[int, bool] = {}
        """Streams that were reset last, and whether by the peer: frames may still be on their way."""

    def take_written(self) -> bytes:
        """Return what is to be sent and was not returned before."""
        written = self._written
        if not written:
            return b""
        self._written = []
        return written[0] if len(written) == 1 else b"".join(written)

    def write_greeting(self, settings: dict[int, int]) -> None:
        """Begin the connection: preface, SETTINGS, and a window for all streams together."""
        if self._is_client:
            self._written.append(PREFACE)
        pairs = b"".join([number.to_bytes(2, "big") + value.to_bytes(4, "big") for number, value in settings.items()])
        self._write(SETTINGS, 0, 0, pairs)
        self.write_window(0, CONNECTION_WINDOW - _FIRST_WINDOW)

    def _write(self, kind: int, flags: int, stream_id: int, payload: bytes) -> None:
        head = (len(payload) << 48 | kind << 40 | flags << 32 | stream_id).to_bytes(9, "big")
        self._written.append(head)
        if payload:
            self._written.append(payload)

    def write_headers(self, stream_id: int, block: bytes, *, end: bool) -> None:
        """Send a header block, in as many frames as it takes."""
        flags = END_STREAM if end else 0
        if len(block) <= FRAME_SIZE:
            self._write(HEADERS, flags | END_HEADERS, stream_id, block)
            return
        self._write(HEADERS, flags, stream_id, block[:FRAME_SIZE])
        for at in range(FRAME_SIZE, len(block), FRAME_SIZE):
            is_last = at + FRAME_SIZE >= len(block)
            self._write(CONTINUATION, END_HEADERS if is_last else 0, stream_id, block[at : at + FRAME_SIZE])

    def write_data(self, stream_id: int, flow: Flow, payload: bytes, *, end: bool) -> None:
        """Send payload for which the windows have room, of at most `FRAME_SIZE` bytes."""
        size = len(payload)
        flow.window -= size
        self.window -= size
        self._write(DATA, END_STREAM if end else 0, stream_id, payload)

    def write_window(self, stream_id: int, size: int) -> None:
        """Let the peer send more, on a stream or, for 0, altogether."""
        self._write(WINDOW_UPDATE, 0, stream_id, size.to_bytes(4, "big"))

    def write_reset(self, stream_id: int, code: int) -> None:
        """End a stream at once; what may come of it is dropped."""
        flow = self.flows.pop(stream_id, None)
        if flow is not None:
            flow.is_over = True
        self._note_reset(stream_id, by_peer=False)
        self._write(RST_STREAM, 0, stream_id, code.to_bytes(4, "big"))

    def write_goaway(self, last_stream_id: int, code: int) -> None:
        """Say which streams were or will be served."""
        self._write(GOAWAY, 0, 0, last_stream_id.to_bytes(4, "big") + code.to_bytes(4, "big"))

    def open(self, stream_id: int) -> Flow:
        """Begin a stream."""
        flow = Flow(self.peer_window)
        self.flows[stream_id] = flow
        return flow

    def return_connection_window(self) -> None:
        """Let the peer send as much again as came, half a window at a time."""
        if self._unreturned >= CONNECTION_WINDOW // 2:
            self._inbound_room += self._unreturned
            self.write_window(0, self._unreturned)
            self._unreturned = 0

    def _note_reset(self, stream_id: int, *, by_peer: bool) -> None:
        resets = self._recent_resets
        if len(resets) >= _REMEMBERED_RESETS:
            del resets[next(iter(resets))]
        resets[stream_id] = by_peer
