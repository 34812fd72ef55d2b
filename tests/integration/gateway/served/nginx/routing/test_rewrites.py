"""Rewrites of Ingresses of ingress-nginx' class, some without any annotation (`test/e2e/annotations/rewrite.go`)."""

from collections.abc import AsyncIterator

import pytest

from fakes.translator.applied import World, world
from fakes.translator.nginx import ADOPTED, NGINX_CLASS, classed, headers, request_line


@pytest.fixture
async def one() -> AsyncIterator[World]:
    """A proxy before a Service `one`, which has adopted the class of ingress-nginx."""
    async with world("one", settings=ADOPTED) as made:
        made.proxy.apply(NGINX_CLASS)
        yield made


async def asked(made: World, path: str) -> str:
    """Return the target that the Service gets for a path."""
    assert await made.proxy.status(path) == 200
    return request_line(made).split(" ")[1]


async def test_a_longer_path_of_another_ingress_is_not_rewritten(one: World) -> None:
    one.proxy.apply(classed("kube-lego", path="/.well-known/acme/challenge"))
    assert await asked(one, "/.well-known/acme/challenge") == "/.well-known/acme/challenge"
    rewriting = classed("rewrite-index", path="/", rewrite_target="/new/backend")
    one.proxy.apply(rewriting)
    assert await asked(one, "/.well-known/acme/challenge") == "/.well-known/acme/challenge"
    assert await asked(one, "/other?a=b") == "/new/backend?a=b"
    one.proxy.delete(rewriting)
    assert await one.proxy.status("/other") == 404


@pytest.mark.parametrize("plain_first", [True, False])
async def test_a_path_becomes_a_pattern_beside_one_whatever_comes_first(one: World, plain_first: bool) -> None:
    both = [classed("foo", path="/foo"), classed("p", path="/foo.+", use_regex="true", rewrite_target="/new/backend")]
    for manifest in both if plain_first else reversed(both):
        one.proxy.apply(manifest)
    assert await asked(one, "/foo") == "/foo"
    assert await asked(one, "/foo/bar") == "/new/backend"
    assert await asked(one, "/FOO") == "/FOO"


async def test_the_longer_pattern_goes_before_a_path_that_is_meant_literally(one: World) -> None:
    pattern = classed("regex", path="/foo/bar/[a-z]{3}", use_regex="true", rewrite_target="/new/backend")
    one.proxy.apply(classed("foo", path="/foo/bar/bar"), pattern)
    assert await asked(one, "/foo/bar/bar") == "/new/backend"
    one.proxy.delete(pattern)
    assert await asked(one, "/foo/bar/bar") == "/foo/bar/bar"


async def test_the_target_has_what_the_pattern_caught(one: World) -> None:
    one.proxy.apply(classed(path="/foo/bar/(.+)", use_regex="true", rewrite_target="/new/backend/$1"))
    assert await asked(one, "/foo/bar/bar") == "/new/backend/bar"
    assert await asked(one, "/foo/bar/bar/more?x") == "/new/backend/bar/more?x"
    assert await one.proxy.status("/foo/bar/") == 404


async def test_a_log_of_rewrites_is_not_written_and_the_rewrite_is_done(one: World) -> None:
    one.proxy.apply(classed(path="/something", rewrite_target="/", enable_rewrite_log="true"))
    assert await asked(one, "/something") == "/"


async def test_a_target_that_changes_counts_at_once(one: World) -> None:
    one.proxy.apply(classed(path="/a/(.*)", rewrite_target="/b/$1"))
    assert await asked(one, "/a/x") == "/b/x"
    one.proxy.apply(classed(path="/a/(.*)", rewrite_target="/c/$1"))
    assert await asked(one, "/a/x") == "/c/x"
    one.proxy.apply(classed(path="/a"))
    assert await asked(one, "/a/x") == "/a/x"


async def test_the_prefix_is_told_unless_it_is_empty(one: World) -> None:
    one.proxy.apply(classed(rewrite_target="/foo", x_forwarded_prefix="/test/value"))
    assert await asked(one, "/") == "/foo"
    assert headers(one)["x-forwarded-prefix"] == "/test/value"
    one.proxy.apply(classed(rewrite_target="/foo", x_forwarded_prefix=""))
    assert await asked(one, "/") == "/foo"
    assert "x-forwarded-prefix" not in headers(one)


async def test_a_rewrite_to_a_url_is_a_redirect(one: World) -> None:
    one.proxy.apply(classed(path="/foo/(.*)", rewrite_target="https://other.example/$1"))
    got = await one.proxy.get("/FOO/x?a=b")
    assert (got.status, got["location"]) == (302, "https://other.example/x?a=b")
    assert (await one.proxy.get("/foo/x/y"))["location"] == "https://other.example/x/y"
    assert one.servers["one"].heads == []
