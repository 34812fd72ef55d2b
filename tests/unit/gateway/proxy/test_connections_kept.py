"""Connections to upstreams that are kept: pools, requests that are sent again, swaps and the drain."""

import asyncio
import socket

import pytest

from fakes.gateway.proxied import OK, Conversation, Script, answering, proxied
from fakes.virtual_time import in_virtual_time
from fakes.waiting import until
from headgate.gateway.model.connection import ConnectionSpec
from headgate.gateway.proxy.config import ProxyConfig
from headgate.gateway.proxy.peer import Peer
from headgate.gateway.proxy.pools import PoolRegistry

GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"

POST = b"POST / HTTP/1.1\r\nHost: a\r\n"

CLOSE = b"Connection: close\r\n\r\n"

CLIENT = Peer(b"127.0.0.1", b"http", b"80")


# Retries


def dying(*, after: bytes = b"") -> Script:
    """Script: the first connection answers once and dies at its second request, later ones answer."""

    async def script(conversation: Conversation) -> None:
        await conversation.request()
        await conversation.send(OK)
        if conversation.index == 0:
            await conversation.head()
            await conversation.send(after)
            return
        while True:
            await conversation.request()
            await conversation.send(OK)

    return script


@pytest.mark.parametrize(
    "request_bytes",
    [GET, b"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi", b"DELETE / HTTP/1.1\r\nHost: a\r\n\r\n"],
)
async def test_idempotent_request_is_sent_again_when_a_kept_connection_dies(request_bytes: bytes) -> None:
    async with proxied(dying()) as proxy:
        client = await proxy.connect()
        for _ in range(2):
            await client.send(request_bytes)
            assert (await client.answer())[1] == b"ok"
        assert len(proxy.origin.conversations) == 2
        assert proxy.stats.retries == 1


async def test_post_is_not_sent_again() -> None:
    async with proxied(dying()) as proxy:
        client = await proxy.connect()
        await client.send(GET)
        await client.answer()
        await client.send(POST + b"Content-Length: 2\r\n\r\nhi")
        assert (await client.answer())[0].startswith(b"HTTP/1.1 502 ")
        assert len(proxy.origin.heads) == 2


async def test_post_of_which_no_body_was_sent_is_sent_again() -> None:
    async with proxied(dying()) as proxy:
        client = await proxy.connect()
        await client.send(GET)
        await client.answer()
        await client.send(POST + b"Content-Length: 2\r\n\r\n")
        await until(lambda: len(proxy.origin.conversations) == 2)
        await client.send(b"hi")
        assert (await client.answer())[1] == b"ok"


async def test_nothing_is_sent_again_after_the_first_byte_of_an_answer() -> None:
    async with proxied(dying(after=b"HTTP/1.1 2")) as proxy:
        client = await proxy.connect()
        await client.send(GET)
        await client.answer()
        await client.send(GET)
        assert (await client.answer())[0].startswith(b"HTTP/1.1 502 ")


async def test_new_connection_that_dies_is_a_502() -> None:
    async def script(conversation: Conversation) -> None:
        await conversation.head()

    async with proxied(script) as proxy:
        assert (await proxy.talk(b"GET / HTTP/1.1\r\nHost: a\r\n" + CLOSE)).startswith(b"HTTP/1.1 502 ")
        assert len(proxy.origin.conversations) == 1


async def test_request_is_sent_again_once_only() -> None:
    async def script(conversation: Conversation) -> None:
        if conversation.index == 0:
            await conversation.request()
            await conversation.send(OK)
        await conversation.head()

    async with proxied(script) as proxy:
        client = await proxy.connect()
        await client.send(GET + GET)
        await client.answer()
        assert (await client.answer())[0].startswith(b"HTTP/1.1 502 ")
        assert len(proxy.origin.conversations) == 2


@in_virtual_time
async def test_connection_that_the_upstream_closed_is_not_used_for_a_post() -> None:
    async with proxied(answering(OK, then_close=True)) as proxy:
        client = await proxy.connect()
        for _ in range(5):
            await client.send(POST + b"Content-Length: 2\r\n\r\nhi")
            assert (await client.answer())[1] == b"ok"
            await asyncio.sleep(0.005)


async def test_kernel_is_asked_about_a_connection_before_a_request_that_cannot_be_repeated() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    pool = PoolRegistry().get("127.0.0.1", listener.getsockname()[1])
    connections = [await pool.connect(CLIENT) for _ in range(2)]
    accepted = [listener.accept()[0] for _ in connections]
    for connection in connections:
        pool.release(connection)
    accepted[1].close()
    # The loop has had no chance to notice.
    assert pool.acquire(certain=True) is connections[0]
    for end in (accepted[0], listener):
        end.close()
    connections[0].discard()


@pytest.mark.parametrize("coding", [b"Content-Length: 9\r\n\r\nabc", b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"])
async def test_answer_cut_off_by_the_upstream_is_cut_off_for_the_client(coding: bytes) -> None:
    async with proxied(answering(b"HTTP/1.1 200 OK\r\n" + coding, then_close=True)) as proxy:
        client = await proxy.connect()
        await client.send(GET)
        answer = await client.rest()
        assert b"abc" in answer
        assert not answer.endswith(b"0\r\n\r\n")
        assert proxy.log.records[0][-1] == "upstream closed the connection in the middle of its answer"


# Pools


async def test_no_more_than_the_allowed_number_of_connections_rest() -> None:
    async with proxied(config=ProxyConfig(upstream_max_idle=1)) as proxy:
        clients = [await proxy.connect() for _ in range(3)]
        for client in clients:
            await client.send(GET)
        for client in clients:
            await client.answer()
        assert proxy.target.pools[0].idle_count <= 1


@in_virtual_time
async def test_connection_that_rests_too_long_is_closed() -> None:
    async with proxied(config=ProxyConfig(upstream_idle_timeout_s=0.05)) as proxy:
        client = await proxy.connect()
        await client.send(GET)
        await client.answer()
        assert proxy.target.pools[0].idle_count == 1
        await until(lambda: proxy.target.pools[0].idle_count == 0)
        await until(proxy.origin.conversations[0].reader.at_eof)


async def test_connection_that_rested_last_is_used_first() -> None:
    gate = asyncio.Event()

    async def script(conversation: Conversation) -> None:
        while True:
            await conversation.request()
            if not gate.is_set():
                await gate.wait()
            await conversation.send(OK)

    async with proxied(script) as proxy:
        clients = [await proxy.connect() for _ in range(2)]
        for client in clients:
            await client.send(GET)
        await until(lambda: len(proxy.origin.heads) == 2)
        gate.set()
        for client in clients:
            await client.answer()
        for _ in range(4):
            await clients[0].send(GET)
            await clients[0].answer()
        assert sorted(len(conversation.heads) for conversation in proxy.origin.conversations) == [1, 5]


async def test_pools_survive_swaps_and_close_when_their_endpoint_is_gone() -> None:
    async with proxied() as proxy:
        client = await proxy.connect()
        await client.send(GET)
        await client.answer()
        pool = proxy.target.pools[0]
        assert proxy.pools.get("127.0.0.1", proxy.origin.port) is pool
        assert pool.idle_count == 1
        proxy.pools.drop("127.0.0.1", proxy.origin.port)
        assert pool.idle_count == 0
        await until(proxy.origin.conversations[0].reader.at_eof)


async def test_busy_connection_of_a_retired_pool_finishes_and_closes() -> None:
    gate = asyncio.Event()

    async def script(conversation: Conversation) -> None:
        await conversation.request()
        await gate.wait()
        await conversation.send(OK)
        await conversation.reader.read()

    async with proxied(script) as proxy:
        client = await proxy.connect()
        await client.send(GET)
        await until(lambda: len(proxy.origin.heads) == 1)
        proxy.pools.drop("127.0.0.1", proxy.origin.port)
        gate.set()
        assert (await client.answer())[1] == b"ok"
        assert proxy.target.pools[0].idle_count == 0


def test_pool_of_one_endpoint_is_one_object() -> None:
    pools = PoolRegistry()
    assert pools.get("10.0.0.1", 80) is pools.get("10.0.0.1", 80)
    assert pools.get("10.0.0.1", 80) is not pools.get("10.0.0.1", 80, ConnectionSpec("https"))
    assert pools.get("::1", 80).label == "[::1]:80"


# Drain


async def test_drain_closes_idle_connections_and_lets_requests_finish() -> None:
    gate = asyncio.Event()

    async def script(conversation: Conversation) -> None:
        await conversation.request()
        await gate.wait()
        await conversation.send(OK)

    async with proxied(script, config=ProxyConfig(drain_quiet_s=0.05)) as proxy:
        idle, busy = await proxy.connect(), await proxy.connect()
        await busy.send(GET)
        await until(lambda: len(proxy.origin.heads) == 1 and proxy.server.connections == 2)
        draining = asyncio.create_task(proxy.server.drain(5))
        assert await idle.rest() == b""
        gate.set()
        answer = await busy.rest()
        assert answer.endswith(b"ok")
        assert b"\r\nConnection: close\r\n" in answer
        await asyncio.wait_for(draining, 1)


async def test_announced_drain_tells_clients_and_still_accepts() -> None:
    async with proxied(answering(OK, OK)) as proxy:
        proxy.server.announce_drain()
        client = await proxy.connect()
        await client.send(GET)
        assert b"\r\nConnection: close\r\n" in await client.rest()


async def test_drain_accepts_no_more_connections() -> None:
    async with proxied() as proxy:
        await proxy.server.drain(1)
        with pytest.raises(ConnectionRefusedError):
            await proxy.connect()


async def test_drain_ends_after_its_grace_period() -> None:
    async def script(conversation: Conversation) -> None:
        await conversation.head()
        await conversation.reader.read()

    async with proxied(script) as proxy:
        client = await proxy.connect()
        await client.send(GET)
        await until(lambda: len(proxy.origin.heads) == 1)
        await asyncio.wait_for(proxy.server.drain(0.05), 2)
        assert await client.rest() == b""


async def test_swap_of_the_router_takes_effect_at_the_next_request() -> None:
    blue = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nblue"
    async with proxied(answering(OK), answering(blue)) as proxy:
        client = await proxy.connect()
        await client.send(GET)
        assert (await client.answer())[1] == b"ok"
        proxy.holder.router = type(proxy.router)(type(proxy.target)(proxy.target.pools[1:]))
        await client.send(GET)
        assert (await client.answer())[1] == b"blue"
