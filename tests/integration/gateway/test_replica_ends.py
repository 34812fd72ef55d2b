"""SIGTERM for one of two replicas behind a balancer, while clients of every kind never stop: nobody notices."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from fakes.gateway.balancer import TcpBalancer
from fakes.gateway.ports import free_port
from fakes.gateway.process import BOUND_S, GatewayProcess, commit, open_stores
from fakes.gateway.proxied import Client, Conversation, Origin
from fakes.gateway.streams import backend, echo_server, stream
from fakes.gateway.table import ORIGIN, host, route
from fakes.peers.http2 import http2_client, request
from fakes.waiting import until
from headgate.cli.up.embedded_nats import EmbeddedNats
from headgate.common.table import Endpoint, Upstream
from headgate.common.table_image import TableImage

GET = b"GET / HTTP/1.1\r\nHost: foo.com\r\n\r\n"
UPGRADE = (
    b"GET / HTTP/1.1\r\nHost: foo.com\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)
SLOW_BYTES = 60
"""Of the slow answer, one each 50 ms: it lasts longer than the drain delay."""


async def serve(conversation: Conversation) -> None:
    """Answer at once, slowly, or with a WebSocket, as asked."""
    while True:
        head = await conversation.head()
        if b"websocket" in head.lower():
            await conversation.send(
                b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
            )
            while data := await conversation.reader.read(65536):
                await conversation.send(data)
            return
        if head.startswith(b"GET /slow"):
            await conversation.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % SLOW_BYTES)
            for _ in range(SLOW_BYTES):
                await asyncio.sleep(0.05)
                await conversation.send(b".")
        else:
            await conversation.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")


class Load:
    """Clients that never stop; what fails is kept."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.answers = 0
        self.failures: list[str] = []
        self.is_done = False

    async def connect(self) -> Client:
        return Client(*await asyncio.open_connection("127.0.0.1", self.port))

    async def keep_alive(self) -> None:
        """Ask one request after the other, on a new connection only where the last answer closes the old one."""
        client = await self.connect()
        while not self.is_done:
            try:
                await client.send(GET)
                head, body = await client.answer()
            except (asyncio.IncompleteReadError, ConnectionError) as error:
                self.failures.append(f"HTTP/1.1: {error!r}")
                return
            self._note("HTTP/1.1", head.startswith(b"HTTP/1.1 200") and body == b"ok")
            if b"Connection: close" in head:
                client.close()
                client = await self.connect()
            await asyncio.sleep(0.01)
        client.close()

    async def http2(self) -> None:
        """Ask over one connection until the server wants no more on it, then over the next."""
        while not self.is_done:
            async with http2_client(self.port) as client:
                while not self.is_done and not client.goaways:
                    answer = await client.fetch(request(b"GET", b"/", authority=b"foo.com"))
                    self._note("HTTP/2", answer.ended and answer.status == 200 and bytes(answer.body) == b"ok")
                    await asyncio.sleep(0.01)

    async def slow(self) -> None:
        """Take a long answer over each version of HTTP."""
        client = await self.connect()
        async with http2_client(self.port) as other:
            stream = other.open(request(b"GET", b"/slow", authority=b"foo.com"))
            await client.send(b"GET /slow HTTP/1.1\r\nHost: foo.com\r\n\r\n")
            _, body = await client.answer()
            answer = await other.answer(stream)
        self._note("slow HTTP/1.1", len(body) == SLOW_BYTES)
        self._note("slow HTTP/2", answer.ended and len(answer.body) == SLOW_BYTES)
        client.close()

    async def websocket(self) -> None:
        """Talk through a tunnel for a while longer than the drain delay."""
        client = await self.connect()
        await client.send(UPGRADE)
        assert (await client.head()).startswith(b"HTTP/1.1 101")
        await self.echo("WebSocket", client, 60)

    async def stream(self, port: int) -> None:
        """Talk over a TCP stream."""
        client = Client(*await asyncio.open_connection("127.0.0.1", port))
        await self.echo("stream", client, 60)

    async def echo(self, kind: str, client: Client, count: int) -> None:
        for number in range(count):
            message = b"message %04d" % number
            try:
                await client.send(message)
                self._note(kind, await client.exactly(len(message)) == message)
            except (asyncio.IncompleteReadError, ConnectionError) as error:
                self.failures.append(f"{kind}: {error!r}")
                return
            await asyncio.sleep(0.05)
        client.close()

    def _note(self, kind: str, is_right: bool) -> None:
        self.answers += 1
        if not is_right:
            self.failures.append(f"{kind}: wrong answer")


@contextlib.asynccontextmanager
async def running(*tasks: Callable[[], Awaitable[None]]) -> AsyncIterator[list["asyncio.Task[None]"]]:
    """Run clients until the end of the block; what they raise is raised."""
    async with asyncio.TaskGroup() as group:
        yield [group.create_task(_as_coroutine(task)) for task in tasks]


async def _as_coroutine(task: Callable[[], Awaitable[None]]) -> None:
    await task()


@pytest.mark.slow
async def test_no_request_fails_when_one_of_two_replicas_is_told_to_end(tmp_path: Path) -> None:
    broker = EmbeddedNats(tmp_path / "nats")
    await broker.start()
    origin, port = Origin(serve), free_port()
    await origin.start()
    up = Upstream(key="up", endpoints=(Endpoint(address="127.0.0.1", port=origin.port),), provenance=ORIGIN)
    flags = ("--drain-delay-s=2", "--grace-s=30")
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(broker.stop)
        stack.push_async_callback(origin.stop)
        bus, stores = await open_stores(broker.url)
        stack.push_async_callback(bus.close)
        echo = await stack.enter_async_context(echo_server())
        table = TableImage(
            [host("foo.com", route("/", "prefix", "up")), up, backend(echo, key="echo"), stream(port, up="echo")]
        )
        await commit(stores.snapshots, table, (1, 1))
        ending = await stack.enter_async_context(GatewayProcess(tmp_path / "one", broker.url, *flags))
        await ending.ready()
        staying = await stack.enter_async_context(GatewayProcess(tmp_path / "two", broker.url, *flags))
        await staying.ready()
        balancer = await stack.enter_async_context(TcpBalancer([ending, staying]))
        load = Load(balancer.port)
        async with running(
            *[load.keep_alive] * 6,
            *[load.http2] * 2,
            *[load.slow] * 2,
            *[load.websocket] * 2,
            lambda: load.stream(port),
        ):
            await until(lambda: load.answers > 200)
            assert {ending, staying} == set(balancer.given)
            assert await ending.stop() == 0
            count = load.answers
            await until(lambda: load.answers > count + 200 or bool(load.failures))
            load.is_done = True
        assert load.failures == []
        assert balancer.ready == [staying]
        assert await asyncio.wait_for(staying.stop(), BOUND_S) == 0
