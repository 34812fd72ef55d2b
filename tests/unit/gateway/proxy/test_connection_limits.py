"""How many connections there may be, how long a handshake and how slow a body."""

import asyncio
import socket
import time

import pytest

from fakes.gateway.proxied import Client, Conversation, Proxied, answering, proxied
from fakes.gateway.tls import SelfSigned
from fakes.peers.http2 import http2_client, request
from fakes.virtual_time import in_virtual_time
from fakes.waiting import until
from headgate.gateway.listeners.sharing import SharedListener
from headgate.gateway.net.sockets import open_listener
from headgate.gateway.proxy.config import ProxyConfig

GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"


async def is_served(proxy: Proxied) -> Client | None:
    client = await proxy.connect()
    await client.send(GET)
    try:
        await client.answer()
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    return client


@pytest.mark.parametrize("config", [ProxyConfig(max_connections=2), ProxyConfig(max_connections_per_client=2)])
async def test_connections_over_a_limit_are_closed_and_others_go_on(config: ProxyConfig) -> None:
    async with proxied(config=config) as proxy:
        first, second = await is_served(proxy), await is_served(proxy)
        assert first
        assert second
        assert await is_served(proxy) is None
        await first.send(GET)
        assert (await first.answer())[1] == b"ok"
        second.close()
        await until(lambda: proxy.server.connections == 1)
        assert await is_served(proxy)
        limit = "all" if config.max_connections else "client"
        assert proxy.stats.refused_connections == {limit: 1}


async def test_trusted_proxies_have_no_limit_of_a_client() -> None:
    config = ProxyConfig(max_connections_per_client=1, trusted_proxies=("127.0.0.1",))
    async with proxied(config=config) as proxy:
        assert await is_served(proxy)
        assert await is_served(proxy)


async def test_proxies_that_are_believed_nothing_have_the_limit_of_a_client() -> None:
    believed = {"forwarded_address": False, "forwarded_headers": False}
    config = ProxyConfig(max_connections_per_client=1, trusted_proxies=("127.0.0.1",), **believed)
    async with proxied(config=config) as proxy:
        assert await is_served(proxy)
        assert await is_served(proxy) is None


async def test_http2_connections_count_once_and_are_let_go() -> None:
    async with proxied(config=ProxyConfig(max_connections_per_client=1)) as proxy:
        for _ in range(2):
            async with http2_client(proxy.port) as client:
                assert (await client.fetch(request())).status == 200
                assert await is_served(proxy) is None
            await until(lambda: proxy.server.connections == 0)


@in_virtual_time
async def test_body_that_trickles_is_a_408_though_it_never_rests() -> None:
    config = ProxyConfig(body_timeout_s=0.4, min_body_rate=1000)
    async with proxied(config=config) as proxy:
        client = await proxy.connect()
        began = time.monotonic()
        await client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9999\r\n\r\n")
        reading = asyncio.create_task(client.rest())
        while not reading.done():
            await client.send(b"x")
            await asyncio.sleep(0.05)
        assert reading.result().startswith(b"HTTP/1.1 408 ")
        assert 0.3 < time.monotonic() - began < 3


@pytest.mark.parametrize("framing", [b"Content-Length: 24", b"Transfer-Encoding: chunked"])
@in_virtual_time
async def test_body_that_comes_fast_enough_or_has_no_length_may_take_its_time(framing: bytes) -> None:
    chunked = b"chunked" in framing
    config = ProxyConfig(body_timeout_s=0.3, min_body_rate=1000 if chunked else 10)
    async with proxied(config=config) as proxy:
        client = await proxy.connect()
        await client.send(b"POST / HTTP/1.1\r\nHost: a\r\n%b\r\n\r\n" % framing)
        for _ in range(12):
            await client.send(b"2\r\nxx\r\n" if chunked else b"xx")
            await asyncio.sleep(0.06)
        if chunked:
            await client.send(b"0\r\n\r\n")
        assert (await client.answer())[1] == b"ok"


async def test_handshake_that_does_not_end_is_ended() -> None:
    tls = SelfSigned("a").server_context()
    listening = open_listener("127.0.0.1", 0)
    listener = SharedListener(None, listening, lambda _: asyncio.Protocol(), tls, handshake_timeout_s=0.3)
    await listener.start()
    try:
        began = time.monotonic()
        client = Client(*await asyncio.open_connection("127.0.0.1", listener.port))
        await client.send(b"\x16\x03\x01")
        assert await client.rest() == b""
        assert 0.2 < time.monotonic() - began < 3
        client.close()
    finally:
        listener.close()


def slow_reader(port: int) -> socket.socket:
    """Connect with a window so small that the kernel at the other end has to keep what is sent."""
    connected = socket.socket()
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
    connected.connect(("127.0.0.1", port))
    connected.settimeout(5)
    return connected


def read_to_the_end(connected: socket.socket) -> None:
    while connected.recv(65536):
        pass


async def test_client_that_does_not_read_costs_neither_us_nor_the_kernel() -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 60000\r\n\r\n" + bytes(60_000)
    async with proxied(answering(answer), config=ProxyConfig(idle_timeout_s=0.3, body_timeout_s=0.3)) as proxy:
        reader = slow_reader(proxy.port)
        reader.sendall(GET)
        await until(lambda: len(proxy.log.records) == 1)
        await until(lambda: proxy.server.connections == 0)
        with pytest.raises(ConnectionResetError):
            read_to_the_end(reader)
        reader.close()


async def test_end_of_a_cut_off_answer_cannot_pass_for_its_end() -> None:
    client: Client | None = None

    async def script(conversation: Conversation) -> None:
        await conversation.request()
        await conversation.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n")
        assert client is not None
        await client.reader.readuntil(b"half")
        await conversation.send(b"Z\r\n")
        await conversation.reader.read()

    async with proxied(script) as proxy:
        client = await proxy.connect()
        await client.send(b"GET / HTTP/1.0\r\n\r\n")
        await until(lambda: proxy.log.records != [])
        with pytest.raises(ConnectionResetError):
            await asyncio.wait_for(client.reader.read(), 5)
