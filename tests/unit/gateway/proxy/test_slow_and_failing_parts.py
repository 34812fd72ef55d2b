"""What a slow client, a slow hook, a failing plugin or a bound of one request must never do to another."""

import asyncio
import contextlib
import itertools
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from dataclasses import dataclass

import pytest

from fakes.gateway.mixed import GET, before, plugged
from fakes.gateway.proxied import OK, Conversation, Proxied, Target, answering, proxied
from fakes.peers.http2 import answer_with, http2_client, request
from fakes.virtual_time import in_virtual_time
from fakes.waiting import until, until_still
from headgate.common.service.tasks import cancel
from headgate.common.table import CircuitBreaker
from headgate.gateway.health.circuit import Circuit
from headgate.gateway.plugins.interface import (
    BodyFilter,
    BodyTooLarge,
    Plugin,
    PluginConfig,
    Request,
    Response,
)
from headgate.gateway.proxy.config import ProxyConfig
from headgate.gateway.proxy.endpoint_pool import EndpointPool
from headgate.gateway.proxy.request_source import RequestSource


class RecordedState:
    """Stands for the health of an upstream: a real circuit, and what was reported."""

    def __init__(self, circuit: Circuit | None = None) -> None:
        self.circuit = circuit
        self.reports: list[object] = []

    def report_pool(self, pool: object, outcome: object) -> None:
        self.reports.append(outcome)

    def may_begin(self) -> str | None:
        return self.circuit.begin() if self.circuit is not None else None

    def ended(self) -> None:
        if self.circuit is not None:
            self.circuit.end()

    def wait(self, resume: Callable[[], None]) -> str | None:
        assert self.circuit is not None
        return self.circuit.wait(resume)

    def may_retry(self, share: float | None, *, is_free: bool = False) -> bool:
        return True

    def retry_ended(self) -> None:
        return


@dataclass
class Watched(Target):
    """A target that tells of its upstream's state, and takes its pools in turn."""

    state: RecordedState | None = None
    turn: int = 0

    def choose(self, tried: Collection[EndpointPool], source: RequestSource) -> EndpointPool | None:
        source.note_upstream(self.state)
        if tried:
            return super().choose(tried, source)
        self.turn += 1
        return self.pools[self.turn % len(self.pools)]


def watch(proxy: Proxied, circuit: CircuitBreaker | None = None) -> RecordedState:
    state = RecordedState(Circuit(circuit) if circuit is not None else None)
    proxy.target = proxy.router.target = Watched(proxy.target.pools, state=state)
    return state


# Bounds


class Thinking(Plugin[PluginConfig]):
    """As `forward-auth`: waits before the request may pass."""

    name = "thinking"

    async def on_request(self, request: Request) -> Response | None:
        await asyncio.sleep(1.5)
        return Response.text(403, "no")


async def test_a_client_is_not_read_while_a_hook_thinks() -> None:
    async with proxied() as proxy:
        proxy.target.policies = plugged(Thinking)
        client = await proxy.connect()
        client.writer.transport.set_write_buffer_limits(high=0)
        await client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000\r\n\r\n")
        sent = 0
        with contextlib.suppress(TimeoutError, ConnectionError):
            async with asyncio.timeout(1):
                while sent < 64 * 1024 * 1024:
                    client.writer.write(bytes(1024 * 1024))
                    await client.writer.drain()
                    sent += 1024 * 1024
        assert sent <= 16 * 1024 * 1024, f"{sent} bytes were taken"


@contextlib.asynccontextmanager
async def deaf(proxy: Proxied) -> AsyncIterator[Callable[[bytes], Awaitable[None]]]:
    """A client that only sends, with as little room in its kernel as there can be."""
    loop = asyncio.get_running_loop()
    with socket.socket() as plain:
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        plain.setblocking(False)
        await loop.sock_connect(plain, ("127.0.0.1", proxy.port))
        yield lambda data: loop.sock_sendall(plain, data)


async def test_a_client_that_reads_nothing_is_neither_answered_nor_read_without_end() -> None:
    batch, sent = b"GET / HTTP/1.1\r\nHost: unknown\r\n\r\n" * 200, 0

    async def pour(send: Callable[[bytes], Awaitable[None]]) -> None:
        nonlocal sent
        while True:
            await send(batch)
            sent += len(batch)

    async with proxied() as proxy, deaf(proxy) as send:
        pouring = asyncio.create_task(pour(send))
        await until_still(lambda: sent)
        (connection,) = proxy.server.context.connections
        unsent = connection.transport.get_write_buffer_size()
        limit = 8 * proxy.pools.config.buffer_high
        assert sent > 0
        assert unsent < limit, f"{unsent} bytes of answers wait"
        await cancel(pouring)


async def test_a_connection_that_is_closed_while_its_client_reads_nothing_ends_in_time() -> None:
    body = b"HTTP/1.1 200 OK\r\nContent-Length: 60000\r\n\r\n" + bytes(60_000)
    config = ProxyConfig(body_timeout_s=0.4, idle_timeout_s=0.4, lingering_s=0.4)
    async with proxied(answering(body), config=config) as proxy, deaf(proxy) as send:
        connections = proxy.server.context.connections
        await send(GET)
        await until(lambda: proxy.log.records)
        (connection,) = connections
        for answers in itertools.count(2):
            if connection.transport.get_write_buffer_size():
                break
            await send(GET)
            await until(lambda: len(proxy.log.records) == answers)  # noqa: B023 - waited for here
        assert not connection.write_paused
        proxy.router.target = Target([proxy.pools.get("127.0.0.1", 1)])
        await send(GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        await until(lambda: not connections, within_s=4)


@in_virtual_time
async def test_an_endpoint_that_allows_no_streams_is_not_stormed() -> None:
    async with before(answer_with(), settings={3: 0}) as (proxy, origins):
        client = await proxy.connect()
        await client.send(GET)
        await asyncio.sleep(0.5)
        assert len(origins[0].peers) <= 3


# Counts


@in_virtual_time
async def test_a_request_reset_in_the_turn_that_it_came_gives_its_connection_back() -> None:
    async with proxied() as proxy, http2_client(proxy.port) as client:
        state = watch(proxy, CircuitBreaker(max_connections=2))
        for _ in range(4):
            stream_id = client.h2.get_next_available_stream_id()
            client.h2.send_headers(stream_id, request(), end_stream=True)
            client.h2.reset_stream(stream_id, 8)
            client.flush()
            await asyncio.sleep(0.05)
        assert state.circuit is not None
        assert state.circuit.connections == 0
        assert state.circuit.requests == 0
        assert state.circuit.pending == 0


async def test_connections_at_rest_do_not_keep_others_from_being_opened() -> None:
    async with proxied(answering(OK), answering(OK)) as proxy:
        watch(proxy, CircuitBreaker(max_connections=1))
        client = await proxy.connect()
        for _ in range(3):
            await client.send(GET)
            async with asyncio.timeout(2):
                await client.answer()


async def test_a_deadline_of_the_clients_is_no_failure_of_the_endpoint() -> None:
    async with proxied() as proxy, http2_client(proxy.port) as client:
        state = watch(proxy)
        hasty = [(b"content-type", b"application/grpc"), (b"grpc-timeout", b"1n")]
        for _ in range(5):
            await client.fetch(request(b"POST", b"/s/m", *hasty), b"x")
        assert state.reports == []


@in_virtual_time
async def test_waiting_for_our_own_bound_is_no_failure_of_the_endpoint() -> None:
    async def silent(conversation: Conversation) -> None:
        await conversation.head()
        await asyncio.sleep(3)
        await conversation.send(OK)

    async with proxied(silent, config=ProxyConfig(read_timeout_s=0.5)) as proxy:
        state = watch(proxy, CircuitBreaker(max_connections=1))
        proxy.target.read_timeout_s = 10.0
        first, second = await proxy.connect(), await proxy.connect()
        await first.send(GET)
        await until(lambda: bool(proxy.origin.heads))
        await second.send(GET)
        head = await second.head()
        assert head.startswith(b"HTTP/1.1 50")
        assert state.reports == []


# Plugins that go wrong


class TextBody(Plugin[PluginConfig]):
    """Gives text where bytes are wanted: an easy mistake."""

    name = "text-body"

    def on_response(self, request: Request, response: Response) -> None:
        response.body = "sorry"  # type: ignore[assignment]


@pytest.mark.filterwarnings("default")
@in_virtual_time
async def test_a_plugin_that_goes_wrong_does_not_stop_the_clock() -> None:
    async def silent(conversation: Conversation) -> None:
        await conversation.head()
        await asyncio.sleep(3)

    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda loop, context: None)
    async with proxied(silent, config=ProxyConfig(read_timeout_s=0.2)) as proxy:
        proxy.target.policies = plugged(TextBody)
        client = await proxy.connect()
        await client.send(GET)
        await asyncio.sleep(0.6)
        before_tick = proxy.server.context.clock.now
        await asyncio.sleep(0.6)
        assert proxy.server.context.clock.now > before_tick
    loop.set_exception_handler(None)


class Lenient(Plugin[PluginConfig]):
    """Looks at a body if it is short, and lets a long one pass."""

    name = "lenient"

    async def on_request(self, request: Request) -> None:
        with contextlib.suppress(BodyTooLarge):
            await request.read_body(10)


@in_virtual_time
async def test_a_body_that_was_too_long_for_a_plugin_passes_whole() -> None:
    bodies: list[bytes] = []

    async def reading(conversation: Conversation) -> None:
        _, body = await conversation.request()
        bodies.append(body)
        await conversation.send(OK)

    async with proxied(reading) as proxy:
        proxy.target.policies = plugged(Lenient)
        client = await proxy.connect()
        await client.send(b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
        for piece in (b"6\r\nabcdef\r\n", b"6\r\nghijkl\r\n", b"6\r\nmnopqr\r\n", b"0\r\n\r\n"):
            await asyncio.sleep(0.05)
            await client.send(piece)
        head = await client.head()
        if head.startswith(b"HTTP/1.1 200 "):
            assert all(letter in bodies[0] for letter in (b"abcdef", b"ghijkl", b"mnopqr"))


class BadFilter(Plugin[PluginConfig]):
    name = "bad-filter"

    def request_body_filter(self, request: Request) -> BodyFilter:
        class Raising(BodyFilter):
            def feed(self, data: bytes) -> bytes:
                raise RuntimeError("filter")

        return Raising()


async def test_a_request_filter_that_fails_on_the_first_bytes_is_a_500() -> None:
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda loop, context: None)
    async with proxied() as proxy:
        proxy.target.policies = plugged(BadFilter)
        client = await proxy.connect()
        await client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhello")
        head = await client.head()
        assert head.startswith(b"HTTP/1.1 500 ")
    loop.set_exception_handler(None)


async def test_failures_have_the_form_of_grpc_on_routes_with_plugins_too() -> None:
    async with proxied() as proxy, http2_client(proxy.port) as client:
        proxy.target.policies = plugged(Plugin)
        proxy.target.pools = []
        answer = await client.fetch(request(b"POST", b"/s/m", (b"content-type", b"application/grpc")), b"x")
        assert (answer.status, answer.headers.get(b"grpc-status")) == (200, b"14")
