"""Where bodies end: readers that are fed bytes and give payload back.

llhttp decodes; a reader walks the same bytes by itself, so that it never feeds llhttp more than one message, refuses
what llhttp would put up with, and notices if the two see different ends. It is fed until `done`; `rest` is then what
came behind the body. `trailers` are checked lines, or nothing.
"""

from typing import Final, Protocol

from headgate.gateway.proxy.errors import FramingError, LimitExceeded
from headgate.gateway.proxy.heads.grammar import CHUNK_LINE, PARTIAL_HEAD_FAULT
from headgate.gateway.proxy.heads.trailers import trailer_lines
from headgate.gateway.proxy.http1.parser import MessageParser

LAST_CHUNK: Final = b"0\r\n\r\n"
_MAX_CHUNK_LINE: Final = 4096
_MAX_TRAILERS: Final = 8192
_MAX_EXTENSIONS: Final = 64 * 1024
"""Bytes of chunk extensions per body: nobody uses them, and one byte per chunk could carry as much as the body."""


class BodyReader(Protocol):
    """Takes a body from a stream of bytes."""

    done: bool
    rest: bytes
    trailers: bytes

    def feed(self, data: bytes) -> bytes:
        """Give the payload in `data`; raises BadMessage."""


class LengthReader:
    """A body of a known number of bytes."""

    __slots__ = ("_parser", "done", "remaining", "rest", "trailers")

    def __init__(self, parser: MessageParser, length: int) -> None:
        self._parser = parser
        self.remaining = length
        self.done = length == 0
        self.rest = b""
        self.trailers = b""

    def feed(self, data: bytes) -> bytes:
        """Take up to the remaining number of bytes."""
        if self.done:
            self.rest += data
            return b""
        size = len(data)
        if size > self.remaining:
            data, self.rest = data[: self.remaining], data[self.remaining :]
            self.remaining = 0
        else:
            self.remaining -= size
        self.done = self.remaining == 0
        payload = self._parser.body(data)
        if self._parser.complete is not self.done:
            raise FramingError("unclear where the body ends")
        return payload


class EndReader:
    """A body that ends with its connection; only answers have it."""

    __slots__ = ("_parser", "done", "rest", "trailers")

    def __init__(self, parser: MessageParser) -> None:
        self._parser = parser
        self.done = False
        self.rest = b""
        self.trailers = b""

    def feed(self, data: bytes) -> bytes:
        """Take all of it."""
        return self._parser.body(data)


class ChunkedReader:
    """The chunked coding (RFC 9112 section 7.1), read strictly.

    A size is 1 to 16 hexadecimal digits; lines end with CRLF; extensions are read over within limits; trailers are
    checked against the names that must not be trailers.
    """

    __slots__ = (
        "_buffer",
        "_extensions",
        "_in_trailers",
        "_parser",
        "_remaining",
        "done",
        "max_size",
        "rest",
        "size",
        "trailers",
    )

    def __init__(self, parser: MessageParser, max_size: int | None = None) -> None:
        self._parser = parser
        self.done = False
        self.rest = b""
        self.trailers = b""
        self.size = 0
        """Payload bytes announced so far."""
        self.max_size = max_size
        self._buffer = b""
        self._remaining = 0
        """Bytes of the current chunk that are missing, its CRLF included; 0: a chunk line comes next."""
        self._extensions = 0
        self._in_trailers = False

    def feed(self, data: bytes) -> bytes:
        """Walk and decode."""
        self._walk(self._buffer + data if self._buffer else data)
        payload = self._parser.body(data[: len(data) - len(self.rest)] if self.rest else data)
        if self._parser.complete is not self.done:
            raise FramingError("unclear where the body ends")
        if self.trailers:
            self.trailers = trailer_lines(self.trailers)
        return payload

    def _walk(self, data: bytes) -> None:
        """Follow the coding as far as it goes, and keep an unfinished line."""
        self._buffer = b""
        offset, end = 0, len(data)
        while 0 <= offset < end and not self.done:
            if self._in_trailers:
                offset = self._read_trailers(data, offset)
            elif self._remaining:
                offset = self._read_chunk(data, offset)
            else:
                offset = self._read_line(data, offset)
        if self.done:
            self.rest = data[offset:]

    def _read_line(self, data: bytes, offset: int) -> int:
        """Read a chunk line, and the chunk if all of it is there; -1 if the line is not whole yet."""
        found = CHUNK_LINE.match(data, offset)
        if found is None:
            line_end = data.find(b"\n", offset)
            line = data[offset:] if line_end < 0 else data[offset : line_end + 1]
            if line_end >= 0 or not _may_become_chunk_line(line):
                raise FramingError("malformed chunk size line")
            self._buffer = line
            return -1
        self._extensions += len(found[2])
        if self._extensions > _MAX_EXTENSIONS or found.end() - offset > _MAX_CHUNK_LINE:
            raise FramingError("chunk extensions too long")
        size = int(found[1], 16)
        if size == 0:
            self._in_trailers = True
            return found.end()
        self.size += size
        if self.max_size is not None and self.size > self.max_size:
            raise LimitExceeded(f"body longer than {self.max_size} bytes", 413)
        start, end = found.end(), found.end() + size
        if data.startswith(b"\r\n", end):
            return end + 2
        self._remaining = size + 2
        return start

    def _read_chunk(self, data: bytes, offset: int) -> int:
        """Read payload and the CRLF behind it, as far as they are there."""
        payload = self._remaining - 2
        if payload > 0:
            taken = min(payload, len(data) - offset)
            self._remaining -= taken
            return offset + taken
        # `_remaining` is 2 before the CR, 1 before the LF.
        expected = b"\r\n"[2 - self._remaining]
        if data[offset] != expected:
            raise FramingError("chunk is not followed by CRLF")
        self._remaining -= 1
        return offset + 1

    def _read_trailers(self, data: bytes, offset: int) -> int:
        """Read the trailer section up to its empty line; -1 if it is not whole yet."""
        if data.startswith(b"\r\n", offset):
            self.done = True
            return offset + 2
        end = data.find(b"\r\n\r\n", offset)
        if end < 0:
            self._buffer = data[offset:]
            if len(self._buffer) > _MAX_TRAILERS:
                raise FramingError("trailers too long")
            if PARTIAL_HEAD_FAULT.search(self._buffer):
                raise FramingError("malformed trailers")
            return -1
        if end - offset > _MAX_TRAILERS:
            raise FramingError("trailers too long")
        self.trailers = data[offset : end + 2]
        self.done = True
        return end + 4


def _may_become_chunk_line(line: bytes) -> bool:
    """Say whether an incomplete chunk line could still become a right one, so that a wrong one is refused at once."""
    if len(line) > _MAX_CHUNK_LINE:
        return False
    ending = b"\n" if line.endswith(b"\r") else b"\r\n"
    # A line that stops within white space can only go on with an extension.
    return (
        CHUNK_LINE.fullmatch(line + ending) is not None
        or CHUNK_LINE.fullmatch(line.rstrip(b" \t") + b";\r\n") is not None
    )


def encode_chunk(payload: bytes) -> bytes:
    """Code payload as one chunk; nothing for nothing, as an empty chunk would end the body."""
    return b"%x\r\n%b\r\n" % (len(payload), payload) if payload else b""


def last_chunk(trailers: bytes) -> bytes:
    """Code the end of a body."""
    return b"0\r\n%b\r\n" % trailers if trailers else LAST_CHUNK
