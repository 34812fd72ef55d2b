"""What the end-to-end tests of ingress-nginx say of sessions and hashing.

Files there: `test/e2e/annotations/affinity.go`, `affinitymode.go`, `upstreamhashby.go`, `loadbalance/*.go`.
"""

from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

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


def sticky(**more: Any) -> Any:
    return nginx_ingress(**{"to": "all", "affinity": "cookie", **more})


# Sessions


async def test_a_session_keeps_to_its_endpoint(many: World) -> None:
    many.proxy.apply(sticky(session_cookie_name="SERVERID"))
    first = await many.proxy.get()
    assert first.cookie.startswith("SERVERID=")
    assert set(await many.proxy.bodies(6, Cookie=first.cookie)) == {first.body.decode()}


async def test_the_cookie_has_the_name_of_ingress_nginx_by_default_and_changes_with_the_ingress(many: World) -> None:
    many.proxy.apply(sticky())
    assert (await many.proxy.get()).cookie.startswith("INGRESSCOOKIE=")
    many.proxy.apply(sticky(session_cookie_name="OTHER"))
    assert (await many.proxy.get()).cookie.startswith("OTHER=")


@pytest.mark.parametrize(
    ("annotations", "attribute"),
    [
        ({"path": "/something"}, "Path=/something"),
        ({"session_cookie_path": "/foo/bar"}, "Path=/foo/bar"),
        ({"session_cookie_domain": "foo.bar"}, "Domain=foo.bar"),
        ({"session_cookie_max_age": "259200"}, "Max-Age=259200"),
        ({"session_cookie_samesite": "Lax"}, "SameSite=Lax"),
        ({"session_cookie_secure": "true"}, "Secure"),
        ({}, "HttpOnly"),
        ({"use_regex": "true", "path": "/foo/(.*)", "session_cookie_path": "/foo"}, "Path=/foo"),
    ],
)
async def test_attributes_of_the_cookie(many: World, annotations: dict[str, str], attribute: str) -> None:
    many.proxy.apply(sticky(**annotations))
    path = annotations.get("path", "/").replace("(.*)", "x")
    assert attribute in [part.strip() for part in (await many.proxy.get(path))["set-cookie"].split(";")]


@pytest.mark.parametrize("absent", ["Domain", "Secure", "Max-Age"])
async def test_what_is_not_said_is_not_in_the_cookie(many: World, absent: str) -> None:
    many.proxy.apply(sticky(session_cookie_secure="false"))
    assert absent not in (await many.proxy.get())["set-cookie"]


async def test_sessions_are_of_one_ingress_only(many: World) -> None:
    many.proxy.apply(sticky(path="/foo"), nginx_ingress("other", path="/bar", to="all", enable_cors="false"))
    assert (await many.proxy.get("/foo")).cookie != ""
    assert (await many.proxy.get("/bar")).cookie == ""


async def test_another_affinity_is_none(many: World) -> None:
    many.proxy.apply(sticky(affinity="ip"))
    assert (await many.proxy.get()).cookie == ""


# Hashing, balancing


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
