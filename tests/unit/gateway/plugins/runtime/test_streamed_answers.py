"""Answers of plugins that come in pieces, on real connections."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fakes.gateway.proxied import OK, Proxied, answering, proxied
from fakes.virtual_time import in_virtual_time
from fakes.waiting import until
from headgate.common.table import PluginUse
from headgate.gateway.plugins.built_in.catalogue import BUILT_IN
from headgate.gateway.plugins.interface import Headers, Plugin, PluginConfig, PluginServices, Request, Response
from headgate.gateway.plugins.runtime.registry import PluginRegistry
from headgate.gateway.plugins.runtime.run import RoutePlugins
from headgate.gateway.proxy.config import ProxyConfig
from headgate.gateway.proxy.policies import RoutePolicies
from unit.gateway.plugins.running import unsealed

GET = b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n"


class Tap:
    """A body whose pieces the test gives."""

    def __init__(self) -> None:
        self.pieces: asyncio.Queue[bytes | OSError] = asyncio.Queue()
        self.is_closed = False
        self.reads = 0

    async def read(self) -> bytes:
        self.reads += 1
        piece = await self.pieces.get()
        if isinstance(piece, OSError):
            raise piece
        return piece

    def close(self) -> None:
        self.is_closed = True


class Streaming(Plugin[PluginConfig]):
    name = "streaming"
    order = 1
    tap = Tap()

    async def on_request(self, request: Request) -> Response:
        await asyncio.sleep(0)
        headers = Headers([("Content-Type", "text/event-stream")])
        return Response(200, headers, None, stream=self.tap, from_upstream=True)


@asynccontextmanager
async def streaming(*uses: tuple[str, dict[str, Any]], **config: Any) -> AsyncIterator[tuple[Proxied, Tap]]:
    tap = Tap()
    registry = PluginRegistry(found=(), built_in={"streaming": type("S", (Streaming,), {"tap": tap}), **BUILT_IN})
    written = [PluginUse(name=name, config=each) for name, each in (*uses, ("streaming", {}))]
    plugins = registry.chain(written, PluginServices(), unsealed)
    async with proxied(answering(OK), config=ProxyConfig(**config)) as proxy:
        policies = RoutePolicies()
        policies.hooks = RoutePlugins(plugins)
        proxy.target.policies = policies
        yield proxy, tap


async def test_pieces_reach_the_client_as_they_come_and_the_connection_goes_on() -> None:
    async with streaming(("response-rewrite", {"headers": {"set": {"X-A": "1"}}})) as (proxy, tap):
        client = await proxy.connect()
        for _ in range(2):
            await client.send(GET)
            head = await client.head()
            assert b"Transfer-Encoding: chunked\r\n" in head
            assert b"X-A: 1\r\n" in head
            for piece in (b"one", b"two"):
                tap.pieces.put_nowait(piece)
                assert await client.exactly(8) == b"3\r\n%b\r\n" % piece
            tap.pieces.put_nowait(b"")
            assert await client.exactly(5) == b"0\r\n\r\n"
            assert tap.is_closed
        assert proxy.origin.heads == []


async def test_a_plugin_may_wait_for_all_of_it() -> None:
    rewrite = {"filters": [{"regex": "one", "replace": "six", "scope": "once"}]}
    async with streaming(("response-rewrite", rewrite)) as (proxy, tap):
        for piece in (b"on", b"e two", b""):
            tap.pieces.put_nowait(piece)
        client = await proxy.connect()
        await client.send(GET)
        assert (await client.head()).startswith(b"HTTP/1.1 200 ")
        assert b"six two" in await client.exactly(12)


async def test_a_stream_that_breaks_cuts_the_answer_off() -> None:
    async with streaming() as (proxy, tap):
        tap.pieces.put_nowait(b"one")
        tap.pieces.put_nowait(OSError("the model is gone"))
        assert (await proxy.talk(GET)).endswith(b"3\r\none\r\n")
        await until(lambda: len(proxy.log.records) == 1)
    assert "the model is gone" in str(proxy.log.records[0])
    assert tap.is_closed


async def test_a_client_that_leaves_ends_the_stream() -> None:
    async with streaming() as (proxy, tap):
        client = await proxy.connect()
        await client.send(GET)
        await client.head()
        client.reset()
        await until(lambda: tap.is_closed)


async def test_head_gets_no_body() -> None:
    async with streaming() as (proxy, tap):
        client = await proxy.connect()
        await client.send(GET.replace(b"GET", b"HEAD"))
        assert (await client.head()).startswith(b"HTTP/1.1 200 ")
        await until(lambda: tap.is_closed)
    assert tap.reads == 0


async def test_a_slow_client_pauses_the_stream() -> None:
    async with streaming() as (proxy, tap):
        client = await proxy.connect()
        await client.send(GET)
        await client.head()
        for _ in range(400):
            tap.pieces.put_nowait(b"x" * 65536)
        reads = -1
        while reads != tap.reads:
            reads = tap.reads
            await asyncio.sleep(0.05)
        assert reads < 400
        tap.pieces.put_nowait(b"")
        body = b""
        while not body.endswith(b"0\r\n\r\n"):
            body = body[-5:] + await client.reader.read(1 << 20)
        assert tap.reads == 401


@in_virtual_time
async def test_a_stream_in_which_nothing_comes_ends_by_the_timeout_of_the_route() -> None:
    async with streaming(read_timeout_s=5.0) as (proxy, tap):
        tap.pieces.put_nowait(b"one")
        assert (await proxy.talk(GET)).endswith(b"3\r\none\r\n")
    assert tap.is_closed


async def test_an_answer_in_its_place_closes_the_stream() -> None:
    async with streaming(("response-rewrite", {"body": "other"})) as (proxy, tap):
        client = await proxy.connect()
        await client.send(GET)
        assert (await client.answer())[1] == b"other"
        await until(lambda: tap.is_closed)
    assert tap.reads == 0
