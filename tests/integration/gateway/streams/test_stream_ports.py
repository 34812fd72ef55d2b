"""Ports that open, change and close with the table."""

import asyncio
import socket

import pytest

from fakes.gateway.ports import free_port
from fakes.gateway.streams import PATIENCE_S, backend, echo_server, stream, streams, udp_client, udp_server
from headgate.gateway.net import port_set as module
from headgate.gateway.streams.context import StreamContext
from headgate.gateway.streams.listeners import StreamListeners


async def greeting(port: int) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        return await asyncio.wait_for(reader.readexactly(1), PATIENCE_S)
    finally:
        writer.close()


async def test_ports_open_and_close_and_open_connections_go_on() -> None:
    one, two = free_port(), free_port()
    async with echo_server(name=b"1") as upstream, streams(stream(one), backend(upstream)) as running:
        assert running.listeners.names == (f"tcp://127.0.0.1:{one}",)
        reader, writer = await asyncio.open_connection("127.0.0.1", one)
        assert await reader.readexactly(1) == b"1"
        running.put(stream(two, key="t"))
        assert await greeting(two) == b"1"
        running.remove("s")
        assert running.listeners.names == (f"tcp://127.0.0.1:{two}",)
        with pytest.raises(ConnectionRefusedError):
            await greeting(one)
        writer.write(b"still")
        assert await asyncio.wait_for(reader.readexactly(5), PATIENCE_S) == b"still"
        running.put(stream(one))
        assert await greeting(one) == b"1"
        writer.close()


async def test_a_changed_route_is_for_new_connections_and_keeps_the_port() -> None:
    port = free_port()
    async with (
        echo_server(name=b"1") as first,
        echo_server(name=b"2") as second,
        streams(stream(port), backend(first), backend(second, key="other")) as running,
    ):
        before = running.listeners.ports.open.copy()
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        assert await reader.readexactly(1) == b"1"
        running.put(stream(port, up="other"))
        assert await greeting(port) == b"2"
        assert running.listeners.ports.open == before
        writer.write(b"x")
        assert await reader.readexactly(1) == b"x"
        writer.close()


async def test_changed_endpoints_take_new_connections_without_a_changed_route() -> None:
    port = free_port()
    async with (
        echo_server(name=b"1") as first,
        echo_server(name=b"2") as second,
        streams(stream(port), backend(first)) as running,
    ):
        assert await greeting(port) == b"1"
        running.put(backend(second))
        assert await greeting(port) == b"2"


async def test_a_port_that_is_taken_is_shown_and_tried_again_and_costs_nobody_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "RETRY_S", 0.05)
    other = free_port()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        async with (
            echo_server(name=b"1") as upstream,
            streams(stream(port), stream(other, key="t"), backend(upstream)) as running,
        ):
            stats = running.context.stats
            assert await greeting(other) == b"1"
            assert f"tcp://127.0.0.1:{port} not open: Address already in use" in running.listeners.names
            assert (stats.ports_open, stats.ports_failed) == (1, 1)
            taken.close()
            async with asyncio.timeout(PATIENCE_S):
                while stats.ports_failed:  # noqa: ASYNC110 - counters have no event
                    await asyncio.sleep(0.01)
            assert await greeting(port) == b"1"


async def test_ports_of_the_gateway_itself_are_refused() -> None:
    port = free_port()
    async with streams() as running:
        listeners = StreamListeners(running.context, "127.0.0.1", reuse_port=True, reserved={port: "HTTP port"})
        running.put(backend(1), stream(free_port(), key="t"))
        running.image.put(stream(port))
        running.listeners, before = listeners, running.listeners
        before.apply([])
        running.load()
        assert f"tcp://127.0.0.1:{port} not open: port {port} is the gateway's HTTP port" in listeners.names
        await listeners.drain(0)
        running.listeners = before


async def test_the_udp_port_of_http3_is_refused_to_streams() -> None:
    port = free_port()
    async with streams() as running:
        listeners = StreamListeners(running.context, "127.0.0.1", reuse_port=True, http3_port=port)
        running.put(backend(1), stream(free_port(), key="t"))
        running.image.put(stream(port, protocol="udp"))
        running.listeners, before = listeners, running.listeners
        before.apply([])
        running.load()
        assert f"udp://127.0.0.1:{port} not open: port {port} is the gateway's HTTP/3 port" in listeners.names
        await listeners.drain(0)
        running.listeners = before


async def test_a_closed_udp_port_serves_its_sessions_and_takes_no_new_ones_until_it_returns() -> None:
    port = free_port(kind=socket.SOCK_DGRAM)
    async with (
        udp_server() as upstream,
        streams(stream(port, protocol="udp"), backend(upstream.port, protocol="udp")) as running,
        udp_client("127.0.0.1", port) as old,
        udp_client("127.0.0.1", port) as new,
    ):
        old.send(b"a")
        assert await old.next() == b"A"
        running.remove("s")
        assert running.listeners.names == ()
        new.send(b"x")
        old.send(b"b")
        assert await old.next() == b"B"
        running.put(stream(port, protocol="udp"))
        assert running.listeners.names == (f"udp://127.0.0.1:{port}",)
        new.send(b"y")
        assert await new.next() == b"Y"


async def test_drain_lets_connections_finish_and_ends_the_rest_after_the_grace_period() -> None:
    port = free_port()
    async with echo_server(name=b"1") as upstream, streams(stream(port), backend(upstream)) as running:
        readers = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
        for reader, _ in readers:
            await reader.readexactly(1)
        draining = asyncio.create_task(running.listeners.drain(2.0))
        await asyncio.sleep(0.05)
        with pytest.raises(ConnectionRefusedError):
            await greeting(port)
        (first, closing), (second, left) = readers
        closing.write(b"x")
        assert await first.readexactly(1) == b"x"
        closing.close()
        await draining
        with pytest.raises(ConnectionResetError):
            await second.read()
        left.close()
        assert len(await running.ended(2)) == 2
        assert running.context.open == set()


async def test_workers_share_a_port() -> None:
    port = free_port()
    async with echo_server(name=b"1") as upstream, streams(stream(port), backend(upstream)) as running:
        routes = [route for _, route in running.compiler.streams.compiled()]
        running.listeners.apply([])
        contexts = [
            StreamContext(running.context.stats, running.context.server_tls, running.context.tls_of) for _ in range(2)
        ]
        workers = [StreamListeners(context, "127.0.0.1", reuse_port=True) for context in contexts]
        for worker in workers:
            worker.apply(routes)
            assert worker.names == (f"tcp://127.0.0.1:{port}",)
        clients = [await asyncio.open_connection("127.0.0.1", port) for _ in range(32)]
        for reader, _ in clients:
            assert await reader.readexactly(1) == b"1"
        assert all(context.open for context in contexts)
        for _, writer in clients:
            writer.close()
        for worker in workers:
            await worker.drain(1)


async def test_drain_ends_connections_that_have_not_said_what_they_are() -> None:
    port = free_port()
    async with streams(stream(port, protocol="tls"), backend(1)) as running:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        async with asyncio.timeout(PATIENCE_S):
            while not running.context.pending:  # noqa: ASYNC110 - a set has no event
                await asyncio.sleep(0.01)
        await running.listeners.drain(0)
        assert await asyncio.wait_for(reader.read(), PATIENCE_S) == b""
        assert running.context.pending == set()
        writer.close()
