"""What must not pass from HTTP/2 into HTTP/1.1: each malformed head costs its stream and nothing else."""

import hpack
import pytest

from fakes.gateway.proxied import proxied
from fakes.peers.http2 import Headers, http2_client, request
from fakes.waiting import until
from headgate.gateway.proxy.errors import BadMessage
from headgate.gateway.proxy.http2.heads import (
    answer_block,
    grpc_answer,
    is_grpc_type,
    lines_of,
    read_answer,
    read_request,
)

M, S, A, P = (b":method", b"GET"), (b":scheme", b"http"), (b":authority", b"a"), (b":path", b"/")
PROTOCOL_ERROR = 1

MALFORMED = [
    *[
        [M, S, A, P, (b"x", value)]
        for value in (b"a\r\nb: c", b"a\nb", b"a\rb", b"a\0b", b"a\x7fb", b" a", b"a ", b"\ta")
    ],
    *[[M, S, A, P, (name, b"1")] for name in (b"x y", b"X", b"x:y", b"x\r\ny", b"", b"x\xff", b"x\0", b":x", b"x\t")],
    *[
        [M, S, A, P, (name, value)]
        for name, value in [
            (b"connection", b"close"),
            (b"proxy-connection", b"close"),
            (b"keep-alive", b"timeout=1"),
            (b"upgrade", b"websocket"),
            (b"transfer-encoding", b"chunked"),
            (b"transfer_encoding", b"chunked"),
            (b"content_length", b"1"),
            (b"te", b"gzip"),
            (b"te", b"trailers, chunked"),
            (b"host", b"b"),
            (b"trailer", b"content-length"),
            (b"cookie", b"a\r\nb: c"),
        ]
    ],
    [M, S, A, P, (b"host", b"a"), (b"host", b"a")],
    [M, S, A, P, (b"te", b"trailers"), (b"te", b"trailers")],
    [M, S, A, P, (b"x-request-id", b"1"), (b"x-request-id", b"2")],
    *[[(b":method", value), S, A, P] for value in (b"", b"GE T", b"GET / HTTP/1.1\r\nx: y", b"G\tET", b"G\0")],
    *[
        [M, S, A, (b":path", value)]
        for value in (b"", b"x", b"/ HTTP/1.1", b"/a b", b"/\r\nx: y", b"/#a", b"/\x80", b"http://b/", b"**", b"/\0")
    ],
    *[
        [M, S, (b":authority", value), P]
        for value in (b"", b"a b", b"a\r\nx: y", b"u@a", b"a/b", b"a:99999", b"a:b", b"a" * 300, b"a,b")
    ],
    *[[M, (b":scheme", value), A, P] for value in (b"", b"ftp", b"http://b/")],
    [S, A, P],
    [M, A, P],
    [M, S, P],
    [M, S, A],
    [M, M, S, A, P],
    [M, S, A, A, P],
    [M, S, A, P, (b":status", b"200")],
    [M, S, A, P, (b":protocol", b"websocket")],
    [M, S, A, (b"x", b"y"), P],
    [M, S, A, P, (b"x", b"y"), A],
    [(b":method", b"CONNECT"), S, A, P],
    [(b":method", b"CONNECT"), (b":protocol", b"websocket"), S, A, P, (b"sec-websocket-key", b"x")],
]


@pytest.mark.parametrize("headers", MALFORMED, ids=[repr(each)[:200] for each in MALFORMED])
def test_malformed_heads_are_refused(headers: Headers) -> None:
    with pytest.raises(BadMessage) as caught:
        read_request(list(headers), ended=True, max_count=100)
    assert caught.value.status == 400


@pytest.mark.parametrize("headers", MALFORMED[::6], ids=[repr(each) for each in MALFORMED[::6]])
async def test_a_malformed_head_costs_its_stream_alone(headers: Headers) -> None:
    async with proxied() as proxy, http2_client(proxy.port) as client:
        other = client.open(request(b"POST"), end=False)
        answer = await client.fetch(headers)
        assert (answer.reset, answer.headers) == (PROTOCOL_ERROR, {})
        client.send(other, b"x", end=True)
        assert (await client.answer(other)).status == 200
        assert len(proxy.origin.heads) == 1
        assert proxy.log.records[0][5] == 400


@pytest.mark.parametrize(
    ("length", "body"), [(b"3", b"hello"), (b"9", b"hello"), (b"5, 5", b"hello"), (b"+5", b"hello"), (b"-1", b"hello")]
)
async def test_a_length_that_disagrees_with_the_body_never_ends_a_request(length: bytes, body: bytes) -> None:
    async with proxied() as proxy, http2_client(proxy.port) as client:
        stream_id = client.open(request(b"POST", b"/", (b"content-length", length)), end=False)
        client.send(stream_id, body, end=True)
        assert (await client.answer(stream_id)).reset == PROTOCOL_ERROR
        assert [record[5] for record in proxy.log.records] == [400]
        assert (await client.fetch(request())).status == 200


async def test_two_lengths_are_refused() -> None:
    async with proxied() as proxy, http2_client(proxy.port) as client:
        lengths = [(b"content-length", b"5"), (b"content-length", b"5")]
        assert (await client.fetch(request(b"POST", b"/", *lengths), b"hello")).reset == PROTOCOL_ERROR
        assert proxy.origin.heads == []


def test_cookie_crumbs_become_one_field() -> None:
    crumbs = [(b"cookie", b"a=b"), (b"x", b"y"), (b"cookie", b"c=d")]
    head = read_request(request(b"GET", b"/", *crumbs), ended=True, max_count=100)
    assert head.fields.lines == b"x: y\r\ncookie: a=b; c=d\r\n"


def test_a_host_that_agrees_may_stand_beside_the_authority_or_alone() -> None:
    beside = read_request([M, S, A, P, (b"host", b"a")], ended=True, max_count=100)
    alone = read_request([M, S, P, (b"host", b"a")], ended=True, max_count=100)
    assert beside.fields.host == alone.fields.host == b"a"


def test_te_and_claims_of_other_proxies_are_not_passed_on() -> None:
    more = [(b"te", b"trailers"), (b"x-forwarded-for", b"1.2.3.4"), (b"x_real_ip", b"1.2.3.4"), (b"x-a", b"\xc3\xa9")]
    head = read_request(request(b"GET", b"/", *more), ended=True, max_count=100)
    assert head.fields.lines == b"x-a: \xc3\xa9\r\n"


@pytest.mark.parametrize(
    "headers",
    [
        [(b":status", b"20")],
        [(b":status", b"600")],
        [(b":status", b"200"), (b":status", b"200")],
        [(b"x", b"y"), (b":status", b"200")],
        [(b":status", b"200"), (b":path", b"/")],
        [(b":status", b"200"), (b"x", b"a\r\nset-cookie: b")],
        [(b":status", b"200"), (b"X", b"a")],
        [(b":status", b"200"), (b"connection", b"close")],
        [(b":status", b"200"), (b"transfer-encoding", b"chunked")],
        [(b":status", b"200"), (b"content-length", b"1"), (b"content-length", b"1")],
    ],
)
def test_malformed_answers_are_refused(headers: Headers) -> None:
    with pytest.raises(BadMessage):
        read_answer(list(headers), 100)


def test_an_answer_becomes_lines_and_again_a_header_list() -> None:
    headers = [
        (b":status", b"404"),
        (b"content-type", b"a"),
        (b"content-length", b"3"),
        (b"server", b"s"),
        (b"date", b"d"),
    ]
    answer = read_answer(headers, 100)
    assert answer.status_line == b"HTTP/1.1 404 Not Found\r\n"
    assert answer.lines.startswith(b"content-type: a\r\n")
    block = answer_block(answer, b"Date: x\r\n")
    assert sorted(hpack.Decoder().decode(block, raw=True)) == sorted(headers)


def test_trailers_become_lines() -> None:
    assert lines_of([(b"grpc-status", b"0"), (b"x", b"")]) == b"grpc-status: 0\r\nx: \r\n"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b"application/grpc", True),
        (b"application/grpc+proto", True),
        (b"application/grpc;x=y", True),
        (b"application/grpc-web", False),
        (b"application/json", False),
    ],
)
def test_only_grpc_itself_is_grpc(value: bytes, expected: bool) -> None:
    assert is_grpc_type(value) is expected


@pytest.mark.parametrize(
    ("value", "seconds"), [(b"2H", 7200.0), (b"3M", 180.0), (b"4S", 4.0), (b"5m", 0.005), (b"6u", 6e-6), (b"7n", 7e-9)]
)
def test_grpc_timeouts_have_units(value: bytes, seconds: float) -> None:
    more = [(b"content-type", b"application/grpc"), (b"grpc-timeout", value)]
    head = read_request(request(b"POST", b"/", *more), ended=False, max_count=100)
    assert head.timeout_s == pytest.approx(seconds)


@pytest.mark.parametrize("value", [b"", b"S", b"1", b"123456789S", b"-1S", b"1.5S", b"1s"])
def test_malformed_grpc_timeouts_are_refused(value: bytes) -> None:
    more = [(b"content-type", b"application/grpc"), (b"grpc-timeout", value)]
    with pytest.raises(BadMessage):
        read_request(request(b"POST", b"/", *more), ended=False, max_count=100)


@pytest.mark.parametrize(
    ("status", "code"), [(400, 13), (401, 16), (403, 7), (404, 12), (413, 8), (429, 14), (502, 14), (503, 14), (504, 4)]
)
def test_failures_of_ours_have_a_status_of_grpc(status: int, code: int) -> None:
    assert b"\r\ngrpc-status: %d\r\n" % code in grpc_answer(status, "why").lines


def test_messages_of_grpc_are_percent_encoded_utf8() -> None:
    lines = grpc_answer(404, "100% Käse\n€").lines
    assert b"\r\ngrpc-message: 100%25 K%C3%A4se%0A%E2%82%AC\r\n" in lines


async def test_a_length_without_a_body_is_refused() -> None:
    async with proxied() as proxy, http2_client(proxy.port) as client:
        answer = await client.fetch(request(b"POST", b"/", (b"content-length", b"5")))
        assert answer.reset == PROTOCOL_ERROR
        assert proxy.origin.heads == []


async def test_a_body_that_trailers_end_too_early_never_ends_for_the_origin() -> None:
    async with proxied() as proxy, http2_client(proxy.port) as client:
        stream_id = client.open(request(b"POST", b"/", (b"content-length", b"5")), end=False)
        client.send(stream_id, b"hel")
        await until(lambda: bool(proxy.origin.heads))
        client.trailers(stream_id, [(b"x-count", b"3")])
        assert (await client.answer(stream_id)).reset == PROTOCOL_ERROR
        assert (await client.fetch(request())).status == 200
        assert len(proxy.origin.conversations) == 2
