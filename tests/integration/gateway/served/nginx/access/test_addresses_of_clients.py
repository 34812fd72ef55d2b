"""Lists of addresses, for clients behind a proxy that is believed (`test/e2e/annotations/ip{allow,deny}list.go`)."""

from collections.abc import AsyncIterator

import pytest

from fakes.translator.applied import World, world
from fakes.translator.nginx import ADOPTED, NGINX_CLASS, classed, options


@pytest.fixture
async def one() -> AsyncIterator[World]:
    """A proxy before a Service `one`, which believes what clients say of addresses."""
    async with world("one", settings=ADOPTED) as made:
        made.proxy.apply(NGINX_CLASS, options(use_forwarded_headers="true"))
        yield made


async def statuses(made: World, *addresses: str) -> list[int]:
    return [await made.proxy.status(X_Forwarded_For=address) for address in addresses]


async def test_denied_addresses_are_kept_out_and_all_others_let_in(one: World) -> None:
    one.proxy.apply(classed(denylist_source_range="18.0.0.0/8, 56.0.0.1"))
    assert await statuses(one, "18.0.0.1", "56.0.0.1", "56.0.0.2") == [403, 403, 200]


@pytest.mark.parametrize("allowing", ["whitelist_source_range", "allowlist_source_range"])
async def test_allowed_addresses_come_in_unless_they_are_denied(one: World, allowing: str) -> None:
    lists = {"denylist_source_range": "18.1.0.0/16, 56.0.0.0/8", allowing: "18.0.0.0/8, 55.0.0.0/8"}
    one.proxy.apply(classed(**lists))
    asked = ("18.1.0.1", "56.0.0.1", "10.10.10.10", "18.4.0.1", "55.55.55.55")
    assert await statuses(one, *asked) == [403, 403, 403, 200, 200]


@pytest.mark.parametrize(
    ("networks", "inside", "outside"),
    [
        ("18.0.0.0/8, 56.0.0.0/8", "56.1.2.3", "57.1.2.3"),
        ("18.4.5.6", "18.4.5.6", "18.4.5.7"),
        ("2001:db8::/32,18.0.0.0/8", "2001:db8::1", "2001:db9::1"),
    ],
)
async def test_only_allowed_addresses_come_in(one: World, networks: str, inside: str, outside: str) -> None:
    one.proxy.apply(classed(allowlist_source_range=networks))
    assert await statuses(one, inside, outside) == [200, 403]
    one.proxy.apply(classed(allowlist_source_range="127.0.0.1"))
    assert await statuses(one, inside) == [403]
    one.proxy.apply(options(use_forwarded_headers="false"))
    assert await statuses(one, inside) == [200]
