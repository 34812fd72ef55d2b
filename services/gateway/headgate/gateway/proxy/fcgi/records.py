"""Records of FastCGI (specification, section 3.3): bytes of one request in, events of its answer out.

Each request has a connection of its own, so it is always number 1. Nothing in here does I/O.
"""

import struct
from typing import Final

from headgate.gateway.proxy.errors import FramingError

END_REQUEST: Final = 3
PARAMS: Final = 4
STDIN: Final = 5
STDOUT: Final = 6
STDERR: Final = 7
MAX_CONTENT: Final = 65535

_VERSION: Final = 1
_REQUEST: Final = 1
_HEADER: Final = struct.Struct(">BBHHBx")
_END: Final = struct.Struct(">4xBxxx")
_BEGIN: Final = _HEADER.pack(_VERSION, 1, _REQUEST, 8, 0) + struct.pack(">HB5x", 1, 0)
"""Begin a request of an application that answers requests, and close the connection behind it."""
_SHORT: Final = 0x80


def write_stream(kind: int, content: bytes) -> bytes:
    """Write a piece of a stream as records; nothing for nothing, as an empty record would end the stream."""
    if len(content) <= MAX_CONTENT:
        return _HEADER.pack(_VERSION, kind, _REQUEST, len(content), 0) + content if content else b""
    pieces = []
    for start in range(0, len(content), MAX_CONTENT):
        piece = content[start : start + MAX_CONTENT]
        pieces.append(_HEADER.pack(_VERSION, kind, _REQUEST, len(piece), 0))
        pieces.append(piece)
    return b"".join(pieces)


def end_stream(kind: int) -> bytes:
    """Write the end of a stream."""
    return _HEADER.pack(_VERSION, kind, _REQUEST, 0, 0)


def begin_request(params: bytes) -> bytes:
    """Write the beginning of a request, with all of its parameters."""
    return _BEGIN + write_stream(PARAMS, params) + end_stream(PARAMS)


def write_param(name: bytes, value: bytes) -> bytes:
    """Write a name and its value (section 3.4)."""
    return _length(len(name)) + _length(len(value)) + name + value


def _length(size: int) -> bytes:
    return bytes((size,)) if size < _SHORT else struct.pack(">I", size | 0x8000_0000)


class RecordReader:
    """Cuts what comes back on one connection into pieces of streams, as they come; raises FramingError.

    At most 16 bytes are kept. Records that no application sends in answer to a request are refused.
    """

    __slots__ = ("_buffer", "_kind", "_left", "_padding", "status")

    def __init__(self) -> None:
        self._buffer = b""
        """Of a header, or of a record that ends the request."""
        self._kind = 0
        self._left = 0
        """Bytes of the record's content that have to come."""
        self._padding = 0
        """Bytes behind it."""
        self.status = -1
        """Of the protocol (section 5.5), once the request has ended: 0 if it was served."""

    def feed(self, data: bytes) -> list[tuple[int, bytes]]:
        """Give stream and content of what came; no content: the stream has ended."""
        found: list[tuple[int, bytes]] = []
        if self._buffer:
            data, self._buffer = self._buffer + data, b""
        start, size = 0, len(data)
        while start < size:
            if self.status >= 0:
                raise FramingError("bytes behind the end of the FastCGI request")
            if self._left:
                start = self._take(data, start, found)
                if start < 0:
                    break
            elif self._padding:
                skipped = min(self._padding, size - start)
                self._padding -= skipped
                start += skipped
            elif size - start < _HEADER.size:
                self._buffer = data[start:]
                break
            else:
                self._begin(data, start, found)
                start += _HEADER.size
        return found

    def _begin(self, data: bytes, start: int, found: list[tuple[int, bytes]]) -> None:
        version, kind, request, length, padding = _HEADER.unpack_from(data, start)
        if version != _VERSION or request != _REQUEST or kind not in (STDOUT, STDERR, END_REQUEST):
            raise FramingError(f"unexpected FastCGI record of version {version}, type {kind}, request {request}")
        if kind == END_REQUEST and (length != _END.size or padding):
            raise FramingError(f"FastCGI record END_REQUEST of {length} bytes")
        self._kind, self._left, self._padding = kind, length, padding
        if not length:
            found.append((kind, b""))

    def _take(self, data: bytes, start: int, found: list[tuple[int, bytes]]) -> int:
        """Take content of the current record, and give where it ends; -1: the rest waits for more."""
        taken = min(self._left, len(data) - start)
        if self._kind != END_REQUEST:
            found.append((self._kind, data[start : start + taken]))
        elif taken < _END.size:
            self._buffer = data[start:]
            return -1
        else:
            self.status = _END.unpack_from(data, start)[0]
        self._left -= taken
        return start + taken
