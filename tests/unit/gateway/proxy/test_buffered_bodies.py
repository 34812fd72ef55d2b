"""Bodies that are held in memory have a bound together, and what one took of it comes back whatever its end."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from fakes.gateway.proxied import OK, Client, Conversation, Proxied, Script, answering, proxied
from fakes.peers.http2 import http2_client, request
from fakes.waiting import until
from headgate.gateway.plugins.interface import BodyTooLarge, Plugin, PluginConfig, PluginServices, Request, Response
from headgate.gateway.plugins.runtime.chain import PluginChain
from headgate.gateway.plugins.runtime.run import RoutePlugins
from headgate.gateway.proxy.config import ProxyConfig
from headgate.gateway.proxy.exchange.buffers import body_budget
from headgate.gateway.proxy.policies import RoutePolicies

KIB = 1024
BUDGET = 1024 * KIB
CONFIG = ProxyConfig(max_buffered_bytes=BUDGET, body_timeout_s=0.5, header_timeout_s=0.5)
HOLDING_S = 30


class Reading(Plugin[PluginConfig]):
    """Reads bodies, and lets their requests go on when the test says so."""

    name = "reading"
    does_without = False

    def __init__(self) -> None:
        super().__init__(PluginConfig(), PluginServices())
        self.gate = asyncio.Event()
        self.read: list[int] = []

    async def on_request(self, request: Request) -> None:
        try:
            self.read.append(len(await request.read_body(BUDGET)))
        except BodyTooLarge:
            if not self.does_without:
                raise
        async with asyncio.timeout(HOLDING_S):
            await self.gate.wait()


class ReadingAnswers(Plugin[PluginConfig]):
    name = "reading-answers"

    async def on_response(self, request: Request, response: Response) -> None:
        if response.from_upstream:
            await response.read_body(BUDGET)


@contextlib.asynccontextmanager
async def holding(*scripts: Script, config: ProxyConfig = CONFIG) -> AsyncIterator[tuple[Proxied, Reading]]:
    async with proxied(*scripts, config=config) as proxy:
        plugin = Reading()
        proxy.target.policies = RoutePolicies()
        proxy.target.policies.hooks = RoutePlugins(PluginChain([(0, plugin)], plugin.services))
        yield proxy, plugin
        await until(lambda: proxy.stats.buffers.used == 0)


async def post(proxy: Proxied, size: int, sent: int | None = None) -> Client:
    """Send a request whose body comes behind its head, as far as `sent` says."""
    client = await proxy.connect()
    await client.send(b"POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n" % size)
    assert (await client.head()).startswith(b"HTTP/1.1 100 ")
    await client.send(bytes(size if sent is None else sent))
    return client


def test_a_body_gets_no_more_than_what_stays_free_beside_it() -> None:
    budget = body_budget(1000)
    assert not budget.take(0, 501, "a")
    assert budget.take(0, 500, "a")
    assert not budget.take(500, 1, "a")
    assert budget.take(0, 250, "b")
    assert not budget.take(0, 126, "c")
    budget.release(500)
    budget.change(250, 10)
    assert (budget.used, budget.refused) == (10, 3)


async def test_held_bodies_are_refused_beyond_the_budget_and_all_of_it_comes_back() -> None:
    async with holding() as (proxy, plugin):
        held = []
        while proxy.stats.buffers.used + 200 * KIB <= BUDGET:
            held.append(await post(proxy, 100 * KIB))
            await until(lambda: len(plugin.read) == len(held))
            assert proxy.stats.buffers.used == len(held) * 100 * KIB
        for client in [await post(proxy, 100 * KIB) for _ in range(20)]:
            head = await client.head()
            assert head.startswith(b"HTTP/1.1 503 ")
            assert b"\r\nRetry-After: 1\r\n" in head
        assert (proxy.stats.buffers.used, proxy.stats.buffers.refused) == (len(held) * 100 * KIB, 20)
        held.append(await post(proxy, KIB))
        await until(lambda: plugin.read[-1] == KIB)
        plugin.gate.set()
        for client in held:
            assert (await client.head()).startswith(b"HTTP/1.1 200 ")


async def test_a_body_that_never_finds_room_is_too_long() -> None:
    async with holding() as (proxy, _):
        client = await post(proxy, BUDGET // 2 + 1)
        assert (await client.head()).startswith(b"HTTP/1.1 413 ")


async def test_a_plugin_that_can_do_without_lets_the_body_pass() -> None:
    got = 0

    async def count(conversation: Conversation) -> None:
        nonlocal got
        got = len((await conversation.request())[1])
        await conversation.send(OK)

    async with holding(count) as (proxy, plugin):
        plugin.does_without = True
        plugin.gate.set()
        client = await post(proxy, BUDGET)
        assert (await client.head()).startswith(b"HTTP/1.1 200 ")
        assert (got, plugin.read, proxy.stats.buffers.refused) == (BUDGET, [], 1)


async def test_a_body_that_came_with_its_head_counts_while_a_plugin_thinks() -> None:
    async with holding() as (proxy, plugin):
        client = await proxy.connect()
        await client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n123456789")
        await until(lambda: plugin.read == [9])
        assert proxy.stats.buffers.used == 9
        plugin.gate.set()
        await client.answer()


async def test_a_body_that_the_plugin_keeps_counts_until_its_answer_has_ended() -> None:
    ends = asyncio.Event()

    async def slow(conversation: Conversation) -> None:
        await conversation.request()
        await conversation.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no")
        await ends.wait()
        await conversation.send(b"k")

    async with holding(slow) as (proxy, plugin):
        plugin.gate.set()
        client = await post(proxy, 100 * KIB)
        await client.head()
        assert proxy.stats.buffers.used == 100 * KIB
        ends.set()
        await client.exactly(2)


async def reset(proxy: Proxied, plugin: Reading) -> None:
    client = await post(proxy, 100 * KIB, 50 * KIB)
    await until(lambda: proxy.stats.buffers.used == 50 * KIB)
    client.reset()


async def reset_while_thinking(proxy: Proxied, plugin: Reading) -> None:
    client = await post(proxy, 100 * KIB)
    await until(lambda: plugin.read == [100 * KIB])
    client.reset()


async def too_slow(proxy: Proxied, plugin: Reading) -> None:
    client = await post(proxy, 100 * KIB, 50 * KIB)
    assert (await client.head()).startswith(b"HTTP/1.1 408 ")


async def no_chunks(proxy: Proxied, plugin: Reading) -> None:
    client = await proxy.connect()
    await client.send(b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
    await client.send(b"400\r\n" + bytes(KIB))
    await until(lambda: proxy.stats.buffers.used == KIB)
    await client.send(b"\r\nno chunk\r\n")
    assert (await client.head()).startswith(b"HTTP/1.1 400 ")


async def no_upstream(proxy: Proxied, plugin: Reading) -> None:
    await proxy.origin.stop()
    plugin.gate.set()
    assert (await (await post(proxy, 100 * KIB)).head()).startswith(b"HTTP/1.1 502 ")


async def reset_stream(proxy: Proxied, plugin: Reading) -> None:
    async with http2_client(proxy.port) as client:
        stream = client.open(request(b"POST"), end=False)
        client.send(stream, bytes(10 * KIB))
        await until(lambda: proxy.stats.buffers.used == 10 * KIB)
        client.reset(stream)
        await until(lambda: proxy.stats.buffers.used == 0)


async def lost_streams(proxy: Proxied, plugin: Reading) -> None:
    async with http2_client(proxy.port) as client:
        for _ in range(3):
            client.send(client.open(request(b"POST"), end=False), bytes(10 * KIB))
        await until(lambda: proxy.stats.buffers.used == 30 * KIB)


@pytest.mark.parametrize(
    "end", [reset, reset_while_thinking, too_slow, no_chunks, no_upstream, reset_stream, lost_streams]
)
async def test_nothing_stays_counted_after(end: Callable[[Proxied, Reading], Awaitable[None]]) -> None:
    async with holding() as (proxy, plugin):
        await end(proxy, plugin)
        await until(lambda: proxy.stats.buffers.used == 0)


async def test_streams_of_http2_share_the_budget() -> None:
    async with holding() as (proxy, plugin), http2_client(proxy.port) as client:
        streams = [client.open(request(b"POST"), end=False) for _ in range(3)]
        for stream in streams:
            client.send(stream, bytes(10 * KIB), end=True)
        await until(lambda: plugin.read == [10 * KIB] * 3)
        assert proxy.stats.buffers.used == 30 * KIB
        plugin.gate.set()
        for stream in streams:
            assert (await client.answer(stream)).status == 200


async def test_bodies_of_a_route_that_buffers_count_until_their_answers_begin() -> None:
    ends = asyncio.Event()

    async def slow(conversation: Conversation) -> None:
        await conversation.request()
        await ends.wait()
        await conversation.send(OK)

    async with proxied(slow, config=CONFIG) as proxy:
        proxy.target.policies = RoutePolicies()
        proxy.target.policies.buffer_request = True
        client = await post(proxy, 100 * KIB)
        await until(lambda: proxy.stats.buffers.used == 100 * KIB)
        ends.set()
        await client.answer()
        assert proxy.stats.buffers.used == 0


async def test_answers_that_a_plugin_reads_count_too() -> None:
    body = bytes(BUDGET // 2 + 1)
    async with proxied(answering(OK.replace(b"2\r\n\r\nok", b"%d\r\n\r\n" % len(body) + body)), config=CONFIG) as proxy:
        plugin = ReadingAnswers(PluginConfig(), PluginServices())
        proxy.target.policies = RoutePolicies()
        proxy.target.policies.hooks = RoutePlugins(PluginChain([(0, plugin)], plugin.services))
        client = await proxy.connect()
        await client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        head, _ = await client.answer()
        assert head.startswith(b"HTTP/1.1 503 ")
        assert b"\r\nRetry-After: 1\r\n" in head
        await until(lambda: proxy.stats.buffers.used == 0)


async def test_the_refused_body_is_logged_with_its_route_once_in_a_while(caplog: pytest.LogCaptureFixture) -> None:
    budget = body_budget(10)
    for _ in range(3):
        budget.take(0, 11, "a.example|web")
    (record,) = caplog.records
    assert (record.__dict__["route"], record.__dict__["max_buffered_bytes"]) == ("a.example|web", 10)
