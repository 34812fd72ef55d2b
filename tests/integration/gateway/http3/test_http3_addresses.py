"""The address that counts as a client's: UDP lets everybody write any into a packet."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aioquic.quic.connection import QuicConnection
from aioquic.quic.events import HandshakeCompleted, QuicEvent

from fakes.gateway.proxied import OK, answering
from fakes.gateway.served import at, origins, served, site
from fakes.peers.http3 import Http3Client, client_configuration

FORGED = "127.0.0.2"


class Forging(Http3Client):
    """Sends the end of its handshake from an address that is another's, as far as the gateway can tell."""

    def __init__(self, quic: QuicConnection, forged: asyncio.DatagramTransport) -> None:
        super().__init__(quic)
        self._forged = forged
        self._own: asyncio.DatagramTransport | None = None

    def quic_event_received(self, event: QuicEvent) -> None:
        super().quic_event_received(event)
        if isinstance(event, HandshakeCompleted):
            self._transport, self._own = self._forged, self._transport

    def go_on_from_own(self) -> None:
        assert self._own is not None, "the handshake is complete"
        self._transport = self._own


@asynccontextmanager
async def forging(port: int) -> AsyncIterator[Forging]:
    loop = asyncio.get_running_loop()
    forged, _ = await loop.create_datagram_endpoint(asyncio.DatagramProtocol, local_addr=(FORGED, 0))
    client = Forging(QuicConnection(configuration=client_configuration()), forged)
    await loop.create_datagram_endpoint(lambda: client, local_addr=("127.0.0.1", 0))
    try:
        client.connect(("127.0.0.1", port))
        await asyncio.wait_for(client.wait_connected(), 10)
        yield client
    finally:
        client.close()
        client.close_sockets()
        forged.close()
        await asyncio.sleep(0)


async def test_a_handshake_cannot_be_completed_from_another_address() -> None:
    async with (
        origins(answering(OK)) as (origin,),
        served(at(origin.port), site(), http3=True) as proxy,
        forging(proxy.https_port) as client,
    ):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(client.ask(), 0.3)
        assert proxy.certificates.counts.completed == 0
        client.go_on_from_own()
        assert (await client.ask()).status == 200
        assert all(b"X-Forwarded-For: 127.0.0.1\r\n" in head for head in origin.heads)
        assert FORGED.encode() not in b"".join(origin.heads)
