"""The streams of one direction that a client opens: control and QPACK (RFC 9114 section 6.2, RFC 9204 section 4.2).

None of them has an end, and nothing that comes on them after SETTINGS makes us do anything. So all of it is counted,
and whoever sends much more of it than requests is disconnected (RFC 9114 section 10.5).
"""

from typing import Final

from headgate.gateway.proxy.http3.numbers import (
    CANCEL_PUSH,
    CLOSED_CRITICAL_STREAM,
    CONTROL_STREAM,
    DATA,
    DECODER_STREAM,
    DECODER_STREAM_ERROR,
    ENABLE_CONNECT_PROTOCOL,
    ENCODER_STREAM,
    ENCODER_STREAM_ERROR,
    EXCESSIVE_LOAD,
    FRAME_ERROR,
    FRAME_UNEXPECTED,
    GOAWAY,
    HEADERS,
    HTTP2_FRAMES,
    HTTP2_SETTINGS,
    ID_ERROR,
    MAX_PUSH_ID,
    MISSING_SETTINGS,
    PUSH_PROMISE,
    PUSH_STREAM,
    SETTINGS,
    SETTINGS_ERROR,
    STREAM_CREATION_ERROR,
    ConnectionFault,
    read_integer,
)

_MAX_FRAME: Final = 4096
"""Of the control stream: SETTINGS are a few dozen bytes."""
_MAX_SETTINGS: Final = 32
UNIT: Final = 4096
"""Bytes of a frame that means nothing to us which count as a frame."""
_REQUEST_FRAMES: Final = frozenset({DATA, HEADERS, PUSH_PROMISE}) | HTTP2_FRAMES
_KNOWN: Final = frozenset({CONTROL_STREAM, ENCODER_STREAM, DECODER_STREAM})
IGNORED: Final = -2
"""Kind of a stream whose type we do not know."""
_NEW: Final = -1


class ClientStream:
    """One stream of one direction, as far as it was read."""

    __slots__ = ("kind", "rest", "skipped")

    def __init__(self) -> None:
        self.kind = _NEW
        self.rest = b""
        """The beginning of what is not there to its end."""
        self.skipped = 0
        """Bytes that have to come of a frame which means nothing to us."""


class ClientStreams:
    """All of a connection."""

    __slots__ = ("_critical", "_has_settings", "_largest_push", "_streams", "leaves", "passed_over")

    def __init__(self) -> None:
        self._streams: dict[int, ClientStream] = {}
        self._critical: set[int] = set()
        """Kinds that are there, each of which may be there once."""
        self._has_settings = False
        self._largest_push = -1
        self.leaves = False
        """The client will open no more requests."""
        self.passed_over = 0
        """What came and means nothing to us: frames of the control stream, PRIORITY_UPDATE among them, instructions of
        QPACK, and streams that ended before they said what they are."""

    def take(self, stream_id: int, data: bytes, *, end: bool) -> bool:
        """Read what came; False: nothing more of the stream is wanted. Raises ConnectionFault."""
        stream = self._streams.get(stream_id)
        if stream is None:
            stream = self._streams[stream_id] = ClientStream()
        data = stream.rest + data
        stream.rest = b""
        if stream.kind == _NEW:
            kind, at = read_integer(data, 0)
            if at < 0:
                stream.rest = data
                self._check_end(stream_id, stream, end=end)
                return True
            self._begin(stream, kind)
            data = data[at:]
        if stream.kind == CONTROL_STREAM:
            self._read_control(stream, data)
        elif stream.kind == ENCODER_STREAM:
            _check_encoder(data)
            self.passed_over += len(data)
        elif stream.kind == DECODER_STREAM:
            self._read_decoder(stream, data)
        if stream.kind == IGNORED:
            self._streams.pop(stream_id, None)
            return False
        self._check_end(stream_id, stream, end=end)
        return True

    def ended(self, stream_id: int) -> None:
        """Note that the client has reset a stream. Raises ConnectionFault."""
        self._check_end(stream_id, self._streams.get(stream_id), end=True)

    def _begin(self, stream: ClientStream, kind: int) -> None:
        if kind == PUSH_STREAM:
            raise ConnectionFault(STREAM_CREATION_ERROR, "a push stream of a client")
        if kind not in _KNOWN:
            stream.kind = IGNORED
            return
        if kind in self._critical:
            raise ConnectionFault(STREAM_CREATION_ERROR, "a second stream of a kind that may be there once")
        self._critical.add(kind)
        stream.kind = kind

    def _check_end(self, stream_id: int, stream: ClientStream | None, *, end: bool) -> None:
        if not end:
            return
        if stream is not None and stream.kind >= 0:
            raise ConnectionFault(CLOSED_CRITICAL_STREAM, "the end of a stream that is needed")
        self.passed_over += 1
        self._streams.pop(stream_id, None)

    def _read_control(self, stream: ClientStream, data: bytes) -> None:
        at, size = 0, len(data)
        while at < size:
            if stream.skipped:
                taken = min(stream.skipped, size - at)
                stream.skipped -= taken
                at += taken
                continue
            kind, after = read_integer(data, at)
            length, begins = read_integer(data, after) if after >= 0 else (-1, -1)
            if begins < 0:
                break
            if not self._has_settings and kind != SETTINGS:
                raise ConnectionFault(MISSING_SETTINGS, "a control stream that does not begin with SETTINGS")
            if kind in _REQUEST_FRAMES:
                raise ConnectionFault(FRAME_UNEXPECTED, "a frame that may not be on the control stream")
            if kind not in (SETTINGS, GOAWAY, MAX_PUSH_ID, CANCEL_PUSH):
                self.passed_over += 1 + length // UNIT
                stream.skipped = length
                at = begins
                continue
            if length > _MAX_FRAME:
                raise ConnectionFault(EXCESSIVE_LOAD, "a frame of the control stream that is too long")
            end = begins + length
            if end > size:
                break
            self._take_frame(kind, data[begins:end])
            at = end
        stream.rest = data[at:]

    def _take_frame(self, kind: int, payload: bytes) -> None:
        if kind == SETTINGS:
            if self._has_settings:
                raise ConnectionFault(FRAME_UNEXPECTED, "SETTINGS for a second time")
            self._has_settings = True
            _check_settings(payload)
            return
        number, end = read_integer(payload, 0)
        if end != len(payload):
            raise ConnectionFault(FRAME_ERROR, "a frame of another length than its number has")
        self.passed_over += 1
        if kind == GOAWAY:
            self.leaves = True
        elif kind == CANCEL_PUSH:
            raise ConnectionFault(ID_ERROR, "a CANCEL_PUSH of what was never promised")
        elif number < self._largest_push:
            raise ConnectionFault(ID_ERROR, "a MAX_PUSH_ID that is smaller than the one before")
        else:
            self._largest_push = number

    def _read_decoder(self, stream: ClientStream, data: bytes) -> None:
        """Let cancelled streams pass, as nothing is to be acknowledged (RFC 9204 section 4.4)."""
        at = 0
        while at < len(data):
            if data[at] & 0xC0 != 0x40:
                raise ConnectionFault(DECODER_STREAM_ERROR, "an acknowledgement of what was never sent")
            end = at + 1
            if data[at] & 0x3F == 0x3F:
                while end < len(data) and data[end] & 0x80:
                    end += 1
                if end - at > 10:
                    raise ConnectionFault(DECODER_STREAM_ERROR, "a number that is too large")
                if end >= len(data):
                    break
                end += 1
            self.passed_over += 1
            at = end
        stream.rest = data[at:]


def _check_settings(payload: bytes) -> None:
    seen: set[int] = set()
    at = 0
    while at < len(payload):
        name, after = read_integer(payload, at)
        value, at = read_integer(payload, after) if after >= 0 else (-1, -1)
        if at < 0:
            raise ConnectionFault(FRAME_ERROR, "SETTINGS that end too early")
        if name in seen or name in HTTP2_SETTINGS or (name == ENABLE_CONNECT_PROTOCOL and value > 1):
            raise ConnectionFault(SETTINGS_ERROR, "a setting that is forbidden, out of range or there twice")
        seen.add(name)
        if len(seen) > _MAX_SETTINGS:
            raise ConnectionFault(EXCESSIVE_LOAD, f"more than {_MAX_SETTINGS} settings")


def _check_encoder(data: bytes) -> None:
    """Let nothing but the size of a table of nothing pass, which is one byte (RFC 9204 section 4.3.1)."""
    if data.strip(b"\x20"):
        raise ConnectionFault(ENCODER_STREAM_ERROR, "an entry for a table that may have none")
