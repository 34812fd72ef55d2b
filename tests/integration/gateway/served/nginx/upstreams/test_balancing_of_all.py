"""Balancing without a reload (`test/e2e/lua/dynamic_configuration.go`, `loadbalance/*.go`, `upstreamhashby.go`)."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import pytest

from fakes.gateway.proxied import Conversation
from fakes.gateway.served import asking, named, read_answer
from fakes.translator.applied import World, world
from fakes.translator.deltas import endpoint_slice, service
from fakes.translator.nginx import ADOPTED, NGINX_CLASS, classed, options

NAMES = "abcdef"


@pytest.fixture
async def many() -> AsyncIterator[World]:
    """A proxy before six servers and a Service `all` without endpoints."""
    async with world(*NAMES, settings=ADOPTED) as made:
        made.proxy.apply(NGINX_CLASS, service("all"))
        yield made


def replicas(made: World, names: str) -> list[Any]:
    """Return the slices of the Service with these servers."""
    slices = [endpoint_slice("all", "127.0.0.1", name=name, port=made.port(name)) for name in NAMES]
    return [each if name in names else {**each, "endpoints": []} for name, each in zip(NAMES, slices, strict=True)]


async def spread(made: World, count: int, path: str = "/", **more: str) -> Counter[str]:
    return Counter(await made.proxy.bodies(count, path, **more))


@pytest.mark.parametrize("count", [1, 3, 6])
async def test_endpoints_come_and_go_under_connections(many: World, count: int) -> None:
    many.proxy.apply(*replicas(many, "a"), classed(to="all", load_balance="ewma"))
    client = await many.proxy.proxy.connect()
    for names, status in (("a", 200), (NAMES[:count], 200), ("", 503), (NAMES[:count], 200)):
        many.proxy.apply(*replicas(many, names))
        await client.send(asking())
        assert (await read_answer(client)).status == status


async def test_a_service_that_was_empty_and_one_that_was_emptied_are_both_a_503(many: World) -> None:
    many.proxy.apply(classed(to="all", load_balance="ewma"))
    before = await many.proxy.get()
    many.proxy.apply(*replicas(many, "ab"))
    assert await many.proxy.status() == 200
    many.proxy.apply(*replicas(many, ""))
    after = await many.proxy.get()
    assert (before.status, after.status) == (503, 503)


async def test_a_policy_that_changes_counts_under_connections(many: World) -> None:
    many.proxy.apply(*replicas(many, "abc"), classed(to="all", load_balance="ewma"))
    client = await many.proxy.proxy.connect()
    many.proxy.apply(classed(to="all", load_balance="round_robin"))
    found: Counter[str] = Counter()
    for _ in range(9):
        await client.send(asking())
        found[(await read_answer(client)).body.decode()] += 1
    assert found == {"a": 3, "b": 3, "c": 3}


async def test_round_robin_is_the_default_and_even(many: World) -> None:
    many.proxy.apply(*replicas(many, "abc"), classed(to="all"))
    assert await spread(many, 600) == {"a": 200, "b": 200, "c": 200}


async def slow(conversation: Conversation) -> None:
    while True:
        await conversation.request()
        await asyncio.sleep(0.05)
        await conversation.send(named(b"slow"))


async def test_the_policy_of_the_config_map_holds_for_all() -> None:
    async with world("a", "b", slow=slow, settings=ADOPTED) as made:
        slices = [endpoint_slice("all", "127.0.0.1", name=name, port=made.port(name)) for name in ("a", "b", "slow")]
        made.proxy.apply(NGINX_CLASS, service("all"), *slices, classed(to="all"), options(load_balance="ewma"))
        found = await spread(made, 30)
        assert sum(found.values()) == 30
        assert found["slow"] < 6
        made.proxy.apply(options(load_balance="round_robin"))
        assert (await spread(made, 30))["slow"] == 10


@pytest.mark.parametrize(
    ("rules", "reached"),
    [
        ({"upstream_hash_by": "$request_uri"}, 1),
        ({"upstream_hash_by": "$host"}, 1),
        (
            {
                "upstream_hash_by": "$request_uri",
                "upstream_hash_by_subset": "true",
                "upstream_hash_by_subset_size": "3",
            },
            3,
        ),
        (
            {"upstream_hash_by": "$host", "upstream_hash_by_subset": "true", "upstream_hash_by_subset_size": "2"},
            2,
        ),
    ],
)
async def test_one_key_reaches_so_many_endpoints(many: World, rules: dict[str, str], reached: int) -> None:
    many.proxy.apply(*replicas(many, NAMES), classed(to="all", **rules))
    assert len(await spread(many, 60)) == reached
