"""Which requests are in the access log (`test/e2e/annotations/disableaccesslog.go`, `log.go`)."""

from collections.abc import AsyncIterator

import pytest

from fakes.translator.applied import World, world
from fakes.translator.nginx import ADOPTED, NGINX_CLASS, classed, options


@pytest.fixture
async def one() -> AsyncIterator[World]:
    """A proxy before a Service `one`, which has adopted the class of ingress-nginx."""
    async with world("one", settings=ADOPTED) as made:
        made.proxy.apply(NGINX_CLASS)
        yield made


async def logged(made: World, *paths: str, **more: str) -> list[str]:
    """Return which of these paths are in the log once they were asked for."""
    made.proxy.proxy.log.records.clear()
    for path in paths:
        await made.proxy.get(path, **more)
    return [record[3].decode() for record in made.proxy.proxy.log.records]


async def test_an_ingress_may_leave_its_requests_out(one: World) -> None:
    one.proxy.apply(classed(), classed("quiet", path="/quiet", enable_access_log="false"))
    assert await logged(one, "/", "/quiet", "/a") == ["/", "/a"]
    one.proxy.apply(classed("quiet", path="/quiet", enable_access_log="true"))
    assert await logged(one, "/quiet") == ["/quiet"]


@pytest.mark.parametrize("key", ["disable_access_log", "disable_http_access_log"])
async def test_no_request_is_logged_if_the_config_map_says_so(one: World, key: str) -> None:
    one.proxy.apply(classed(), options(**{key: "true"}))
    assert await one.proxy.bodies(1) == ["one"]
    assert await logged(one, "/", "/a") == []
    assert await logged(one, "/", host="other.example") == []
    one.proxy.apply(options(**{key: "false"}))
    assert await logged(one, "/") == ["/"]


async def test_a_log_of_streams_is_no_matter_of_requests(one: World) -> None:
    one.proxy.apply(classed(), options(disable_stream_access_log="true"))
    assert await one.proxy.bodies(1) == ["one"]
    assert await logged(one, "/") == ["/"]


async def test_rewrites_are_not_logged_and_requests_are(one: World) -> None:
    manifest = classed(enable_rewrite_log="true")
    one.proxy.apply(manifest)
    assert await logged(one, "/") == ["/"]
    assert one.proxy.errors(manifest) == []


async def test_requests_for_other_hosts_are_logged_unless_the_config_map_says_no(one: World) -> None:
    one.proxy.apply(classed(), options(enable_access_log_for_default_backend="true"))
    assert await logged(one, "/somethingOne", host="foo") == ["/somethingOne"]
    one.proxy.apply(options(enable_access_log_for_default_backend="false"))
    assert await one.proxy.status("/somethingTwo", host="bar") == 404
    assert await logged(one, "/somethingTwo", host="bar") == []
    assert await logged(one, "/") == ["/"]
    one.proxy.delete(options())
    assert await logged(one, "/somethingTwo", host="bar") == ["/somethingTwo"]
    one.proxy.apply(classed("all", host=""), options(enable_access_log_for_default_backend="false"))
    assert await logged(one, "/somethingTwo", host="bar") == ["/somethingTwo"]
