"""Requests are found alike, however the bytes of a connection are cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.gateway.proxy.config import ProxyConfig
from headgate.gateway.proxy.errors import BadMessage, LimitExceeded
from headgate.gateway.proxy.heads.special_fields import RequestRules
from headgate.gateway.proxy.http1.request_reader import HAS_BEGUN, HTTP2, NEEDS_MORE, REQUEST, RequestReader

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
REQUESTS = [
    b"GET /a HTTP/1.1\r\nHost: a\r\nX-Long: " + b"x" * 100 + b"\r\n\r\n",
    b"GET /b HTTP/1.1\r\nHost: b\r\n\r\n",
    b"POST /c HTTP/1.1\r\nHost: c\r\nContent-Length: 5\r\n\r\n12345",
    b"\r\nGET /d HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
    b"PUT /e HTTP/1.1\r\nHost: e\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX-After: 1\r\n\r\n",
]
Found = tuple[bytes, bytes, bytes, bytes]


def reader(config: ProxyConfig | None = None, *, may_be_http2: bool = True) -> RequestReader:
    return RequestReader(config or ProxyConfig(), RequestRules(), may_be_http2=may_be_http2)


def read_all(pieces: list[bytes], *, is_eager: bool) -> list[Found]:
    """Feed pieces, and look for requests behind each (`is_eager`), or only when all is there."""
    requests, found = reader(), list[Found]()
    body: bytes | None = None
    for number, piece in enumerate(pieces):
        if body is None:
            requests.feed(piece)
        else:
            body += requests.read_body(piece)
        while is_eager or number == len(pieces) - 1:
            if body is None:
                if requests.next() != REQUEST:
                    break
                body = requests.begin_body() if requests.has_body else b""
            if requests.has_body and not requests.body_is_done:
                break
            trailers = requests.trailers if requests.has_body else b""
            found.append((requests.method, requests.target, body, trailers))
            body = None
    assert requests.pending == 0
    return found


@given(st.lists(st.sampled_from(REQUESTS), min_size=1, max_size=6), st.data(), st.booleans())
def test_cuts_change_nothing(sent: list[bytes], data: st.DataObject, is_eager: bool) -> None:
    whole = b"".join(sent)
    cuts = sorted(data.draw(st.sets(st.integers(1, len(whole) - 1), max_size=8)))
    pieces = [whole[start:end] for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    assert read_all(pieces, is_eager=is_eager) == read_all([whole], is_eager=False)
    assert len(read_all(pieces, is_eager=is_eager)) == len(sent)


def test_a_request_behind_one_that_came_in_pieces_is_found_from_its_beginning() -> None:
    requests = reader()
    requests.feed(REQUESTS[0][:-2])
    assert requests.next() == HAS_BEGUN
    requests.feed(REQUESTS[0][-2:] + REQUESTS[1][:4])
    assert requests.next() == REQUEST
    # It is being answered, and what comes is not looked at yet.
    requests.feed(REQUESTS[1][4:] + REQUESTS[1])
    assert [requests.next(), requests.target, requests.next(), requests.target] == [REQUEST, b"/b", REQUEST, b"/b"]


def test_the_first_look_at_a_head_is_told_once() -> None:
    requests = reader()
    requests.feed(b"GET / HTTP/1.1\r\n")
    assert requests.next() == HAS_BEGUN
    requests.feed(b"Host: a\r\n")
    assert requests.next() == NEEDS_MORE


@pytest.mark.parametrize("cut", [18, 20, len(PREFACE)])
def test_the_preface_of_http2_is_known(cut: int) -> None:
    requests = reader()
    requests.feed(PREFACE[:cut])
    assert requests.next() == (HTTP2 if cut == len(PREFACE) else NEEDS_MORE)
    requests.feed(PREFACE[cut:] + b"more")
    assert requests.next() == HTTP2
    assert requests.take() == PREFACE + b"more"


def test_the_preface_of_http2_is_no_request_later_nor_over_tls() -> None:
    later, encrypted = reader(), reader(may_be_http2=False)
    later.feed(REQUESTS[1] + PREFACE)
    assert later.next() == REQUEST
    encrypted.feed(PREFACE)
    for requests in (later, encrypted):
        with pytest.raises(BadMessage):
            requests.next()


def test_a_body_that_is_announced_too_long_is_refused_with_its_head() -> None:
    requests = reader(ProxyConfig(max_body=4))
    requests.feed(REQUESTS[2])
    with pytest.raises(LimitExceeded) as refused:
        requests.next()
    assert (refused.value.status, requests.count) == (413, 0)
