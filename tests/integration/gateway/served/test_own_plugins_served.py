"""Plugins of one's own, from the table's entry to the wire: bodies, failures, and hooks that wait."""

import asyncio
import gzip
import json

import pytest

from fakes.gateway.proxied import OK, Conversation, answering
from fakes.gateway.served import HOST, asking, at, named, origins, read_answer, served, site, to
from fakes.peers.http2 import http2_client, request
from fakes.waiting import until
from headgate.gateway.plugins.interface import BodyFilter, Plugin, PluginConfig, Request, Response
from headgate.gateway.plugins.runtime.registry import PluginRegistry

TEXT = b"all work and no play " * 200

STREAMED = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (
    len(TEXT),
    TEXT,
)


class BodyConfig(PluginConfig):
    pass


class Shouting(Plugin[BodyConfig]):
    """Reads a JSON body and sends another."""

    name = "shouting"
    Config = BodyConfig

    async def on_request(self, request: Request) -> None:
        value = json.loads(await request.read_body(100))
        request.replace_body(json.dumps(value).upper().encode())


class Rot(Plugin[BodyConfig]):
    """Changes a request's body as it passes, and makes it longer."""

    name = "rot"
    Config = BodyConfig

    def request_body_filter(self, request: Request) -> BodyFilter:
        class Doubling(BodyFilter):
            def feed(self, data: bytes) -> bytes:
                return b"".join(bytes((byte, byte)) for byte in data)

            def finish(self) -> bytes:
                return b"!"

        return Doubling()


class Replacing(Plugin[BodyConfig]):
    """Sends a body of its own, without a look at the client's."""

    name = "replacing"
    Config = BodyConfig

    def on_request(self, request: Request) -> None:
        request.replace_body(b"new")


class Failing(Plugin[BodyConfig]):
    """Goes wrong."""

    name = "failing"
    Config = BodyConfig

    def on_request(self, request: Request) -> None:
        raise RuntimeError("nobody's business")


class Waiting(Plugin[BodyConfig]):
    """Waits until it is let go."""

    name = "waiting"
    Config = BodyConfig
    entered = 0
    ended = 0
    go: asyncio.Event

    async def on_request(self, request: Request) -> Response | None:
        Waiting.entered += 1
        try:
            await Waiting.go.wait()
        finally:
            Waiting.ended += 1
        return None


@pytest.fixture(autouse=True)
def _own_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    known = PluginRegistry.find

    def find(self: PluginRegistry, name: str) -> type[Plugin[BodyConfig]]:
        return {each.name: each for each in (Shouting, Rot, Replacing, Failing, Waiting)}.get(name) or known(self, name)

    monkeypatch.setattr(PluginRegistry, "find", find)
    Waiting.go = asyncio.Event()
    Waiting.entered = Waiting.ended = 0


async def echo(conversation: Conversation) -> None:
    while True:
        _, body = await conversation.request()
        await conversation.send(named(body))


@pytest.mark.parametrize("chunked", [False, True])
async def test_body_that_a_plugin_reads_is_replaced(chunked: bool) -> None:
    async with origins(echo) as (origin,), served(site(to("up", plugins=[("shouting", {})])), at(origin.port)) as proxy:
        client = await proxy.connect()
        for _ in range(2):
            if chunked:
                await client.send(asking("/", "POST", body=b'5\r\n["a",\r\n', Transfer_Encoding="chunked"))
                await asyncio.sleep(0.02)
                await client.send(b'4\r\n"b"]\r\n0\r\n\r\n')
            else:
                await client.send(asking("/", "POST", body=b'["a", "b"]'))
            assert (await read_answer(client)).body == b'["A", "B"]'
        client = await proxy.connect()
        await client.send(asking("/", "POST", body=b"[" + b"1," * 100))
        assert (await read_answer(client)).status == 413


async def test_streamed_body_passes_a_filter_that_makes_it_longer() -> None:
    async with origins(echo) as (origin,), served(site(to("up", plugins=[("rot", {})])), at(origin.port)) as proxy:
        client = await proxy.connect()
        for _ in range(2):
            await client.send(b"POST / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 4\r\n\r\nab")
            await asyncio.sleep(0.03)
            await client.send(b"cd")
            got = await read_answer(client)
            pieces = got.body.split(b"\r\n")
            assert b"".join(pieces[1::2]) == b"aabbccdd!"


async def test_plugin_that_raises_is_a_500_that_names_it_and_nothing_else() -> None:
    async with served(site(to("up", plugins=[("failing", {})])), at(1)) as proxy:
        got = await proxy.get()
        assert (got.status, got["x-headgate-reason"]) == (500, "plugin failing failed")
        assert b"business" not in got.head + got.body


@pytest.mark.parametrize("leaves_at_once", [True, False])
async def test_hook_ends_with_the_client_that_leaves(leaves_at_once: bool) -> None:
    async with (
        origins(answering(OK)) as (origin,),
        served(site(to("up", plugins=[("waiting", {})])), at(origin.port)) as proxy,
    ):
        client = await proxy.connect()
        await client.send(asking("/", "POST", body=b"x") if leaves_at_once else asking())
        if not leaves_at_once:
            await until(lambda: Waiting.entered == 1)
        client.reset()
        await until(lambda: not proxy.server.connections and Waiting.ended == Waiting.entered)
        Waiting.go.set()
        assert (await proxy.get()).status == 200
        assert len(origin.heads) == 1


async def test_client_that_leaves_with_half_of_its_body_unsent_is_noticed_while_a_hook_waits() -> None:
    async with (
        origins(answering(OK)) as (origin,),
        served(site(to("up", plugins=[("waiting", {})])), at(origin.port)) as proxy,
    ):
        client = await proxy.connect()
        await client.send(b"POST / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 4\r\n\r\nab")
        await until(lambda: Waiting.entered == 1)
        client.reset()
        await until(lambda: Waiting.ended == 1)
        assert proxy.log.records[-1][5] == 499


async def test_drain_lets_a_request_finish_that_waits_for_a_hook() -> None:
    async with (
        origins(answering(OK)) as (origin,),
        served(site(to("up", plugins=[("waiting", {})])), at(origin.port)) as proxy,
    ):
        asked = asyncio.create_task(proxy.get())
        await until(lambda: Waiting.entered == 1)
        drained = asyncio.create_task(proxy.server.drain(5))
        await asyncio.sleep(0.05)
        assert not drained.done()
        Waiting.go.set()
        got = await asked
        assert (got.status, got["connection"]) == (200, "close")
        await drained


async def test_plugins_serve_http2_as_well() -> None:
    plugins = [("gzip", {}), ("proxy-rewrite", {"add_prefix": "/v1"})]
    routes = (
        to("up", plugins=plugins),
        to(path="/old", plugins=[("redirect", {"uri": "/new"})]),
        to("up", path="/shout", plugins=[("shouting", {})]),
        to("up", path="/failing", plugins=[("failing", {})]),
    )

    async def texts(conversation: Conversation) -> None:
        while True:
            head, body = await conversation.request()
            await conversation.send(named(body) if head.startswith(b"POST") else STREAMED)

    async with (
        origins(texts) as (origin,),
        served(site(*routes), at(origin.port)) as proxy,
        http2_client(proxy.port) as client,
    ):
        asked = {"authority": HOST.encode()}
        answer = await client.fetch(request(b"GET", b"/x", (b"accept-encoding", b"gzip"), **asked))
        assert gzip.decompress(bytes(answer.body)) == TEXT
        assert origin.heads[0].startswith(b"GET /v1/x HTTP/1.1\r\n")
        moved = await client.fetch(request(b"GET", b"/old", **asked))
        assert (moved.status, moved.headers[b"location"]) == (302, b"/new")
        shouted = await client.fetch(request(b"POST", b"/shout", **asked), b'["a"]')
        assert bytes(shouted.body) == b'["A"]'
        assert (await client.fetch(request(b"GET", b"/failing", **asked))).status == 500


async def test_hook_that_was_called_off_before_its_first_step_leaves_nothing_behind() -> None:
    async with (
        origins(answering(OK)) as (origin,),
        served(site(to("up", plugins=[("waiting", {})])), at(origin.port)) as proxy,
        http2_client(proxy.port) as client,
    ):
        stream_id = client.h2.get_next_available_stream_id()
        client.h2.send_headers(stream_id, request(authority=HOST.encode()), end_stream=True)
        client.h2.reset_stream(stream_id)
        # In one piece, so that the request is over in the turn that it came in.
        client.flush()
        await until(lambda: Waiting.ended == 1)
        Waiting.go.set()
        assert (await client.fetch(request(authority=HOST.encode()))).status == 200
        assert len(origin.heads) == 1


async def test_body_that_was_replaced_before_it_came_is_dropped() -> None:
    async with (
        origins(echo) as (origin,),
        served(site(to("up", plugins=[("replacing", {})])), at(origin.port)) as proxy,
    ):
        client = await proxy.connect()
        await client.send(b"POST / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 40\r\n\r\n")
        await client.send(b"GET /smuggled HTTP/1.1\r\nHost: a.example\r\n\r\n"[:40])
        assert (await read_answer(client)).body == b"new"
        await asyncio.sleep(0.1)
        assert [head.split()[:2] for head in origin.heads] == [[b"POST", b"/"]]
