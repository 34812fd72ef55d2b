"""Several workers on one UDP port: a client keeps its connection when its address changes, and when a worker dies."""

import os
import re
import signal
from pathlib import Path

import pytest

from fakes.gateway.process import GatewayProcess, commit
from fakes.gateway.table import host, route, upstream
from fakes.peers.echo import EchoServer
from fakes.peers.http3 import Http3Client, http3_client
from fakes.waiting import until
from headgate.cli.up.embedded_nats import EmbeddedNats
from headgate.common.stores.nats import NatsStores
from headgate.common.table import Endpoint
from headgate.common.table_image import TableImage

MOVES = 8
"""To another worker or not is chance: that all stay happens once in 256 runs, and is no failure."""


async def port_of(gateway: GatewayProcess) -> int:
    (port,) = re.findall(r"h3://127.0.0.1:(\d+)", (await gateway.admin("/version"))[1])
    return int(port)


async def serve(stores: NatsStores, echo: EchoServer) -> None:
    table = TableImage(
        [host("a.example", route("/", "prefix", "up")), upstream("up", Endpoint(address="127.0.0.1", port=echo.port))]
    )
    await commit(stores.snapshots, table, (1, 1))


async def is_answered(client: Http3Client) -> bool:
    return (await client.ask()).status == 200


@pytest.mark.parametrize("new_id", [True, False], ids=["with a new id", "with the same id"])
async def test_a_client_that_moves_keeps_its_connection(
    new_id: bool, tmp_path: Path, broker: EmbeddedNats, stores: NatsStores
) -> None:
    async with (
        EchoServer("one") as echo,
        GatewayProcess(tmp_path / "data", broker.url, "--workers=2", "--http3=true") as gateway,
    ):
        await serve(stores, echo)
        await gateway.ready()
        port = await port_of(gateway)
        async with http3_client(port) as client:
            assert await is_answered(client)
            for _ in range(MOVES):
                if new_id:
                    client.change_connection_id()
                await client.move()
                assert await is_answered(client)
            assert client.terminated is None


async def test_connections_of_other_workers_outlive_one_that_dies(
    tmp_path: Path, broker: EmbeddedNats, stores: NatsStores
) -> None:
    async with (
        EchoServer("one") as echo,
        GatewayProcess(tmp_path / "data", broker.url, "--workers=2", "--http3=true") as gateway,
    ):
        await serve(stores, echo)
        await gateway.ready()
        port = await port_of(gateway)
        clients = []
        pids = re.findall(r'"pid":\s*(\d+)', gateway.log) or re.findall(r"pid=(\d+)", gateway.log)
        assert len(pids) >= 2
        async with _several(port, 12, clients):
            for client in clients:
                assert await is_answered(client)
            os.kill(int(pids[0]), signal.SIGKILL)
            await until(lambda: gateway.log.count("worker started") >= 3)
            await gateway.ready()
            kept = [client for client in clients if await _is_kept(client)]
            assert 0 < len(kept) < len(clients)
