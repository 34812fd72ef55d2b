"""What the end-to-end tests of ingress-nginx say of cross-origin requests (`test/e2e/annotations/cors.go`)."""

from collections.abc import AsyncIterator

import pytest

from fakes.gateway.proxied import answering
from fakes.translator.applied import World, world
from fakes.translator.deltas import service
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
        ("cors_allow_methods", "GET POST", "access-control-allow-methods", "GET POST"),
        ("cors_allow_methods", "GET,PUT, ", "access-control-allow-methods", "GET,PUT,"),
        ("cors_allow_credentials", "false", "access-control-allow-credentials", ""),
        ("cors_allow_credentials", "perhaps", "access-control-allow-credentials", "true"),
        ("cors_allow_headers", "DNT, User-Agent", "access-control-allow-headers", "DNT, User-Agent"),
        ("cors_expose_headers", "X-CustomResponseHeader, X-Other", "access-control-expose-headers",
         "X-CustomResponseHeader, X-Other"),
        ("cors_allow_headers", "*", "access-control-allow-headers", DEFAULT_HEADERS),
        ("cors_expose_headers", "*", "access-control-expose-headers", "*"),
        ("cors_expose_headers", "*, X-Other", "access-control-expose-headers", "*, X-Other"),
        ("cors_expose_headers", "X-Other; X", "access-control-expose-headers", ""),
    ],
)  # fmt: skip
async def test_each_annotation_sets_its_header(
    one: World, annotation: str, written: str, header: str, shown: str
) -> None:
    one.proxy.apply(nginx_ingress(enable_cors="true", **{annotation: written}))
    assert (await one.proxy.get(Origin=ORIGIN))[header] == shown


LISTED = "https://origin.cors.com:8080, https://origin2.cors.com"
PORTS = "http://origin.cors.com:8080, http://*.origin.com:8080"
DEPTH = "http://*.origin.cors.com, http://*.origin.com:8080"
COMMAS = "https://origin-123.cors.com:8080,   ,https://origin-321.cors.com:8080,"
CUSTOM = "test://localhost, tauri://localhost:3000"


@pytest.mark.parametrize(
    ("allowed", "origin", "is_allowed"),
    [
        (ORIGIN, ORIGIN, True),
        (LISTED, "https://origin.cors.com:8080", True),
        (LISTED, "https://origin2.cors.com", True),
        (LISTED, "http://origin2.cors.com", False),
        ("http://origin2.cors.com, https://origin.com", "http://no.origin.com", False),
        ("origin.cors.com:8080, https://origin2.cors.com, https://origin.com", "origin.cors.com:8080", False),
        ("origin.cors.com:8080, https://origin2.cors.com, https://origin.com", "https://origin.com", True),
        ("https://foo.bar.com", "https://fooxbar.com", False),
        ("https://foo.bar.com", "https://foo.bar.com.evil.example", False),
        ("http://origin.cors.com:8080, http://origin.com:8080", ORIGIN, True),
        ("http://origin.cors.com:8080, http://origin.com:8080", "http://origin.com", False),
        ("https://origin2.cors.com, http://origin.com", ORIGIN, False),
        ("https://foo.bar.com", "https://foo.bar.com:8080", False),
        ("https://*.foo.bar.com", "https://xyz.foo.bar.com", True),
        ("https://*.bar.foo.com", "https://foo.bar.com", False),
        (DEPTH, "http://foo.origin.cors.com", True),
        (DEPTH, "http://bar-foo.origin.cors.com", True),
        (DEPTH, "http://bar.foo.origin.cors.com", False),
        (DEPTH, "http://origin.cors.com", False),
        (PORTS, "http://abc.origin.com:8080", True),
        (PORTS, "http://abc.origin.com", False),
        (PORTS, "http://bar.origin.com:8080", True),
        (PORTS, "http://a.b.origin.com:8080", False),
        (COMMAS, "https://origin-123.cors.com:8080", True),
        (COMMAS, "https://origin-321.cors.com:8080", True),
        (COMMAS, "https://unknown.cors.com:8080", False),
        (CUSTOM, "test://localhost", True),
        (CUSTOM, "tauri://localhost:3000", True),
        (CUSTOM, "tauri://localhost", False),
        ("null", "null", True),
        ("HTTP://ORIGIN.COM", "http://origin.com", False),
        ("http://origin.com", "http://ORIGIN.com", True),
    ],
)
async def test_origins(one: World, allowed: str, origin: str, is_allowed: bool) -> None:
    one.proxy.apply(nginx_ingress(enable_cors="true", cors_allow_origin=allowed))
    got = await one.proxy.get(Origin=origin)
    assert got.all("access-control-allow-origin") == ([origin] if is_allowed else [])
    assert (got["access-control-allow-methods"] != "") is is_allowed
    assert (got.status, got.body) == (200, b"one")
    preflight = await one.proxy.get(method="OPTIONS", Origin=origin)
    assert preflight.status == (204 if is_allowed else 200)


@pytest.mark.parametrize("allowed", ["*", "*, foo.bar.com", "https://foo.bar.com, *", "      ", None])
async def test_all_origins_are_allowed_by_a_star_or_by_none_that_is_named(one: World, allowed: str | None) -> None:
    written = {} if allowed is None else {"cors_allow_origin": allowed}
    one.proxy.apply(nginx_ingress(enable_cors="true", **written))
    for headers in ({}, {"Origin": "http://book.origin.com"}, {"Origin": "test.origin.com"}):
        got = await one.proxy.get(**headers)
        assert (got.status, got.all("access-control-allow-origin")) == (200, ["*"])


async def test_a_request_without_an_origin_gets_nothing_if_origins_are_named(one: World) -> None:
    one.proxy.apply(nginx_ingress(enable_cors="true", cors_allow_origin=ORIGIN))
    assert "access-control" not in (await one.proxy.get()).head.decode().lower()


async def test_what_cannot_be_an_origin_is_named(one: World) -> None:
    made = nginx_ingress(enable_cors="true", cors_allow_origin="https://a.example/path, https://b.example")
    one.proxy.apply(made)
    assert "https://a.example/path" in one.proxy.messages(made)
    assert (await one.proxy.get(Origin="https://b.example"))["access-control-allow-origin"] == "https://b.example"


async def test_headers_of_the_upstream_give_way() -> None:
    head = b"HTTP/1.1 200 OK\r\nAccess-Control-Allow-Origin: http://own\r\nContent-Length: 0\r\n\r\n"
    async with world(one=answering(head)) as made:
        made.proxy.apply(nginx_ingress(enable_cors="true", cors_allow_origin=ORIGIN))
        assert (await made.proxy.get(Origin=ORIGIN)).all("access-control-allow-origin") == [ORIGIN]
        other = await made.proxy.get(Origin="http://other.com")
        assert other.all("access-control-allow-origin") == ["http://own"]


async def test_headers_are_on_errors_of_the_gateway_and_of_the_upstream() -> None:
    async with world(one=answering(b"HTTP/1.1 500 Out\r\nContent-Length: 0\r\n\r\n")) as made:
        made.proxy.apply(
            nginx_ingress(enable_cors="true"), nginx_ingress("two", path="/two", to="two", enable_cors="true")
        )
        made.proxy.apply(service("two"))
        for path, status in (("/", 500), ("/two", 503)):
            got = await made.proxy.get(path, Origin=ORIGIN)
            assert (got.status, got["access-control-allow-origin"]) == (status, "*")


async def test_a_preflight_has_the_same_headers_and_no_body(one: World) -> None:
    one.proxy.apply(nginx_ingress(enable_cors="true", cors_allow_origin=ORIGIN, cors_allow_methods="PUT"))
    asked = {"Access_Control_Request_Method": "PUT", "Access_Control_Request_Headers": "X-Shop"}
    got = await one.proxy.get(method="OPTIONS", Origin=ORIGIN, **asked)
    assert (got.status, got.body) == (204, b"")
    assert got["access-control-allow-origin"] == ORIGIN
    assert got["access-control-allow-methods"] == "PUT"
    assert got["access-control-allow-headers"] == DEFAULT_HEADERS


async def test_a_changed_and_a_removed_annotation_count_at_once(one: World) -> None:
    one.proxy.apply(nginx_ingress(enable_cors="true", cors_allow_origin=ORIGIN))
    one.proxy.apply(nginx_ingress(enable_cors="true", cors_allow_origin="https://b.example"))
    assert (await one.proxy.get(Origin=ORIGIN))["access-control-allow-origin"] == ""
    one.proxy.apply(nginx_ingress())
    assert (await one.proxy.get(Origin="https://b.example"))["access-control-allow-origin"] == ""


@pytest.mark.parametrize("allowed", ["foo.bar.com", ","])
async def test_origins_that_are_all_wrong_allow_none(one: World, allowed: str) -> None:
    one.proxy.apply(nginx_ingress(enable_cors="true", cors_allow_origin=allowed))
    assert (await one.proxy.get(Origin="foo.bar.com"))["access-control-allow-origin"] == ""


async def test_what_is_not_enabled_adds_nothing(one: World) -> None:
    one.proxy.apply(nginx_ingress(cors_allow_origin=ORIGIN))
    assert (await one.proxy.get(Origin=ORIGIN))["access-control-allow-origin"] == ""
