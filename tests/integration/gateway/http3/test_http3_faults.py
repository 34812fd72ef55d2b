"""A fault in one connection of HTTP/3 is not one in others."""

import asyncio
import logging
import socket

import pytest
from qh3._hazmat import UdpSocketState

from fakes.gateway.proxied import OK, Conversation, answering
from fakes.gateway.served import at, origins, served, site
from fakes.peers.http3 import first_datagrams, head_of, http3_client
from fakes.waiting import until, until_still
from headgate.gateway.quic import endpoint as endpoint_module
from headgate.gateway.quic.connection import ClientQuic, NetworkAddress
from headgate.gateway.quic.endpoint import QuicEndpoint

UNKNOWN = b"\x21"
MIB = 1 << 20


class Stuck:
    """A socket of which the kernel takes nothing for now."""

    def __init__(self, descriptor: int) -> None:
        self.state = UdpSocketState(descriptor)
        self.sends = False
        self.sent = self.refused = 0
        opened.append(self)

    def recv(self) -> object:
        return self.state.recv()

    def send(self, datagrams: list[bytes], address: NetworkAddress) -> int:
        if not self.sends:
            self.refused += 1
            return 0
        self.sent += len(datagrams)
        return int(self.state.send(datagrams, address))


opened: list[Stuck] = []


async def test_connections_that_send_in_the_turn_of_one_that_cannot_do_send(monkeypatch: pytest.MonkeyPatch) -> None:
    connections: list[ClientQuic] = []
    completed, send = QuicEndpoint.completed, QuicEndpoint.send

    def complete(endpoint: QuicEndpoint, connection: ClientQuic) -> None:
        connections.append(connection)
        completed(endpoint, connection)

    def send_to_others(endpoint: QuicEndpoint, datagrams: list[bytes], address: NetworkAddress) -> bool:
        if address[1] == connections[0].address[1]:
            raise LookupError("a fault of this test")
        return send(endpoint, datagrams, address)

    monkeypatch.setattr(QuicEndpoint, "completed", complete)
    async with (
        origins(answering(OK, OK)) as (origin,),
        served(at(origin.port), site(), http3=True) as proxy,
        http3_client(proxy.https_port) as broken,
        http3_client(proxy.https_port) as client,
    ):
        assert (await broken.ask()).status == 200
        monkeypatch.setattr(QuicEndpoint, "send", send_to_others)
        for connection in connections:
            connection.open_control(UNKNOWN)
        assert (await client.ask()).status == 200
        assert [connection.is_over for connection in connections] == [True, False]


async def test_a_fault_while_reading_goes_on_closes_its_connection_alone(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    go_on, ended = asyncio.Event(), asyncio.Event()

    async def slow(conversation: Conversation) -> None:
        if b"/slow" in await conversation.head():
            await go_on.wait()
            await conversation.reader.read()
            ended.set()
        await conversation.send(OK)

    def fail(endpoint: QuicEndpoint, connection_id: bytes) -> None:
        raise SystemError("a fault of this test")

    async with (
        origins(slow) as (origin,),
        served(at(origin.port), site(), http3=True) as proxy,
        http3_client(proxy.https_port) as broken,
        http3_client(proxy.https_port) as client,
    ):
        stream_id = broken.begin(head_of("/slow", method="POST", content_length=16 * MIB))
        broken.send(stream_id, bytes(16 * MIB), end=True)
        await until_still(lambda: broken.acknowledged(stream_id))
        broken.change_connection_id()
        broken.transmit()
        await asyncio.sleep(0.1)
        assert broken.terminated is None
        monkeypatch.setattr(QuicEndpoint, "remove_id", fail)
        with caplog.at_level(logging.ERROR):
            go_on.set()
            assert (await broken.until_closed()).error_code == 0x102
        assert [record.message for record in caplog.records] == ["a connection of HTTP/3 is closed"]
        await asyncio.wait_for(ended.wait(), 10)
        assert (await client.ask()).status == 200


async def test_answers_to_addresses_that_may_be_forged_do_not_wait_for_the_kernel(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(endpoint_module, "UdpSocketState", Stuck)
    monkeypatch.setattr(endpoint_module, "VALIDATE_ABOVE", 0)
    other_version = b"\xc0\x1a\x2a\x3a\x4a\x08" + bytes(8) + b"\x08" + bytes(1200)
    async with served(site(), http3=True) as proxy:
        loop, (stuck,) = asyncio.get_running_loop(), opened
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as forged:
            forged.setblocking(False)
            await loop.sock_connect(forged, ("127.0.0.1", proxy.https_port))
            for _ in range(50):
                for datagram in (other_version, *first_datagrams()):
                    await loop.sock_sendall(forged, datagram)
            await until(lambda: stuck.refused >= 100)
            stuck.sends = True
            await loop.sock_sendall(forged, other_version)
            async with asyncio.timeout(10):
                assert (await loop.sock_recv(forged, 2000))[1:5] == bytes(4)
            assert stuck.sent == 1
            assert proxy.certificates.counts.started == 0
