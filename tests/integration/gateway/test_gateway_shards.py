"""Gateways as processes that serve a shard of one table each, on a real NATS server and real sockets."""

import json
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp
import pytest

from fakes.gateway.ports import free_ports
from fakes.gateway.process import GatewayProcess, commit
from fakes.gateway.table import host, listener, route, upstream
from fakes.peers.echo import EchoServer
from fakes.waiting import until
from headgate.cli.up.embedded_nats import EmbeddedNats
from headgate.common.stores.nats import NatsStores
from headgate.common.table import Endpoint
from headgate.common.table.shards import Shard
from headgate.common.table_image import TableImage

LOW, HIGH = Shard(0, 2), Shard(1, 2)


def of_shard(shard: Shard, count: int, suffix: str = "shop.example") -> list[str]:
    """Names of a shard."""
    names = (f"n{number}.{suffix}" for number in range(1000))
    return [name for name in names if shard.has_name(name.encode())][:count]


def refused(gateway: GatewayProcess) -> list[dict[str, object]]:
    """Lines of the access log with 421."""
    lines = [json.loads(line) for line in gateway.log.splitlines() if line.startswith("{")]
    return [line for line in lines if line.get("status") == 421]


@pytest.mark.parametrize("is_for_shards", [True, False])
async def test_each_gateway_serves_the_hosts_of_its_shard_and_refuses_the_others(
    tmp_path: Path, broker: EmbeddedNats, stores: NatsStores, is_for_shards: bool
) -> None:
    [low, low_unknown], [high, high_unknown] = of_shard(LOW, 2), of_shard(HIGH, 2)
    async with AsyncExitStack() as stack:
        one, other = [await stack.enter_async_context(EchoServer(name)) for name in ("one", "other")]
        gateways = {
            shard: await stack.enter_async_context(
                GatewayProcess(
                    tmp_path / f"data-{shard.number}",
                    broker.url,
                    f"--shard={shard}",
                    f"--instance=g{shard.number}",
                    "--access-log=json",
                )
            )
            for shard in (LOW, HIGH)
        }
        image = TableImage(
            [
                host(low, route("/", "prefix", "one")),
                host(high, route("/", "prefix", "other")),
                upstream("one", Endpoint(address="127.0.0.1", port=one.port)),
                upstream("other", Endpoint(address="127.0.0.1", port=other.port)),
            ],
            is_for_shards=is_for_shards,
        )
        await commit(stores.snapshots, image, (1, 1))
        for gateway in gateways.values():
            await gateway.ready()
        assert (await gateways[LOW].get(low))["name"] == "one"
        assert (await gateways[HIGH].get(high))["name"] == "other"
        assert [await gateways[LOW].get(name) for name in (high, high_unknown, low_unknown)] == [421, 421, 404]
        assert [await gateways[HIGH].get(name) for name in (low, low_unknown, high_unknown)] == [421, 421, 404]
        metrics = (await gateways[LOW].admin("/metrics"))[1]
        assert "headgate_table_hosts 1.0" in metrics
        assert "headgate_table_endpoints 1.0" in metrics
        [counted] = [
            line for line in metrics.splitlines() if line.startswith("headgate_requests_total{") and "421" in line
        ]
        assert 'route="hosts of other shards"' in counted
        assert counted.endswith(" 2.0")
        reason = "the host is of another shard than 0/2, which this gateway serves"
        await until(lambda: [each["host"] for each in refused(gateways[LOW])] == [high, high_unknown])
        assert {each["reason"] for each in refused(gateways[LOW])} == {reason}
        beats = {beat.replica: beat.part for beat in await stores.heartbeats.live()}
        assert sorted(beats.values()) == [LOW, HIGH]
        explained = json.loads((await gateways[LOW].admin(f"/explain?url=http://{high}/"))[1])
        assert explained["verdict"].startswith("421: the host is of another shard than 0/2")
        # A wildcard takes the names of each shard at its own gateways, and none of the others' hosts.
        image.put(host("*.shop.example", route("/", "prefix", "other")))
        await commit(stores.snapshots, image, (1, 2))
        for gateway in gateways.values():
            await gateway.serves("1.2")
        assert (await gateways[LOW].get(low_unknown))["name"] == "other"
        assert (await gateways[LOW].get(low))["name"] == "one"
        assert [await gateways[LOW].get(name) for name in (high, high_unknown)] == [421, 421]
        assert (await gateways[HIGH].get(high_unknown))["name"] == "other"


async def test_a_shard_starts_from_its_own_file_without_a_store(
    tmp_path: Path, broker: EmbeddedNats, stores: NatsStores
) -> None:
    [low], [high] = of_shard(LOW, 1), of_shard(HIGH, 1)
    async with EchoServer("one") as echo:
        up = upstream("up", Endpoint(address="127.0.0.1", port=echo.port))
        await commit(stores.snapshots, TableImage([host(low), host(high), up]), (1, 1))
        async with GatewayProcess(tmp_path / "data", broker.url, f"--shard={LOW}") as gateway:
            await gateway.ready()
            assert await gateway.stop() == 0
        nowhere = "nats://127.0.0.1:9"
        async with GatewayProcess(tmp_path / "data", nowhere, f"--shard={LOW}") as gateway:
            await gateway.ready()
            assert (await gateway.get(low))["name"] == "one"
            assert await gateway.get(high) == 421
        async with GatewayProcess(tmp_path / "data", nowhere, f"--shard={HIGH}") as gateway:
            await gateway.ready(503)
            assert "no revision of table default" in (await gateway.admin("/readyz"))[1]


async def test_hosts_on_listeners_are_of_the_shard_of_their_name(
    tmp_path: Path, broker: EmbeddedNats, stores: NatsStores
) -> None:
    [low], [high] = of_shard(LOW, 1), of_shard(HIGH, 1)
    one, two = free_ports(2)
    async with (
        EchoServer("one") as echo,
        EchoServer("two") as other,
        GatewayProcess(tmp_path / "data", broker.url, f"--shard={LOW}") as gateway,
        aiohttp.ClientSession() as session,
    ):
        ups = [
            upstream(key, Endpoint(address="127.0.0.1", port=server.port))
            for key, server in (("up", echo), ("other", other))
        ]
        hosts = [
            host(low, on=("gw/one",)),
            host(low, route("/", "prefix", "other"), on=("gw/two",)),
            host(high, on=("gw/one", "gw/two")),
        ]
        ports = [listener("gw/one", port=one), listener("gw/two", port=two)]
        await commit(stores.snapshots, TableImage([*ups, *hosts, *ports], is_for_shards=True), (1, 1))
        await gateway.ready()
        await gateway.listens(f"http://127.0.0.1:{two}")

        async def ask(port: int, name: str) -> object:
            async with session.get(f"http://127.0.0.1:{port}/", headers={"Host": name}) as answer:
                return (await answer.json())["name"] if answer.status == 200 else answer.status

        assert [await ask(port, low) for port in (one, two)] == ["one", "two"]
        assert [await ask(port, high) for port in (one, two)] == [421, 421]


async def test_a_request_on_a_connection_for_another_host_is_sent_to_its_shard(
    tmp_path: Path, broker: EmbeddedNats, stores: NatsStores
) -> None:
    """As browsers do that use one connection for all names of a certificate: 421 has them ask on another one."""
    [low], [high] = of_shard(LOW, 1), of_shard(HIGH, 1)
    (secure,) = free_ports(1)
    async with (
        EchoServer("one") as echo,
        GatewayProcess(tmp_path / "data", broker.url, f"--shard={LOW}") as gateway,
        aiohttp.ClientSession() as session,
    ):
        listener_of_https = listener("gw/tls", port=secure, protocol="https")
        up = upstream("up", Endpoint(address="127.0.0.1", port=echo.port))
        hosts = [host(name, on=("gw/tls",)) for name in (low, high)]
        await commit(stores.snapshots, TableImage([up, *hosts, listener_of_https]), (1, 1))
        await gateway.ready()
        await gateway.listens(f"https://127.0.0.1:{secure}")
        found = []
        for name in (low, high):
            url = f"https://127.0.0.1:{secure}/"
            async with session.get(url, headers={"Host": name}, ssl=False, server_hostname=low) as answer:
                found.append(answer.status)
        assert found == [200, 421]
