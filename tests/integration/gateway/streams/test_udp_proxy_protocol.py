"""PROXY protocol headers before datagrams, in and out, on real sockets."""

import asyncio
import socket

import pytest

from fakes.gateway.ports import free_port
from fakes.gateway.streams import PATIENCE_S, Udp, backend, stream, streams, udp_client, udp_server
from headgate.gateway.model.networks import parse_networks
from headgate.gateway.net.proxy_protocol import (
    Addresses,
    ProxyHeader,
    read_datagram_header,
    write_datagram_header,
    write_proxy_header,
)
from headgate.gateway.streams.log import Status

ANN = Addresses(("203.0.113.9", 4000), ("192.0.2.1", 53))
BOB = Addresses(("2001:db8::9", 4000), ("2001:db8::53", 53))


def udp_port(host: str = "127.0.0.1") -> int:
    return free_port(host, socket.SOCK_DGRAM)


def bare(data: bytes) -> tuple[bytes]:
    """Answer as a server that reads headers does: without one."""
    return (data[read_datagram_header(data).size :].upper(),)


async def received(upstream: Udp) -> tuple[ProxyHeader, bytes]:
    data = await upstream.next()
    header = read_datagram_header(data)
    return header, data[header.size :]


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "::"])
async def test_every_datagram_to_an_endpoint_says_who_sent_it_and_where_to(host: str) -> None:
    port, asked = udp_port(host), "127.0.0.1" if host == "::" else host
    async with (
        udp_server(answer=bare) as upstream,
        streams(stream(port, protocol="udp"), backend(upstream.port, protocol="udp", proxy_protocol=2), host=host),
        udp_client(asked, port) as client,
    ):
        for data in (b"one", b"two"):
            client.send(data)
            assert await client.next() == data.upper()
            header, rest = await received(upstream)
            assert header.addresses == Addresses((asked, client.port), (asked, port))
            assert rest == data


async def test_the_destination_is_the_address_that_was_asked() -> None:
    port = udp_port("0.0.0.0")
    async with (
        udp_server(answer=bare) as upstream,
        streams(stream(port, protocol="udp"), backend(upstream.port, protocol="udp", proxy_protocol=2), host="0.0.0.0"),
    ):
        _, client = await asyncio.get_running_loop().create_datagram_endpoint(Udp, ("127.0.0.1", 0))
        client.transport.sendto(b"x", ("127.0.0.7", port))
        header, _ = await received(upstream)
        assert header.addresses is not None
        assert header.addresses.destination == ("127.0.0.7", port)
        client.transport.close()


async def test_clients_behind_one_proxy_have_sessions_of_their_own() -> None:
    port = udp_port()
    async with (
        udp_server() as upstream,
        streams(
            stream(port, protocol="udp", accept_proxy_protocol=True, udp_responses=1),
            backend(upstream.port, protocol="udp"),
        ) as running,
        udp_client("127.0.0.1", port) as proxy,
    ):
        for ends in (ANN, BOB):
            proxy.send(write_datagram_header(ends) + b"query")
        assert [await proxy.next(), await proxy.next()] == [b"QUERY", b"QUERY"]
        sources = {upstream.received.get_nowait()[1] for _ in range(2)}
        assert len(sources) == 2
        records = await running.ended(2)
        assert {record.client for record in records} == {"203.0.113.9", "2001:db8::9"}
        assert {(record.received, record.sent) for record in records} == {(5, 5)}


async def test_one_client_keeps_its_session() -> None:
    port = udp_port()
    async with (
        udp_server() as upstream,
        streams(
            stream(port, protocol="udp", accept_proxy_protocol=True), backend(upstream.port, protocol="udp")
        ) as running,
        udp_client("127.0.0.1", port) as proxy,
    ):
        for _ in range(3):
            proxy.send(write_datagram_header(ANN) + b"x")
            assert await proxy.next() == b"X"
        assert len({upstream.received.get_nowait()[1] for _ in range(3)}) == 1
        assert running.context.stats.route("s").accepted == 1


async def test_what_a_proxy_says_goes_on_to_the_endpoint() -> None:
    port = udp_port()
    async with (
        udp_server(answer=bare) as upstream,
        streams(
            stream(port, protocol="udp", accept_proxy_protocol=True),
            backend(upstream.port, protocol="udp", proxy_protocol=2),
        ),
        udp_client("127.0.0.1", port) as proxy,
    ):
        for ends in (ANN, BOB):
            proxy.send(write_datagram_header(ends) + b"x")
            assert await proxy.next() == b"X"
            assert (await received(upstream))[0].addresses == ends


async def test_networks_are_those_of_the_client_that_a_proxy_names() -> None:
    port = udp_port()
    async with (
        udp_server() as upstream,
        streams(
            stream(port, protocol="udp", accept_proxy_protocol=True, allowed_networks=("203.0.113.0/24",)),
            backend(upstream.port, protocol="udp"),
        ) as running,
        udp_client("127.0.0.1", port) as proxy,
    ):
        proxy.send(write_datagram_header(BOB) + b"bob")
        proxy.send(write_datagram_header(ANN) + b"ann")
        assert await proxy.next() == b"ANN"
        assert running.context.stats.route("s").dropped == 1


async def test_a_health_check_of_a_proxy_is_a_session_of_the_proxy() -> None:
    port = udp_port()
    async with (
        udp_server() as upstream,
        streams(
            stream(port, protocol="udp", accept_proxy_protocol=True, udp_responses=1),
            backend(upstream.port, protocol="udp"),
        ) as running,
        udp_client("127.0.0.1", port) as proxy,
    ):
        proxy.send(write_proxy_header(2, None) + b"ping")
        assert await proxy.next() == b"PING"
        assert [(record.client, record.status) for record in await running.ended()] == [("127.0.0.1", Status.OK)]


@pytest.mark.parametrize("data", [b"query", write_proxy_header(2, ANN) + b"query", write_proxy_header(1, ANN) + b"q"])
async def test_a_datagram_without_its_header_is_dropped_and_others_go_on(data: bytes) -> None:
    port = udp_port()
    async with (
        udp_server() as upstream,
        streams(
            stream(port, protocol="udp", accept_proxy_protocol=True), backend(upstream.port, protocol="udp")
        ) as running,
        udp_client("127.0.0.1", port) as proxy,
    ):
        proxy.send(data)
        proxy.send(write_datagram_header(ANN) + b"good")
        assert await proxy.next() == b"GOOD"
        assert running.context.stats.unrouted == 1
        assert upstream.received.qsize() == 1


async def test_a_peer_that_is_not_trusted_has_no_header_taken_off() -> None:
    port = udp_port()
    async with (
        udp_server() as upstream,
        streams(
            stream(port, protocol="udp", accept_proxy_protocol=True),
            backend(upstream.port, protocol="udp"),
            proxy_networks=parse_networks(("10.0.0.0/8",)),
        ) as running,
        udp_client("127.0.0.1", port) as client,
    ):
        forged = write_datagram_header(ANN) + b"x"
        client.send(forged)
        assert (await asyncio.wait_for(upstream.received.get(), PATIENCE_S))[0] == forged
        assert running.context.stats.unrouted == 0


async def test_sessions_of_a_closed_port_still_read_headers() -> None:
    port = udp_port()
    async with (
        udp_server() as upstream,
        streams(
            stream(port, protocol="udp", accept_proxy_protocol=True), backend(upstream.port, protocol="udp")
        ) as running,
        udp_client("127.0.0.1", port) as proxy,
    ):
        proxy.send(write_datagram_header(ANN) + b"one")
        assert await proxy.next() == b"ONE"
        running.remove("s")
        proxy.send(write_datagram_header(ANN) + b"two")
        assert await proxy.next() == b"TWO"
