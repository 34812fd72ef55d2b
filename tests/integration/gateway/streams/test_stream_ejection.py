"""How streams go is told to the ejection of their upstream."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator

import pytest

from fakes.gateway.ports import free_port
from fakes.gateway.requests import PLAIN
from fakes.gateway.streams import PATIENCE_S, Streams, backend, echo_server, stream, streams, udp_client, udp_server
from fakes.waiting import until
from headgate.common.table import Ejection
from headgate.gateway.health.stats import HealthStats
from headgate.gateway.health.upstreams import UpstreamHealth

TWICE = Ejection(consecutive_errors=2, base_s=60)


@pytest.fixture
async def health() -> AsyncIterator[UpstreamHealth]:
    health = UpstreamHealth(HealthStats())
    yield health
    await health.close()


async def connect(port: int) -> bytes:
    """Connect, and give what the endpoint says first."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    with contextlib.suppress(ConnectionError):
        try:
            return await asyncio.wait_for(reader.read(2), PATIENCE_S)
        finally:
            writer.close()
    return b""


def ejected(health: UpstreamHealth) -> set[int]:
    return {slot.key[1] for slot in health.state("up").unavailable}


def fail(health: UpstreamHealth, serving: Streams, port: int) -> None:
    """Note a failure of an endpoint, as if another stream had met it."""
    slots = serving.compiler.find_endpoints("up").balancer.slots
    health.state("up").report(next(slot for slot in slots if slot.key[1] == port), "connect")


async def test_an_endpoint_that_refuses_connections_is_ejected(health: UpstreamHealth) -> None:
    port, refusing = free_port(), free_port()
    async with (
        echo_server(name=b"hi") as plain,
        streams(stream(port), backend(plain, refusing, ejection=TWICE), health=health) as serving,
    ):
        assert {await connect(port) for _ in range(4)} == {b"hi"}
        assert ejected(health) == {refusing}
        chosen = {serving.compiler.find_endpoints("up").balancer.pick((), PLAIN).key[1] for _ in range(4)}
        assert chosen == {plain}


async def test_an_endpoint_without_an_answer_in_time_is_ejected(health: UpstreamHealth) -> None:
    port = free_port()
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        filler = [socket.socket() for _ in range(4)]
        for one in filler:
            one.setblocking(False)
            one.connect_ex(full.getsockname())
        silent = full.getsockname()[1]
        async with echo_server(name=b"hi") as plain:
            entries = (stream(port, connect_timeout_s=0.5), backend(plain, silent, ejection=TWICE))
            async with streams(*entries, health=health):
                assert {await connect(port) for _ in range(4)} == {b"hi"}
                assert ejected(health) == {silent}
        for one in filler:
            one.close()


async def test_a_connection_ends_the_row_of_failures(health: UpstreamHealth) -> None:
    port, other = free_port(), free_port()
    async with (
        echo_server(name=b"hi") as plain,
        streams(stream(port), backend(plain, other, ejection=TWICE), health=health) as serving,
    ):
        for _ in range(3):
            fail(health, serving, plain)
            assert {await connect(port) for _ in range(2)} == {b"hi"}
        assert plain not in ejected(health)


async def test_an_endpoint_that_refuses_datagrams_is_ejected_and_one_that_answers_is_not(
    health: UpstreamHealth,
) -> None:
    port, refusing = free_port(kind=socket.SOCK_DGRAM), free_port(kind=socket.SOCK_DGRAM)
    entry = stream(port, protocol="udp", udp_responses=1)
    async with (
        udp_server() as server,
        streams(entry, backend(server.port, refusing, protocol="udp", ejection=TWICE), health=health) as serving,
    ):

        async def ask() -> None:
            async with udp_client("127.0.0.1", port) as client:
                ended = len(serving.records)
                client.send(b"a")
                await serving.ended(ended + 1)

        for _ in range(4):
            fail(health, serving, server.port)
            await ask()
            await ask()
        await until(lambda: ejected(health) == {refusing})
