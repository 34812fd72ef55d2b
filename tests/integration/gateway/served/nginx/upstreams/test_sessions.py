"""What the end-to-end tests of ingress-nginx say of session cookies, from an Ingress to the wire.

Each test names its behaviour there (`test/e2e/annotations/affinity.go`, `affinitymode.go`).
"""

import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest

from fakes.gateway.proxied import answering
from fakes.gateway.served import HOST, named
from fakes.translator.applied import World, world
from fakes.translator.deltas import endpoint_slice, service
from fakes.translator.nginx import nginx_ingress

STICKY = {"affinity": "cookie", "session_cookie_name": "SERVERID"}


@pytest.fixture
async def two() -> AsyncIterator[World]:
    """A proxy before a Service `one`, whose endpoints are servers `one` and `two`."""
    async with world("one", "two") as made:
        second = endpoint_slice("one", "127.0.0.1", name="one-second", port=made.port("two"))
        made.proxy.apply(second)
        yield made


async def set_cookie(made: World, path: str = "/", **more: str) -> str:
    """Return the cookie that an answer sets, with its attributes."""
    return (await made.proxy.get(path, **more))["set-cookie"]


async def test_the_cookie_has_its_name_and_path_and_is_http_only(two: World) -> None:
    two.proxy.apply(nginx_ingress(**STICKY))
    cookie = await set_cookie(two)
    assert re.fullmatch(r"SERVERID=[\w.=-]+; Path=/; HttpOnly", cookie)


async def test_the_name_of_the_cookie_can_change_and_has_a_default(two: World) -> None:
    two.proxy.apply(nginx_ingress(affinity="cookie"))
    assert (await set_cookie(two)).startswith("INGRESSCOOKIE=")
    two.proxy.apply(nginx_ingress(**STICKY))
    old = (await two.proxy.get()).cookie
    two.proxy.apply(nginx_ingress(affinity="cookie", session_cookie_name="OTHERCOOKIENAME"))
    assert (await set_cookie(two, Cookie=old)).startswith("OTHERCOOKIENAME=")
    two.proxy.apply(nginx_ingress())
    assert await set_cookie(two) == ""


async def test_a_client_keeps_to_its_endpoint_and_gets_no_second_cookie(two: World) -> None:
    two.proxy.apply(nginx_ingress(**STICKY))
    first = await two.proxy.get()
    for _ in range(4):
        again = await two.proxy.get(Cookie=first.cookie)
        assert (again.body, again.cookie) == (first.body, "")
    assert set(await two.proxy.bodies(4)) == {"one", "two"}


async def test_another_affinity_is_none(two: World) -> None:
    two.proxy.apply(nginx_ingress(affinity="ip"))
    assert await set_cookie(two) == ""


async def test_a_forged_cookie_is_replaced(two: World) -> None:
    two.proxy.apply(nginx_ingress(**STICKY))
    assert (await two.proxy.get(Cookie="SERVERID=192.0.2.1:80|x")).cookie.startswith("SERVERID=")


def several(*paths: str, **more: str) -> Any:
    backend = {"service": {"name": "one", "port": {"number": 80}}}
    entries = [{"path": path, "pathType": "Prefix", "backend": backend} for path in paths]
    return nginx_ingress(spec={"rules": [{"host": HOST, "http": {"paths": entries}}]}, **STICKY, **more)


async def test_the_path_of_the_cookie_is_that_of_the_rule_or_the_one_that_is_said(two: World) -> None:
    two.proxy.apply(several("/something", "/somewhereelse"))
    assert "; Path=/something;" in await set_cookie(two, "/something/x")
    assert "; Path=/somewhereelse;" in await set_cookie(two, "/somewhereelse")
    two.proxy.apply(several("/something", "/somewhereelse", session_cookie_path="/"))
    assert "; Path=/;" in await set_cookie(two, "/something/x")
    two.proxy.apply(nginx_ingress(path="/foo/.*", use_regex="true", session_cookie_path="/foo/bar", **STICKY))
    assert "; Path=/foo/bar;" in await set_cookie(two, "/foo/bar")


async def test_a_pattern_without_a_path_for_the_cookie_is_served_with_a_warning(two: World) -> None:
    made = nginx_ingress(path="/foo/.*", use_regex="true", **STICKY)
    two.proxy.apply(made)
    assert await two.proxy.status("/foo/bar") == 200
    assert "session-cookie-path" in two.proxy.messages(made)
    assert two.proxy.errors(made) == []
    two.proxy.apply(nginx_ingress(path="/foo/.*", use_regex="true", session_cookie_path="/foo", **STICKY))
    assert "session-cookie-path" not in two.proxy.messages(made)


async def test_the_cookie_has_its_age_and_its_end(two: World) -> None:
    two.proxy.apply(nginx_ingress(session_cookie_max_age="300", session_cookie_expires="172800", **STICKY))
    cookie = await set_cookie(two)
    found = re.search("; Expires=([^;]+)", cookie)
    assert found is not None
    left = datetime.strptime(found[1], "%a, %d-%b-%y %H:%M:%S GMT").replace(tzinfo=UTC) - datetime.now(UTC)
    assert 172700 < left.total_seconds() <= 172800
    assert "; Max-Age=300;" in cookie


async def test_the_cookie_has_its_domain(two: World) -> None:
    two.proxy.apply(nginx_ingress(session_cookie_domain="foo.bar", **STICKY))
    assert "; Domain=foo.bar;" in await set_cookie(two)
    two.proxy.apply(nginx_ingress(**STICKY))
    assert "Domain" not in await set_cookie(two)


async def test_routes_of_another_ingress_set_no_cookie(two: World) -> None:
    two.proxy.apply(nginx_ingress(path="/foo/bar", affinity="cookie"), nginx_ingress("other", path="/foo"))
    assert "; Path=/foo/bar;" in await set_cookie(two, "/foo/bar")
    assert await set_cookie(two, "/foo") == ""


async def test_a_host_and_its_alias_and_an_ingress_without_host_set_the_cookie(two: World) -> None:
    two.proxy.apply(nginx_ingress(path="/bar", server_alias="a1.foo.com,a2.foo.com", **STICKY))
    for host in (HOST, "a1.foo.com", "a2.foo.com"):
        assert (await set_cookie(two, "/bar", host=host)).startswith("SERVERID=")
    two.proxy.apply(nginx_ingress("any", host="", **STICKY))
    assert await set_cookie(two, host="unknown.example") != ""


@pytest.mark.parametrize(("secure", "scheme", "is_secure"), [("true", "http", True), ("false", "http", False)])
async def test_secure_is_set_if_that_is_said(two: World, secure: str, scheme: str, is_secure: bool) -> None:
    two.proxy.apply(nginx_ingress(session_cookie_secure=secure, **STICKY))
    assert ("; Secure" in await set_cookie(two)) is is_secure


@pytest.mark.parametrize("annotations", [{}, {"session_cookie_secure": "false"}])
async def test_secure_is_set_over_https_whatever_is_said(two: World, annotations: dict[str, str]) -> None:
    two.proxy.apply(nginx_ingress(**annotations, **STICKY))
    assert "; Secure" in (await two.proxy.proxy.secure(server_name=HOST))["set-cookie"]


@pytest.mark.parametrize("value", ["Lax", "Strict", "None"])
async def test_same_site_is_what_is_said(two: World, value: str) -> None:
    two.proxy.apply(nginx_ingress(session_cookie_samesite=value, **STICKY))
    assert f"; SameSite={value}" in await set_cookie(two)


MACINTOSH = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_14_4) AppleWebKit/605.1.15"
BROWSERS = {
    "": True,
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/120.0.0.0 Safari/537.36": True,
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/51.0.2704.103 Safari/537.36": False,
    "Mozilla/5.0 (iPhone; CPU iPhone OS 12_0 like Mac OS X) AppleWebKit/604.1 Safari/604.1": False,
    "Mozilla/5.0 (iPad; CPU OS 12_1 like Mac OS X) Safari/604.1": False,
    f"{MACINTOSH} Version/12.1 Safari/605.1.15": False,
    f"{MACINTOSH} Chrome/90.0.4430.93 Safari/537.36": True,
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_4) AppleWebKit/605.1.15 Version/13 Safari/605.1.15": True,
}


@pytest.mark.parametrize(("browser", "takes_none"), BROWSERS.items())
async def test_same_site_none_is_left_out_for_browsers_that_cannot_take_it(
    two: World, browser: str, takes_none: bool
) -> None:
    conditional = {"session_cookie_samesite": "None", "session_cookie_conditional_samesite_none": "true"}
    two.proxy.apply(nginx_ingress(**conditional, **STICKY), nginx_ingress("b", host="b.example", **STICKY))
    headers = {"User_Agent": browser} if browser else {}
    assert ("SameSite=None" in await set_cookie(two, **headers)) is takes_none


@pytest.mark.parametrize("mode", ["balanced", "persistent"])
@pytest.mark.parametrize("changes", ["true", "false"])
async def test_a_client_whose_endpoint_fails_returns_to_it_unless_it_shall_change(mode: str, changes: str) -> None:
    failing = answering(named(b"flaky"))
    async with world("one", flaky=failing) as made:
        second = endpoint_slice("one", "127.0.0.1", name="one-second", port=made.port("flaky"))
        made.proxy.apply(second)
        sticky = {**STICKY, "affinity_mode": mode, "session_cookie_change_on_failure": changes}
        made.proxy.apply(nginx_ingress(**sticky))
        first = next(got for got in [await made.proxy.get() for _ in range(2)] if got.body == b"flaky")
        await made.servers["flaky"].stop()
        moved = await made.proxy.get(Cookie=first.cookie)
        assert (moved.status, moved.body) == (200, b"one")
        assert (moved.cookie != "") is (changes == "true")


MODE = {
    "affinity": "cookie",
    "session_cookie_name": "hello-cookie",
    "session_cookie_expires": "172800",
    "session_cookie_max_age": "172800",
    "session_cookie_hash": "sha1",
    "ssl_redirect": "false",
}


@pytest.mark.parametrize("mode", ["persistent", "balanced"])
async def test_a_client_stays_while_endpoints_come_and_moves_once_all_were_replaced(mode: str) -> None:
    async with world(*"abcdefg") as made:

        def scale(names: str) -> None:
            slices = (endpoint_slice("all", *(["127.0.0.1"] * (name in names)), name=name, port=made.port(name))
                      for name in "abcdefg")  # fmt: skip
            made.proxy.apply(*slices)

        made.proxy.apply(service("all"), nginx_ingress(to="all", affinity_mode=mode, **MODE))
        scale("ab")
        first = await made.proxy.get()
        for names in ("abc", "abcd", "abcde"):
            scale(names)
            again = await made.proxy.get(Cookie=first.cookie)
            assert (again.status, again.body, again.cookie) == (200, first.body, "")
        scale("")
        assert await made.proxy.status(Cookie=first.cookie) == 503
        scale("fg")
        moved = await made.proxy.get(Cookie=first.cookie)
        assert moved.body in (b"f", b"g")
        assert moved.cookie.startswith("hello-cookie=")


@pytest.mark.parametrize("mode", ["persistent", "balanced"])
async def test_new_clients_are_spread_over_all_endpoints(two: World, mode: str) -> None:
    two.proxy.apply(nginx_ingress(affinity_mode=mode, **MODE))
    assert set(await two.proxy.bodies(10)) == {"one", "two"}
