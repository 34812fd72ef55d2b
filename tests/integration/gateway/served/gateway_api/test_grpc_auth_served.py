"""Filters of type ExternalAuth from manifests to the wire: a Service that is asked by Envoy's gRPC protocol."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest
from cryptography import x509

from fakes.gateway.tls import Authority, Issued
from fakes.peers.ext_authz import Authorization, allowed, authorization, denied, header
from fakes.translator.applied import World, world
from fakes.translator.deltas import endpoint_slice, service
from fakes.translator.gateway_api import (
    authorities,
    by_config_maps,
    gateway,
    gateway_class,
    prefix,
    route,
    tls_policy,
    to,
)

AUTHORITY = Authority()
ISSUED = AUTHORITY.issue("web.example", x509.DNSName("web.example"))


def asks(**fields: Any) -> Any:
    written = {"protocol": "GRPC", "backendRef": {"name": "auth", "port": 80}, **fields}
    return {"type": "ExternalAuth", "externalAuth": written}


@contextlib.asynccontextmanager
async def asking(
    answer: bytes | grpc.StatusCode, issued: Issued | None = None, **fields: Any
) -> AsyncIterator[tuple[World, Authorization]]:
    """A proxy with the Service `web` at `/f` behind one, and at all else without."""
    async with authorization(answer, issued) as (auth, port), world("web") as made:
        made.proxy.apply(service("auth"), endpoint_slice("auth", "127.0.0.1", port=port))
        written = route(to("web", matches=[prefix("/f")], filters=[asks(**fields)]), to("web"))
        made.proxy.apply(gateway_class(), gateway(), written)
        yield made, auth


def head(made: World) -> str:
    return made.servers["web"].heads[-1].decode("latin-1").lower()


async def test_the_service_hears_of_the_request_as_from_envoy_and_ok_lets_in() -> None:
    async with asking(allowed()) as (made, auth):
        assert await made.proxy.status("/f/x?y=1", Authorization="Basic a", Cookie="b=c") == 200
        http, headers = auth.http, auth.headers()
        assert (http.method, http.path, http.host, http.scheme) == ("GET", "/f/x?y=1", "a.example", "http")
        assert (http.protocol, http.size, http.body) == ("HTTP/1.1", 0, "")
        assert headers["authorization"] == "Basic a"
        assert headers["cookie"] == "b=c"
        assert headers[":authority"] == "a.example"
        assert (headers[":method"], headers[":path"], headers[":scheme"]) == ("GET", "/f/x?y=1", "http")
        assert headers["x-request-id"] == http.id
        (asked,) = auth.asked
        assert asked.source.address.socket_address.address == "127.0.0.1"
        assert asked.source.address.socket_address.port_value > 0
        assert asked.destination.address.socket_address.address == "127.0.0.1"
        assert asked.request.time.seconds > 1_000_000_000
        assert await made.proxy.status("/") == 200
        assert len(auth.asked) == 1


async def test_headers_are_set_added_and_removed_for_the_backend_and_for_the_client() -> None:
    answer = allowed(
        headers=[
            header("x-user", "joe"),
            header("x-role", "admin", append={"value": True}),
            header("x-none", "n", append={"value": True}),
            header("x-absent", "a", append_action=1),
            header("x-kept", "other", append_action=1),
            header("x-missing", "m", append_action=3),
            header("host", "evil.example"),
            header("content-length", "7"),
        ],
        headers_to_remove=["x-secret", "host"],
        response_headers_to_add=[header("x-seen", "by-auth")],
        query_parameters_to_set=[{"key": "tenant", "value": "a b"}],
        query_parameters_to_remove=["debug"],
    )
    async with asking(answer) as (made, _):
        sent = {"X_User": "mallory", "X_Role": "user", "X_Secret": "s", "X_Kept": "own"}
        got = await made.proxy.get("/f?debug=1&tenant=evil&z=2", **sent)
        assert (got.status, got["X-Seen"]) == (200, "by-auth")
        passed = head(made)
        assert passed.startswith("get /f?z=2&tenant=a%20b http/1.1\r\n")
        assert "x-user: joe\r\n" in passed
        assert "mallory" not in passed
        assert "x-role: user\r\n" in passed
        assert "x-role: admin\r\n" in passed
        assert "x-absent: a\r\n" in passed
        assert "x-kept: own\r\n" in passed
        assert not {name for name in ("x-none", "x-missing", "x-secret", "evil.example") if name in passed}
        assert (await made.proxy.get("/"))["X-Seen"] == ""


async def test_a_refusal_is_the_services_own() -> None:
    headers = [header("www-authenticate", "Bearer"), header("content-type", "text/html")]
    async with asking(denied(status={"code": 401}, headers=headers, body="<p>no</p>")) as (made, _):
        got = await made.proxy.get("/f")
        assert (got.status, got["WWW-Authenticate"], got["Content-Type"]) == (401, "Bearer", "text/html")
        assert got.body == b"<p>no</p>"
        assert not made.servers["web"].heads


@pytest.mark.parametrize(
    "answer",
    [
        denied(),
        denied(16, status={"code": 0}),
        denied(headers=[header("bad name", "x")]),
        allowed(headers=[header("x-split", "a\r\nx-admin: 1")]),
        allowed(headers=[header("", "empty")]),
        b"\xff\xff",
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.INTERNAL,
    ],
    ids=str,
)
async def test_nothing_but_an_answer_that_can_be_followed_lets_in(answer: bytes | grpc.StatusCode) -> None:
    async with asking(answer) as (made, _):
        assert await made.proxy.status("/f") == 403
        assert not made.servers["web"].heads


async def test_a_service_that_is_gone_or_speaks_no_grpc_lets_nobody_in() -> None:
    async with world("web", "auth") as made:
        rule = to("web", filters=[asks()])
        made.proxy.apply(gateway_class(), gateway(), route(rule))
        assert await made.proxy.status() == 403
        made.proxy.apply(endpoint_slice("auth"))
        assert await made.proxy.status() == 403
        assert not made.servers["web"].heads


async def test_only_headers_that_are_listed_are_shown() -> None:
    async with asking(allowed(), grpc={"allowedHeaders": ["X-Shown", ":path"]}) as (made, auth):
        assert await made.proxy.status("/f", X_Shown="1", X_Hidden="2") == 200
        assert auth.headers() == {"x-shown": "1", ":path": "/f"}


@pytest.mark.parametrize(
    ("sent", "body", "raw_body"), [(b"abc", "abc", b""), ("é".encode(), "é", b""), (b"\xff", "", b"\xff")]
)
async def test_a_body_is_shown_if_that_is_said(sent: bytes, body: str, raw_body: bytes) -> None:
    async with asking(allowed(), forwardBody={"maxSize": 4}) as (made, auth):
        assert (await made.proxy.post(sent, "/f")).status == 200
        assert (auth.http.body, auth.http.raw_body, auth.http.size) == (body, raw_body, len(sent))
        assert auth.headers()["x-envoy-auth-partial-body"] == "false"
        assert (await made.proxy.post(b"abcde", "/f")).status == 413
        assert len(made.servers["web"].heads) == 1


async def test_a_body_is_not_shown_otherwise() -> None:
    async with asking(allowed()) as (made, auth):
        assert (await made.proxy.post(b"abc", "/f")).status == 200
        assert (auth.http.body, auth.http.raw_body, auth.http.size) == ("", b"", 3)
        assert "x-envoy-auth-partial-body" not in auth.headers()


@pytest.mark.parametrize(("trusted", "status"), [(True, 200), (False, 403)])
async def test_the_service_is_asked_over_tls_by_a_policy(trusted: bool, status: int) -> None:
    async with asking(allowed(), ISSUED) as (made, auth):
        shown = AUTHORITY if trusted else Authority("other")
        made.proxy.apply(authorities("ca", shown), tls_policy(service="auth", **by_config_maps("ca")))
        assert await made.proxy.status("/f") == status
        assert len(auth.asked) == (status == 200)


async def test_a_backend_asks_for_its_share_alone() -> None:
    async with authorization(denied(status={"code": 401})) as (_, port), world("one", "two") as made:
        made.proxy.apply(service("auth"), endpoint_slice("auth", "127.0.0.1", port=port))
        backends: Any = [{"name": "one", "port": 80, "filters": [asks()]}, {"name": "two", "port": 80}]
        made.proxy.apply(gateway_class(), gateway(), route({"backendRefs": backends}))
        assert sorted([await made.proxy.status() for _ in range(4)]) == [200, 200, 401, 401]
