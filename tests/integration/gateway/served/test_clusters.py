"""Pods that only their own cluster reaches: other clusters' gateways ask its gateways for them."""

import contextlib
import itertools
from collections.abc import AsyncIterator

import grpc
import pytest

from fakes.gateway.proxied import OK, Origin, answering
from fakes.gateway.served import HOST, Served, at, named, origins, served, site, to
from fakes.peers.grpc_service import grpc_server, grpc_stub
from fakes.peers.name_server import NameServer
from fakes.waiting import until
from headgate.common.table import Endpoint
from headgate.gateway.health.resolve import SystemDns
from headgate.gateway.proxy.config import ProxyConfig


def pod(port: int, cluster: str) -> Endpoint:
    return Endpoint(address="127.0.0.1", port=port, cluster=cluster, is_local=True)


def hop(port: int, cluster: str, scheme: str = "http") -> Endpoint:
    return Endpoint.model_validate({"address": "127.0.0.1", "port": port, "cluster": cluster, "hop": scheme})


@contextlib.asynccontextmanager
async def two_gateways(
    east: Origin, west: Origin, scheme: str = "http", config: ProxyConfig | None = None, **route: object
) -> AsyncIterator[tuple[Served, Served]]:
    """Gateways of two clusters with one table, each with a pod that only its own cluster reaches."""
    async with served(cluster="east", config=config) as first, served(cluster="west", config=config) as second:
        secure = scheme == "https"
        upstream = at(
            pod(east.port, "east"),
            pod(west.port, "west"),
            hop(first.https_port if secure else first.port, "east", scheme),
            hop(second.https_port if secure else second.port, "west", scheme),
        )
        entries = [site(to("up", **route)), upstream]  # type: ignore[arg-type]
        first.put(*entries)
        second.put(*entries)
        yield first, second


async def test_each_gateway_reaches_its_own_pods_and_the_others_through_their_gateway() -> None:
    async with origins(answering(named(b"east")), answering(named(b"west"))) as (east, west):
        async with two_gateways(east, west) as (first, second):
            assert sorted(await first.bodies(4)) == ["east", "east", "west", "west"]
            assert sorted(await second.bodies(4)) == ["east", "east", "west", "west"]
        heads = [head for conversation in west.conversations for head in conversation.heads]
        assert [b"headgate-hop: 1" in head.lower() for head in heads].count(True) == 2


async def test_a_request_that_has_made_its_hop_makes_no_other() -> None:
    async with (
        origins(answering(named(b"east")), answering(named(b"west"))) as (east, west),
        two_gateways(east, west) as (first, second),
    ):
        assert await first.bodies(4, headgate_hop="1") == ["east"] * 4
        first.put(at(hop(second.port, "west")))
        assert (await first.get(headgate_hop="1")).status == 503
        assert second.log.records == []


async def test_routes_change_a_request_once_at_the_last_gateway() -> None:
    async with origins(answering(OK), answering(OK)) as (east, west):
        rewrite = ("proxy-rewrite", {"uri": "/changed", "host": "inside.example"})
        async with two_gateways(east, west, plugins=[rewrite]) as (first, second):
            for _ in range(2):
                assert (await first.get("/asked")).status == 200
            assert [record[3] for record in second.log.records] == [b"/asked"]
        (head,) = (head for conversation in west.conversations for head in conversation.heads)
        assert head.startswith(b"GET /changed HTTP/1.1\r\nHost: inside.example\r\n")


@pytest.mark.parametrize("plugins", [[], [("proxy-rewrite", {"uri": "/changed"})]])
async def test_other_gateways_choose_the_route_by_the_host_that_was_asked_for(
    plugins: list[tuple[str, dict[str, object]]],
) -> None:
    trusting = ProxyConfig(trusted_proxies=("127.0.0.0/8",))
    async with (
        origins(answering(named(b"east")), answering(named(b"west"))) as (east, west),
        two_gateways(east, west, config=trusting, nginx_headers=True, plugins=plugins) as (first, _),
    ):
        answers = [await first.get(X_Forwarded_Host="forwarded.example") for _ in range(4)]
        assert sorted(got.body for got in answers) == [b"east", b"east", b"west", b"west"]
        hosts = {head.split(b"Host: ")[1].split(b"\r\n")[0] for head in (*east.heads, *west.heads)}
        assert hosts == {b"forwarded.example"}


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_hosts_stay_as_they_were_over_either_scheme(scheme: str) -> None:
    async with origins(answering(OK), answering(OK)) as (east, west):
        async with two_gateways(east, west, scheme) as (first, _):
            for _ in range(2):
                assert (await first.get()).status == 200
        heads = [head for conversation in west.conversations for head in conversation.heads]
        assert len(heads) == 1
        assert b"\r\nHost: %b\r\n" % HOST.encode() in heads[0]


async def visit(gateway: Served, name: bytes) -> str:
    """Ask without a session until a pod answers; return the session that it gives."""
    for _ in range(4):
        got = await gateway.get()
        if got.body == name:
            return got.cookie
    raise AssertionError(f"{name!r} never answered")


@pytest.mark.parametrize("mode", ["balanced", "persistent"])
async def test_a_session_stays_with_its_pod_whichever_gateway_gave_it_and_is_asked(mode: str) -> None:
    sticky = {"cookie": "route", "mode": mode}
    async with (
        origins(answering(named(b"east")), answering(named(b"west"))) as (east, west),
        two_gateways(east, west, stickiness=sticky) as gateways,
    ):
        for name, giver in itertools.product((b"east", b"west"), gateways):
            cookie = await visit(giver, name)
            for gateway in gateways:
                answers = [await gateway.get(cookie=cookie) for _ in range(3)]
                assert [(got.body, got.cookie) for got in answers] == [(name, "")] * 3


async def test_gateways_with_a_name_are_asked_over_tls_too() -> None:
    async with (
        NameServer({("east.example.", "A"): (60, ["127.0.0.1"])}) as names,
        origins(answering(named(b"east")), answering(named(b"west"))) as (east, west),
        served(site(), at(pod(east.port, "east")), cluster="east") as first,
    ):
        far = Endpoint(address="east.example", port=first.https_port, cluster="east", hop="https")
        upstream = at(pod(east.port, "east"), pod(west.port, "west"), far)
        async with served(site(), upstream, cluster="west", query=SystemDns(names.resolver())) as second:
            await until(lambda: len(second.compiler.find_endpoints("up").balancer.slots) == 2)
            assert sorted(await second.bodies(2)) == ["east", "west"]
        assert len(first.log.records) == 1


async def test_grpc_makes_the_hop_with_its_streams_and_statuses() -> None:
    async with grpc_server() as (_, port), served(cluster="east") as first, served(cluster="west") as second:
        for gateway in (first, second):
            gateway.put(site(host="*"), at(pod(port, "west"), hop(second.port, "west"), protocol="h2c"))
        async with grpc_stub(first.port) as stub:
            assert await stub.unary(b"hello") == b"olleh"
            assert [part async for part in stub.server_stream(b"3")] == [b"0", b"1", b"2"]
            assert await stub.client_stream(iter([b"a", b"b"])) == b"a,b"
            with pytest.raises(grpc.aio.AioRpcError) as failed:
                await stub.unary(b"fail")
            assert failed.value.code() is grpc.StatusCode.FAILED_PRECONDITION
        assert len(second.log.records) == 4


async def test_a_gateway_of_no_known_cluster_asks_the_gateways() -> None:
    async with (
        origins(answering(named(b"east"))) as (east,),
        served(site(), at(pod(east.port, "east")), cluster="east") as first,
        served(site(), at(pod(east.port, "east"), hop(first.port, "east"))) as other,
    ):
        assert await other.bodies(2) == ["east", "east"]
        assert len(first.log.records) == 2
