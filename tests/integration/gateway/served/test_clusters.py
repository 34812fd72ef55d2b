"""Pods that only their own cluster reaches: other clusters' gateways ask its gateways for them."""

import contextlib
from collections.abc import AsyncIterator

import pytest

from fakes.proxied import OK, Origin, answering
from fakes.served import HOST, Served, at, named, origins, served, site, to
from headgate.common.table import Endpoint


def pod(port: int, cluster: str) -> Endpoint:
    return Endpoint(address="127.0.0.1", port=port, cluster=cluster, is_local=True)


def hop(port: int, cluster: str, scheme: str = "http") -> Endpoint:
    return Endpoint.model_validate({"address": "127.0.0.1", "port": port, "cluster": cluster, "hop": scheme})


@contextlib.asynccontextmanager
async def two_gateways(
    east: Origin, west: Origin, scheme: str = "http", **route: object
) -> AsyncIterator[tuple[Served, Served]]:
    """Gateways of two clusters with one table, each with a pod that only its own cluster reaches."""
    async with served(cluster="east") as first, served(cluster="west") as second:
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


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_hosts_stay_as_they_were_over_either_scheme(scheme: str) -> None:
    async with origins(answering(OK), answering(OK)) as (east, west):
        async with two_gateways(east, west, scheme) as (first, _):
            for _ in range(2):
                assert (await first.get()).status == 200
        heads = [head for conversation in west.conversations for head in conversation.heads]
        assert len(heads) == 1
        assert b"\r\nHost: %b\r\n" % HOST.encode() in heads[0]


async def test_a_gateway_of_no_known_cluster_asks_the_gateways() -> None:
    async with (
        origins(answering(named(b"east"))) as (east,),
        served(site(), at(pod(east.port, "east")), cluster="east") as first,
        served(site(), at(pod(east.port, "east"), hop(first.port, "east"))) as other,
    ):
        assert await other.bodies(2) == ["east", "east"]
        assert len(first.log.records) == 2
