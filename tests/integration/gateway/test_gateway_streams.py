"""Stream routes of a gateway process: from the store to the port, and to what it says of itself."""

import asyncio
import json
import re
from pathlib import Path

from fakes.gateway.ports import free_port
from fakes.gateway.process import BOUND_S, GatewayProcess, commit
from fakes.gateway.streams import backend, echo_server, stream
from fakes.gateway.table import host, route, upstream
from fakes.gateway.tls import SelfSigned
from fakes.peers.echo import EchoServer
from headgate.cli.up.embedded_nats import EmbeddedNats
from headgate.common.stores.nats import NatsStores
from headgate.common.table import Endpoint
from headgate.common.table_image import TableImage
from headgate.gateway.net.proxy_protocol import Addresses, write_proxy_header

CERTIFICATE = SelfSigned("db.test")


async def greeting(port: int, name: str | None = None) -> bytes:
    context = CERTIFICATE.client_context() if name else None
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname=name)
    try:
        return await asyncio.wait_for(reader.readexactly(2), BOUND_S)
    finally:
        writer.close()


async def test_a_gateway_opens_and_closes_ports_with_its_table_and_says_so(
    tmp_path: Path, broker: EmbeddedNats, stores: NatsStores
) -> None:
    port = free_port()
    async with (
        echo_server(name=b"hi") as plain,
        GatewayProcess(tmp_path / "data", broker.url, "--access-log=json", "--workers=2") as gateway,
    ):
        table = TableImage([host("foo.com"), backend(plain), stream(port)])
        await commit(stores.snapshots, table, (1, 1))
        await gateway.ready()
        assert await greeting(port) == b"hi"
        assert f"tcp://127.0.0.1:{port}" in (await gateway.admin("/version"))[1]
        shown = json.loads((await gateway.admin("/table"))[1])["streams"]
        assert [(entry["key"], entry["port"]) for entry in shown] == [("s", port)]
        async with asyncio.timeout(BOUND_S):
            while '"protocol":"tcp"' not in gateway.log:  # noqa: ASYNC110 - a file has no event
                await asyncio.sleep(0.02)
        assert "headgate_streams_total" in (await gateway.admin("/metrics"))[1]
        table.discard("streams", "s")
        await commit(stores.snapshots, table, (1, 2))
        await gateway.serves("1.2")
        async with asyncio.timeout(BOUND_S):
            while True:
                try:
                    await greeting(port)
                except (ConnectionError, asyncio.IncompleteReadError):
                    break
        assert await gateway.stop() == 0


async def test_the_https_port_of_a_gateway_is_shared_with_a_passthrough_route(
    tmp_path: Path, broker: EmbeddedNats, stores: NatsStores
) -> None:
    async with (
        echo_server(name=b"hi", tls=CERTIFICATE.server_context()) as behind,
        GatewayProcess(tmp_path / "data", broker.url) as gateway,
    ):
        names = stream(0, protocol="tls", server_names=("db.test",))
        await commit(stores.snapshots, TableImage([host("foo.com"), backend(behind), names]), (1, 1))
        await gateway.ready()
        (https,) = re.findall(r"https://127.0.0.1:(\d+)", (await gateway.admin("/version"))[1])
        assert await greeting(int(https), "db.test") == b"hi"


async def test_the_client_that_a_load_balancer_names_is_the_one_that_endpoints_see(
    tmp_path: Path, broker: EmbeddedNats, stores: NatsStores
) -> None:
    async with (
        EchoServer("one") as echo,
        GatewayProcess(tmp_path / "data", broker.url, "--proxy-protocol") as gateway,
    ):
        up = upstream("up", Endpoint(address="127.0.0.1", port=echo.port))
        await commit(stores.snapshots, TableImage([host("foo.com", route("/")), up]), (1, 1))
        await gateway.ready()
        reader, writer = await asyncio.open_connection("127.0.0.1", gateway.http_port)
        header = write_proxy_header(2, Addresses(("203.0.113.9", 1), ("198.51.100.1", 80)))
        writer.write(header + b"GET / HTTP/1.1\r\nHost: foo.com\r\nConnection: close\r\n\r\n")
        answer = await asyncio.wait_for(reader.read(), BOUND_S)
        assert b" 200 " in answer.split(b"\r\n")[0]
        assert b"203.0.113.9" in answer
        writer.close()
