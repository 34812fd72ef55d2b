"""What is added to heads and what is taken from them, both ways."""

import pytest

from fakes.gateway.proxied import OK, Proxied, answering, proxied
from headgate.gateway.proxy.config import ProxyConfig

CLOSE = b"Connection: close\r\n\r\n"


async def seen(proxy: Proxied, lines: bytes = b"", *, start: bytes = b"GET / HTTP/1.1\r\nHost: a\r\n") -> bytes:
    """Give the head that the origin gets for these request lines."""
    await proxy.talk(start + lines + CLOSE)
    return proxy.origin.heads[-1]


async def test_upstream_is_told_of_the_client() -> None:
    async with proxied() as proxy:
        head = await seen(proxy, start=b"GET /x?y HTTP/1.1\r\nHost: A.example:81\r\n")
        assert head.startswith(b"GET /x?y HTTP/1.1\r\nHost: A.example:81\r\n")
        for line in (
            b"X-Forwarded-For: 127.0.0.1",
            b"X-Real-IP: 127.0.0.1",
            b"X-Forwarded-Proto: http",
            b"X-Forwarded-Host: A.example:81",
            b"X-Forwarded-Port: %d" % proxy.port,
        ):
            assert head.count(line + b"\r\n") == 1


async def test_upstream_is_told_of_the_port_that_clients_connect_to_where_it_is_another() -> None:
    async with proxied() as proxy:
        proxy.port = await proxy.server.listen_http("127.0.0.1", 0, public_port=80)
        assert b"\r\nX-Forwarded-Port: 80\r\n" in await seen(proxy)


async def test_router_is_asked_for_the_bare_host_and_the_path_without_query() -> None:
    async with proxied() as proxy:
        await seen(proxy, start=b"GET /x/%20?y=/../z HTTP/1.1\r\nHost: A.Example.:81\r\n")
        assert proxy.router.asked == [(b"a.example", b"/x/%20")]


SPOOFED = (
    b"X-Forwarded-For: 6.6.6.6\r\nX-Forwarded-Proto: gopher\r\nX-Forwarded-Host: evil\r\nX-Forwarded-Port: 6\r\n"
    b"X-Real-IP: 6.6.6.6\r\nX-Forwarded-Prefix: /evil\r\nForwarded: for=6.6.6.6\r\nX_Forwarded_For: 6.6.6.6\r\n"
)


async def test_what_an_untrusted_client_claims_is_replaced() -> None:
    async with proxied() as proxy:
        head = await seen(proxy, SPOOFED)
        assert b"6.6.6.6" not in head
        assert b"evil" not in head
        assert b"gopher" not in head
        assert head.lower().count(b"x-forwarded-for:") == 1


async def test_what_a_trusted_client_claims_is_kept_and_the_chain_grows() -> None:
    async with proxied(config=ProxyConfig(trust_forwarded=True)) as proxy:
        head = await seen(proxy, SPOOFED)
        assert b"X-Forwarded-For: 6.6.6.6, 127.0.0.1\r\n" in head
        assert b"X-Forwarded-Proto: gopher\r\n" in head
        assert b"X-Real-IP: 6.6.6.6\r\n" in head
        assert b"x-forwarded-prefix: /evil\r\n" in head
        assert b"X_Forwarded_For" not in head


async def test_request_id_is_made_when_absent_and_differs() -> None:
    async with proxied() as proxy:
        ids = {(await seen(proxy)).split(b"X-Request-ID: ")[1].split(b"\r")[0] for _ in range(2)}
        assert len(ids) == 2
        assert all(len(each) == 32 for each in ids)


async def test_request_id_of_the_client_is_kept() -> None:
    async with proxied() as proxy:
        assert (await seen(proxy, b"x-request-id: abc\r\n")).count(b"X-Request-ID: abc\r\n") == 1


@pytest.mark.parametrize(
    "line",
    [
        b"Keep-Alive: timeout=5",
        b"Proxy-Connection: keep-alive",
        b"Proxy-Authorization: Basic eA==",
        b"TE: trailers",
        b"Upgrade: websocket",
        b"HTTP2-Settings: AAAA",
    ],
)
async def test_hop_by_hop_field_of_a_request_is_stripped(line: bytes) -> None:
    async with proxied() as proxy:
        assert line.partition(b":")[0].lower() not in (await seen(proxy, line + b"\r\n")).lower()


async def test_fields_that_connection_lists_are_stripped() -> None:
    async with proxied() as proxy:
        head = await seen(proxy, b"X-Secret: a\r\nx-other: b\r\nX-Kept: c\r\nConnection: X-Secret, ,X-Other\r\n")
        assert b"a\r\nX-Kept: c\r\n" in head
        assert b"ecret" not in head
        assert b"other" not in head


async def test_what_we_add_cannot_be_stripped_through_connection() -> None:
    async with proxied() as proxy:
        head = await seen(proxy, b"Connection: X-Forwarded-For, X-Real-IP, Host\r\n")
        assert b"X-Forwarded-For: 127.0.0.1\r\n" in head
        assert b"Host: a\r\n" in head


async def test_other_fields_keep_order_spelling_and_repetition() -> None:
    async with proxied() as proxy:
        assert b"b: 1\r\nA: 2\r\nB: 3\r\n" in await seen(proxy, b"b: 1\r\nA: 2\r\nB: 3\r\n")


async def test_white_space_before_a_value_becomes_one_space() -> None:
    async with proxied() as proxy:
        assert b"X: a b\r\nY: c\r\nZ: \r\n" in await seen(proxy, b"X:a b\r\nY: \t c\r\nZ:   \r\n")


async def test_authority_of_a_url_replaces_host() -> None:
    async with proxied() as proxy:
        head = await seen(proxy, start=b"GET http://b:81?q HTTP/1.1\r\nHost: a\r\n")
        assert head.startswith(b"GET /?q HTTP/1.1\r\nHost: b:81\r\n")
        assert proxy.router.asked == [(b"b", b"/")]


async def test_host_of_a_url_is_not_remembered_for_the_next_request() -> None:
    async with proxied() as proxy:
        client = await proxy.connect()
        for target in (b"/", b"http://b/", b"/"):
            await client.send(b"GET %b HTTP/1.1\r\nHost: a\r\n\r\n" % target)
            await client.answer()
        assert [host for host, _ in proxy.router.asked] == [b"a", b"b", b"a"]


async def test_changed_header_block_is_read_anew() -> None:
    async with proxied() as proxy:
        client = await proxy.connect()
        for value in (b"1", b"2", b"2", b"1"):
            await client.send(b"GET / HTTP/1.1\r\nHost: a\r\nX: %b\r\n\r\n" % value)
            await client.answer()
        assert [head.split(b"\r\nX: ")[1][:1] for head in proxy.origin.heads] == [b"1", b"2", b"2", b"1"]


async def test_http_1_0_request_without_host_gets_one() -> None:
    async with proxied() as proxy:
        await proxy.talk(b"GET / HTTP/1.0\r\n\r\n")
        assert b"\r\nHost: 127.0.0.1:%d\r\n" % proxy.origin.port in proxy.origin.heads[0]
        assert proxy.router.asked == [(b"", b"/")]


async def test_date_and_server_are_added_when_absent() -> None:
    async with proxied() as proxy:
        answer = await proxy.talk(b"GET / HTTP/1.1\r\nHost: a\r\n" + CLOSE)
        assert answer.count(b"\r\nServer: headgate\r\n") == 1
        assert answer.count(b"\r\nDate: ") == 1


async def test_date_and_server_of_the_upstream_are_kept() -> None:
    upstream = b"HTTP/1.1 200 OK\r\ndate: then\r\nSERVER: it\r\nContent-Length: 2\r\n\r\nok"
    async with proxied(answering(upstream)) as proxy:
        answer = await proxy.talk(b"GET / HTTP/1.1\r\nHost: a\r\n" + CLOSE)
        assert b"date: then\r\nSERVER: it\r\n" in answer
        assert b"headgate" not in answer
        assert b"Date:" not in answer


async def test_hop_by_hop_fields_of_an_answer_are_stripped() -> None:
    upstream = (
        b"HTTP/1.1 200 OK\r\nKeep-Alive: timeout=5\r\nConnection: x-internal, keep-alive\r\nX-Internal: a\r\n"
        b"Proxy-Connection: b\r\nUpgrade: h2c\r\nX-Kept: c\r\nContent-Length: 2\r\n\r\nok"
    )
    async with proxied(answering(upstream)) as proxy:
        client = await proxy.connect()
        await client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        head, _ = await client.answer()
        names = [line.partition(b":")[0] for line in head.split(b"\r\n")[1:-2]]
        assert sorted(names) == [b"Content-Length", b"Date", b"Server", b"X-Kept"]


@pytest.mark.parametrize("method", [b"CONNECT", b"TRACE"])
async def test_method_that_is_not_for_us_is_a_405(method: bytes) -> None:
    async with proxied(answering(OK)) as proxy:
        target = b"a:443" if method == b"CONNECT" else b"/"
        answer = await proxy.talk(b"%b %b HTTP/1.1\r\nHost: a\r\n" % (method, target) + CLOSE)
        assert answer.startswith(b"HTTP/1.1 405 ")
        assert b"\r\nAllow: GET, " in answer
        assert proxy.origin.heads == []


async def test_options_of_the_server_is_answered_here() -> None:
    async with proxied(answering(OK)) as proxy:
        answer = await proxy.talk(b"OPTIONS * HTTP/1.1\r\nHost: a\r\n" + CLOSE)
        assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
        assert b"\r\nAllow: GET, " in answer
        assert proxy.origin.heads == []


async def test_upgrade_with_a_body_is_an_ordinary_request() -> None:
    async with proxied() as proxy:
        client = await proxy.connect()
        start = (
            b"POST / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\nContent-Length: 2\r\n\r\nhi"
        )
        for _ in range(2):
            await client.send(start)
            assert (await client.answer())[1] == b"ok"
        assert len(proxy.origin.heads) == 2
