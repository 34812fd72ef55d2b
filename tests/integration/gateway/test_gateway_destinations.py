"""Where routes may not lead by default, as a gateway starts."""

import json
from pathlib import Path

from fakes.gateway.process import GatewayProcess, commit
from fakes.gateway.table import host, route, upstream
from fakes.kubernetes.forbidden import forbidden
from fakes.peers.echo import EchoServer
from headgate.cli.up.embedded_nats import EmbeddedNats
from headgate.common.stores.nats import NatsStores
from headgate.common.table import Endpoint
from headgate.common.table_image import TableImage


def leading_to(port: int) -> TableImage:
    return TableImage(
        [host("foo.com", route("/", "prefix", "up")), upstream("up", Endpoint(address="127.0.0.1", port=port))]
    )


async def test_a_gateway_connects_to_no_loopback_address_for_a_route_and_says_so(
    tmp_path: Path, broker: EmbeddedNats, stores: NatsStores
) -> None:
    async with (
        forbidden() as server,
        GatewayProcess(
            tmp_path / "data", broker.url, "--log-format=json", "--allowed-destinations=192.0.2.1"
        ) as gateway,
    ):
        await commit(stores.snapshots, leading_to(server.port), (1, 1))
        await gateway.ready()
        assert await gateway.get() == 502
        metrics = (await gateway.admin("/metrics"))[1]
        assert "headgate_denied_connections_total 1.0" in metrics
        (line,) = [json.loads(line) for line in gateway.log.splitlines() if "a connection was denied" in line]
        assert line["of"].startswith("foo.com|prefix / to ")
        assert line["reason"] == "127.0.0.1 is within 127.0.0.0/8 of the setting denied_destinations"


async def test_nobody_sees_the_admin_pages_through_a_route_where_loopback_is_allowed(
    tmp_path: Path, broker: EmbeddedNats, stores: NatsStores
) -> None:
    async with (
        EchoServer("one") as echo,
        GatewayProcess(tmp_path / "data", broker.url) as gateway,
    ):
        await commit(stores.snapshots, leading_to(echo.port), (1, 1))
        await gateway.ready()
        assert (await gateway.get())["name"] == "one"
        await commit(stores.snapshots, leading_to(gateway.admin_port), (1, 2))
        await gateway.serves("1.2")
        assert await gateway.get(path="/routes") == 502
        assert "is the gateway's own admin port" in gateway.log
