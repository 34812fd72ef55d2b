"""HTTP/2 towards endpoints: shared connections, refused and lost streams, GOAWAY, flow control, WebSockets."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import hyperframe.frame
import pytest

from fakes.gateway.proxied import Client, Proxied, answering, proxied
from fakes.gateway.tls import Authority
from fakes.peers.http2 import Http2Origin, Peer, Serve, answer_with, http2_client, request
from fakes.virtual_time import in_virtual_time
from fakes.waiting import until, until_still
from headgate.common.table import CircuitBreaker
from headgate.gateway.health.circuit import Circuit
from headgate.gateway.model.connection import ConnectionSpec
from headgate.gateway.proxy.config import ProxyConfig
from headgate.gateway.proxy.http2.pool import Http2Pool
from headgate.gateway.proxy.policies import RoutePolicies

GET = b"GET /x HTTP/1.1\r\nHost: a\r\nUser-Agent: t\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody"
LARGE = 4 * 1024 * 1024
H2C = ConnectionSpec("h2c")


@contextlib.asynccontextmanager
async def before(
    *serves: Serve,
    config: ProxyConfig | None = None,
    settings: dict[int, int] | None = None,
    spec: ConnectionSpec = H2C,
    returns_windows: bool = True,
) -> AsyncIterator[tuple[Proxied, list[Http2Origin]]]:
    """A proxy before origins that speak HTTP/2 with prior knowledge."""
    async with contextlib.AsyncExitStack() as stack:
        origins = [Http2Origin(serve, settings, returns_windows) for serve in serves]
        for origin in origins:
            await origin.start()
            stack.push_async_callback(origin.stop)
        proxy = await stack.enter_async_context(proxied(config=config))
        proxy.target.pools = [proxy.pools.get("127.0.0.1", origin.port, spec) for origin in origins]
        yield proxy, origins


async def ask(proxy: Proxied, data: bytes = GET) -> tuple[bytes, bytes]:
    client = await proxy.connect()
    await client.send(data)
    return await client.answer()


async def test_a_request_of_http1_becomes_a_stream() -> None:
    async with before(answer_with(b"ok", (b"x-a", b"b"))) as (proxy, origins):
        head, body = await ask(proxy)
        assert head.startswith(b"HTTP/1.1 200 OK\r\nx-a: b\r\n")
        assert body == b"ok"
        fields = origins[0].requests[0].fields
        assert fields[:4] == [(b":method", b"GET"), (b":scheme", b"http"), (b":authority", b"a"), (b":path", b"/x")]
        assert (b"user-agent", b"t") in fields
        assert (b"x-forwarded-proto", b"http") in fields
        assert proxy.target.pools[0].in_flight == 0


async def test_bodies_pass_both_ways() -> None:
    body = bytes(range(256)) * (LARGE // 256)

    async def echo(peer: Peer, stream_id: int) -> None:
        got = await peer.answer(stream_id)
        peer.h2.send_headers(stream_id, [(b":status", b"200"), (b"content-length", b"%d" % len(got.body))])
        await peer.send_all(stream_id, bytes(got.body))

    async with before(echo) as (proxy, origins):
        client = await proxy.connect()
        await client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%b" % (LARGE, body))
        _, answer = await client.answer()
        assert answer == body
        assert origins[0].requests[0].headers[b"content-length"] == b"%d" % LARGE


async def test_trailers_pass_both_ways_between_streams() -> None:
    serve = answer_with(b"ok", trailers=[(b"x-sum", b"7")])
    async with before(serve) as (proxy, origins), http2_client(proxy.port) as client:
        proxy.target.policies = RoutePolicies()
        proxy.target.policies.request_trailers = True
        stream_id = client.open(request(b"POST"), end=False)
        client.send(stream_id, b"hello")
        client.trailers(stream_id, [(b"x-count", b"5")])
        assert (await client.answer(stream_id)).trailers == {b"x-sum": b"7"}
        assert origins[0].requests[0].trailers == {b"x-count": b"5"}


async def test_requests_share_a_connection_that_is_being_opened() -> None:
    async with before(answer_with()) as (proxy, origins), http2_client(proxy.port) as client:
        ids = [client.open(request(b"GET", b"/%d" % number)) for number in range(50)]
        for stream_id in ids:
            assert (await client.answer(stream_id)).status == 200
        assert len(origins[0].peers) == 1
        assert proxy.target.pools[0].idle_count == 1


async def test_a_full_connection_gets_a_sibling() -> None:
    gate = asyncio.Event()

    async def wait(peer: Peer, stream_id: int) -> None:
        await gate.wait()
        peer.h2.send_headers(stream_id, [(b":status", b"204")], end_stream=True)
        peer.flush()

    async with before(wait, settings={3: 2}) as (proxy, origins), http2_client(proxy.port) as client:
        ids = [client.open(request()) for _ in range(5)]
        await until(lambda: len(origins[0].requests) == 5)
        assert [len(peer.answers) for peer in origins[0].peers] == [2, 2, 1]
        gate.set()
        for stream_id in ids:
            assert (await client.answer(stream_id)).status == 204


async def test_informational_answers_pass_but_for_100() -> None:
    async def hint(peer: Peer, stream_id: int) -> None:
        for status in (b"100", b"103"):
            peer.h2.send_headers(stream_id, [(b":status", status), (b"link", b"a")])
        peer.h2.send_headers(stream_id, [(b":status", b"204")], end_stream=True)
        peer.flush()

    async with before(hint) as (proxy, _), http2_client(proxy.port) as client:
        answer = await client.fetch(request())
        assert answer.informational == [{b":status": b"103", b"link": b"a"}]
        assert answer.status == 204


async def test_a_refused_stream_is_sent_again_whatever_its_method() -> None:
    refused: list[int] = []

    async def refuse_once(peer: Peer, stream_id: int) -> None:
        await peer.answer(stream_id)
        if not refused:
            refused.append(stream_id)
            peer.reset(stream_id, 7)
            return
        await answer_with()(peer, stream_id)

    async with before(refuse_once) as (proxy, origins):
        head, _ = await ask(proxy, POST + b"")
        assert head.startswith(b"HTTP/1.1 200 ")
        assert [bytes(each.body) for each in origins[0].requests] == [b"body", b"body"]


async def test_an_endpoint_that_refuses_for_ever_is_left_for_another() -> None:
    async def refuse(peer: Peer, stream_id: int) -> None:
        peer.reset(stream_id, 7)

    async with before(refuse, answer_with()) as (proxy, _):
        assert (await ask(proxy, POST))[0].startswith(b"HTTP/1.1 200 ")
    async with before(refuse) as (proxy, _):
        assert (await ask(proxy, POST))[0].startswith(b"HTTP/1.1 502 ")


async def test_streams_above_a_goaway_are_sent_again_on_another_connection() -> None:
    async def leave(peer: Peer, stream_id: int) -> None:
        if not peer.goaways and len(origins[0].peers) == 1:
            if stream_id == 1:
                await peer.until(lambda: len(peer.answers) == 3)
                peer.frames(hyperframe.frame.GoAwayFrame(0, last_stream_id=1, error_code=0))
                await answer_with()(peer, stream_id)
            return
        await answer_with()(peer, stream_id)

    async with before(leave) as (proxy, origins), http2_client(proxy.port) as client:
        await client.until(lambda: bool(client.events))
        ids = [client.open(request(b"POST"), end=False) for _ in range(3)]
        for stream_id in ids:
            client.h2.end_stream(stream_id)
        client.flush()
        for stream_id in ids:
            assert (await client.answer(stream_id)).status == 200
        assert len(origins[0].peers) == 2
        await origins[0].peers[0].closed()


async def test_a_dead_connection_fails_its_streams() -> None:
    async def die(peer: Peer, stream_id: int) -> None:
        peer.writer.close()

    async with before(die) as (proxy, _):
        assert (await ask(proxy, POST))[0].startswith(b"HTTP/1.1 502 ")
        assert proxy.target.pools[0].in_flight == 0


async def test_a_request_that_may_be_repeated_goes_to_the_next_endpoint() -> None:
    async def die(peer: Peer, stream_id: int) -> None:
        peer.writer.close()

    async with before(die, answer_with()) as (proxy, _):
        assert (await ask(proxy))[0].startswith(b"HTTP/1.1 200 ")


async def test_an_answer_that_breaks_off_is_cut_off() -> None:
    async def break_off(peer: Peer, stream_id: int) -> None:
        peer.h2.send_headers(stream_id, [(b":status", b"200"), (b"content-length", b"100")])
        peer.send(stream_id, b"some")
        peer.reset(stream_id, 2)

    async with before(break_off) as (proxy, origins):
        client = await proxy.connect()
        await client.send(GET)
        assert (await client.rest()).endswith(b"\r\n\r\nsome")
        assert not origins[0].peers[0].is_closed


@pytest.mark.parametrize(
    "headers",
    [
        [(b":status", b"200"), (b"x", b"a\r\nb: c")],
        [(b":status", b"99")],
        [(b":status", b"200"), (b"connection", b"close")],
        [(b":status", b"200"), (b"content-length", b"7")],
        [(b":status", b"101")],
    ],
)
async def test_an_invalid_answer_fails_its_stream_alone(headers: list[tuple[bytes, bytes]]) -> None:
    async def serve(peer: Peer, stream_id: int) -> None:
        informational = headers[0][1] == b"101"
        peer.h2.send_headers(stream_id, headers, end_stream=not informational)
        peer.flush()

    async with before(serve) as (proxy, origins):
        assert (await ask(proxy))[0].startswith(b"HTTP/1.1 502 ")
        assert not origins[0].peers[0].is_closed


@in_virtual_time
async def test_a_client_that_leaves_resets_its_stream() -> None:
    async def silent(peer: Peer, stream_id: int) -> None:
        await asyncio.sleep(30)

    async with before(silent) as (proxy, origins), http2_client(proxy.port) as client:
        stream_id = client.open(request())
        await until(lambda: bool(origins[0].requests))
        client.reset(stream_id)
        await until(lambda: origins[0].requests[0].reset == 8)
        assert proxy.target.pools[0].in_flight == 0
        assert not origins[0].peers[0].is_closed


async def test_a_slow_client_holds_back_its_stream_alone() -> None:
    async def pour(peer: Peer, stream_id: int) -> None:
        asked = await peer.answer(stream_id)
        peer.h2.send_headers(stream_id, [(b":status", b"200")])
        await peer.send_all(stream_id, b"x" * (LARGE if asked.headers[b":path"] == b"/large" else 2))

    async with before(pour) as (proxy, origins), http2_client(proxy.port, returns_windows=False) as client:
        client.h2.increment_flow_control_window(2**30)
        large = client.open(request(b"GET", b"/large"))
        await client.until(lambda: large in client.answers and len(client.answers[large].body) == 65535)
        peer = origins[0].peers[0]
        await until(lambda: peer.h2.local_flow_control_window(1) == 0)
        assert (await client.fetch(request())).status == 200
        client.h2.increment_flow_control_window(LARGE, large)
        client.flush()
        assert len((await client.answer(large)).body) == LARGE


async def test_an_endpoint_that_reads_slowly_holds_back_the_client() -> None:
    go_on = asyncio.Event()

    async def sluggish(peer: Peer, stream_id: int) -> None:
        await go_on.wait()
        peer.h2.increment_flow_control_window(2 * LARGE)
        peer.h2.increment_flow_control_window(2 * LARGE, stream_id)
        peer.flush()
        await answer_with()(peer, stream_id)

    async with before(sluggish, returns_windows=False) as (proxy, origins), http2_client(proxy.port) as client:
        stream_id = client.open(request(b"POST"), end=False)
        sending = asyncio.create_task(client.send_all(stream_id, b"y" * LARGE))
        await until(lambda: bool(origins[0].requests) and len(origins[0].requests[0].body) == 65535)
        held_back = await until_still(lambda: client.h2.local_flow_control_window(stream_id))  # the kernel's buffers
        assert (held_back < 16_384, sending.done()) == (True, False)
        go_on.set()
        await sending
        assert (await client.answer(stream_id)).status == 200
        assert len(origins[0].requests[0].body) == LARGE


async def test_an_answer_before_the_end_of_the_body_ends_the_upload() -> None:
    async def impatient(peer: Peer, stream_id: int) -> None:
        peer.h2.send_headers(stream_id, [(b":status", b"413")], end_stream=True)
        peer.flush()

    async with before(impatient) as (proxy, origins), http2_client(proxy.port) as client:
        stream_id = client.open(request(b"POST"), end=False)
        assert (await client.answer(stream_id)).status == 413
        await until(lambda: origins[0].requests[0].reset is not None)


async def test_an_endpoint_that_speaks_http1_is_a_clear_502() -> None:
    async with proxied(answering(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")) as proxy:
        proxy.target.pools = [proxy.pools.get("127.0.0.1", proxy.origin.port, H2C)]
        head, body = await ask(proxy)
        assert head.startswith(b"HTTP/1.1 502 ")
        assert b"does not speak HTTP/2" in body


@contextlib.asynccontextmanager
async def secure_origin(folder: Path, *protocols: str) -> AsyncIterator[tuple[Http2Origin, ssl.SSLContext]]:
    authority = Authority()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.issue("a.example").write(folder))
    if protocols:
        context.set_alpn_protocols(list(protocols))
    origin = Http2Origin(answer_with())
    await origin.start(context)
    client = ssl.create_default_context(cadata=authority.pem.decode())
    client.check_hostname = False
    client.set_alpn_protocols(["h2"])
    try:
        yield origin, client
    finally:
        await origin.stop()


async def test_http2_over_tls_is_agreed_upon_by_alpn(tmp_path: Path) -> None:
    async with secure_origin(tmp_path, "h2", "http/1.1") as (origin, context), proxied() as proxy:
        proxy.target.pools = [proxy.pools.get("127.0.0.1", origin.port, ConnectionSpec("h2", context, "a.example"))]
        assert (await ask(proxy))[0].startswith(b"HTTP/1.1 200 ")
        assert origin.requests[0].headers[b":scheme"] == b"https"


async def test_an_endpoint_that_does_not_agree_to_http2_is_a_clear_502(tmp_path: Path) -> None:
    async with secure_origin(tmp_path) as (origin, context), proxied() as proxy:
        proxy.target.pools = [proxy.pools.get("127.0.0.1", origin.port, ConnectionSpec("h2", context, "a.example"))]
        head, body = await ask(proxy)
        assert head.startswith(b"HTTP/1.1 502 ")
        assert b"did not agree to HTTP/2" in body


async def test_nobody_at_home_is_a_502() -> None:
    async with before(answer_with()) as (proxy, origins):
        origins[0].stop_listening()
        await asyncio.sleep(0)
        assert (await ask(proxy))[0].startswith(b"HTTP/1.1 502 ")


@in_virtual_time
async def test_aged_and_retired_connections_are_closed() -> None:
    config = ProxyConfig(upstream_idle_timeout_s=0.1)
    async with before(answer_with(), config=config) as (proxy, origins):
        await ask(proxy)
        await origins[0].peers[0].closed()
        await ask(proxy)
        assert len(origins[0].peers) == 2
        proxy.pools.drop("127.0.0.1", origins[0].port, H2C)
        await origins[0].peers[1].closed()


async def test_a_retired_pool_lets_streams_finish() -> None:
    gate = asyncio.Event()

    async def wait(peer: Peer, stream_id: int) -> None:
        await gate.wait()
        await answer_with()(peer, stream_id)

    async with before(wait) as (proxy, origins):
        asking = asyncio.create_task(ask(proxy))
        await until(lambda: bool(origins[0].requests))
        proxy.pools.drop("127.0.0.1", origins[0].port, H2C)
        gate.set()
        assert (await asking)[0].startswith(b"HTTP/1.1 200 ")
        await origins[0].peers[0].closed()


async def test_a_connection_takes_no_more_requests_than_it_may() -> None:
    async with before(answer_with(), spec=ConnectionSpec("h2c", max_requests=2)) as (proxy, origins):
        for _ in range(3):
            await ask(proxy)
        assert [len(peer.answers) for peer in origins[0].peers] == [2, 1]
        await origins[0].peers[0].closed()


async def test_a_shared_connection_counts_once_for_the_bounds_of_an_upstream() -> None:
    async with before(answer_with()) as (proxy, _):
        pool = proxy.target.pools[0]
        assert isinstance(pool, Http2Pool)
        circuit = Circuit(CircuitBreaker(max_connections=5))
        client: Client = await proxy.connect()
        peer = next(iter(proxy.server.context.connections)).peer if proxy.server.connections else None
        assert peer is not None or client
        for _ in range(3):
            assert circuit.acquire_connection()
            side = await pool.connect(peer)  # type: ignore[arg-type]
            side.count_by(circuit)
        assert circuit.connections == 1
        pool.close_idle()
        await until(lambda: circuit.connections == 0)


OFFER = (
    b"GET /chat HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)


async def tunnel(peer: Peer, stream_id: int) -> None:
    """Take the CONNECT, and say everything twice until the client has had enough."""
    peer.h2.send_headers(stream_id, [(b":status", b"200")])
    peer.flush()
    seen = 0
    asked = peer.answers[stream_id]
    while not asked.ended:
        await peer.until(lambda seen=seen: len(asked.body) > seen or asked.ended)
        data, seen = bytes(asked.body[seen:]), len(asked.body)
        peer.send(stream_id, data + data)
    peer.send(stream_id, b"bye", end=True)


async def test_a_websocket_of_http1_goes_through_a_stream() -> None:
    async with before(tunnel, settings={8: 1, 3: 100}) as (proxy, origins):
        client = await proxy.connect()
        await client.send(OFFER)
        head = await client.head()
        assert head.startswith(b"HTTP/1.1 101 Switching Protocols\r\n")
        assert b"\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n" in head
        asked = origins[0].requests[0].headers
        assert (asked[b":method"], asked[b":protocol"]) == (b"CONNECT", b"websocket")
        assert b"sec-websocket-key" not in asked
        await client.send(b"hello")
        assert await client.exactly(10) == b"hellohello"
        client.writer.write_eof()
        assert await client.rest() == b"bye"


async def test_an_endpoint_without_extended_connect_is_a_clear_502() -> None:
    async with before(answer_with()) as (proxy, _):
        client = await proxy.connect()
        await client.send(OFFER)
        head, body = await client.answer()
        assert head.startswith(b"HTTP/1.1 502 ")
        assert b"no WebSockets over HTTP/2" in body
