"""Listeners with addresses of a gateway process: beside its own ports, and before the address is on the machine."""

import socket
import sys
from pathlib import Path

import aiohttp
import pytest

from fakes.gateway.ports import free_port
from fakes.gateway.process import BOUND_S, GatewayProcess, commit
from fakes.gateway.table import host, listener, upstream
from fakes.peers.echo import EchoServer
from headgate.cli.up.embedded_nats import EmbeddedNats
from headgate.common.stores.nats import NatsStores
from headgate.common.table import Endpoint
from headgate.common.table_image import TableImage
from headgate.gateway.net.sockets import open_listener

ABSENT = "192.0.2.77"
"""No machine has it (RFC 5737)."""


async def status(address: str, port: int) -> int:
    async with (
        aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=BOUND_S)) as session,
        session.get(f"http://{address}:{port}/", headers={"Host": "foo.com"}) as answer,
    ):
        return answer.status


@pytest.mark.parametrize("address", [ABSENT, "2001:db8::77"])
@pytest.mark.skipif(sys.platform != "linux", reason="no other system can bind addresses that it lacks")
def test_an_address_that_the_machine_lacks_can_be_bound(address: str) -> None:
    with open_listener(address, 0, may_be_absent=True) as opened:
        assert opened.getsockname()[0] == address
    with pytest.raises(OSError, match="assign requested address"):
        open_listener(address, 0)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.skipif(sys.platform != "linux", reason="as above")
async def test_a_listener_has_the_number_of_the_gateways_own_port_at_its_address(
    workers: int, tmp_path: Path, broker: EmbeddedNats, stores: NatsStores
) -> None:
    one, two = "127.10.0.1", "127.10.0.2"
    everywhere = GatewayProcess(tmp_path / "data", broker.url, f"--workers={workers}", http_host="0.0.0.0")
    async with EchoServer("one") as echo, everywhere as gateway:
        port, other = gateway.http_port, free_port(one)
        up = upstream("up", Endpoint(address="127.0.0.1", port=echo.port))
        listeners = [
            listener("gw/own", address=one, port=port),
            listener("gw/other", address=two, port=other),
            listener("gw/absent", address=ABSENT, port=port),
        ]
        table = TableImage([up, *listeners, host("foo.com", on=("gw/own", "gw/other"))])
        await commit(stores.snapshots, table, (1, 1))
        await gateway.ready()
        for address in (f"{one}:{port}", f"{two}:{other}", f"{ABSENT}:{port}"):
            await gateway.listens(f"http://{address}")
        assert [await status(one, port) for _ in range(4)] == [200] * 4
        assert [await status(two, port), await status(two, other), await status("127.0.0.1", port)] == [404, 200, 404]
        with socket.socket() as asking:
            assert asking.connect_ex((one, other)) != 0
        table.discard("listeners", "gw/own")
        await commit(stores.snapshots, table, (1, 2))
        await gateway.serves("1.2")
        assert await gateway.stop() == 0
