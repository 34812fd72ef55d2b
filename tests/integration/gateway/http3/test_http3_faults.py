"""A fault in one connection of HTTP/3 is not one in others."""

import pytest

from fakes.gateway.proxied import OK, answering
from fakes.gateway.served import at, origins, served, site
from fakes.peers.http3 import http3_client
from headgate.gateway.quic.connection import ClientQuic, NetworkAddress
from headgate.gateway.quic.endpoint import QuicEndpoint

UNKNOWN = b"\x21"


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
