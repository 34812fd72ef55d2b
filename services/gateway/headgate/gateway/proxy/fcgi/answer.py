"""Heads of CGI answers (RFC 3875 section 6): the status is a field, lines may end with LF alone."""

import re
from typing import Final

from headgate.gateway.proxy.errors import FramingError, status_line
from headgate.gateway.proxy.heads.grammar import TOKEN
from headgate.gateway.proxy.heads.head import AnswerHead
from headgate.gateway.proxy.heads.reading import read_answer_fields

HEAD_END: Final = re.compile(rb"\r?\n\r?\n")
_FIELD: Final = re.compile(rb"(" + TOKEN + rb"++):[\t ]*+((?:[\t\x20-\x7e\x80-\xff]*+))")
_STATUS: Final = re.compile(rb"([2-5][0-9][0-9])(?:[\t ]++([\t\x20-\x7e\x80-\xff]*+))?+")
_FRAMING: Final = frozenset({b"transfer-encoding", b"connection", b"keep-alive", b"upgrade", b"trailer"})
"""The records say where the body ends, and the connection is ours."""


def read_cgi_head(head: bytes, max_count: int) -> AnswerHead:
    """Read the fields of a head without its empty line; raises BadMessage.

    Without `Status` an answer with `Location` is a redirect (302), and any other is fine (200), as with nginx.
    """
    names: list[bytes] = []
    values: list[bytes] = []
    status_value = b""
    for line in head.split(b"\n"):
        found = _FIELD.fullmatch(line.removesuffix(b"\r"))
        if found is None:
            raise FramingError("malformed line in the head of the FastCGI answer")
        name: bytes = found[1].lower()
        value: bytes = found[2].rstrip(b"\t ")
        if name == b"status":
            if status_value:
                raise FramingError("more than one Status")
            status_value = value
        elif name not in _FRAMING:
            names.append(found[1])
            values.append(value)
    status, line = _read_status(status_value, names)
    return read_answer_fields(status, line, (tuple(names), tuple(values)), max_count)


def _read_status(line: bytes, names: list[bytes]) -> tuple[int, bytes]:
    """Return the status that a value says, and the status line for it."""
    if not line:
        status = 302 if any(name.lower() == b"location" for name in names) else 200
        return status, status_line(status)
    found = _STATUS.fullmatch(line)
    if found is None:
        raise FramingError("malformed Status")
    status = int(found[1])
    return status, b"HTTP/1.1 %d %b\r\n" % (status, found[2]) if found[2] else status_line(status)
