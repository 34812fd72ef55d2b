"""Connections of HTTP/2: ALPN, the end of a server and of a client, refused streams, WebSockets (RFC 8441)."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator

import pytest

from fakes.gateway.proxied import Conversation, proxied
from fakes.peers.http2 import Peer, http2_client, request
from fakes.virtual_time import in_virtual_time
from fakes.waiting import until
from headgate.gateway.proxy.config import ProxyConfig
from headgate.gateway.proxy.policies import RoutePolicies
from headgate.gateway.tls import CertificateStore

SWITCH = (
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: x\r\n\r\n"
)
WEBSOCKET = [
    (b":method", b"CONNECT"),
    (b":protocol", b"websocket"),
    (b":scheme", b"http"),
    (b":authority", b"a"),
    (b":path", b"/chat"),
    (b"sec-websocket-version", b"13"),
]
REFUSED = 7


def client_tls(*protocols: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(list(protocols))
    return context


class Gate:
    """An origin that answers when it is told to."""

    def __init__(self) -> None:
        self.open = asyncio.Event()

    async def script(self, conversation: Conversation) -> None:
        while True:
            await conversation.request()
            await self.open.wait()
            await conversation.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")


@contextlib.asynccontextmanager
async def switching(config: ProxyConfig | None = None) -> AsyncIterator[tuple[Peer, list[bytes]]]:
    """A client with a tunnel to an origin that says everything twice; and what the origin got."""
    got: list[bytes] = []

    async def echo(conversation: Conversation) -> None:
        await conversation.head()
        await conversation.send(SWITCH)
        while data := await conversation.reader.read(65536):
            got.append(data)
            await conversation.send(data + data)

    async with proxied(echo, config=config) as proxy, http2_client(proxy.port) as client:
        yield client, got


@pytest.mark.parametrize("offered", [("h2", "http/1.1"), ("http/1.1",)])
async def test_the_protocol_is_agreed_upon_by_alpn(offered: tuple[str, ...]) -> None:
    async with proxied() as proxy:
        port = await proxy.server.listen_https("127.0.0.1", 0, CertificateStore(alpn=("h2", "http/1.1")))
        if offered[0] == "h2":
            async with http2_client(port, tls=client_tls(*offered)) as client:
                assert (await client.fetch(request())).status == 200
            assert b"\r\nX-Forwarded-Proto: https\r\n" in proxy.origin.heads[0]
        else:
            reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=client_tls(*offered))
            writer.write(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            assert (await reader.readline()) == b"HTTP/1.1 200 OK\r\n"
            writer.close()


async def test_prior_knowledge_over_tls_needs_alpn() -> None:
    async with proxied() as proxy:
        port = await proxy.server.listen_https("127.0.0.1", 0, CertificateStore(alpn=("h2", "http/1.1")))
        async with http2_client(port, tls=client_tls("http/1.1")) as client:
            client.flush()
            await client.closed()
            assert client.answers == {}


async def test_streams_under_way_finish_when_the_server_drains() -> None:
    gate, config = Gate(), ProxyConfig(drain_quiet_s=0.05)
    async with proxied(gate.script, config=config) as proxy, http2_client(proxy.port) as client:
        first = client.open(request())
        await until(lambda: bool(proxy.origin.heads))
        draining = asyncio.create_task(proxy.server.drain(5))
        await client.until(lambda: len(client.goaways) == 2)
        assert (client.last_error, client.goaways[1].last_stream_id) == (0, first)
        late = client.open(request())
        assert (await client.answer(late)).reset == REFUSED
        gate.open.set()
        assert (await client.answer(first)).status == 200
        await client.closed()
        await asyncio.wait_for(draining, 5)


async def test_an_announced_drain_serves_what_is_on_its_way() -> None:
    gate = Gate()
    async with (
        proxied(gate.script, config=ProxyConfig(idle_timeout_s=0.2)) as proxy,
        http2_client(proxy.port) as client,
    ):
        first = client.open(request())
        await until(lambda: bool(proxy.origin.heads))
        proxy.server.announce_drain()
        await client.until(lambda: bool(client.goaways))
        assert client.goaways[0].last_stream_id == 2**31 - 1
        second = client.open(request())
        gate.open.set()
        assert (await client.answer(first)).status == 200
        assert (await client.answer(second)).status == 200
        assert len(client.goaways) == 1
        await asyncio.wait_for(proxy.server.drain(5), 5)
        assert client.goaways[1].last_stream_id == second


async def test_a_client_that_says_goodbye_gets_what_it_waits_for() -> None:
    gate = Gate()
    async with proxied(gate.script) as proxy, http2_client(proxy.port) as client:
        stream_id = client.open(request())
        await until(lambda: bool(proxy.origin.heads))
        client.writer.write(b"\0\0\x08\7\0\0\0\0\0" + b"\0" * 8)
        gate.open.set()
        assert (await client.answer(stream_id)).status == 200
        await client.closed()


async def test_streams_over_the_limit_are_refused_one_by_one() -> None:
    gate = Gate()
    async with proxied(gate.script, config=ProxyConfig(max_streams=3)) as proxy, http2_client(proxy.port) as client:
        ids = [client.open(request()) for _ in range(5)]
        for stream_id in ids[3:]:
            assert (await client.answer(stream_id)).reset == REFUSED
        gate.open.set()
        for stream_id in ids[:3]:
            assert (await client.answer(stream_id)).status == 200
        assert (await client.fetch(request())).status == 200


async def test_a_lost_connection_releases_all_upstreams() -> None:
    gate = Gate()
    async with proxied(gate.script) as proxy:
        async with http2_client(proxy.port) as client:
            for _ in range(5):
                client.open(request())
            await until(lambda: len(proxy.origin.heads) == 5)
        await until(lambda: len(proxy.log.records) == 5)
        assert {record[5] for record in proxy.log.records} == {499}
        assert proxy.target.pools[0].in_flight == 0


async def test_a_websocket_passes_both_ways() -> None:
    async with switching() as (client, got):
        await client.until(lambda: client.h2.remote_settings.enable_connect_protocol == 1)
        stream_id = client.open(WEBSOCKET, end=False)
        await client.until(lambda: stream_id in client.answers)
        answer = client.answers[stream_id]
        assert answer.status == 200
        assert not {b"upgrade", b"connection", b"sec-websocket-accept"} & set(answer.headers)
        client.send(stream_id, b"\x81\x05hello")
        await client.until(lambda: len(answer.body) == 14)
        assert b"".join(got) == b"\x81\x05hello"
        client.h2.end_stream(stream_id)
        client.flush()
        assert (await client.answer(stream_id)).ended


async def test_the_origin_sees_an_upgrade_of_http1() -> None:
    async def refuse(conversation: Conversation) -> None:
        await conversation.request()
        await conversation.send(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno")

    async with proxied(refuse) as proxy, http2_client(proxy.port) as client:
        answer = await client.fetch(WEBSOCKET)
        assert answer.status == 403
        head = proxy.origin.heads[0]
        assert head.startswith(b"GET /chat HTTP/1.1\r\nHost: a\r\nsec-websocket-version: 13\r\nSec-WebSocket-Key: ")
        assert b"\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" in head


async def test_an_origin_that_does_not_switch_is_not_a_tunnel() -> None:
    async with proxied() as proxy, http2_client(proxy.port) as client:
        stream_id = client.open(WEBSOCKET, end=False)
        answer = await client.answer(stream_id)
        assert (answer.headers, answer.reset) == ({}, 2)


async def test_a_route_without_websockets_opens_no_tunnel() -> None:
    async with proxied() as proxy, http2_client(proxy.port) as client:
        proxy.target.policies = RoutePolicies()
        proxy.target.policies.websocket = False
        answer = await client.answer(client.open(WEBSOCKET, end=False))
        assert answer.reset == 2
        assert b"Upgrade" not in proxy.origin.heads[0]


async def test_an_origin_that_closes_ends_the_tunnel() -> None:
    async def short(conversation: Conversation) -> None:
        await conversation.head()
        await conversation.send(SWITCH + b"bye")

    async with proxied(short) as proxy, http2_client(proxy.port) as client:
        stream_id = client.open(WEBSOCKET, end=False)
        answer = await client.answer(stream_id)
        assert (bytes(answer.body), answer.ended) == (b"bye", True)
        assert proxy.log.records[0][5] == 101


async def test_large_messages_pass_through_a_tunnel() -> None:
    message = bytes(range(256)) * 4096
    async with switching() as (client, got):
        stream_id = client.open(WEBSOCKET, end=False)
        await client.send_all(stream_id, message, end=False)
        await client.until(lambda: len(client.answers[stream_id].body) == 2 * len(message))
        assert b"".join(got) == message


@in_virtual_time
async def test_a_silent_tunnel_is_closed() -> None:
    async with switching(ProxyConfig(tunnel_idle_timeout_s=0.2)) as (client, _):
        assert (await client.answer(client.open(WEBSOCKET, end=False))).ended
