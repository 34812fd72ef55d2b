"""Undoing Content-Encoding, with a bound for what comes out."""

import zlib
from collections.abc import Callable, Mapping
from typing import Any, Final

import brotli
import zstandard

from headgate.gateway.plugins.interface import BodyTooLarge

_MAX_CODINGS: Final = 3


class CodingFault(Exception):
    """A body that cannot be decompressed; the text says why."""


def decompress(body: bytes, encoding: str, limit: int) -> bytes:
    """Undo what a Content-Encoding lists.

    Raises:
        CodingFault: an unknown coding, or a body that does not have it.
        BodyTooLarge: more than `limit` bytes come out.
    """
    codings = [coding for part in encoding.lower().split(",") if (coding := part.strip()) not in ("", "identity")]
    if len(codings) > _MAX_CODINGS:
        raise CodingFault(f"more than {_MAX_CODINGS} codings on top of each other")
    for coding in reversed(codings):
        undo = _CODINGS.get(coding)
        if undo is None:
            raise CodingFault(f"a Content-Encoding other than {', '.join(_CODINGS)}")
        try:
            body = undo(body, limit)
        except (zlib.error, brotli.error, zstandard.ZstdError, EOFError):
            raise CodingFault(f"its Content-Encoding is {coding}, the body is something else") from None
    return body


def _inflate(body: bytes, limit: int, window_bits: int) -> bytes:
    parts: list[bytes] = []
    while True:
        stream = zlib.decompressobj(window_bits)
        parts.append(stream.decompress(body, limit + 1))
        limit -= len(parts[-1])
        if limit < 0:
            raise BodyTooLarge("the body is too long once it is decompressed")
        if not stream.eof:
            raise EOFError
        body = stream.unused_data
        if not body:
            return b"".join(parts)


def _gunzip(body: bytes, limit: int) -> bytes:
    return _inflate(body, limit, 16 + zlib.MAX_WBITS)


def _undeflate(body: bytes, limit: int) -> bytes:
    return _inflate(body, limit, zlib.MAX_WBITS)


def _unbrotli(body: bytes, limit: int) -> bytes:
    stream: Any = brotli.Decompressor()
    parts = [stream.process(body, output_buffer_limit=limit + 1)]
    size = len(parts[0])
    while size <= limit and not stream.is_finished():
        parts.append(stream.process(b"", output_buffer_limit=limit + 1 - size))
        if not parts[-1]:
            raise EOFError
        size += len(parts[-1])
    if size > limit:
        raise BodyTooLarge("the body is too long once it is decompressed")
    return b"".join(parts)


def _unzstd(body: bytes, limit: int) -> bytes:
    decompressor = zstandard.ZstdDecompressor(max_window_size=8 << 20)
    with decompressor.stream_reader(body, read_across_frames=True) as stream:
        out = stream.read(limit + 1)
    if len(out) > limit:
        raise BodyTooLarge("the body is too long once it is decompressed")
    # A reader has a bound, but does not tell whether the last frame is whole; this does, and the bound holds.
    while True:
        frame = decompressor.decompressobj()
        frame.decompress(body)
        if not frame.eof:
            raise EOFError
        body = frame.unused_data
        if not body:
            return out


_CODINGS: Final[Mapping[str, Callable[[bytes, int], bytes]]] = {
    "gzip": _gunzip,
    "x-gzip": _gunzip,
    "deflate": _undeflate,
    "br": _unbrotli,
    "zstd": _unzstd,
}
