"""Who is waited for, how long, and what is said when the time is over."""

import asyncio

import pytest

from fakes.proxied import OK, Conversation, answering, proxied
from fakes.waiting import until
from headgate.gateway.proxy.config import ProxyConfig

SHORT_S = 0.08
GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nHost: a\r\n"


async def silent(conversation: Conversation) -> None:
    """Script: take a request and say nothing."""
    await conversation.head()
    await conversation.reader.read()


@pytest.mark.parametrize("start", [b"G", b"GET / HTTP/1.1\r\n", b"GET / HTTP/1.1\r\nHost: a\r\n"])
async def test_head_that_does_not_end_is_a_408(start: bytes) -> None:
    async with proxied(config=ProxyConfig(header_timeout_s=SHORT_S)) as proxy:
        answer = await proxy.talk(start)
        assert answer.startswith(b"HTTP/1.1 408 ")
        assert b"\r\nConnection: close\r\n" in answer


async def test_head_that_drips_gets_no_more_time() -> None:
    async with proxied(config=ProxyConfig(header_timeout_s=SHORT_S)) as proxy:
        client = await proxy.connect()

        async def drip() -> None:
            await client.send(b"GET / HTTP/1.1\r\nX: ")
            while True:
                await client.send(b"a")
                await asyncio.sleep(SHORT_S / 8)

        dripping = asyncio.create_task(drip())
        assert (await client.head()).startswith(b"HTTP/1.1 408 ")
        dripping.cancel()


async def test_connection_that_never_says_anything_is_closed_silently() -> None:
    async with proxied(config=ProxyConfig(header_timeout_s=SHORT_S)) as proxy:
        assert await proxy.talk(b"") == b""


async def test_idle_connection_is_closed_silently() -> None:
    async with proxied(config=ProxyConfig(idle_timeout_s=SHORT_S)) as proxy:
        client = await proxy.connect()
        await client.send(GET)
        await client.answer()
        assert await client.rest() == b""


async def test_body_that_stalls_is_a_408_and_ends_the_upstream_request() -> None:
    async with proxied(silent, config=ProxyConfig(body_timeout_s=SHORT_S)) as proxy:
        assert (await proxy.talk(POST + b"Content-Length: 9\r\n\r\nabc")).startswith(b"HTTP/1.1 408 ")
        await until(proxy.origin.conversations[0].reader.at_eof)


async def test_upstream_that_does_not_answer_is_a_504() -> None:
    async with proxied(silent, config=ProxyConfig(read_timeout_s=SHORT_S)) as proxy:
        client = await proxy.connect()
        await client.send(GET)
        head, body = await client.answer()
        assert head.startswith(b"HTTP/1.1 504 ")
        assert b"did not answer in time" in body
        assert proxy.stats.upstream_errors == {"timeout": 1}
        assert proxy.target.pools[0].in_flight == 0


async def test_timeout_of_the_route_goes_before_the_general_one() -> None:
    async with proxied(silent, config=ProxyConfig(idle_timeout_s=1.0)) as proxy:
        proxy.target.read_timeout_s = 0.01
        client = await proxy.connect()
        await client.send(GET)
        assert (await client.answer())[0].startswith(b"HTTP/1.1 504 ")


async def test_answer_that_stalls_is_cut_off() -> None:
    async def script(conversation: Conversation) -> None:
        await conversation.head()
        await conversation.send(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc")
        await conversation.reader.read()

    async with proxied(script, config=ProxyConfig(read_timeout_s=SHORT_S)) as proxy:
        assert (await proxy.talk(GET)).endswith(b"abc")
        assert proxy.log.records[0][-1] == "upstream did not answer in time"


async def test_answer_that_comes_slowly_but_steadily_is_not_cut_off() -> None:
    async def script(conversation: Conversation) -> None:
        await conversation.head()
        await conversation.send(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n")
        for _ in range(9):
            await asyncio.sleep(0.03)
            await conversation.send(b"a")

    async with proxied(script, config=ProxyConfig(read_timeout_s=0.15)) as proxy:
        client = await proxy.connect()
        await client.send(GET)
        assert (await client.answer())[1] == b"a" * 9


async def test_upstream_that_takes_no_body_is_a_504() -> None:
    async def script(conversation: Conversation) -> None:
        await conversation.head()
        await asyncio.sleep(30)

    async with proxied(script, config=ProxyConfig(send_timeout_s=SHORT_S)) as proxy:
        client = await proxy.connect()
        sending = asyncio.create_task(client.send(POST + b"Content-Length: 50000000\r\n\r\n" + b"a" * 50_000_000))
        assert (await client.head()).startswith(b"HTTP/1.1 504 ")
        client.close()
        await asyncio.gather(sending, return_exceptions=True)


async def test_client_that_takes_no_answer_is_dropped() -> None:
    large = b"HTTP/1.1 200 OK\r\nContent-Length: 50000000\r\n\r\n" + b"a" * 50_000_000
    async with proxied(answering(large), config=ProxyConfig(body_timeout_s=SHORT_S)) as proxy:
        client = await proxy.connect()
        await client.send(GET)
        await until(lambda: proxy.server.connections == 1)
        await until(lambda: proxy.server.connections == 0)
        assert proxy.log.records[0][-1] == "client took nothing of the answer in time"


async def test_connection_that_does_not_open_is_a_504(monkeypatch: pytest.MonkeyPatch) -> None:
    async with proxied(config=ProxyConfig(connect_timeout_s=SHORT_S)) as proxy:

        async def never(*_args: object, **_options: object) -> None:
            await asyncio.Event().wait()

        client = await proxy.connect()
        monkeypatch.setattr(asyncio.get_running_loop(), "create_connection", never)
        await client.send(GET)
        head, body = await client.answer()
        assert head.startswith(b"HTTP/1.1 504 ")
        assert b"no connection to 127.0.0.1" in body


async def test_refused_client_that_sends_on_is_dropped_after_a_while() -> None:
    async with proxied(config=ProxyConfig(lingering_s=SHORT_S)) as proxy:
        client = await proxy.connect()
        await client.send(b"GET / HTTP/1.1\r\nHost: a\r\nX : b\r\n\r\n")
        assert (await client.head()).startswith(b"HTTP/1.1 400 ")
        await until(lambda: proxy.server.connections == 0)


async def test_early_connections_do_not_suffer_from_a_coarse_clock() -> None:
    async with proxied(answering(OK), config=ProxyConfig(header_timeout_s=SHORT_S)) as proxy:
        for _ in range(10):
            client = await proxy.connect()
            await asyncio.sleep(SHORT_S / 4)
            await client.send(GET)
            assert (await client.answer())[1] == b"ok"
