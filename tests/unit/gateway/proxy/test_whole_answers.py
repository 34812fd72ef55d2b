"""Hooks that wait for the whole of an answer's body, on real connections."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from fakes.gateway.proxied import Client, Conversation, Proxied, Script, answering, proxied
from fakes.waiting import until
from headgate.common.table import PluginUse
from headgate.gateway.model.steps import finish
from headgate.gateway.plugins.interface import BodyTooLarge, Plugin, PluginConfig, PluginServices, Request, Response
from headgate.gateway.plugins.runtime.chain import PluginChain
from headgate.gateway.plugins.runtime.run import RoutePlugins
from headgate.gateway.proxy.policies import RoutePolicies
from unit.gateway.plugins.running import REGISTRY, unsealed

GET = b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


class Turned(Plugin[PluginConfig]):
    """Turns answers round."""

    name = "turned"

    async def on_response(self, request: Request, response: Response) -> None:
        if not response.from_upstream:
            return
        try:
            response.body = (await response.read_body(300_000))[::-1]
        except BodyTooLarge as error:
            response.replace(Response.refusal(502, str(error)))


@contextlib.asynccontextmanager
async def turning(script: Script, *others: tuple[str, dict[str, Any]]) -> AsyncIterator[Proxied]:
    async with proxied(script) as proxy:
        proxy.target.policies = RoutePolicies()
        services = PluginServices()
        uses = [PluginUse(name=name, config=config) for name, config in others]
        parts = finish(REGISTRY.parts(uses, services, unsealed))
        proxy.target.policies.hooks = RoutePlugins(
            PluginChain([(0, Turned(PluginConfig(), services)), *parts], services)
        )
        yield proxy


async def fetch(client: Client) -> tuple[bytes, bytes]:
    await client.send(GET)
    return await client.answer()


def chunks(*parts: bytes) -> bytes:
    return b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts)


@pytest.mark.parametrize("bytewise", [False, True])
@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nabcdef",
        CHUNKED + chunks(b"ab", b"cdef") + b"0\r\n\r\n",
        CHUNKED + chunks(b"ab", b"cdef") + b"0\r\nx-sum: 1\r\n\r\n",
    ],
)
async def test_the_whole_body_is_there_however_it_comes(answer: bytes, bytewise: bool) -> None:
    async with turning(answering(answer, bytewise=bytewise)) as proxy:
        client = await proxy.connect()
        for _ in range(2):
            head, body = await fetch(client)
            assert (head.startswith(b"HTTP/1.1 200 "), body) == (True, b"fedcba")
            assert b"x-sum" not in head
        assert len(proxy.origin.conversations) == 1


async def test_a_body_that_ends_with_its_connection_is_whole() -> None:
    answer = b"HTTP/1.1 200 OK\r\n\r\nabc"
    async with turning(answering(answer, then_close=True)) as proxy:
        assert (await fetch(await proxy.connect()))[1] == b"cba"


async def test_a_body_in_many_reads_is_whole() -> None:
    body = bytes(range(250)) * 1200
    answer = CHUNKED + chunks(*[body[at : at + 777] for at in range(0, len(body), 777)]) + b"0\r\n\r\n"
    async with turning(answering(answer)) as proxy:
        assert (await fetch(await proxy.connect()))[1] == body[::-1]


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 300001\r\n\r\n" + b"a" * 300_001,
        CHUNKED + chunks(b"a" * 200_000, b"a" * 100_001) + b"0\r\n\r\n",
    ],
)
async def test_a_body_that_is_too_long_is_told_to_the_hook(answer: bytes) -> None:
    async with turning(answering(answer)) as proxy:
        client = await proxy.connect()
        assert (await fetch(client))[0].startswith(b"HTTP/1.1 502 ")
        assert (await fetch(client))[0].startswith(b"HTTP/1.1 502 ")


async def test_an_upstream_that_leaves_amid_its_answer_is_a_502() -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nabc"
    async with turning(answering(answer, then_close=True)) as proxy:
        assert (await fetch(await proxy.connect()))[0].startswith(b"HTTP/1.1 502 ")


async def test_a_client_that_leaves_meanwhile_takes_the_upstream_with_it() -> None:
    gone = asyncio.Event()

    async def script(conversation: Conversation) -> None:
        await conversation.request()
        await conversation.send(CHUNKED + chunks(b"ab"))
        with contextlib.suppress(ConnectionError):
            await conversation.reader.read()
        gone.set()

    async with turning(script) as proxy:
        client = await proxy.connect()
        await client.send(GET)
        await until(lambda: bool(proxy.origin.heads))
        client.reset()
        await asyncio.wait_for(gone.wait(), 20)
        await until(lambda: bool(proxy.log.records))
        assert proxy.log.records[0][5] == 499


async def test_a_get_that_was_made_of_a_head_is_not_waited_for() -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nabcdef"
    async with turning(answering(answer), ("proxy-rewrite", {"method": "GET"})) as proxy:
        client = await proxy.connect()
        await client.send(b"HEAD / HTTP/1.1\r\nHost: a.example\r\n\r\n")
        assert (await client.head()).startswith(b"HTTP/1.1 200 ")
        assert proxy.origin.heads[0].startswith(b"GET ")


async def test_a_hook_that_does_not_care_for_the_length_is_a_502() -> None:
    class Careless(Turned):
        async def on_response(self, request: Request, response: Response) -> None:
            if response.from_upstream:
                await response.read_body(2)

    async with proxied(answering(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc")) as proxy:
        services = PluginServices()
        proxy.target.policies = RoutePolicies()
        proxy.target.policies.hooks = RoutePlugins(PluginChain([(0, Careless(PluginConfig(), services))], services))
        assert (await fetch(await proxy.connect()))[0].startswith(b"HTTP/1.1 502 ")


async def test_without_an_upstream_the_body_is_what_is_there() -> None:
    assert await Response(200, body=b"abc").read_body(3) == b"abc"
    with pytest.raises(BodyTooLarge):
        await Response(200, body=b"abc").read_body(2)
    assert await Response(200, body=None).read_body(0) == b""
