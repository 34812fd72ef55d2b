"""Waiting for NATS and for the gateway, and saying so when it takes long."""

import asyncio

import pytest
from aiohttp import web

from headgate.cli.up import readiness


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readiness, "TELL_AFTER_S", 0.0)
    monkeypatch.setattr(readiness, "POLL_S", 0.005)


async def test_a_server_that_greets_as_nats_is_up() -> None:
    async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"INFO {}\r\n")
        await writer.drain()
        writer.close()

    told: list[str] = []
    async with await asyncio.start_server(greet, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        await readiness.wait_for_nats(f"nats://127.0.0.1:{port},nats://other:4222", told.append)
    assert told == []


async def test_a_nats_server_that_does_not_answer_is_named() -> None:
    told: asyncio.Queue[str] = asyncio.Queue()
    waiting = asyncio.create_task(readiness.wait_for_nats("nats://127.0.0.1:1", told.put_nowait))
    assert await told.get() == "still waiting: no NATS server answers at 127.0.0.1:1"
    waiting.cancel()


async def test_the_gateways_own_reason_is_told_until_it_is_ready() -> None:
    told: list[str] = []

    async def readyz(_: web.Request) -> web.Response:
        if told:
            return web.json_response({"ready": True})
        return web.json_response({"ready": False, "checks": {"table": "no table yet", "bus": None}}, status=503)

    app = web.Application()
    app.router.add_get("/readyz", readyz)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    await readiness.wait_until_ready(f"http://127.0.0.1:{runner.addresses[0][1]}", told.append)
    await runner.cleanup()
    assert told == ["still waiting: the gateway is not ready: table: no table yet"]
