"""What the end-to-end tests of ingress-nginx say of canaries (`test/e2e/annotations/canary.go`), and variations."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from fakes.translator.applied import World, world
from fakes.translator.deltas import endpoint_slice
from fakes.translator.nginx import nginx_ingress

HEADER = {"canary_by_header": "CanaryByHeader"}


@pytest.fixture
async def two() -> AsyncIterator[World]:
    """A proxy before Services `one` and `two`."""
    async with world("one", "two") as made:
        yield made


def main(**more: Any) -> Any:
    return nginx_ingress(**{"path": "/info", **more})


def canary(**annotations: Any) -> Any:
    return nginx_ingress("canary", **{"to": "two", "path": "/info", "canary": "true", **annotations})


async def body(made: World, path: str = "/info", **more: str) -> str:
    (found,) = await made.proxy.bodies(1, path, **more)
    return found


# Beside the main Ingress


async def test_requests_go_to_the_main_ingress_if_nothing_says_otherwise(two: World) -> None:
    two.proxy.apply(main(), canary(**HEADER))
    got = await two.proxy.get("/info")
    assert (got.status, got.body) == (200, b"one")


async def test_a_canary_alone_is_no_host(two: World) -> None:
    two.proxy.apply(canary(**HEADER))
    assert await two.proxy.status("/info", CanaryByHeader="always") == 404


async def test_a_canary_of_a_host_is_none_of_another(two: World) -> None:
    two.proxy.apply(canary(**HEADER, host="other.example"), main())
    assert await two.proxy.status("/info", host="other.example", CanaryByHeader="always") == 404
    assert await body(two, CanaryByHeader="always") == "one"


async def test_a_canary_of_all_hosts_takes_from_an_ingress_of_all_hosts(two: World) -> None:
    default = {"defaultBackend": {"service": {"name": "two", "port": {"number": 80}}}}
    two.proxy.apply(canary(**HEADER, spec=default))
    assert await two.proxy.status("/info", CanaryByHeader="always") == 404
    two.proxy.apply(main(spec={"defaultBackend": {"service": {"name": "one", "port": {"number": 80}}}}))
    assert [await body(two), await body(two, CanaryByHeader="always")] == ["one", "two"]


async def test_paths_of_a_canary_that_the_main_ingress_has_not_are_left_out(two: World) -> None:
    backend = {"service": {"name": "nowhere", "port": {"number": 80}}}
    paths = [{"path": path, "pathType": "Prefix", "backend": backend} for path in ("/foo", "/bar")]
    two.proxy.apply(canary(**HEADER, spec={"rules": [{"host": "a.example", "http": {"paths": paths}}]}), main())
    assert await body(two, CanaryByHeader="always") == "one"
    assert await two.proxy.status("/foo", CanaryByHeader="always") == 404


@pytest.mark.parametrize("canary_first", [False, True])
async def test_a_canary_before_and_after_its_main_ingress(two: World, canary_first: bool) -> None:
    both = (canary(**HEADER), main())
    for made in both if canary_first else reversed(both):
        two.proxy.apply(made)
    assert await body(two, CanaryByHeader="always") == "two"
    assert await body(two, CanaryByHeader="never") == "one"


async def test_a_main_ingress_that_changes_keeps_its_canary(two: World) -> None:
    two.proxy.apply(main(), canary(**HEADER))
    changed = main()
    changed["metadata"]["annotations"] = {"foo": "bar"}
    two.proxy.apply(changed)
    assert await body(two, CanaryByHeader="always") == "two"
    assert await body(two, CanaryByHeader="never") == "one"


async def test_a_canary_that_changes(two: World) -> None:
    two.proxy.apply(main(), canary(**HEADER))
    two.proxy.apply(canary(canary_by_header="CanaryByHeader2"))
    assert await body(two, CanaryByHeader="always") == "one"
    assert await body(two, CanaryByHeader2="always") == "two"
    assert await body(two, CanaryByHeader2="never") == "one"


async def test_a_canary_that_goes_leaves_all_to_the_main_ingress(two: World) -> None:
    two.proxy.apply(main(), canary(canary_weight="100"))
    assert await body(two) == "two"
    two.proxy.delete(canary())
    assert await body(two) == "one"
    two.proxy.apply(canary(canary_weight="100"))
    two.proxy.delete(main())
    assert await two.proxy.status("/info") == 404


async def test_a_canary_that_becomes_a_main_ingress(two: World) -> None:
    two.proxy.apply(main(), canary(canary_weight="100"))
    two.proxy.delete(main())
    two.proxy.apply(canary(canary="false"))
    assert await body(two) == "two"


async def test_a_side_without_endpoints_is_a_503_and_the_canary_needs_the_main_one(two: World) -> None:
    two.proxy.apply(main(), canary(**HEADER))
    two.proxy.apply(endpoint_slice("two"))
    assert await two.proxy.status("/info", CanaryByHeader="always") == 503
    assert await two.proxy.status("/info", CanaryByHeader="never") == 200
    two.proxy.apply(endpoint_slice("two", "127.0.0.1", port=two.port("two")), endpoint_slice("one"))
    for value in ("never", "always"):
        assert await two.proxy.status("/info", CanaryByHeader=value) == 503
    two.proxy.apply(endpoint_slice("one", "127.0.0.1", port=two.port("one")))
    assert [await body(two), await body(two, CanaryByHeader="always")] == ["one", "two"]


async def test_an_alias_of_the_main_ingress_has_the_canary_too(two: World) -> None:
    two.proxy.apply(main(server_alias="b.example"), canary(**HEADER))
    assert await body(two, host="b.example", CanaryByHeader="always") == "two"


async def test_a_canary_takes_its_part_of_paths_that_are_patterns(two: World) -> None:
    pattern = {"path": "/info/(.*)", "rewrite_target": "/$1", "use_regex": "true"}
    two.proxy.apply(main(**pattern), canary(**HEADER, **pattern))
    assert await body(two, "/info/x", CanaryByHeader="always") == "two"
    assert two.servers["two"].heads[-1].startswith(b"GET /x ")


async def test_settings_of_canaries_without_the_first_are_ignored(two: World) -> None:
    two.proxy.apply(main(canary_weight="50"))
    assert await two.proxy.bodies(2, "/info") == ["one"] * 2


# By header, cookie and weight

PATTERN = "^Do[A-Z][a-z]+y$"


@pytest.mark.parametrize(
    ("annotations", "decided"),
    [
        ({}, {"always": "two", "never": "one", "badheadervalue": "one", "Always": "one", "": "one"}),
        ({"canary_by_header_value": "DoCanary"},
         {"DoCanary": "two", "always": "one", "never": "one", "otherheadervalue": "one", "docanary": "one"}),
        ({"canary_by_header_pattern": PATTERN}, {"DoCanary": "two", "Docanary": "one", "always": "one"}),
        ({"canary_by_header_pattern": "Can"}, {"DoCanary": "two", "docan": "one"}),
        ({"canary_by_header_value": "DoCanary", "canary_by_header_pattern": PATTERN},
         {"DoCananry": "one", "DoCanary": "two"}),
    ],
)  # fmt: skip
async def test_a_header_decides(two: World, annotations: dict[str, str], decided: dict[str, str]) -> None:
    two.proxy.apply(main(), canary(**HEADER, **annotations))
    assert {value: await body(two, CanaryByHeader=value) for value in decided} == decided


COOKIE = {"canary_by_cookie": "CanaryByCookie"}


@pytest.mark.parametrize("pattern", ["[][**da?$&*", "[[**DoCanary", "("])
async def test_a_pattern_that_cannot_be_compiled_leaves_requests_with_the_header_to_the_main_ingress(
    two: World, pattern: str
) -> None:
    two.proxy.apply(main(), canary(**HEADER, **COOKIE, canary_by_header_pattern=pattern))
    assert await body(two, CanaryByHeader="DoCanary", Cookie="CanaryByCookie=always") == "one"
    assert await body(two, CanaryByHeader="always", Cookie="CanaryByCookie=always") == "one"
    assert await body(two, Cookie="CanaryByCookie=always") == "two"


@pytest.mark.parametrize(
    ("header", "cookie", "server"),
    [
        ("otherheadervalue", "always", "two"),
        ("DoCanary", "never", "two"),
        ("otherheadervalue", "never", "one"),
        ("never", "always", "two"),
    ],
)
async def test_the_cookie_decides_if_the_headers_value_does_not(
    two: World, header: str, cookie: str, server: str
) -> None:
    two.proxy.apply(main(), canary(**HEADER, **COOKIE, canary_by_header_value="DoCanary"))
    assert await body(two, CanaryByHeader=header, Cookie=f"CanaryByCookie={cookie}") == server


@pytest.mark.parametrize(("value", "server"), [("always", "two"), ("never", "one"), ("badcookievalue", "one")])
async def test_a_cookie_decides(two: World, value: str, server: str) -> None:
    two.proxy.apply(main(), canary(canary_by_cookie="Canary-By-Cookie"))
    assert set(await two.proxy.bodies(10, "/info", Cookie=f"a=b; Canary-By-Cookie={value}")) == {server}


@pytest.mark.parametrize(
    ("annotations", "least", "most"),
    [
        ({"canary_weight": "0"}, 0, 0),
        ({"canary_weight": "100"}, 100, 100),
        ({"canary_weight": "1000", "canary_weight_total": "1000"}, 100, 100),
        ({"canary_weight": "50"}, 25, 75),
        ({"canary_weight": "100", "canary_weight_total": "200"}, 25, 75),
        ({"canary_weight": "50", "canary_weight_total": "50"}, 25, 75),
        ({"canary_weight": "many"}, 0, 0),
        ({"canary_weight": "-5"}, 0, 0),
        ({"canary_weight": "500"}, 100, 100),
        ({}, 0, 0),
    ],
)
async def test_weights(two: World, annotations: dict[str, str], least: int, most: int) -> None:
    two.proxy.apply(main(), canary(**annotations))
    assert least <= (await two.proxy.bodies(100, "/info")).count("two") <= most


async def test_header_and_cookie_go_before_the_weight(two: World) -> None:
    two.proxy.apply(main(), canary(**HEADER, **COOKIE, canary_weight="100"))
    assert await body(two, CanaryByHeader="never") == "one"
    assert await body(two, Cookie="CanaryByCookie=never") == "one"
    assert await body(two, CanaryByHeader="other", Cookie="CanaryByCookie=other") == "two"


# Beside sessions

FORCED = {"canary_by_header": "ForceCanary", "canary_by_header_value": "yes"}
AFFINITY = {"affinity": "cookie", "session_cookie_name": "aff"}


@pytest.mark.parametrize("annotations", [{}, {"affinity_canary_behavior": "sticky"}])
async def test_a_client_that_had_the_canary_keeps_it(two: World, annotations: dict[str, str]) -> None:
    two.proxy.apply(main(**AFFINITY), canary(**FORCED, canary_weight="1", **annotations))
    forced = await two.proxy.get("/info", ForceCanary="yes")
    assert forced.body == b"two"
    assert forced.cookie.startswith("aff=")
    assert set(await two.proxy.bodies(20, "/info", Cookie=forced.cookie)) == {"two"}


async def test_a_client_that_had_the_main_ingress_keeps_it(two: World) -> None:
    two.proxy.apply(main(**AFFINITY), canary(**FORCED, canary_weight="0"))
    first = await two.proxy.get("/info")
    two.proxy.apply(canary(**FORCED, canary_weight="100"))
    assert await body(two, Cookie=first.cookie) == "one"
    assert await body(two, Cookie=first.cookie, ForceCanary="yes") == "one"
    assert await body(two) == "two"


async def test_a_canary_of_the_legacy_behaviour_keeps_no_client(two: World) -> None:
    legacy = {"affinity_canary_behavior": "legacy", "canary_weight": "50"}
    two.proxy.apply(main(**AFFINITY), canary(**FORCED, **legacy))
    forced = await two.proxy.get("/info", ForceCanary="yes")
    assert (forced.body, forced.cookie) == (b"two", "")
    assert 25 <= (await two.proxy.bodies(100, "/info")).count("two") <= 75
    kept = next(got for got in [await two.proxy.get("/info") for _ in range(50)] if got.body == b"one")
    assert set(await two.proxy.bodies(10, "/info", Cookie=kept.cookie)) == {"one"}
