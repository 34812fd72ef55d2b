"""Heads of requests and answers: bytes in, checked values out.

llhttp has accepted a head (`parser`); here its fields are sorted into what is passed on, line by line as we write them,
and what concerns us: framing, connection, host, and what we add ourselves. Nothing in here does I/O or knows time.

Lines of a head are the first one, those of the fields and an empty one, each without its CRLF. Those that were cut by a
`Shape` have its names, and are read without looking at the names again.
"""

from typing import Final

from headgate.gateway.proxy.errors import FramingError
from headgate.gateway.proxy.heads.cutting import Fields, cut_fields
from headgate.gateway.proxy.heads.grammar import STATUS_LINE
from headgate.gateway.proxy.heads.head import AnswerHead, RequestFields
from headgate.gateway.proxy.heads.shape import Shape, Shapes, new_shape
from headgate.gateway.proxy.heads.special_fields import ALL_NAMES, RequestRules, answer_taker

_ANSWER_SHAPES: Final[Shapes] = {}
_STATUS_LINES: Final[dict[bytes, tuple[int, int, bytes]]] = {}
"""Status lines seen: status, minor version, and the line as it is passed on."""
_REMEMBERED_STATUS_LINES: Final = 256
_REMEMBERED_LENGTH: Final = 128


def read_request_head(
    lines: list[bytes], shape: Shape | None, max_count: int, rules: RequestRules = ALL_NAMES
) -> RequestFields:
    """Read the lines of a request's head, which were cut by a shape or by none; raises BadMessage."""
    if shape is None:
        return read_request_fields(cut_fields(lines[1:-1]), max_count, rules)
    fields = RequestFields()
    fields.shape = shape
    fields.take_sent(lines)
    if shape.agent >= 0:
        fields.agent = shape.value(lines, shape.agent)
    if shape.referer >= 0:
        fields.referer = shape.value(lines, shape.referer)
    fields.take_lines(shape.write_lines(fields, lines))
    _check_framing(fields)
    return fields


def read_request_fields(found: Fields, max_count: int, rules: RequestRules = ALL_NAMES) -> RequestFields:
    """Read the fields of a request; raises BadMessage."""
    names, values = found
    shape = rules.shapes.get(names) or new_shape(names, max_count, 431, rules.shapes, rules.taker)
    fields = RequestFields()
    fields.shape = shape if shape.is_remembered else None
    fields.take_found(found)
    if shape.agent >= 0:
        fields.agent = values[shape.agent]
    if shape.referer >= 0:
        fields.referer = values[shape.referer]
    fields.take_lines(shape.write(fields, values))
    _check_framing(fields)
    return fields


def _check_framing(fields: RequestFields) -> None:
    if fields.chunked and fields.content_length >= 0:
        raise FramingError("both Content-Length and Transfer-Encoding")


def _read_status_line(line: bytes) -> tuple[int, int, bytes]:
    found = STATUS_LINE.fullmatch(line)
    if found is None:
        raise FramingError("malformed status line")
    read = int(found[2]), int(found[1]), b"HTTP/1.1 %b %b\r\n" % (found[2], found[3] or b"")
    if len(_STATUS_LINES) < _REMEMBERED_STATUS_LINES and len(line) <= _REMEMBERED_LENGTH:
        _STATUS_LINES[line] = read
    return read


def read_answer_head(lines: list[bytes], shape: Shape | None, max_count: int) -> AnswerHead:
    """Read the lines of an answer's head, which were cut by a shape or by none; raises BadMessage."""
    line = lines[0]
    status, minor, status_line = _STATUS_LINES.get(line) or _read_status_line(line)
    answer = AnswerHead(status, status_line, minor)
    if shape is None:
        return _read_answer(answer, cut_fields(lines[1:-1]), max_count)
    answer.take_lines(shape.write_lines(answer, lines))
    return _check_answer(answer, shape)


def read_answer_fields(status: int, status_line: bytes, found: Fields, max_count: int) -> AnswerHead:
    """Read the fields of an answer that came without a status line, as in HTTP/2. Raises BadMessage."""
    return _read_answer(AnswerHead(status, status_line), found, max_count)


def _read_answer(answer: AnswerHead, found: Fields, max_count: int) -> AnswerHead:
    names, values = found
    shape = _ANSWER_SHAPES.get(names) or new_shape(names, max_count, 502, _ANSWER_SHAPES, answer_taker)
    answer.take_lines(shape.write(answer, values))
    return _check_answer(answer, shape)


def _check_answer(answer: AnswerHead, shape: Shape) -> AnswerHead:
    if answer.chunked:
        _check_chunked(answer)
    options = answer.options
    answer.closes = b"close" in options or (answer.minor == 0 and b"keep-alive" not in options)
    answer.has_date, answer.has_server = shape.has_date, shape.has_server
    if answer.lists_fields:
        answer.has_date = answer.has_date and b"date" not in options
        answer.has_server = answer.has_server and b"server" not in options
    answer.shape = shape if shape.is_remembered else None
    return answer


def _check_chunked(answer: AnswerHead) -> None:
    if answer.content_length >= 0:
        raise FramingError("both Content-Length and Transfer-Encoding")
    if answer.minor == 0:
        raise FramingError("Transfer-Encoding in HTTP/1.0")
    if answer.status < 200 or answer.status == 204:
        raise FramingError(f"Transfer-Encoding in an answer {answer.status}")
