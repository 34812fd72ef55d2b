"""Listeners of a gateway process: from the store to the port, and to what it says of itself."""

import asyncio
import json
import re
import socket
from pathlib import Path

import aiohttp

from fakes.gateway.ports import free_ports
from fakes.gateway.process import BOUND_S, GatewayProcess, commit
from fakes.gateway.streams import stream
from fakes.gateway.table import host, listener, route, upstream
from fakes.peers.echo import EchoServer
from headgate.cli.up.embedded_nats import EmbeddedNats
from headgate.common.stores.nats import NatsStores
from headgate.common.table import Endpoint
from headgate.common.table_image import TableImage


async def status(port: int, name: str = "foo.com") -> int:
    async with (
        aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=BOUND_S)) as session,
        session.get(f"http://127.0.0.1:{port}/", headers={"Host": name}) as answer,
    ):
        return answer.status


async def shown(gateway: GatewayProcess, text: str) -> None:
    """Wait until the gateway's first worker says that it listens so."""
    async with asyncio.timeout(BOUND_S):
        while text not in json.loads((await gateway.admin("/version"))[1])["listeners"]:  # noqa: ASYNC110
            await asyncio.sleep(0.02)


async def test_all_workers_of_a_gateway_open_the_ports_of_listeners_and_say_so(
    tmp_path: Path, broker: EmbeddedNats, stores: NatsStores
) -> None:
    one, two = free_ports(2)
    async with (
        EchoServer("one") as echo,
        GatewayProcess(tmp_path / "data", broker.url, "--workers=2") as gateway,
    ):
        up = upstream("up", Endpoint(address="127.0.0.1", port=echo.port))
        table = TableImage([up, host("foo.com", on=("gw/one", "gw/two")), listener("gw/one", port=one)])
        await commit(stores.snapshots, table, (1, 1))
        await gateway.ready()
        await shown(gateway, f"http://127.0.0.1:{one}")
        assert [await status(one) for _ in range(8)] == [200] * 8
        assert await status(gateway.http_port) == 404
        page = json.loads((await gateway.admin("/table"))[1])
        assert [each["key"] for each in page["table_listeners"]] == ["gw/one"]
        assert page["hosts"][0]["listeners"] == ["gw/one", "gw/two"]
        explained = json.loads((await gateway.admin(f"/explain?url=http://foo.com:{one}/"))[1])
        assert (explained["listener"], explained["winner"]) == ("gw/one", "foo.com@gw/one,gw/two|prefix /")
        ports = re.findall(r'headgate_listener_ports{(?=.*state="open").*} (.*)', (await gateway.admin("/metrics"))[1])
        assert [float(count) for count in ports] == [1, 1]
        table.discard("listeners", "gw/one")
        table.put(listener("gw/two", port=two))
        await commit(stores.snapshots, table, (1, 2))
        await shown(gateway, f"http://127.0.0.1:{two}")
        assert await status(two) == 200
        async with asyncio.timeout(BOUND_S):
            while _is_open(one):  # noqa: ASYNC110 - the other worker's port
                await asyncio.sleep(0.02)
        assert await gateway.stop() == 0


def _is_open(port: int) -> bool:
    with socket.socket() as asking:
        return asking.connect_ex(("127.0.0.1", port)) == 0


async def test_a_port_of_the_gateway_has_one_owner_and_streams_share_those_of_listeners(
    tmp_path: Path, broker: EmbeddedNats, stores: NatsStores
) -> None:
    (port,) = free_ports(1)
    async with (
        EchoServer("one") as echo,
        GatewayProcess(tmp_path / "data", broker.url) as gateway,
    ):
        up = upstream("up", Endpoint(address="127.0.0.1", port=echo.port))
        taken = listener("gw/admin", port=gateway.admin_port)
        own = listener("gw/own", port=gateway.http_port, host="own.com")
        hosts = (host("foo.com", route("/"), on=("gw/a",)), host("own.com", on=("gw/own",)))
        tls = stream(port, protocol="tls", server_names=("stream.com",))
        table = TableImage([up, *hosts, taken, own, tls, listener("gw/a", port=port)])
        await commit(stores.snapshots, table, (1, 1))
        await gateway.ready()
        await shown(gateway, f"http://127.0.0.1:{port}")
        told = f"http://127.0.0.1:{gateway.admin_port} not open: port {gateway.admin_port} is the gateway's admin port"
        await shown(gateway, told)
        assert await status(port) == await status(gateway.http_port, "own.com") == 200
