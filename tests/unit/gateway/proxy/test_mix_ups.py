"""What must never happen between requests: bytes, answers, hooks, bounds and failures of one that reach another."""

import asyncio
import contextlib
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from dataclasses import dataclass

import hyperframe.frame
import pytest

from fakes.gateway.proxied import OK, Conversation, Proxied, Target, answering, proxied
from fakes.peers.http2 import Http2Origin, Peer, Serve, answer_with, http2_client, request
from fakes.virtual_time import in_virtual_time
from fakes.waiting import until
from headgate.common.table import CircuitBreaker
from headgate.gateway.health.circuit import Circuit
from headgate.gateway.model.connection import ConnectionSpec
from headgate.gateway.plugins.interface import (
    BodyFilter,
    BodyTooLarge,
    Plugin,
    PluginConfig,
    PluginServices,
    Request,
    Response,
)
from headgate.gateway.plugins.runtime.chain import PluginChain
from headgate.gateway.plugins.runtime.run import RoutePlugins
from headgate.gateway.proxy.config import ProxyConfig
from headgate.gateway.proxy.endpoint_pool import EndpointPool
from headgate.gateway.proxy.policies import RoutePolicies
from headgate.gateway.proxy.request_source import RequestSource
from unit.gateway.plugins.running import chain

GET = b"GET /x HTTP/1.1\r\nHost: a\r\n\r\n"
H2C = ConnectionSpec("h2c")
WEBSOCKET = [
    (b":method", b"CONNECT"),
    (b":protocol", b"websocket"),
    (b":scheme", b"http"),
    (b":authority", b"a"),
    (b":path", b"/chat"),
    (b"sec-websocket-version", b"13"),
]


def plugged(*plugins: type[Plugin[PluginConfig]]) -> RoutePolicies:
    policies = RoutePolicies()
    parts = [(0, plugin(PluginConfig(), PluginServices())) for plugin in plugins]
    policies.hooks = RoutePlugins(PluginChain(parts, PluginServices()))
    return policies


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

    def may_retry(self, share: float | None) -> bool:
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


@contextlib.asynccontextmanager
async def before(
    *serves: Serve, settings: dict[int, int] | None = None
) -> AsyncIterator[tuple[Proxied, list[Http2Origin]]]:
    async with contextlib.AsyncExitStack() as stack:
        origins = [Http2Origin(serve, settings) for serve in serves]
        for origin in origins:
            await origin.start()
            stack.push_async_callback(origin.stop)
        proxy = await stack.enter_async_context(proxied())
        proxy.target.pools = [proxy.pools.get("127.0.0.1", origin.port, H2C) for origin in origins]
        yield proxy, origins


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
        await asyncio.sleep(0.1)
        upstream = proxy.origin.conversations[0].writer.get_extra_info("socket")
        downstream = client.writer.get_extra_info("socket")
        # Both wait when the proxy looks next: its client's request, and what nobody asked for.
        assert os.write(downstream.fileno(), GET) == len(GET)
        assert os.write(upstream.fileno(), stale) == len(stale)
        head, _ = await client.answer()
        assert head.startswith(b"HTTP/1.1 200 ")


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
    async with proxied() as proxy, deaf(proxy) as send:
        with contextlib.suppress(TimeoutError, ConnectionError):
            async with asyncio.timeout(3):
                for _ in range(300):
                    await send(b"GET / HTTP/1.1\r\nHost: unknown\r\n\r\n" * 200)
        (connection,) = proxy.server.context.connections
        unread = len(connection._requests._buffer)
        await asyncio.sleep(1)
        unsent = connection.transport.get_write_buffer_size()
        limit = 8 * proxy.pools.config.buffer_high
        assert unread < limit, f"{unread} bytes of requests wait"
        assert unsent < limit, f"{unsent} bytes of answers wait"


async def test_a_connection_that_is_closed_while_its_client_reads_nothing_ends_in_time() -> None:
    body = b"HTTP/1.1 200 OK\r\nContent-Length: 60000\r\n\r\n" + bytes(60_000)
    config = ProxyConfig(body_timeout_s=0.4, idle_timeout_s=0.4, lingering_s=0.4)
    async with proxied(answering(body), config=config) as proxy, deaf(proxy) as send:
        connections = proxy.server.context.connections
        await send(GET)
        await until(lambda: bool(connections))
        (connection,) = connections
        while not connection.transport.get_write_buffer_size():
            await send(GET)
            await asyncio.sleep(0.03)
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
