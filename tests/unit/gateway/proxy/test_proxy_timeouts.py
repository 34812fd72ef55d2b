"""Who is waited for, how long, and what is said when the time is over."""

import asyncio
import socket

import pytest

from fakes.gateway.proxied import OK, Conversation, Script, answering, proxied
from fakes.virtual_time import in_virtual_time
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


@in_virtual_time
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


@in_virtual_time
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


@in_virtual_time
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
        assert proxy.log.records[0][-1] == "client took too little of the answer in time"


LARGE = 50_000_000
"""Bytes of an answer that is under way for as long as its client is slow."""
SMALL = 400_000
"""That the kernel takes, so that only the client has yet to get it."""


def sized(size: int) -> Script:
    return answering(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (size, bytes(size)))


async def read_slowly(port: int, piece: int, pause_s: float, within_s: float) -> int:
    """Ask with little room in the kernel, and read a piece at a time; gives what came. Raises as sockets do."""
    loop, received = asyncio.get_running_loop(), 0
    with socket.socket() as plain:
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
        plain.setblocking(False)
        await loop.sock_connect(plain, ("127.0.0.1", port))
        await loop.sock_sendall(plain, GET)
        ends = loop.time() + within_s
        while loop.time() < ends:
            received += len(await loop.sock_recv(plain, piece))
            await asyncio.sleep(pause_s)  # in real time, as the kernel has its own timers where buffers are full
    return received


@pytest.mark.parametrize("size", [LARGE, SMALL])
async def test_a_client_that_takes_a_trickle_is_reset(size: int) -> None:
    # 32 KiB in 0.5 seconds, in which it takes 20,000 bytes.
    config = ProxyConfig(body_timeout_s=0.5, idle_timeout_s=0.2, min_body_rate=100_000)
    async with proxied(sized(size), config=config) as proxy:
        with pytest.raises(ConnectionResetError):
            await read_slowly(proxy.port, 2000, 0.05, 8)
        await until(lambda: proxy.server.connections == 0)
        assert proxy.log.records[0][-1] == ("client took too little of the answer in time" if size == LARGE else "")


@pytest.mark.parametrize("size", [LARGE, SMALL])
async def test_a_client_that_is_slow_and_steady_gets_its_answer(size: int) -> None:
    # 5,000 bytes in 0.5 seconds, in which it takes 100,000.
    config = ProxyConfig(body_timeout_s=0.5, idle_timeout_s=0.2, min_body_rate=10_000)
    async with proxied(sized(size), config=config) as proxy:
        assert await read_slowly(proxy.port, 4000, 0.02, 1.5) > 100_000


async def test_without_a_rate_a_client_has_to_take_something_of_an_answers_end() -> None:
    config = ProxyConfig(body_timeout_s=0.3, idle_timeout_s=0.2, min_body_rate=0)
    async with proxied(sized(SMALL), config=config) as proxy:
        reading = asyncio.create_task(read_slowly(proxy.port, 1, 3, 3))
        await until(lambda: proxy.server.connections == 1)
        await until(lambda: proxy.server.connections == 0, within_s=2)
        reading.cancel()
        await asyncio.wait({reading})


async def test_the_end_of_an_answer_is_looked_at_long_before_its_connection_has_rested_for_too_long() -> None:
    async with proxied(sized(SMALL), config=ProxyConfig(body_timeout_s=0.4, idle_timeout_s=30)) as proxy:
        reading = asyncio.create_task(read_slowly(proxy.port, 1, 3, 3))
        await until(lambda: proxy.server.connections == 1)
        await until(lambda: proxy.server.connections == 0, within_s=3)
        reading.cancel()
        await asyncio.wait({reading})


@in_virtual_time
async def test_a_connection_whose_client_has_taken_everything_rests_on() -> None:
    async with proxied(answering(OK, OK), config=ProxyConfig(body_timeout_s=0.1, idle_timeout_s=30)) as proxy:
        client = await proxy.connect()
        for _ in range(2):
            await client.send(GET)
            assert (await client.answer())[1] == b"ok"
            await asyncio.sleep(0.5)


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


@in_virtual_time
async def test_early_connections_do_not_suffer_from_a_coarse_clock() -> None:
    async with proxied(answering(OK), config=ProxyConfig(header_timeout_s=SHORT_S)) as proxy:
        for _ in range(10):
            client = await proxy.connect()
            await asyncio.sleep(SHORT_S / 4)
            await client.send(GET)
            assert (await client.answer())[1] == b"ok"
