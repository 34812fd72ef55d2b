"""Filters of type ExternalAuth from manifests to the wire: a Service that is asked by HTTP who may come in."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from fakes.gateway.proxied import Origin, answering
from fakes.gateway.served import origins
from fakes.translator.applied import World, world
from fakes.translator.deltas import endpoint_slice, service
from fakes.translator.gateway_api import gateway, gateway_class, prefix, route, to

ALLOWED = (
    b"HTTP/1.1 200 OK\r\nX-User: joe\r\nX-More: 1\r\nContent-Type: a/b\r\nSet-Cookie: a=b\r\nContent-Length: 0\r\n\r\n"
)
DENIED = b"HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic\r\nX-Why: no\r\nContent-Length: 2\r\n\r\nno"
OTHER_2XX = b"HTTP/1.1 204 No Content\r\n\r\n"


def asks(protocol: str = "HTTP", name: str = "auth", **fields: Any) -> Any:
    written = {"protocol": protocol, "backendRef": {"name": name, "port": 80}, **fields}
    return {"type": "ExternalAuth", "externalAuth": written}


@contextlib.asynccontextmanager
async def asking(answer: bytes, *filters: Any) -> AsyncIterator[tuple[World, Origin]]:
    """A proxy with the Service `web` at `/f` behind one, and at all else without."""
    async with origins(answering(answer)) as (auth,), world("web") as made:
        made.proxy.apply(service("auth"), endpoint_slice("auth", "127.0.0.1", port=auth.port))
        written = route(to("web", matches=[prefix("/f")], filters=list(filters) or [asks()]), to("web"))
        made.proxy.apply(gateway_class(), gateway(), written)
        yield made, auth


def head(server: Origin) -> str:
    return server.heads[-1].decode("latin-1")


async def test_the_service_is_shown_method_path_host_and_authorization_and_200_lets_in() -> None:
    async with asking(ALLOWED) as (made, auth):
        assert await made.proxy.status("/f/x?y=1", Authorization="Basic a", Cookie="b=c", X_User="mallory") == 200
        asked = head(auth)
        assert asked.startswith("GET /f/x?y=1 HTTP/1.1\r\n")
        assert "Host: a.example\r\n" in asked
        assert "Authorization: Basic a\r\n" in asked
        assert "Cookie" not in asked
        passed = head(made.servers["web"])
        assert "X-User: joe\r\n" in passed or "x-user: joe\r\n" in passed
        assert "mallory" not in passed
        assert "a/b" not in passed
        assert "Cookie: b=c\r\n" in passed
        assert await made.proxy.status("/") == 200
        assert len(auth.heads) == 1


async def test_anything_but_200_is_the_answer_of_the_client() -> None:
    async with asking(DENIED) as (made, _):
        got = await made.proxy.get("/f")
        assert (got.status, got["WWW-Authenticate"], got["X-Why"], got.body) == (401, "Basic", "no", b"no")
        assert not made.servers["web"].heads
    async with asking(OTHER_2XX) as (made, _):
        assert await made.proxy.status("/f") == 403
        assert not made.servers["web"].heads


async def test_a_prefix_goes_before_the_path_and_lists_of_headers_are_followed() -> None:
    http = {"path": "/check/", "allowedHeaders": ["X-Seen"], "allowedResponseHeaders": ["X-User"]}
    async with asking(ALLOWED, asks(http=http)) as (made, auth):
        assert await made.proxy.status("/f", X_Seen="1", X_Hidden="2", X_More="own") == 200
        asked = head(auth)
        assert asked.startswith("GET /check/f HTTP/1.1\r\n")
        assert "X-Seen: 1\r\n" in asked
        assert "X-Hidden" not in asked
        passed = head(made.servers["web"]).lower()
        assert "x-user: joe\r\n" in passed
        assert "x-more: own\r\n" in passed


async def test_a_body_is_shown_if_that_is_said_and_a_longer_one_refused() -> None:
    async with asking(ALLOWED) as (made, auth):
        assert (await made.proxy.post(b"abc", "/f")).status == 200
        assert head(auth).startswith("POST /f ")
        assert "content-length: 3" not in head(auth).lower()
    async with asking(ALLOWED, asks(forwardBody={"maxSize": 4})) as (made, auth):
        assert (await made.proxy.post(b"abc", "/f")).status == 200
        assert "content-length: 3\r\n" in head(auth).lower()
        assert (await made.proxy.post(b"abcde", "/f")).status == 413
        assert len(made.servers["web"].heads) == 1


@pytest.mark.parametrize(
    ("written", "status", "reason"),
    [
        (asks(name="gone"), 500, "BackendNotFound"),
        (asks("GRPC", name="gone"), 500, "BackendNotFound"),
        (asks(http={"path": "a b"}), 503, "UnsupportedValue"),
        ({"type": "ExternalAuth"}, 503, "Required"),
    ],
)
async def test_a_filter_that_cannot_be_followed_refuses_the_requests(written: Any, status: int, reason: str) -> None:
    async with asking(ALLOWED, written) as (made, _):
        assert await made.proxy.status("/f") == status
        assert made.proxy.errors(route()) == [reason]


async def test_a_service_that_does_not_answer_lets_nobody_in() -> None:
    async with asking(b"") as (made, auth):
        await auth.stop()
        assert await made.proxy.status("/f") == 403


async def test_a_backend_asks_for_its_share_alone() -> None:
    async with origins(answering(DENIED)) as (auth,), world("one", "two") as made:
        made.proxy.apply(service("auth"), endpoint_slice("auth", "127.0.0.1", port=auth.port))
        backends: Any = [{"name": "one", "port": 80, "filters": [asks()]}, {"name": "two", "port": 80}]
        made.proxy.apply(gateway_class(), gateway(), route({"backendRefs": backends}))
        assert sorted([await made.proxy.status() for _ in range(4)]) == [200, 200, 401, 401]
