"""Several workers on one UDP port: a client keeps its connection when its address changes, and when a worker dies."""

import asyncio
import os
import re
import signal
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from aioquic.tls import SessionTicket

from fakes.gateway.ports import free_port
from fakes.gateway.process import GatewayProcess, commit
from fakes.gateway.table import host, listener, route, upstream
from fakes.peers.echo import EchoServer
from fakes.peers.http3 import Http3Client, http3_client
from fakes.waiting import until
from headgate.cli.up.embedded_nats import EmbeddedNats
from headgate.common.stores.nats import NatsStores
from headgate.common.table import Endpoint
from headgate.common.table_image import TableImage

MOVES = 2
MOVING = 6
"""Clients that move. In one of 4,096 runs none of their moves leads to another worker, and nothing is proved."""
CLIENTS = 24
"""In one of 8 million runs a worker has all of them."""


async def port_of(gateway: GatewayProcess) -> int:
    (port,) = re.findall(r"h3://127.0.0.1:(\d+)", (await gateway.admin("/version"))[1])
    return int(port)


async def serve(stores: NatsStores, echo: EchoServer, port: int = 0) -> None:
    """Serve on the gateway's own port, or on one of the table."""
    served = host("a.example", route("/", "prefix", "up"))
    table = TableImage([served, upstream("up", Endpoint(address="127.0.0.1", port=echo.port))])
    if port:
        table.put(listener("gw/secure", port=port, protocol="https"))
        table.put(served.model_copy(update={"listeners": ("gw/secure",)}))
    await commit(stores.snapshots, table, (1, 1))


async def is_answered(client: Http3Client) -> bool:
    return (await client.ask()).status == 200


async def is_kept(client: Http3Client) -> bool:
    """Tell whether a connection is still answered."""
    try:
        return await asyncio.wait_for(is_answered(client), 5)
    except TimeoutError:
        return False


@pytest.mark.parametrize("new_id", [True, False], ids=["with a new id", "with the same id"])
@pytest.mark.parametrize("own", [True, False], ids=["own port", "a listener's port"])
async def test_a_client_that_moves_keeps_its_connection(
    new_id: bool, own: bool, tmp_path: Path, broker: EmbeddedNats, stores: NatsStores
) -> None:
    async with (
        EchoServer("one") as echo,
        GatewayProcess(tmp_path / "data", broker.url, "--workers=2", "--http3") as gateway,
    ):
        port = 0 if own else free_port()
        await serve(stores, echo, port)
        await gateway.ready()
        port = port or await port_of(gateway)
        async with AsyncExitStack() as stack:
            clients = [await stack.enter_async_context(http3_client(port)) for _ in range(MOVING)]
            for _ in range(MOVES):
                for client in clients:
                    assert await is_answered(client)
                    if new_id:
                        client.change_connection_id()
                    await client.move()
            assert all([await is_answered(client) for client in clients])
            assert [client.terminated for client in clients] == [None] * MOVING


async def test_connections_of_other_workers_outlive_one_that_dies(
    tmp_path: Path, broker: EmbeddedNats, stores: NatsStores
) -> None:
    async with (
        EchoServer("one") as echo,
        GatewayProcess(tmp_path / "data", broker.url, "--workers=2", "--http3") as gateway,
    ):
        await serve(stores, echo)
        await gateway.ready()
        port = await port_of(gateway)
        pids = re.findall(r"worker started.*pid=(\d+)", gateway.log)
        async with AsyncExitStack() as stack:
            clients = [await stack.enter_async_context(http3_client(port)) for _ in range(CLIENTS)]
            for client in clients:
                assert await is_answered(client)
            os.kill(int(pids[0]), signal.SIGKILL)
            await until(lambda: gateway.log.count("worker started") == 3)
            await gateway.ready()
            kept = await asyncio.gather(*(is_kept(client) for client in clients))
            # As many as the other worker had; with each of the clients the kernel tossed a coin.
            assert 0 < sum(kept) < CLIENTS
            async with http3_client(port) as late:
                assert await is_answered(late)


async def test_workers_resume_each_others_sessions(tmp_path: Path, broker: EmbeddedNats, stores: NatsStores) -> None:
    async with (
        EchoServer("one") as echo,
        GatewayProcess(tmp_path / "data", broker.url, "--workers=2", "--http3") as gateway,
    ):
        await serve(stores, echo)
        await gateway.ready()
        port = await port_of(gateway)
        tickets: list[SessionTicket] = []
        async with http3_client(port, keeps=tickets.append) as client:
            assert await is_answered(client)
        for _ in range(CLIENTS):
            async with http3_client(port, session_ticket=tickets[0]) as client:
                assert client.handshake is not None
                assert client.handshake.session_resumed
                assert await is_answered(client)
