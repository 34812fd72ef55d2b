"""Which location takes a request, and of which Ingress and Service it is (`test/e2e/ingress/*.go`)."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from fakes.translator.applied import World, world
from fakes.translator.nginx import ADOPTED, NGINX_CLASS, classed, headers

DETAILS = "$namespace $ingress_name $service_name $service_port $location_path"
TO_ONE = {"service": {"name": "one", "port": {"number": 80}}}


@pytest.fixture
async def two() -> AsyncIterator[World]:
    """A proxy before Services `one` and `two`, which has adopted the class of ingress-nginx."""
    async with world("one", "two", settings=ADOPTED) as made:
        made.proxy.apply(NGINX_CLASS)
        yield made


def told(name: str, path_type: str, path: str, text: str = "", **more: Any) -> Any:
    """Return an Ingress whose Service is told which it is."""
    made = classed(name, path=path, configuration_snippet=f'more_set_input_headers "at: {text or name}";', **more)
    made["spec"]["rules"][0]["http"]["paths"][0]["pathType"] = path_type
    return made


async def at(made: World, path: str, server: str = "one", **more: str) -> str:
    """Return what the Service is told of a request."""
    assert await made.proxy.status(path, **more) == 200
    return headers(made, server)["at"]


async def test_an_exact_path_goes_before_a_prefix_and_the_oldest_of_equal_ones_counts(two: World) -> None:
    two.proxy.apply(told("exact", "Exact", "/exact"))
    two.proxy.apply(told("prefix", "Prefix", "/exact"))
    assert [await at(two, path) for path in ("/exact", "/exact/suffix")] == ["exact", "prefix"]
    two.proxy.apply(told("duplicated", "Prefix", "/exact", created="2025-01-01T00:00:00Z"))
    assert [await at(two, path) for path in ("/exact", "/exact/suffix")] == ["exact", "prefix"]


async def test_exact_and_prefix_paths_of_several_ingresses(two: World) -> None:
    two.proxy.apply(told("exact-root", "Exact", "/"))
    two.proxy.apply(told("prefix-root", "Prefix", "/"))
    assert [await at(two, path) for path in ("/", "/bar")] == ["exact-root", "prefix-root"]
    two.proxy.apply(told("exact-foo", "Exact", "/foo"))
    two.proxy.apply(told("prefix-foo", "Prefix", "/foo"))
    asked = ("/foo", "/foo/bar", "/foobar", "/")
    assert [await at(two, path) for path in asked] == ["exact-foo", "prefix-foo", "prefix-root", "exact-root"]


async def test_a_prefix_ends_where_an_element_ends(two: World) -> None:
    two.proxy.apply(classed(path="/aaa"))
    asked = {path: await two.proxy.status(path) for path in ("/aaa", "/aaa/", "/aaa/cccc", "/aaacccc")}
    assert asked == {"/aaa": 200, "/aaa/": 200, "/aaa/cccc": 200, "/aaacccc": 404}


@pytest.mark.parametrize(
    ("pattern", "taken", "left"),
    [
        ("/id/[0-9]+", ("/id/1", "/id/12", "/id/123", "/id/123a"), ("/id/aaa",)),
        ("/id/[0-9]+$", ("/id/1",), ("/id/aaa", "/id/123a")),
        ("/id/[0-9]{3}$", ("/id/123",), ("/id/99", "/id/9999", "/id/123a")),
        ("/id/[0-9]+/post/[a-zA-Z]+$", ("/id/123/post/abc",), ("/id/123/post/abc123", "/id/abc/post/abc")),
    ],
)
async def test_a_prefix_that_is_a_pattern(
    two: World, pattern: str, taken: tuple[str, ...], left: tuple[str, ...]
) -> None:
    two.proxy.apply(classed(path=pattern, use_regex="true"))
    assert [await two.proxy.status(path) for path in taken] == [200] * len(taken)
    assert [await two.proxy.status(path) for path in left] == [404] * len(left)


async def test_the_service_is_that_of_the_rule(two: World) -> None:
    made = told("simh", "Prefix", "/", "$service_name", host="first.example")
    made["spec"]["rules"] += classed(host="second.example", to="two")["spec"]["rules"]
    two.proxy.apply(made)
    assert await at(two, "/exact", host="first.example") == "one"
    assert await at(two, "/exact", "two", host="second.example") == "two"


async def test_an_ingress_without_a_host_has_its_details(two: World) -> None:
    two.proxy.apply(told("default-host", "Prefix", "/", DETAILS, host=""))
    for host in ("any.example", "127.0.0.1"):
        assert await at(two, "/", host=host) == "default default-host one 80 /"


async def test_a_default_backend_beside_a_host_is_for_that_host_only(two: World) -> None:
    spec = {"defaultBackend": TO_ONE, "rules": [{"host": "only-backend.example"}]}
    snippet = f'more_set_input_headers "at: {DETAILS}";'
    two.proxy.apply(classed("backend", spec=spec, configuration_snippet=snippet, proxy_buffer_size="8k"))
    assert await at(two, "/", host="only-backend.example") == "default backend one 80 /"
    assert await two.proxy.status(host="other.example") == 404


@pytest.mark.parametrize(
    "text",
    [
        "/bla{alias /var/run/secrets/;}location ~* ^/abcd",
        "/x;root /;",
        "/etc/nginx/nginx.conf",
        "/var/run/secrets/kubernetes.io",
        "/content_by_lua_block",
    ],
)
async def test_an_ingress_is_dropped_for_a_path_that_is_configuration(two: World, text: str) -> None:
    bad = classed("bad", path=text)
    paths = bad["spec"]["rules"][0]["http"]["paths"]
    paths.append({**paths[0], "path": "/good"})
    two.proxy.apply(bad)
    two.proxy.apply(classed("valid", path="/xpto"))
    assert [await two.proxy.status(path) for path in ("/xpto", "/good", "/bla", "/abcd/")] == [200, 404, 404, 404]
    assert two.proxy.errors(bad) == ["ForbiddenText"]
    assert "spec.rules" not in two.proxy.messages(classed("valid"))


async def test_a_host_and_a_secret_that_are_configuration_drop_an_ingress_too(two: World) -> None:
    made = classed(path="/alias")
    made["spec"]["tls"] = [{"hosts": ["a.example"], "secretName": "root x;"}]
    two.proxy.apply(made)
    assert await two.proxy.status("/alias") == 404
    made["spec"]["tls"] = []
    two.proxy.apply(made)
    assert await two.proxy.status("/alias") == 200


async def test_patterns_of_an_ingress_that_is_dropped_leave_the_other_paths_alone(two: World) -> None:
    bad = classed("bad", path="/etc/passwd", use_regex="true")
    two.proxy.apply(classed(path="/Foo"), bad)
    assert await two.proxy.status("/foo") == 404
    two.proxy.apply(classed("bad", path="/x", use_regex="true"))
    assert await two.proxy.status("/foo") == 200


async def test_an_implementation_specific_path_takes_all_that_begins_so(two: World) -> None:
    two.proxy.apply(told("text", "ImplementationSpecific", "/foo"), told("root", "ImplementationSpecific", "/"))
    asked = ("/foo", "/foobar", "/foo/bar", "/fo", "/")
    assert [await at(two, path) for path in asked] == ["text", "text", "text", "root", "root"]
    two.proxy.apply(told("prefix", "Prefix", "/foo", created="2025-01-01T00:00:00Z"))
    assert [await at(two, path) for path in asked] == ["prefix", "text", "prefix", "root", "root"]
    two.proxy.apply(told("longer", "ImplementationSpecific", "/foo/b"), told("exact", "Exact", "/foo"))
    assert [await at(two, path) for path in asked] == ["exact", "text", "longer", "root", "root"]


async def test_an_implementation_specific_path_with_a_slash_at_its_end_is_redirected_to(two: World) -> None:
    two.proxy.apply(told("folder", "ImplementationSpecific", "/folder/"))
    assert await at(two, "/folder/x") == "folder"
    got = await two.proxy.get("/folder")
    assert (got.status, got["location"]) == (301, "http://a.example/folder/")
    assert await two.proxy.status("/folderx") == 404
