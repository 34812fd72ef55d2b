"""Numbers of HTTP/3 (RFC 9114) and QPACK (RFC 9204): frames, streams, settings and error codes, and QUIC's integers."""

from typing import Final

DATA: Final = 0x0
HEADERS: Final = 0x1
CANCEL_PUSH: Final = 0x3
SETTINGS: Final = 0x4
PUSH_PROMISE: Final = 0x5
GOAWAY: Final = 0x7
MAX_PUSH_ID: Final = 0xD
HTTP2_FRAMES: Final = frozenset({0x2, 0x6, 0x8, 0x9})
"""PRIORITY, PING, WINDOW_UPDATE and CONTINUATION, which HTTP/3 forbids (section 7.2.8)."""

CONTROL_STREAM: Final = 0x0
PUSH_STREAM: Final = 0x1
ENCODER_STREAM: Final = 0x2
DECODER_STREAM: Final = 0x3

MAX_FIELD_SECTION_SIZE: Final = 0x6
ENABLE_CONNECT_PROTOCOL: Final = 0x8
HTTP2_SETTINGS: Final = frozenset({0x0, 0x2, 0x3, 0x4, 0x5})
"""Of HTTP/2, which HTTP/3 forbids (section 7.2.4.1)."""

NO_ERROR: Final = 0x100
GENERAL_PROTOCOL_ERROR: Final = 0x101
INTERNAL_ERROR: Final = 0x102
STREAM_CREATION_ERROR: Final = 0x103
CLOSED_CRITICAL_STREAM: Final = 0x104
FRAME_UNEXPECTED: Final = 0x105
FRAME_ERROR: Final = 0x106
EXCESSIVE_LOAD: Final = 0x107
ID_ERROR: Final = 0x108
SETTINGS_ERROR: Final = 0x109
MISSING_SETTINGS: Final = 0x10A
REQUEST_REJECTED: Final = 0x10B
REQUEST_CANCELLED: Final = 0x10C
REQUEST_INCOMPLETE: Final = 0x10D
MESSAGE_ERROR: Final = 0x10E
DECOMPRESSION_FAILED: Final = 0x200
ENCODER_STREAM_ERROR: Final = 0x201
DECODER_STREAM_ERROR: Final = 0x202

LARGEST: Final = 2**62 - 1
"""The largest integer that QUIC can write."""


class ConnectionFault(Exception):
    """The client broke the protocol in a way that ends the connection."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code


def integer(value: int) -> bytes:
    """Write an integer in as few bytes as it takes (RFC 9000 section 16)."""
    if value < 0x40:
        return bytes((value,))
    if value < 0x4000:
        return (0x4000 | value).to_bytes(2, "big")
    if value < 0x4000_0000:
        return (0x8000_0000 | value).to_bytes(4, "big")
    return (0xC000_0000_0000_0000 | value).to_bytes(8, "big")


def read_integer(data: bytes, at: int) -> tuple[int, int]:
    """Read an integer; return it and where it ends, or -1 for both if it does not end here."""
    if at >= len(data):
        return -1, -1
    first = data[at]
    size = 1 << (first >> 6)
    if size == 1:
        return first, at + 1
    end = at + size
    if end > len(data):
        return -1, -1
    return int.from_bytes(data[at:end], "big") & ((1 << (8 * size - 2)) - 1), end


def frame(kind: int, payload: bytes) -> bytes:
    """Write a frame; its type is below 64."""
    return b"%c%b%b" % (kind, integer(len(payload)), payload)
