"""UDP sessions on real sockets."""

import asyncio
import socket

import pytest

from fakes.gateway.ports import free_port
from fakes.gateway.streams import PATIENCE_S, Udp, backend, stream, streams, udp_client, udp_server
from headgate.gateway.streams.log import Status


def udp_port(host: str = "127.0.0.1") -> int:
    return free_port(host, socket.SOCK_DGRAM)


@pytest.mark.parametrize(("host", "endpoint"), [("127.0.0.1", "::1"), ("::1", "127.0.0.1"), ("::", "127.0.0.1")])
async def test_datagrams_go_both_ways_between_families(host: str, endpoint: str) -> None:
    port = udp_port(host)
    async with (
        udp_server(endpoint) as upstream,
        streams(
            stream(port, protocol="udp", idle_timeout_s=1.0),
            backend(upstream.port, host=endpoint, protocol="udp"),
            host=host,
        ) as running,
        udp_client("127.0.0.1" if host == "::" else host, port) as client,
    ):
        client.send(b"abc")
        assert await client.next() == b"ABC"
        client.send(b"de")
        assert await client.next() == b"DE"
        (record,) = await running.ended()
        assert (record.protocol, record.status, record.received, record.sent) == ("udp", Status.OK, 5, 5)
        assert record.client == ("127.0.0.1" if host == "::" else host)


async def test_the_answer_comes_from_the_address_that_was_asked() -> None:
    port = udp_port("0.0.0.0")
    async with (
        udp_server() as upstream,
        streams(stream(port, protocol="udp"), backend(upstream.port, protocol="udp"), host="0.0.0.0"),
    ):
        _, client = await asyncio.get_running_loop().create_datagram_endpoint(Udp, ("127.0.0.1", 0))
        client.transport.sendto(b"x", ("127.0.0.7", port))
        assert (await asyncio.wait_for(client.received.get(), PATIENCE_S)) == (b"X", ("127.0.0.7", port))
        client.transport.close()


async def test_a_client_keeps_its_session_and_two_have_their_own() -> None:
    port = udp_port()
    async with (
        udp_server() as upstream,
        streams(stream(port, protocol="udp"), backend(upstream.port, protocol="udp")) as running,
        udp_client("127.0.0.1", port) as one,
        udp_client("127.0.0.1", port) as two,
    ):
        for client in (one, two, one):
            client.send(b"x")
            assert await client.next() == b"X"
        sources = {upstream.received.get_nowait()[1] for _ in range(3)}
        assert len(sources) == 2
        assert running.context.stats.route("s").active == 2


async def test_a_session_ends_with_the_answers_that_its_requests_get() -> None:
    port = udp_port()
    async with (
        udp_server() as upstream,
        streams(stream(port, protocol="udp", udp_responses=1), backend(upstream.port, protocol="udp")) as running,
        udp_client("127.0.0.1", port) as client,
    ):
        client.send(b"a")
        client.send(b"aaaa")
        assert {await client.next(), await client.next()} == {b"A", b"AAAA"}
        records = await running.ended()
        assert sum(record.sent for record in records) == 5
        assert running.context.stats.active == 0


async def test_a_session_without_expected_answers_ends_at_once() -> None:
    port = udp_port()
    async with (
        udp_server(answer=lambda data: ()) as upstream,
        streams(stream(port, protocol="udp", udp_responses=0), backend(upstream.port, protocol="udp")) as running,
        udp_client("127.0.0.1", port) as client,
    ):
        client.send(b"log line")
        assert await upstream.next() == b"log line"
        assert (await running.ended())[0].received == 8


async def test_sessions_are_bounded_and_other_datagrams_are_dropped() -> None:
    port = udp_port()
    async with (
        udp_server() as upstream,
        streams(stream(port, protocol="udp", max_connections=1), backend(upstream.port, protocol="udp")) as running,
        udp_client("127.0.0.1", port) as one,
        udp_client("127.0.0.1", port) as two,
    ):
        one.send(b"x")
        assert await one.next() == b"X"
        two.send(b"y")
        one.send(b"z")
        assert await one.next() == b"Z"
        counters = running.context.stats.route("s")
        assert (counters.accepted, counters.dropped) == (1, 1)


async def test_after_a_refusal_the_next_datagram_tries_another_endpoint() -> None:
    port, dead = udp_port(), udp_port()
    async with (
        udp_server() as upstream,
        streams(stream(port, protocol="udp"), backend(upstream.port, dead, protocol="udp")) as running,
        udp_client("127.0.0.1", port) as client,
    ):
        async with asyncio.timeout(PATIENCE_S):
            while client.received.empty():
                client.send(b"x")
                await asyncio.sleep(0.05)
        assert await client.next() == b"X"
        for record in running.records:
            assert (record.status, record.endpoint) == (Status.NO_UPSTREAM, f"127.0.0.1:{dead}")


async def test_a_name_is_resolved_while_datagrams_wait() -> None:
    port = udp_port()
    async with (
        udp_server() as upstream,
        streams(stream(port, protocol="udp"), backend(upstream.port, host="localhost", protocol="udp")),
        udp_client("127.0.0.1", port) as client,
    ):
        client.send(b"one")
        client.send(b"two")
        assert [await client.next(), await client.next()] == [b"ONE", b"TWO"]


async def test_clients_that_are_not_allowed_get_nothing_and_no_session() -> None:
    port = udp_port()
    async with (
        udp_server() as upstream,
        streams(
            stream(port, protocol="udp", allowed_networks=("10.0.0.0/8",)), backend(upstream.port, protocol="udp")
        ) as running,
        udp_client("127.0.0.1", port) as client,
    ):
        client.send(b"x")
        counters = running.context.stats.route("s")
        async with asyncio.timeout(PATIENCE_S):
            while not counters.dropped:  # noqa: ASYNC110 - counters have no event
                await asyncio.sleep(0.01)
        assert (counters.accepted, upstream.received.qsize()) == (0, 0)
