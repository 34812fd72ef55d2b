"""Heads of requests and answers: bytes in, checked values out.

llhttp has cut a head into fields (`parser`); here they are sorted into what is passed on, written anew line by line,
and what concerns us: framing, connection, host, and what we add ourselves. Nothing in here does I/O or knows time.
"""

from typing import Final

from headgate.gateway.proxy.errors import FramingError
from headgate.gateway.proxy.heads.grammar import STATUS_LINE
from headgate.gateway.proxy.heads.head import AnswerHead, RequestFields
from headgate.gateway.proxy.heads.shape import Shapes, new_shape
from headgate.gateway.proxy.heads.special_fields import ALL_NAMES, RequestRules, answer_taker
from headgate.gateway.proxy.http1.parser import Fields

_ANSWER_SHAPES: Final[Shapes] = {}
_STATUS_LINES: Final[dict[bytes, tuple[int, int, bytes]]] = {}
"""Status lines seen: status, minor version, and the line as it is passed on."""
_REMEMBERED_STATUS_LINES: Final = 256
_REMEMBERED_LENGTH: Final = 128


def read_request_fields(found: Fields, max_count: int, rules: RequestRules = ALL_NAMES) -> RequestFields:
    """Read the fields that llhttp found in a request; raises BadMessage."""
    names, values = found
    shape = rules.shapes.get(names) or new_shape(names, max_count, 431, rules.shapes, rules.taker)
    fields = RequestFields()
    fields.found = found
    if shape.agent >= 0:
        fields.agent = values[shape.agent]
    if shape.referer >= 0:
        fields.referer = values[shape.referer]
    fields.lines = shape.write(fields, values)
    if fields.chunked and fields.content_length >= 0:
        raise FramingError("both Content-Length and Transfer-Encoding")
    return fields


def _read_status_line(line: bytes) -> tuple[int, int, bytes]:
    found = STATUS_LINE.fullmatch(line)
    if found is None:
        raise FramingError("malformed status line")
    read = int(found[2]), int(found[1]), b"HTTP/1.1 %b %b\r\n" % (found[2], found[3] or b"")
    if len(_STATUS_LINES) < _REMEMBERED_STATUS_LINES and len(line) <= _REMEMBERED_LENGTH:
        _STATUS_LINES[line] = read
    return read


def read_answer_head(raw: bytes, found: Fields, max_count: int) -> AnswerHead:
    """Read the fields that llhttp found in an answer; `raw` is its head. Raises BadMessage."""
    line = raw[: raw.index(b"\n") + 1]
    status, minor, status_line = _STATUS_LINES.get(line) or _read_status_line(line)
    return _read_answer(AnswerHead(status, minor), status_line, found, max_count)


def read_answer_fields(status: int, phrase: bytes, found: Fields, max_count: int) -> AnswerHead:
    """Read the fields of an answer that has no status line, as in HTTP/2. Raises BadMessage."""
    return _read_answer(AnswerHead(status, 1), b"HTTP/1.1 %d %b\r\n" % (status, phrase), found, max_count)


def _read_answer(answer: AnswerHead, status_line: bytes, found: Fields, max_count: int) -> AnswerHead:
    names, values = found
    shape = _ANSWER_SHAPES.get(names) or new_shape(names, max_count, 502, _ANSWER_SHAPES, answer_taker)
    lines = shape.write(answer, values)
    if answer.chunked:
        _check_chunked(answer)
    options = answer.options
    answer.closes = b"close" in options or (answer.minor == 0 and b"keep-alive" not in options)
    answer.has_date = shape.has_date and b"date" not in options
    answer.has_server = shape.has_server and b"server" not in options
    answer.lines = status_line + lines
    return answer


def _check_chunked(answer: AnswerHead) -> None:
    if answer.content_length >= 0:
        raise FramingError("both Content-Length and Transfer-Encoding")
    if answer.minor == 0:
        raise FramingError("Transfer-Encoding in HTTP/1.0")
    if answer.status < 200 or answer.status == 204:
        raise FramingError(f"Transfer-Encoding in an answer {answer.status}")
