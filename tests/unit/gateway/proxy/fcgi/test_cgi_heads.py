"""Heads of CGI answers."""

import pytest

from headgate.gateway.proxy.errors import BadMessage
from headgate.gateway.proxy.fcgi.answer import HEAD_END, read_cgi_head


@pytest.mark.parametrize(
    ("head", "line"),
    [
        (b"A: b", b"HTTP/1.1 200 OK"),
        (b"Status: 404 Not Found", b"HTTP/1.1 404 Not Found"),
        (b"status:404", b"HTTP/1.1 404 Not Found"),
        (b"Status: 404 ", b"HTTP/1.1 404 Not Found"),
        (b"Status: 299 Fine\tso far", b"HTTP/1.1 299 Fine\tso far"),
        (b"Location: /a", b"HTTP/1.1 302 Found"),
        (b"Location: /a\nStatus: 201 Created", b"HTTP/1.1 201 Created"),
    ],
)
def test_the_status_is_a_field(head: bytes, line: bytes) -> None:
    answer = read_cgi_head(head, 10)
    assert answer.status_line == line + b"\r\n"
    assert b"tatus:" not in answer.lines
    assert answer.status == int(line.split(b" ")[1])


def test_fields_are_passed_on_as_they_are_named() -> None:
    answer = read_cgi_head(b"Content-type: text/html\nX-A:  b c \r\nSet-Cookie: a=b\nSet-Cookie: c=d", 10)
    assert answer.lines == b"Content-type: text/html\r\nX-A: b c\r\nSet-Cookie: a=b\r\nSet-Cookie: c=d\r\n"


def test_fields_about_the_connection_are_left_out() -> None:
    head = (
        b"Connection: x-a\nTransfer-Encoding: chunked\nUpgrade: b\nKeep-Alive: 1\nTrailer: c\nX-A: b\nContent-Length: 7"
    )
    answer = read_cgi_head(head, 10)
    assert answer.lines == b"X-A: b\r\n"
    assert (answer.content_length, answer.chunked, answer.closes) == (7, False, False)


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"A",
        b": b",
        b" A: b",
        b"A : b",
        b"A\xc3: b",
        b"A: b\x00",
        b"A: b\x0b",
        b"A: b\rc: d",
        b"A: b\n folded",
        b"Status: 99",
        b"Status: 100 Continue",
        b"Status: 101 Switching Protocols",
        b"Status: 600",
        b"Status: 2000",
        b"Status: OK",
        b"Status: 200\nStatus: 200",
        b"HTTP/1.1 200 OK\nA: b",
        b"Content-Length: 1\nContent-Length: 1",
        b"Content-Length: -1",
        b"Content-Length: 1a",
        b"A: b\n" * 11 + b"A: b",
    ],
)
def test_what_can_be_read_in_two_ways_is_refused(head: bytes) -> None:
    with pytest.raises(BadMessage):
        read_cgi_head(head, 10)


@pytest.mark.parametrize("end", [b"\n\n", b"\r\n\r\n", b"\n\r\n", b"\r\n\n"])
def test_lines_may_end_with_lf_alone(end: bytes) -> None:
    found = HEAD_END.search(b"A: b" + end + b"body")
    assert found is not None
    assert found.span() == (4, 4 + len(end))
