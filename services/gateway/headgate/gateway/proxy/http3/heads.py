"""Heads of answers, from checked HTTP/1.1 header lines to blocks of HTTP/3. Those of requests are read as in HTTP/2."""

from typing import Final

from headgate.gateway.proxy.heads.head import AnswerHead
from headgate.gateway.proxy.http3.numbers import HEADERS, frame
from headgate.gateway.proxy.http3.qpack import PREFIX, compress_field, compress_lines

_SERVER: Final = compress_field(b"server", b"headgate")
_STATUSES: Final[dict[int, bytes]] = {}
CONTINUE: Final = frame(HEADERS, PREFIX + compress_field(b":status", b"100"))
"""Asks for the body of a request that expects to be."""


def answer_frame(answer: AnswerHead, date: bytes) -> bytes:
    """Build the HEADERS frame of an answer; `date` is a whole line."""
    pieces = [_status(answer.status), compress_lines(answer.lines)]
    if not answer.has_date:
        pieces.append(compress_lines(date))
    if not answer.has_server:
        pieces.append(_SERVER)
    if answer.content_length >= 0 and answer.status >= 200 and answer.status != 204:
        pieces.append(compress_field(b"content-length", b"%d" % answer.content_length))
    return frame(HEADERS, b"".join(pieces))


def informational_frame(answer: AnswerHead) -> bytes:
    """Build the HEADERS frame of a 1xx."""
    return frame(HEADERS, _status(answer.status) + compress_lines(answer.lines))


def tunnel_frame(answer: AnswerHead) -> bytes:
    """Build the HEADERS frame that says that a CONNECT was taken (RFC 9220)."""
    lines = answer.lines.splitlines(keepends=True)
    kept = b"".join([line for line in lines if not line.lower().startswith(b"sec-websocket-accept:")])
    return frame(HEADERS, _status(200) + compress_lines(kept))


def trailers_frame(lines: bytes) -> bytes:
    """Build the HEADERS frame of trailers."""
    return frame(HEADERS, PREFIX + compress_lines(lines))


def _status(status: int) -> bytes:
    """Begin a block."""
    found = _STATUSES.get(status)
    if found is None:
        found = _STATUSES[status] = PREFIX + compress_field(b":status", b"%d" % status)
    return found
