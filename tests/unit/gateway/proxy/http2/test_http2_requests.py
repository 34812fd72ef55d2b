"""Requests over HTTP/2 to an HTTP/1.1 origin: bodies, trailers, informational answers, our errors, log lines."""

import asyncio

import pytest

from fakes.gateway.proxied import OK, Conversation, answering, proxied
from fakes.peers.http2 import http2_client, request
from fakes.virtual_time import in_virtual_time
from fakes.waiting import until
from headgate.gateway.proxy.config import ProxyConfig
from headgate.gateway.proxy.policies import RoutePolicies

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


async def test_a_request_reaches_an_http1_origin_and_its_answer_comes_back() -> None:
    async with proxied() as proxy, http2_client(proxy.port) as client:
        answer = await client.fetch(request(b"GET", b"/x?y=1", (b"accept", b"*/*"), authority=b"A.example:80"))
        assert (answer.status, bytes(answer.body)) == (200, b"ok")
        assert answer.headers[b"content-length"] == b"2"
        assert answer.headers[b"server"] == b"headgate"
        assert answer.headers[b"date"].endswith(b"GMT")
        head = proxy.origin.heads[0]
        assert head.startswith(b"GET /x?y=1 HTTP/1.1\r\nHost: A.example:80\r\naccept: */*\r\n")
        assert b"\r\nX-Forwarded-Proto: http\r\n" in head
        assert proxy.router.asked == [(b"a.example", b"/x")]


async def test_requests_are_logged_as_http2() -> None:
    async with proxied() as proxy, http2_client(proxy.port) as client:
        await client.fetch(request(b"GET", b"/x"))
        record = proxy.log.records[0]
        assert record[2:7] == (b"GET", b"/x", b"2.0", 200, 2)


@pytest.mark.parametrize("size", [1, 16_385, 300_000, 3_000_000])
async def test_bodies_of_any_length_pass_both_ways(size: int) -> None:
    body = bytes(range(251)) * (size // 251) + b"z" * (size % 251)

    async def echo(conversation: Conversation) -> None:
        _, got = await conversation.request()
        await conversation.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(got), got))

    async with proxied(echo) as proxy, http2_client(proxy.port) as client:
        headers = request(b"POST", b"/", (b"content-length", b"%d" % size))
        answer = await client.fetch(headers, body)
        assert bytes(answer.body) == body


async def test_a_body_of_unknown_length_is_chunked_for_the_origin() -> None:
    async with proxied() as proxy, http2_client(proxy.port) as client:
        answer = await client.fetch(request(b"POST"), b"hello")
        assert answer.status == 200
        assert b"\r\nTransfer-Encoding: chunked\r\n" in proxy.origin.heads[0]


async def test_many_streams_share_a_connection() -> None:
    async with proxied() as proxy, http2_client(proxy.port) as client:
        ids = [client.open(request(b"GET", b"/%d" % number)) for number in range(100)]
        for stream_id in ids:
            assert (await client.answer(stream_id)).status == 200
        assert len({head.split(b" ")[1] for head in proxy.origin.heads}) == 100
        assert proxy.server.connections == 1


async def test_trailers_pass_both_ways() -> None:
    seen: list[bytes] = []

    async def script(conversation: Conversation) -> None:
        await conversation.head()
        seen.append(await conversation.reader.readuntil(b"\r\n\r\n"))
        await conversation.send(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-Sum: 7\r\n\r\n"
        )

    async with proxied(script) as proxy, http2_client(proxy.port) as client:
        stream_id = client.open(request(b"POST"), end=False)
        client.send(stream_id, b"hello")
        proxy.target.policies = RoutePolicies()
        proxy.target.policies.request_trailers = True
        client.trailers(stream_id, [(b"x-count", b"5")])
        answer = await client.answer(stream_id)
        assert answer.trailers == {b"x-sum": b"7"}
        assert seen[0].endswith(b"0\r\nx-count: 5\r\n\r\n")


@pytest.mark.parametrize(
    "name", [b"content-length", b"transfer-encoding", b"host", b":path", b"x_forwarded_for", b"a b"]
)
async def test_trailers_that_must_not_be_any_end_the_request(name: bytes) -> None:
    async with proxied() as proxy, http2_client(proxy.port) as client:
        stream_id = client.open(request(b"POST"), end=False)
        client.send(stream_id, b"hello")
        client.trailers(stream_id, [(name, b"1")])
        answer = await client.answer(stream_id)
        assert answer.status == 400
        assert (await client.fetch(request())).status == 200


@pytest.mark.parametrize(
    ("method", "raw", "status", "length"),
    [
        (b"HEAD", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", 200, b"9"),
        (b"GET", b"HTTP/1.1 204 No Content\r\n\r\n", 204, None),
        (b"GET", b"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", 304, b"9"),
        (b"GET", b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 200, b"0"),
    ],
)
async def test_answers_without_a_body_end_with_their_head(
    method: bytes, raw: bytes, status: int, length: bytes | None
) -> None:
    async with proxied(answering(raw)) as proxy, http2_client(proxy.port) as client:
        answer = await client.fetch(request(method))
        assert (answer.status, answer.headers.get(b"content-length"), bytes(answer.body)) == (status, length, b"")


async def test_early_hints_pass_and_a_body_is_asked_for() -> None:
    raw = b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n" + OK
    async with proxied(answering(raw)) as proxy, http2_client(proxy.port) as client:
        stream_id = client.open(request(b"POST", b"/", (b"expect", b"100-continue")), end=False)
        await client.until(lambda: stream_id in client.answers)
        assert client.answers[stream_id].informational == [{b":status": b"100"}]
        client.send(stream_id, b"hi", end=True)
        answer = await client.answer(stream_id)
        assert answer.informational[1] == {b":status": b"103", b"link": b"</a.css>"}
        assert answer.status == 200


async def test_fields_of_http1_connections_do_not_pass_to_the_client() -> None:
    raw = (
        b"HTTP/1.1 200 OK\r\nConnection: x-hop, keep-alive\r\nKeep-Alive: timeout=5\r\nX-Hop: 1\r\n"
        b"Transfer-Encoding: chunked\r\nSet-Cookie: a=b\r\nSet-Cookie: c=d\r\n\r\n2\r\nok\r\n0\r\n\r\n"
    )
    async with proxied(answering(raw)) as proxy, http2_client(proxy.port) as client:
        answer = await client.fetch(request())
        assert [value for name, value in answer.fields if name == b"set-cookie"] == [b"a=b", b"c=d"]
        assert not {b"connection", b"keep-alive", b"x-hop", b"transfer-encoding"} & set(answer.headers)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        (request(authority=b"unknown"), 404),
        (request(b"GET", b"/" + b"x" * 1024), 414),
        (request(b"TRACE"), 405),
        ([(b":method", b"CONNECT"), (b":authority", b"a:443")], 405),
        (request(b"OPTIONS", b"*"), 200),
        (request(b"GET", b"*"), 400),
        (request(b"GET", b"/", (b"expect", b"wonders")), 417),
        (request(b"GET", b"/", *[(b"x-%d" % number, b"") for number in range(129)]), 431),
    ],
)
async def test_what_we_refuse_is_answered_on_its_stream(headers: list[tuple[bytes, bytes]], status: int) -> None:
    config = ProxyConfig(max_target=1024, max_body=1000)
    async with proxied(config=config) as proxy, http2_client(proxy.port) as client:
        answer = await client.fetch(headers)
        assert answer.status == status
        assert answer.body.startswith(b"%d " % status)
        assert proxy.log.records[0][5] == status
        assert (await client.fetch(request())).status == 200


async def test_a_head_that_is_too_long_ends_the_connection_with_a_reason() -> None:
    async with proxied(config=ProxyConfig(max_head=4096)) as proxy, http2_client(proxy.port) as client:
        client.open(request(b"GET", b"/", *[(b"x-%d" % number, b"y" * 500) for number in range(10)]))
        await client.closed()
        assert client.last_error == 11


async def test_a_body_that_is_announced_as_too_long_is_refused_at_once() -> None:
    async with proxied(config=ProxyConfig(max_body=1000)) as proxy, http2_client(proxy.port) as client:
        stream_id = client.open(request(b"POST", b"/", (b"content-length", b"1001")), end=False)
        answer = await client.answer(stream_id)
        assert (answer.status, proxy.origin.heads) == (413, [])


async def test_a_body_that_grows_too_long_is_refused_and_the_rest_not_taken() -> None:
    async with proxied(config=ProxyConfig(max_body=1000)) as proxy, http2_client(proxy.port) as client:
        stream_id = client.open(request(b"POST"), end=False)
        client.send(stream_id, b"x" * 1001)
        answer = await client.answer(stream_id)
        assert answer.status == 413
        await client.until(lambda: client.answers[stream_id].reset == 0)
        assert (await client.fetch(request())).status == 200


async def test_a_reset_of_the_client_releases_the_upstream() -> None:
    gone = asyncio.Event()

    async def silent(conversation: Conversation) -> None:
        await conversation.request()
        await conversation.reader.read()
        gone.set()

    async with proxied(silent) as proxy, http2_client(proxy.port) as client:
        stream_id = client.open(request())
        await until(lambda: bool(proxy.origin.heads))
        client.reset(stream_id)
        await asyncio.wait_for(gone.wait(), 5)
        assert proxy.log.records[0][5] == 499
        assert proxy.target.pools[0].in_flight == 0


async def test_a_request_and_its_reset_in_one_piece_do_no_harm_to_others() -> None:
    async with proxied() as proxy, http2_client(proxy.port) as client:
        for authority in (b"a", b"unknown"):
            client.h2.send_headers(
                stream_id := client.h2.get_next_available_stream_id(), request(authority=authority), end_stream=True
            )
            client.h2.reset_stream(stream_id, 8)
        client.flush()
        assert (await client.fetch(request())).status == 200
        assert sorted(record[5] for record in proxy.log.records[:2]) == [404, 499]


async def test_an_origin_that_breaks_off_resets_the_stream_alone() -> None:
    async def break_off(conversation: Conversation) -> None:
        await conversation.request()
        await conversation.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nsome")

    async with proxied(break_off) as proxy, http2_client(proxy.port) as client:
        stream_id = client.open(request())
        answer = await client.answer(stream_id)
        assert (answer.status, answer.reset, bytes(answer.body)) == (200, 2, b"some")
        assert not client.is_closed


async def test_a_silent_upstream_times_its_stream_out() -> None:
    async def silent(conversation: Conversation) -> None:
        await conversation.request()
        await asyncio.sleep(30)

    config = ProxyConfig(read_timeout_s=0.2)
    async with proxied(silent, config=config) as proxy, http2_client(proxy.port) as client:
        assert (await client.fetch(request(b"POST"), b"x")).status == 504


async def test_a_slow_body_times_its_stream_out() -> None:
    config = ProxyConfig(body_timeout_s=0.2)
    async with proxied(config=config) as proxy, http2_client(proxy.port) as client:
        stream_id = client.open(request(b"POST"), end=False)
        answer = await client.answer(stream_id)
        assert answer.status == 408


async def test_an_idle_connection_is_closed_with_a_goaway() -> None:
    config = ProxyConfig(idle_timeout_s=0.2)
    async with proxied(config=config) as proxy, http2_client(proxy.port) as client:
        assert (await client.fetch(request())).status == 200
        await client.closed()
        assert client.last_error == 0
        assert client.goaways[-1].last_stream_id == 1


async def test_a_connection_that_asks_nothing_is_closed() -> None:
    async with proxied(config=ProxyConfig(header_timeout_s=0.2)) as proxy, http2_client(proxy.port) as client:
        await client.closed()
        assert client.last_error == 0


@pytest.mark.parametrize("bytewise", [False, True])
async def test_prior_knowledge_is_known_by_its_preface(bytewise: bool) -> None:
    async with proxied() as proxy:
        client = await proxy.connect()
        await client.send(PREFACE + b"\0\0\0\4\0\0\0\0\0", bytewise=bytewise)
        assert (await client.exactly(9))[3:5] == b"\4\0"


async def test_what_only_begins_like_the_preface_is_refused() -> None:
    async with proxied() as proxy:
        assert b" 400 " in await proxy.talk(b"PRI * HTTP/2.0\r\n\r\nSX\r\n\r\n")
        assert b" 400 " in await proxy.talk(b"PRI * HTTP/1.1\r\n\r\n")


async def test_a_body_is_held_back_where_its_route_asks_for_that() -> None:
    async with proxied() as proxy, http2_client(proxy.port) as client:
        proxy.target.policies = RoutePolicies()
        proxy.target.policies.buffer_request = True
        answer = await client.fetch(request(b"POST"), b"x" * 300_000)
        assert answer.status == 200
        assert b"\r\nContent-Length: 300000\r\n" in proxy.origin.heads[0]


@in_virtual_time
async def test_a_short_time_for_a_request_ends_that_alone_and_precisely() -> None:
    async def slow(conversation: Conversation) -> None:
        head, _ = await conversation.request()
        await asyncio.sleep(30 if b"/silent" in head else 1)
        await conversation.send(OK)

    async with proxied(slow, slow) as proxy, http2_client(proxy.port) as client:
        other = client.open(request(b"GET", b"/"))
        await until(lambda: proxy.origin.heads)
        proxy.target.policies = RoutePolicies(request_s=0.5)
        began = asyncio.get_running_loop().time()
        assert (await client.fetch(request(b"GET", b"/silent"))).status == 504
        assert 0.5 <= asyncio.get_running_loop().time() - began < 0.53
        assert (await client.answer(other)).status == 200
