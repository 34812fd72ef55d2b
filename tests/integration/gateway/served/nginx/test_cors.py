"""What the end-to-end tests of ingress-nginx say of cross-origin requests (`test/e2e/annotations/cors.go`)."""

from collections.abc import AsyncIterator

import pytest

from fakes.translator.applied import World, world
from fakes.translator.nginx import nginx_ingress

ORIGIN = "http://origin.cors.com:8080"
DEFAULT_HEADERS = (
    "DNT,Keep-Alive,User-Agent,X-Requested-With,If-Modified-Since,Cache-Control,Content-Type,Range,Authorization"
)


@pytest.fixture
async def one() -> AsyncIterator[World]:
    """A proxy before a Service `one`."""
    async with world("one") as made:
        yield made


async def test_defaults_are_on_every_answer(one: World) -> None:
    one.proxy.apply(nginx_ingress(enable_cors="true"))
    got = await one.proxy.get()
    assert got["access-control-allow-origin"] == "*"
    assert got["access-control-allow-credentials"] == "true"
    assert got["access-control-allow-methods"] == "GET, PUT, POST, DELETE, PATCH, OPTIONS"
    assert got["access-control-allow-headers"] == DEFAULT_HEADERS
    assert got["access-control-max-age"] == "1728000"
    assert got["access-control-expose-headers"] == ""
    assert got.body == b"one"


async def test_options_is_answered_with_204_and_not_passed_on(one: World) -> None:
    one.proxy.apply(nginx_ingress(enable_cors="true"))
    got = await one.proxy.get(method="OPTIONS")
    assert (got.status, got["access-control-allow-origin"]) == (204, "*")
    assert one.servers["one"].heads == []


@pytest.mark.parametrize(
    ("annotation", "written", "header", "shown"),
    [
        ("cors_allow_methods", "POST, GET", "access-control-allow-methods", "POST, GET"),
        ("cors_allow_methods", "POST; GET", "access-control-allow-methods", "GET, PUT, POST, DELETE, PATCH, OPTIONS"),
        ("cors_max_age", "200", "access-control-max-age", "200"),
        ("cors_max_age", "soon", "access-control-max-age", "1728000"),
        ("cors_allow_credentials", "false", "access-control-allow-credentials", ""),
        ("cors_allow_headers", "DNT, User-Agent", "access-control-allow-headers", "DNT, User-Agent"),
        ("cors_expose_headers", "X-CustomResponseHeader, X-Other", "access-control-expose-headers",
         "X-CustomResponseHeader, X-Other"),
        ("cors_expose_headers", "*", "access-control-expose-headers", "*"),
    ],
)  # fmt: skip
async def test_each_annotation_sets_its_header(
    one: World, annotation: str, written: str, header: str, shown: str
) -> None:
    one.proxy.apply(nginx_ingress(enable_cors="true", **{annotation: written}))
    assert (await one.proxy.get(Origin=ORIGIN))[header] == shown


@pytest.mark.parametrize(
    ("allowed", "origin", "is_allowed"),
    [
        (ORIGIN, ORIGIN, True),
        ("http://origin.cors.com:8080, http://origin.com:8080", ORIGIN, True),
        ("http://origin2.cors.com, https://origin.com", "http://no.origin.com", False),
        ("https://foo.bar.com:8080", "https://foo.bar.com:8080", True),
        ("https://foo.bar.com:8080", "https://foo.bar.com", False),
        ("https://foo.bar.com", "https://foo.bar.com:8080", False),
        ("https://*.foo.bar.com", "https://xyz.foo.bar.com", True),
        ("https://*.bar.foo.com", "https://foo.bar.com", False),
        ("http://*.origin.com:8080", "http://a.origin.com:8080", True),
        ("http://*.origin.com:8080", "http://a.origin.com", False),
        ("http://*.origin.com:8080", "http://a.b.origin.com:8080", False),
        ("http://origin.cors.com:8080,", ORIGIN, True),
        ("http://origin.cors.com:8080,", "http://other.com", False),
        ("test://localhost", "test://localhost", True),
        ("null", "null", True),
        ("HTTP://ORIGIN.COM", "http://origin.com", False),
        ("http://origin.com", "http://ORIGIN.com", True),
    ],
)
async def test_origins(one: World, allowed: str, origin: str, is_allowed: bool) -> None:
    one.proxy.apply(nginx_ingress(enable_cors="true", cors_allow_origin=allowed))
    got = await one.proxy.get(Origin=origin)
    assert got["access-control-allow-origin"] == (origin if is_allowed else "")
    assert got.body == b"one"
    preflight = await one.proxy.get(method="OPTIONS", Origin=origin)
    assert preflight.status == (204 if is_allowed else 200)


async def test_origins_that_are_all_wrong_allow_none(one: World) -> None:
    one.proxy.apply(nginx_ingress(enable_cors="true", cors_allow_origin="foo.bar.com"))
    assert (await one.proxy.get(Origin="foo.bar.com"))["access-control-allow-origin"] == ""


async def test_no_origins_are_all(one: World) -> None:
    one.proxy.apply(nginx_ingress(enable_cors="true", cors_allow_origin=""))
    assert (await one.proxy.get(Origin=ORIGIN))["access-control-allow-origin"] == "*"


async def test_what_is_not_enabled_adds_nothing(one: World) -> None:
    one.proxy.apply(nginx_ingress(cors_allow_origin=ORIGIN))
    assert (await one.proxy.get(Origin=ORIGIN))["access-control-allow-origin"] == ""
