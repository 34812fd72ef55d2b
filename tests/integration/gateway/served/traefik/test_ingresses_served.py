"""Ingresses and Services with the annotations of Traefik, from manifests to the wire."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from fakes.gateway.served import HOST
from fakes.gateway.tls import Authority
from fakes.translator.applied import World, world
from fakes.translator.deltas import endpoint_slice, ingress, service
from fakes.translator.traefik import middleware, resource, route, rule

ROUTER, SERVICE = "traefik.ingress.kubernetes.io/router.", "traefik.ingress.kubernetes.io/service."


@pytest.fixture
async def shop() -> AsyncIterator[World]:
    async with world("one", "two") as made:
        made.proxy.proxy.present(HOST, Authority().issue(HOST))
        yield made


def on(*paths: tuple[str, str, str], name: str = "web", **router: str) -> Any:
    """Return an Ingress with paths, each with its type and its Service."""
    made = ingress(name, host=HOST, annotations={ROUTER + key.replace("_", "."): each for key, each in router.items()})
    made["spec"]["rules"][0]["http"]["paths"] = [
        {"path": path, "pathType": kind, "backend": {"service": {"name": to, "port": {"number": 80}}}}
        for path, kind, to in paths
    ]
    return made


def annotated(made: World, name: str, **said: str) -> Any:
    """Return a Service of the proxy with annotations."""
    one = service(name)
    one["metadata"]["annotations"] = {SERVICE + key.replace("_", "."): each for key, each in said.items()}
    made.proxy.apply(one, endpoint_slice(name, "127.0.0.1", port=made.port(name)))
    return one


ANY = ("/", "Prefix", "one")


@pytest.mark.parametrize(
    ("router", "plain", "secure"),
    [
        ({"priority": "1"}, 200, 200),
        ({"entrypoints": "web"}, 200, 404),
        ({"entrypoints": "websecure"}, 404, 200),
        ({"entryPoints": "web,websecure"}, 200, 200),
        ({"tls": "true"}, 404, 200),
        ({"tls_certresolver": "le"}, 404, 200),
        ({"tls": "false"}, 200, 200),
    ],
)
async def test_entry_points_and_tls(shop: World, router: dict[str, str], plain: int, secure: int) -> None:
    shop.proxy.apply(on(ANY, **router))
    assert (await shop.proxy.status(), (await shop.proxy.proxy.secure()).status) == (plain, secure)


async def test_middlewares_of_any_namespace_are_followed_in_their_order(shop: World) -> None:
    shop.proxy.apply(
        middleware("first", namespace="shared", addPrefix={"prefix": "/a"}),
        middleware("second", addPrefix={"prefix": "/b"}),
        on(ANY, middlewares="shared-first@kubernetescrd, default-second@kubernetescrd"),
    )
    assert await shop.proxy.status("/x") == 200
    assert shop.servers["one"].heads[-1].startswith(b"GET /b/a/x ")


@pytest.mark.parametrize("name", ["default-lost@kubernetescrd", "auth@file", "auth"])
async def test_a_middleware_that_cannot_be_followed_closes_the_routes(shop: World, name: str) -> None:
    closed = on(ANY, middlewares=name)
    shop.proxy.apply(closed)
    assert await shop.proxy.status() == 503
    assert shop.servers["one"].heads == []
    assert shop.proxy.fields(closed)[0] == f"metadata.annotations[{ROUTER}middlewares]"


@pytest.mark.parametrize(
    ("kind", "router", "taken", "left"),
    [
        ("Prefix", {"priority": "1"}, "/products-for-sale", "/other"),
        ("Exact", {"priority": "1"}, "/products", "/products/x"),
        ("ImplementationSpecific", {"pathmatcher": "Path"}, "/products", "/products/x"),
        ("ImplementationSpecific", {"pathmatcher": "PathPrefix"}, "/products/x", "/other"),
        ("ImplementationSpecific", {"pathmatcher": "PathRegexp"}, "/a/products", "/other"),
    ],
)
async def test_paths_are_compared_as_traefik_does(
    shop: World, kind: str, router: dict[str, str], taken: str, left: str
) -> None:
    shop.proxy.apply(on(("/products", kind, "one"), **router))
    assert [await shop.proxy.status(path) for path in (taken, left)] == [200, 404]


async def test_a_priority_goes_before_the_length_of_rules(shop: World) -> None:
    shop.proxy.apply(on(ANY, name="short", priority="1000"), on(("/long", "Prefix", "two"), name="long", tls="false"))
    assert (await shop.proxy.get("/long")).body == b"one"
    shop.proxy.apply(on(ANY, name="short", priority="1"))
    assert (await shop.proxy.get("/long")).body == b"two"


async def test_a_priority_counts_against_those_of_ingress_routes(shop: World) -> None:
    shop.proxy.apply(on(ANY, priority="1"), route(rule(f"Host(`{HOST}`)", {"name": "two", "port": 80}), name="r"))
    assert (await shop.proxy.get()).body == b"two"


async def test_a_tls_option_that_is_missing_lets_no_client_in(shop: World) -> None:
    closed = on(ANY, tls_options="default-lost@kubernetescrd")
    shop.proxy.apply(closed)
    assert shop.proxy.errors(closed) == ["TLSOptionNotFound"]
    shop.proxy.apply(resource("TLSOption", "lost", {"minVersion": "VersionTLS13"}))
    assert shop.proxy.errors(closed) == []
    assert (await shop.proxy.proxy.secure()).status == 200


async def test_annotations_that_cannot_be_read_are_named(shop: World) -> None:
    odd = on(ANY, priority="much", pathmatcher="Glob", entrypoint="web", tls_certresolver="le")
    shop.proxy.apply(odd)
    named = ("entrypoint", "pathmatcher", "priority", "tls.certresolver")
    fields = (f"metadata.annotations[{ROUTER}{name}]" for name in named)
    assert sorted(shop.proxy.fields(odd)) == sorted(fields)


async def test_a_service_says_how_it_is_spoken_to(shop: World) -> None:
    annotated(shop, "one", passhostheader="false", sticky_cookie_name="kept", sticky_cookie_httponly="true")
    shop.proxy.apply(on(ANY, priority="1"))
    got = await shop.proxy.get()
    assert got.cookie.startswith("kept=")
    assert "HttpOnly" in got["set-cookie"]
    assert f"Host: 127.0.0.1:{shop.port('one')}".encode() in shop.servers["one"].heads[-1]


async def test_middlewares_of_a_service_come_behind_those_of_the_ingress(shop: World) -> None:
    annotated(shop, "one", middlewares="default-second@kubernetescrd")
    shop.proxy.apply(
        middleware("first", addPrefix={"prefix": "/a"}),
        middleware("second", addPrefix={"prefix": "/b"}),
        on(ANY, middlewares="default-first@kubernetescrd"),
    )
    assert await shop.proxy.status("/x") == 200
    assert shop.servers["one"].heads[-1].startswith(b"GET /b/a/x ")


async def test_a_service_of_type_external_name_is_not_asked_without_the_setting(shop: World) -> None:
    far = service("one")
    far["spec"] |= {"type": "ExternalName", "externalName": "far.example"}
    shop.proxy.apply(far, on(ANY, priority="1"))
    assert await shop.proxy.status() == 503
