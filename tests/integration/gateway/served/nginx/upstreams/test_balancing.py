"""What the end-to-end tests of ingress-nginx say of balancing and hashing.

Files there: `test/e2e/annotations/upstreamhashby.go`, `loadbalance/*.go`.
"""

from collections import Counter
from collections.abc import AsyncIterator

import pytest

from fakes.gateway.proxied import answering
from fakes.gateway.served import named
from fakes.translator.applied import World, world
from fakes.translator.deltas import endpoint_slice, service
from fakes.translator.nginx import nginx_ingress


@pytest.fixture
async def many() -> AsyncIterator[World]:
    """A proxy before a Service `all` with three endpoints."""
    async with world(**{name: answering(named(name.encode())) for name in "abc"}) as made:
        slices = [endpoint_slice("all", "127.0.0.1", name=name, port=made.port(name)) for name in "abc"]
        made.proxy.apply(service("all"), *slices)
        yield made


async def test_requests_with_one_key_go_to_one_endpoint(many: World) -> None:
    many.proxy.apply(nginx_ingress(to="all", upstream_hash_by="$request_uri"))
    for path in ("/a", "/b?c=d", "/e"):
        assert len(set(await many.proxy.bodies(5, path))) == 1
    spread = {body for number in range(30) for body in await many.proxy.bodies(1, f"/{number}")}
    assert spread == {"a", "b", "c"}


async def test_requests_with_one_key_go_to_one_subset(many: World) -> None:
    many.proxy.apply(
        nginx_ingress(
            to="all",
            upstream_hash_by="$http_x_user",
            upstream_hash_by_subset="true",
            upstream_hash_by_subset_size="2",
        )
    )
    assert len(set(await many.proxy.bodies(20, X_User="ada"))) <= 2


@pytest.mark.parametrize("policy", ["round_robin", "ewma"])
async def test_policies_spread_requests(many: World, policy: str) -> None:
    many.proxy.apply(nginx_ingress(to="all", load_balance=policy))
    found = Counter(await many.proxy.bodies(60))
    assert set(found) == {"a", "b", "c"}
    assert policy != "round_robin" or set(found.values()) == {20}


async def test_another_policy_drops_the_ingress(many: World) -> None:
    broken = nginx_ingress(to="all", load_balance="least_conn")
    many.proxy.apply(broken)
    assert await many.proxy.status() == 404
    assert many.proxy.errors(broken) == ["InvalidAnnotation"]
