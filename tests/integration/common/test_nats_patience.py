"""A server that has much to say and answers late: what a client with little CPU makes of it."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from fakes.waiting import until
from headgate.common.bus import connection as bus_module
from headgate.common.bus.connection import Bus

PING_S = 0.1


class BusyServer:
    """Answers the first PING, and none after it; sends messages all the time while it `talks`."""

    def __init__(self) -> None:
        self.talks = True
        self.connections = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        info = {"server_id": "busy", "version": "2.12.0", "max_payload": 1 << 20, "headers": True, "proto": 1}
        writer.write(b"INFO " + json.dumps(info).encode() + b"\r\n")
        while line := await reader.readline():
            if line.startswith(b"PING"):
                writer.write(b"PONG\r\n")
                break
        try:
            while not reader.at_eof():
                if self.talks:
                    writer.write(b"MSG news 1 2\r\nhi\r\n")
                await asyncio.sleep(PING_S / 4)
        finally:
            writer.close()


@asynccontextmanager
async def connected(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[BusyServer, Bus]]:
    monkeypatch.setattr(bus_module, "PING_S", PING_S)
    busy = BusyServer()
    server = await asyncio.start_server(busy.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    bus = await Bus.connect(f"nats://127.0.0.1:{port}", name="test")
    try:
        yield busy, bus
    finally:
        await bus.close()
        server.close()


async def test_a_server_that_talks_all_the_time_is_not_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    async with connected(monkeypatch) as (busy, bus):
        heard: list[bytes] = []

        async def receive(message: object) -> None:
            heard.append(b"")

        await bus.subscribe("news", receive, messages=10_000, size=1 << 20)
        await until(lambda: len(heard) > 60)  # more than a second: five times as long as silence is borne
        assert busy.connections == 1


async def test_a_server_that_falls_silent_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    async with connected(monkeypatch) as (busy, _):
        busy.talks = False
        await until(lambda: busy.connections > 1)
