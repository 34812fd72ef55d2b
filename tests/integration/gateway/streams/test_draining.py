"""What is on its way when a drain begins: requests in the kernel, connections not accepted, handshakes, preambles."""

import asyncio
import contextlib
import socket
import ssl
import time
from collections.abc import AsyncIterator

import pytest

from fakes.gateway.ports import free_port
from fakes.gateway.proxied import OK, Client, Proxied, answering, proxied
from fakes.gateway.streams import PATIENCE_S, backend, echo_server, stream, streams
from fakes.gateway.tls import SelfSigned
from fakes.peers.http2 import http2_client, request
from headgate.common.secret import Secret
from headgate.gateway.listeners.server import ProxyServer
from headgate.gateway.net.proxy_protocol import Addresses, write_proxy_header
from headgate.gateway.proxy.config import ProxyConfig
from headgate.gateway.streams.context import StreamContext
from headgate.gateway.streams.ports import plan_ports
from headgate.gateway.streams.stats import StreamStats
from headgate.gateway.tls import CertificateEntry, CertificateStore

CERTIFICATE = SelfSigned("a.test")
GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
GOAWAY = b"\x00\x00\x08\x07\x00"
CLOSES = b"\r\nConnection: close\r\n"
HEADER = write_proxy_header(1, Addresses(("203.0.113.7", 5555), ("203.0.113.1", 443)))


def certificates() -> CertificateStore:
    store = CertificateStore(alpn=("h2", "http/1.1"))
    pem = CERTIFICATE.certificate_pem.decode()
    store.set_certificates([CertificateEntry(("a.test",), pem, Secret(CERTIFICATE.key_pem), "f1")])
    return store


class Raw:
    """A client whose sends are done when they return, without a turn of the event loop."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setblocking(False)

    def send(self, data: bytes) -> None:
        assert self.socket.send(data) == len(data)

    async def answer(self) -> bytes:
        received = b""
        async with asyncio.timeout(PATIENCE_S):
            while not received.endswith(b"ok"):
                received += await asyncio.get_running_loop().sock_recv(self.socket, 65536)
        return received

    async def rest(self) -> bytes:
        received = b""
        async with asyncio.timeout(PATIENCE_S):
            while data := await asyncio.get_running_loop().sock_recv(self.socket, 65536):
                received += data
        self.socket.close()
        return received


@contextlib.asynccontextmanager
async def rested(config: ProxyConfig) -> AsyncIterator[tuple[Proxied, Raw]]:
    """A connection that was used and rests."""
    async with proxied(config=config) as proxy:
        client = Raw(proxy.port)
        client.send(GET)
        await client.answer()
        yield proxy, client
        client.socket.close()


@pytest.mark.parametrize("quiet_s", [0.0, 0.2])
async def test_a_request_in_the_kernel_is_answered_when_a_drain_begins(quiet_s: float) -> None:
    async with rested(ProxyConfig(drain_quiet_s=quiet_s)) as (proxy, client):
        client.send(GET)
        await asyncio.wait_for(proxy.server.drain(60), PATIENCE_S)
        answer = await client.rest()
        assert CLOSES in answer
        assert answer.endswith(b"ok")


async def test_a_connection_that_was_not_accepted_yet_is_served_when_a_drain_begins() -> None:
    async with proxied(config=ProxyConfig(drain_quiet_s=0.2)) as proxy:
        await proxy.talk(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        client = Raw(proxy.port)
        client.send(GET)
        await asyncio.wait_for(proxy.server.drain(60), PATIENCE_S)
        assert CLOSES in await client.rest()


async def test_a_request_in_the_kernel_is_answered_when_its_connection_would_close() -> None:
    async with rested(ProxyConfig()) as (proxy, client):
        (connection,) = proxy.server.context.connections
        client.send(GET)
        connection.drain()
        await client.answer()


async def test_a_request_in_the_kernel_is_answered_when_its_connection_has_rested_for_too_long() -> None:
    async with rested(ProxyConfig()) as (proxy, client):
        (connection,) = proxy.server.context.connections
        client.send(GET)
        connection.timed_out()
        await client.answer()


async def test_requests_are_answered_for_a_quiet_time_after_a_drain_began() -> None:
    async with rested(ProxyConfig(drain_quiet_s=2.0)) as (proxy, client):
        draining = asyncio.create_task(proxy.server.drain(60))
        await asyncio.sleep(0.2)
        client.send(GET)
        answer = await client.rest()
        assert CLOSES in answer
        assert answer.endswith(b"ok")
        await asyncio.wait_for(draining, PATIENCE_S)


async def test_connections_that_rest_are_closed_behind_the_quiet_time() -> None:
    async with rested(ProxyConfig(drain_quiet_s=0.3)) as (proxy, client):
        began = time.monotonic()
        draining = asyncio.create_task(proxy.server.drain(60))
        assert await client.rest() == b""
        assert time.monotonic() - began > 0.25
        await asyncio.wait_for(draining, PATIENCE_S)


async def test_http2_clients_are_told_before_their_streams_are_refused() -> None:
    async with (
        proxied(answering(OK, OK), config=ProxyConfig(drain_quiet_s=2.0)) as proxy,
        http2_client(proxy.port) as client,
    ):
        assert (await client.fetch(request())).status == 200
        draining = asyncio.create_task(proxy.server.drain(60))
        await client.until(lambda: bool(client.goaways))
        late = client.open(request())
        assert (await client.answer(late)).status == 200
        await client.until(lambda: len(client.goaways) == 2)
        assert [goaway.last_stream_id for goaway in client.goaways] == [2**31 - 1, late]
        await client.closed()
        await asyncio.wait_for(draining, PATIENCE_S)


@contextlib.asynccontextmanager
async def https(
    *, shared: bool, proxy_protocol: bool = False, handshake_s: float = 15.0
) -> AsyncIterator[tuple[ProxyServer, int]]:
    """An HTTPS listener whose connections the event loop accepts, or (`shared`) that are looked at before."""
    async with proxied(answering(OK, OK)) as proxy:
        context = StreamContext(StreamStats(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), CertificateStore().context_for)
        config = ProxyConfig(drain_quiet_s=0.2, tls_handshake_timeout_s=handshake_s)
        server = ProxyServer(
            proxy.holder, proxy.pools, config, proxy.stats, proxy.log, context, proxy_protocol=proxy_protocol
        )
        port = await server.listen_https("127.0.0.1", 0, certificates())
        async with streams(stream(0, protocol="tls", server_names=("b.test",)), backend(1)) as running:
            routes = [route for _, route in running.compiler.streams.compiled()]
            (plan,) = plan_ports(routes).ports.values()
        server.share(plan if shared else None)
        yield server, port
        await server.drain(0)
        for task in list(context.pending):
            task.cancel()


async def connected(port: int) -> Client:
    client = Client(*await asyncio.open_connection("127.0.0.1", port))
    # Accepted, and waited for.
    await asyncio.sleep(0.05)
    return client


async def shake_hands(client: Client, *protocols: str) -> None:
    tls = CERTIFICATE.client_context()
    if protocols:
        tls.set_alpn_protocols(protocols)
    await asyncio.wait_for(client.writer.start_tls(tls, server_hostname="a.test"), PATIENCE_S)


@pytest.mark.parametrize("shared", [False, True])
async def test_a_handshake_under_way_is_let_finish_and_a_request_behind_it_is_answered(shared: bool) -> None:
    async with https(shared=shared) as (server, port):
        client = await connected(port)
        draining = asyncio.create_task(server.drain(60))
        await asyncio.sleep(0.5)
        assert not draining.done()
        await shake_hands(client)
        await client.send(GET)
        answer = await client.rest()
        assert CLOSES in answer
        assert answer.endswith(b"ok")
        client.close()
        await asyncio.wait_for(draining, PATIENCE_S)


@pytest.mark.parametrize("protocols", [("http/1.1",), ("h2",)])
@pytest.mark.parametrize("shared", [False, True])
async def test_a_client_that_says_nothing_behind_a_late_handshake_is_not_waited_for(
    shared: bool, protocols: tuple[str, ...]
) -> None:
    async with https(shared=shared) as (server, port):
        client = await connected(port)
        draining = asyncio.create_task(server.drain(60))
        await asyncio.sleep(0.4)
        began = time.monotonic()
        await shake_hands(client, *protocols)
        assert (b"" if protocols == ("http/1.1",) else GOAWAY) in await asyncio.wait_for(client.rest(), PATIENCE_S)
        assert time.monotonic() - began > 0.2
        client.close()
        await asyncio.wait_for(draining, PATIENCE_S)


@pytest.mark.parametrize("shared", [False, True])
async def test_a_handshake_that_does_not_come_is_not_waited_for_beyond_the_grace_period(shared: bool) -> None:
    async with https(shared=shared, handshake_s=2 * PATIENCE_S) as (server, port):
        client = await connected(port)
        await asyncio.wait_for(server.drain(0.2), PATIENCE_S)
        client.close()


async def test_a_proxy_header_under_way_is_let_finish_and_a_request_behind_it_is_answered() -> None:
    async with https(shared=False, proxy_protocol=True) as (server, port):
        client = await connected(port)
        await client.send(HEADER[:10])
        draining = asyncio.create_task(server.drain(60))
        await asyncio.sleep(0.4)
        assert not draining.done()
        await client.send(HEADER[10:])
        await shake_hands(client)
        await client.send(GET)
        assert (await client.rest()).endswith(b"ok")
        client.close()
        await asyncio.wait_for(draining, PATIENCE_S)


async def test_a_stream_that_has_not_named_its_server_when_a_drain_begins_is_served() -> None:
    port = free_port()
    async with (
        echo_server(name=b"A", tls=certificates().server_context) as upstream,
        streams(stream(port, protocol="tls", server_names=("a.test",)), backend(upstream)) as running,
    ):
        client = await connected(port)
        draining = asyncio.create_task(running.listeners.drain(60))
        await asyncio.sleep(0.1)
        assert not draining.done()
        await shake_hands(client)
        assert await client.exactly(1) == b"A"
        client.close()
        await asyncio.wait_for(draining, PATIENCE_S)
