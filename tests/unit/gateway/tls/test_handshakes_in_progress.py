"""Clients that begin a handshake and do not end it are counted, and let go of when they leave."""

import asyncio
import gc
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest

from fakes.gateway.proxied import Client, Proxied, answering, proxied
from fakes.gateway.tls import unverified
from fakes.waiting import until
from headgate.gateway.proxy.config import ProxyConfig
from headgate.gateway.tls import CertificateStore
from headgate.gateway.tls.handshake import TOO_MANY

HALF_A_HELLO = b"\x16\x03\x01"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@pytest.fixture(autouse=True)
def without_collector() -> Iterator[None]:
    """Gateways collect seldom: what is over has to be let go of without that."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@asynccontextmanager
async def listening(
    max_handshakes: int, timeout_s: float = 15.0
) -> AsyncIterator[tuple[Proxied, CertificateStore, int]]:
    store = CertificateStore(max_handshakes=max_handshakes)
    async with proxied(answering(OK), config=ProxyConfig(tls_handshake_timeout_s=timeout_s)) as proxy:
        yield proxy, store, await proxy.server.listen_https("127.0.0.1", 0, store)


async def begun(port: int) -> Client:
    client = Client(*await asyncio.open_connection("127.0.0.1", port))
    await client.send(HALF_A_HELLO)
    return client


async def test_handshakes_beyond_the_limit_are_ended_as_they_begin() -> None:
    async with listening(3) as (_, store, port):
        pending = store.server_context.pending
        clients = [await begun(port) for _ in range(3)]
        await until(lambda: len(pending) == 3)
        refused = await begun(port)
        assert await refused.rest() == b""
        refused.close()
        assert store.counts.failed == {TOO_MANY: 1}
        clients[0].reset()
        await until(lambda: len(pending) == 2)
        clients[0] = await begun(port)
        await until(lambda: len(pending) == 3)
        for client in clients:
            client.reset()
        await until(lambda: len(pending) == 0)


async def test_handshakes_that_take_too_long_make_room() -> None:
    async with listening(1, timeout_s=0.3) as (_, store, port):
        client = await begun(port)
        assert await client.rest() == b""
        client.close()
        await until(lambda: len(store.server_context.pending) == 0)
        assert store.counts.started == 1


async def test_connections_whose_handshake_is_over_do_not_count() -> None:
    async with listening(1) as (_, store, port):
        clients = []
        for _ in range(3):
            reader, writer = await asyncio.open_connection(
                "127.0.0.1", port, ssl=unverified(), server_hostname="a.example"
            )
            clients.append(Client(reader, writer))
            await clients[-1].send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            assert (await clients[-1].answer())[1] == b"ok"
        assert (len(store.server_context.pending), store.counts.completed) == (0, 3)
        for client in clients:
            client.close()
