"""TCP connections through stream ports, on real sockets of both families."""

import asyncio
import socket
import struct

import pytest

from fakes.gateway.ports import free_port
from fakes.gateway.streams import PATIENCE_S, backend, echo_server, serving, stream, streams
from fakes.waiting import until, until_still
from headgate.gateway.streams.log import Status


async def rest(reader: asyncio.StreamReader) -> bytes:
    return await asyncio.wait_for(reader.read(), PATIENCE_S)


@pytest.mark.parametrize(("host", "endpoint"), [("127.0.0.1", "::1"), ("::1", "127.0.0.1"), ("::", "127.0.0.1")])
async def test_bytes_flow_both_ways_between_families(host: str, endpoint: str) -> None:
    async with echo_server(endpoint, name=b"hello ") as upstream:
        port = free_port(host)
        async with streams(stream(port), backend(upstream, host=endpoint), host=host) as running:
            client = "127.0.0.1" if host == "::" else host
            reader, writer = await asyncio.open_connection(client, port)
            writer.write(b"world")
            assert await asyncio.wait_for(reader.readexactly(11), PATIENCE_S) == b"hello world"
            writer.close()
            (record,) = await running.ended()
        assert (record.status, record.received, record.sent, record.reason) == (Status.OK, 5, 11, "")
        assert (record.client, record.port, record.route, record.upstream) == (client, port, "s", "up")


async def test_the_end_of_one_direction_is_passed_on_and_the_other_goes_on() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write((await reader.read())[::-1])
        writer.close()

    port = free_port()
    async with serving(serve) as upstream, streams(stream(port), backend(upstream)):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"abc")
        writer.write_eof()
        assert await rest(reader) == b"cba"
        writer.close()


async def test_a_reset_of_the_upstream_is_a_reset_for_the_client() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(1)
        linger = struct.pack("ii", 1, 0)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        writer.transport.abort()

    port = free_port()
    async with serving(serve) as upstream, streams(stream(port), backend(upstream)) as running:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"x")
        with pytest.raises(ConnectionResetError):
            await rest(reader)
        writer.close()
        assert "reset" in (await running.ended())[0].reason.lower()


async def test_a_slow_reader_stops_the_sender_and_costs_no_memory() -> None:
    sent = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        while True:
            writer.write(bytes(65536))
            await writer.drain()
            sent += 65536

    port = free_port()
    async with serving(serve) as upstream, streams(stream(port), backend(upstream)):
        loop = asyncio.get_running_loop()
        client = socket.socket()
        client.setblocking(False)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        await loop.sock_connect(client, ("127.0.0.1", port))
        await until(lambda: sent)
        await until_still(lambda: sent)
        for _ in range(200):
            await loop.sock_recv(client, 1 << 20)
        client.close()


async def test_endpoints_that_refuse_do_not_count_up_to_two() -> None:
    port, dead = free_port(), [free_port(), free_port()]
    async with echo_server(name=b"here") as upstream, streams(stream(port), backend(upstream, *dead)) as running:
        for count in range(1, 7):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            assert await asyncio.wait_for(reader.readexactly(4), PATIENCE_S) == b"here"
            writer.close()
            assert (await running.ended(count))[-1].endpoint == f"127.0.0.1:{upstream}"


async def test_another_endpoint_is_tried_when_one_refuses() -> None:
    port, dead = free_port(), free_port()
    async with echo_server(name=b"here") as upstream, streams(stream(port), backend(upstream, dead)) as running:
        for count in range(1, 5):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            assert await asyncio.wait_for(reader.readexactly(4), PATIENCE_S) == b"here"
            writer.close()
            assert (await running.ended(count))[-1].endpoint == f"127.0.0.1:{upstream}"


@pytest.mark.parametrize(
    ("entries", "status", "reason"),
    [
        ({"ports": (1,)}, Status.NO_UPSTREAM, "127.0.0.1:1: "),
        ({"ports": ()}, Status.NO_UPSTREAM, "up has no endpoints"),
        ({"ports": (1,), "allowed_networks": ("10.0.0.0/8", "::1/128")}, Status.FORBIDDEN, "allowed_networks"),
        ({"ports": (1,), "allowed_networks": ("10.0.0.0/99",)}, Status.FAILED, "allowed_networks"),
    ],
)
async def test_a_connection_that_cannot_be_served_is_closed_and_says_why(
    entries: dict[str, tuple[object, ...]], status: Status, reason: str
) -> None:
    port = free_port()
    fields = dict(entries)
    up = backend(*fields.pop("ports"))
    async with streams(stream(port, **fields), up) as running:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        assert await rest(reader) == b""
        writer.close()
        (record,) = await running.ended()
        assert record.status is status
        assert reason in record.reason
        assert running.context.stats.route("s").finished == {status: 1}


async def test_connections_beyond_the_bound_are_closed_until_one_ends() -> None:
    port = free_port()
    async with (
        echo_server(name=b"!") as upstream,
        streams(stream(port, max_connections=1), backend(upstream)) as running,
    ):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        assert await reader.readexactly(1) == b"!"
        second, closing = await asyncio.open_connection("127.0.0.1", port)
        assert await rest(second) == b""
        closing.close()
        assert (await running.ended())[0].status is Status.TOO_MANY
        writer.close()
        await running.ended(2)
        third, closing = await asyncio.open_connection("127.0.0.1", port)
        assert await third.readexactly(1) == b"!"
        closing.close()


async def test_an_idle_connection_is_ended_and_an_active_one_is_not() -> None:
    port = free_port()
    async with echo_server() as upstream, streams(stream(port, idle_timeout_s=1.5), backend(upstream)) as running:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in range(5):
            await asyncio.sleep(0.4)
            writer.write(b"x")
            await reader.readexactly(1)
        assert running.records == []
        with pytest.raises(ConnectionResetError):
            await rest(reader)
        writer.close()
        (record,) = await running.ended()
        assert record.reason == "idle"
        assert record.seconds >= 2.0


async def test_requests_under_way_are_counted_for_balancing_until_the_end() -> None:
    port = free_port()
    async with echo_server(name=b"!") as upstream, streams(stream(port), backend(upstream)) as running:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        await reader.readexactly(1)
        [(_, holder)] = running.compiler.upstreams.compiled()
        [slot] = holder.balancer.slots
        assert slot.active == 1
        writer.close()
        await running.ended()
        assert slot.active == 0


async def test_bytes_of_open_connections_are_counted_when_metrics_are_read() -> None:
    port = free_port()
    async with echo_server() as upstream, streams(stream(port), backend(upstream)) as running:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"12345")
        await reader.readexactly(5)
        samples = {
            (sample.name, *sample.labels.values()): sample.value
            for family in running.context.stats.collect()
            for sample in family.samples
        }
        assert samples["headgate_stream_received_bytes_total", "s"] == 5
        assert samples["headgate_stream_active", "s"] == 1
        assert samples["headgate_stream_ports", "open"] == 1
        writer.close()
