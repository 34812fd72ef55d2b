"""What must never happen between requests: bytes, answers and hooks of one that reach another."""

import asyncio
import contextlib
import os
from collections.abc import Awaitable

import hyperframe.frame
import pytest

from fakes.gateway.mixed import GET, before, plugged
from fakes.gateway.proxied import OK, Conversation, answering, proxied
from fakes.peers.http2 import Peer, answer_with, http2_client
from fakes.virtual_time import in_virtual_time
from fakes.waiting import until
from headgate.gateway.plugins.interface import (
    Plugin,
    PluginConfig,
    Request,
    Response,
)
from headgate.gateway.plugins.runtime.run import RoutePlugins
from headgate.gateway.proxy.config import ProxyConfig
from headgate.gateway.proxy.policies import RoutePolicies
from unit.gateway.plugins.running import chain

WEBSOCKET = [
    (b":method", b"CONNECT"),
    (b":protocol", b"websocket"),
    (b":scheme", b"http"),
    (b":authority", b"a"),
    (b":path", b"/chat"),
    (b"sec-websocket-version", b"13"),
]


# Smuggling


@in_virtual_time
async def test_data_of_a_connect_waits_for_the_upstream_to_switch() -> None:
    got = bytearray()

    async def refusing(conversation: Conversation) -> None:
        await conversation.head()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.5):
                got.extend(await conversation.reader.read(65536))
        await conversation.send(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno")

    async with proxied(refusing) as proxy, http2_client(proxy.port) as client:
        stream_id = client.open(WEBSOCKET, end=False)
        await until(lambda: bool(proxy.origin.heads))
        client.send(stream_id, b"GET /admin HTTP/1.1\r\nHost: a\r\n\r\n")
        await client.answer(stream_id)
        assert bytes(got) == b""


@in_virtual_time
async def test_a_head_request_that_a_plugin_turns_into_a_get_leaves_no_body_behind() -> None:
    poison = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison"

    async def slow_body(conversation: Conversation) -> None:
        await conversation.head()
        await conversation.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(poison))
        if conversation.index == 0:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(1):
                    await conversation.head()
        await conversation.send(poison)
        await asyncio.sleep(1)

    async with proxied(slow_body) as proxy:
        policies = RoutePolicies()
        policies.hooks = RoutePlugins(chain(("proxy-rewrite", {"method": "GET"})))
        proxy.target.policies = policies
        first = await proxy.connect()
        await first.send(b"HEAD /object HTTP/1.1\r\nHost: a\r\n\r\n")
        await first.head()
        other = await proxy.connect()
        await other.send(GET)
        _, body = await other.answer()
        assert body == poison, "a client got what was the body of another client's answer"


class Replacing(Plugin[PluginConfig]):
    name = "replacing"

    def on_request(self, request: Request) -> None:
        request.replace_body(b"new")


@in_virtual_time
async def test_what_the_client_sends_of_a_replaced_body_does_not_reach_the_upstream() -> None:
    got = bytearray()

    async def late(conversation: Conversation) -> None:
        await conversation.request()
        await conversation.send(OK)
        await conversation.request()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.4):
                while data := await conversation.reader.read(65536):
                    got.extend(data)
        await conversation.send(OK)

    async with proxied(late) as proxy:
        client = await proxy.connect()
        await client.send(GET)
        await client.answer()
        proxy.target.policies = plugged(Replacing)
        await client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 40\r\n\r\n")
        await until(lambda: len(proxy.origin.heads) == 2)
        await client.send(b"GET /admin HTTP/1.1\r\nHost: a\r\nX-Fill: 1\r\n\r\n"[:40])
        await client.head()
        assert bytes(got) == b""


@in_virtual_time
async def test_what_the_client_sends_of_a_replaced_body_is_no_request() -> None:
    async with proxied() as proxy:
        proxy.target.policies = plugged(Replacing)
        client = await proxy.connect()
        smuggled = b"GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"
        await client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % len(smuggled))
        await client.answer()
        await client.send(smuggled)
        await asyncio.sleep(0.3)
        assert [path for _, path in proxy.router.asked] == [b"/"]


async def test_a_plugins_own_request_cannot_be_split_by_its_path() -> None:
    async with proxied() as proxy:
        calls = proxy.server.calls(lambda key: proxy.target)  # type: ignore[arg-type, return-value]
        asked = Request(path="/a HTTP/1.1\r\nHost: a\r\n\r\nGET /admin", body=b"")
        with contextlib.suppress(ValueError, OSError):
            await calls.send_to("u", asked, timeout_s=2, max_body=100)
        assert all(b"/admin" not in head for head in proxy.origin.heads)


# Answers that reach the wrong request


async def test_an_answer_that_ended_with_its_connection_leaves_no_upstream_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The next request's body must go to the next request's connection."""
    bodies: list[bytes] = []

    async def script(conversation: Conversation) -> None:
        if conversation.index == 0:
            await conversation.head()
            await conversation.send(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nuntil the end")
            return
        _, body = await conversation.request()
        bodies.append(body)
        await conversation.send(OK)

    async with proxied(script) as proxy:
        client = await proxy.connect()
        await client.send(GET)
        await client.reader.readuntil(b"0\r\n\r\n")
        loop = asyncio.get_running_loop()
        connect = loop.create_connection
        connecting, may_connect = asyncio.Event(), asyncio.Event()

        async def slowly(*arguments: object, **options: object) -> object:
            connecting.set()
            await may_connect.wait()
            return await connect(*arguments, **options)  # type: ignore[call-overload]

        monkeypatch.setattr(loop, "create_connection", slowly)
        await client.send(b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
        await connecting.wait()
        await client.send(b"5\r\nfirst\r\n")
        for _ in range(10):  # The proxy reads that before it is connected.
            await asyncio.sleep(0)
        may_connect.set()
        await until(lambda: len(proxy.origin.heads) == 2)
        await client.send(b"4\r\nlast\r\n0\r\n\r\n")
        await client.answer()
        assert b"first" in bodies[0], "a part of the body is lost, and the upstream cannot know"


class SlowPage(Plugin[PluginConfig]):
    """As `error-page`: asks somebody for what the client gets instead of an error."""

    name = "slow-page"
    runs = 0

    def on_response(self, request: Request, response: Response) -> Awaitable[None] | None:
        return self._page(response) if response.status == 504 else None

    async def _page(self, response: Response) -> None:
        SlowPage.runs += 1
        await asyncio.sleep(0.3 + 0.1 * SlowPage.runs)
        response.replace(Response.text(504, "page"))


@in_virtual_time
async def test_a_hook_of_an_earlier_request_never_answers_a_later_one() -> None:
    async def script(conversation: Conversation) -> None:
        head = await conversation.head()
        await asyncio.sleep(5 if b"/first" in head else 0.8)
        await conversation.send(OK)

    SlowPage.runs = 0
    async with proxied(script, config=ProxyConfig(lingering_s=0.2)) as proxy:
        policies = plugged(SlowPage)
        policies.request_s = 0.2
        proxy.target.policies = policies
        client = await proxy.connect()
        await client.send(GET.replace(b"/x", b"/first"))
        head, _ = await client.answer()
        assert head.startswith(b"HTTP/1.1 504 ")
        proxy.target.policies = RoutePolicies()
        proxy.target.policies.hooks = policies.hooks
        await client.send(GET.replace(b"/x", b"/second"))
        head, _ = await client.answer()
        assert head.startswith(b"HTTP/1.1 200 "), "the second request got the first one's answer"
        assert SlowPage.runs == 1


class SlowHead(Plugin[PluginConfig]):
    name = "slow-head"

    async def on_response(self, request: Request, response: Response) -> None:
        await asyncio.sleep(0.4)


@in_virtual_time
async def test_an_upstream_lost_while_a_hook_looks_at_its_answer_is_not_asked_again() -> None:
    async def cut(peer: Peer, stream_id: int) -> None:
        peer.h2.send_headers(stream_id, [(b":status", b"200"), (b"content-length", b"10"), (b"x-from", b"one")])
        peer.send(stream_id, b"one")
        await asyncio.sleep(0.1)
        peer.reset(stream_id)

    async with before(cut, answer_with(b"two")) as (proxy, _):
        proxy.target.policies = plugged(SlowHead)
        client = await proxy.connect()
        await client.send(GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        everything = await client.rest()
        assert everything.count(b"HTTP/1.1 ") == 1
        assert not (b"one" in everything and b"two" in everything)


@in_virtual_time
async def test_a_goaway_does_not_repeat_a_request_whose_answer_has_begun() -> None:
    async def leave(peer: Peer, stream_id: int) -> None:
        peer.h2.send_headers(stream_id, [(b":status", b"200"), (b"content-length", b"100")])
        peer.send(stream_id, b"some")
        await asyncio.sleep(0.1)
        if len(origins[0].peers) == 1:
            peer.frames(hyperframe.frame.GoAwayFrame(0, last_stream_id=0, error_code=0))
        await asyncio.sleep(0.3)

    async with before(leave) as (proxy, origins):
        client = await proxy.connect()
        await client.send(GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(1):
                head = await client.head()
                rest = await client.reader.read(65536)
                rest += await client.reader.read(65536)
                assert b"HTTP/1.1 " not in head[9:] + rest
        assert len(origins[0].requests) == 1


async def test_what_came_before_a_request_left_is_not_its_answer() -> None:
    stale = b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 5\r\n\r\nstale"
    async with proxied(answering(OK)) as proxy:
        client = await proxy.connect()
        await client.send(GET)
        await client.answer()
        await until(lambda: proxy.target.pools[0].idle_count == 1)
        upstream = proxy.origin.conversations[0].writer.get_extra_info("socket")
        downstream = client.writer.get_extra_info("socket")
        # Both wait when the proxy looks next: its client's request, and what nobody asked for.
        assert os.write(downstream.fileno(), GET) == len(GET)
        assert os.write(upstream.fileno(), stale) == len(stale)
        head, _ = await client.answer()
        assert head.startswith(b"HTTP/1.1 200 ")
