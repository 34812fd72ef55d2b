"""Paths of a host that no Ingress has: what its oldest Ingress says holds there, as in the root location of nginx."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from fakes.gateway.served import HOST
from fakes.translator.applied import World, world
from fakes.translator.deltas import endpoint_slice, ingress, service
from fakes.translator.nginx import nginx_ingress, options
from headgate.translator.world.settings import NginxSettings, TranslationSettings

OLD, NEW = "2024-01-01T00:00:00Z", "2024-06-01T00:00:00Z"
CLOSED = {"denylist_source_range": "127.0.0.0/8"}


@pytest.fixture
async def two() -> AsyncIterator[World]:
    """A proxy before Services `one` and `two`."""
    async with world("one", "two") as made:
        yield made


@pytest.mark.parametrize(
    ("annotations", "status"),
    [
        ({}, 404),
        ({"proxy_read_timeout": "5"}, 404),
        (CLOSED, 403),
        ({"allowlist_source_range": "127.0.0.0/8"}, 404),
        ({"auth_type": "basic", "auth_secret": "nowhere"}, 503),
        ({"auth_url": "http://127.0.0.1:1/"}, 500),
        ({"force_ssl_redirect": "true"}, 308),
        ({"permanent_redirect": "https://b.example"}, 301),
    ],
)
async def test_annotations_hold_there_and_what_comes_through_is_a_404(
    two: World, annotations: dict[str, str], status: int
) -> None:
    two.proxy.apply(nginx_ingress(path="/foo", **annotations))
    assert await two.proxy.status("/other") == status
    assert await two.proxy.status("/") == status


async def test_headers_for_other_origins_are_on_the_404(two: World) -> None:
    two.proxy.apply(nginx_ingress(path="/foo", enable_cors="true"))
    got = await two.proxy.get("/other")
    assert (got.status, got["access-control-allow-origin"]) == (404, "*")


def made(name: str, created: str, **more: Any) -> Any:
    return nginx_ingress(name, path=f"/{name}", created=created, **more)


async def test_the_oldest_ingress_of_the_host_decides(two: World) -> None:
    both = made("foo", OLD, enable_cors="true"), made("bar", NEW, **CLOSED)
    two.proxy.apply(*both)
    assert await two.proxy.status("/other") == 404
    assert [two.proxy.problems(manifest) for manifest in both] == [[], []]
    two.proxy.delete(both[0])
    assert await two.proxy.status("/other") == 403
    two.proxy.apply(made("foo", OLD, proxy_read_timeout="5"))
    assert [await two.proxy.status("/other"), await two.proxy.status("/bar")] == [404, 403]


async def test_a_path_that_an_ingress_has_is_its_own(two: World) -> None:
    two.proxy.apply(made("foo", OLD, **CLOSED), nginx_ingress("all", to="two", created=NEW))
    assert await two.proxy.bodies(1, "/other") == ["two"]
    assert await two.proxy.status("/foo") == 403
    pattern = {"path": "/.*", "use_regex": "true", "created": NEW}
    two.proxy.apply(nginx_ingress("all", to="two", **pattern))
    assert await two.proxy.bodies(1, "/other") == ["two"]


async def test_the_backend_of_the_ingress_for_other_paths_has_its_annotations(two: World) -> None:
    closed = made("foo", OLD, **CLOSED)
    closed["spec"]["defaultBackend"] = {"service": {"name": "two", "port": {"number": 80}}}
    two.proxy.apply(closed)
    assert await two.proxy.status("/other") == 403


async def test_other_namespaces_say_nothing_of_them_and_may_have_them(two: World) -> None:
    two.proxy.apply(made("foo", OLD, enable_cors="true"), made("bar", NEW, namespace="guest", **CLOSED))
    assert [await two.proxy.status("/bar"), await two.proxy.status("/other")] == [403, 404]


async def test_an_alias_has_the_same(two: World) -> None:
    two.proxy.apply(made("foo", OLD, server_alias="b.example", **CLOSED))
    assert await two.proxy.status("/other", host="b.example") == 403
    assert await two.proxy.status("/other", host="c.example") == 404


async def test_a_canary_takes_nothing_of_them(two: World) -> None:
    canary = nginx_ingress("canary", to="two", canary="true", canary_weight="100")
    two.proxy.apply(made("foo", OLD, enable_cors="true"), canary)
    assert await two.proxy.status("/") == 404
    assert two.proxy.errors(canary) == ["CanaryWithoutMain"]


@pytest.mark.parametrize("annotations", [{}, {"enable_cors": "true"}])
async def test_a_root_of_another_namespace_goes_before_what_is_left(two: World, annotations: dict[str, str]) -> None:
    two.proxy.apply(
        service("two", namespace="guests"),
        endpoint_slice("two", "127.0.0.1", namespace="guests", port=two.port("two")),
    )
    guest = nginx_ingress("guest", path="/", to="two", namespace="guests", created=NEW)
    two.proxy.apply(nginx_ingress(path="/foo", created=OLD, **annotations), guest)
    assert await two.proxy.bodies(1, "/other") == ["two"]
    assert await two.proxy.bodies(1, "/foo") == ["one"]
    assert two.proxy.problems(guest) == []


@pytest.mark.parametrize("annotations", [CLOSED, {"force_ssl_redirect": "true"}])
async def test_routes_of_the_least_priority_go_before_what_is_left(two: World, annotations: dict[str, str]) -> None:
    low = ingress("low", host=HOST, path="/bar", service="two", annotations={"headgate.dev/priority": "-1000000"})
    two.proxy.apply(nginx_ingress(path="/foo", created=OLD, **annotations), low)
    assert await two.proxy.bodies(1, "/bar/x") == ["two"]


async def test_the_default_backend_answers_besides_rules_without_a_host() -> None:
    settings = TranslationSettings(nginx=NginxSettings(default_backend="default/two"))
    async with world("one", "two", settings=settings) as made:
        hostless = nginx_ingress(path="/foo", host="")
        made.proxy.apply(options(), hostless)
        assert await made.proxy.bodies(1, "/foo", host="unknown.example") == ["one"]
        assert await made.proxy.bodies(1, "/bar", host="unknown.example") == ["two"]
