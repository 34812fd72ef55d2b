"""The middleware `forwardAuth`, from manifests to the wire."""

import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from fakes.gateway.by_path import answer, by_path
from fakes.gateway.served import HOST, origins
from fakes.gateway.tls import Authority
from fakes.translator.applied import World, pair, world
from fakes.translator.deltas import tls_secret
from fakes.translator.traefik import used
from headgate.gateway.proxy.config import ProxyConfig

TEXT = b"x" * 3000


def told(head: bytes) -> dict[str, str]:
    lines = [line.partition(": ") for line in head.decode().split("\r\n")[1:] if line]
    return {name.lower(): value for name, _, value in lines}


@pytest.fixture
async def guarded() -> AsyncIterator[World]:
    auth = by_path(
        index=answer("204 OK", b"", "X-User: jack", "X-Group: a", "X-Group: b", "Set-Cookie: s=1", "Set-Cookie: t=2"),
        no=answer("401 No", b"who?", "WWW-Authenticate: Basic", "X-Why: no", "Set-Cookie: u=1"),
        away=answer("302 Away", b"", "Location: /login?x=1"),
        long=answer("200 OK", TEXT),
    )
    web = by_path(
        index=answer("200 OK", b"ok", "Set-Cookie: s=own", "Set-Cookie: o=own"), stripped=answer(), page=answer()
    )
    async with world(web=web, auth=auth) as made:
        yield made


def asks(made: World, path: str = "/", **fields: Any) -> Any:
    return {"forwardAuth": {"address": f"http://127.0.0.1:{made.port('auth')}{path}", **fields}}


async def test_forward_auth_tells_of_the_request(guarded: World) -> None:
    used(guarded, {"stripPrefix": {"prefixes": ["/a"]}}, asks(guarded, "/?q=1"))
    path, headers = "/a/page?x=1", {"Cookie": "c=d", "X_Forwarded_For": "9.9.9.9", "X_Own": "yes"}
    got = await guarded.proxy.post(b"body", path, method="PUT", host=f"{HOST}:81", **headers)
    assert got.status == 200
    head = guarded.servers["auth"].heads[0]
    assert head.startswith(b"GET /?q=1 HTTP/1.1\r\n")
    seen = told(head)
    assert {name: value for name, value in seen.items() if name.startswith("x-forwarded")} == {
        "x-forwarded-for": "127.0.0.1",
        "x-forwarded-host": f"{HOST}:81",
        "x-forwarded-method": "PUT",
        "x-forwarded-port": "81",
        "x-forwarded-proto": "http",
        "x-forwarded-uri": "/page?x=1",
    }
    assert (seen["cookie"], seen["x-own"], "content-length" in seen) == ("c=d", "yes", False)


async def test_forward_auth_shows_the_listed_headers_alone(guarded: World) -> None:
    used(guarded, asks(guarded, authRequestHeaders=["X-Own"]))
    await guarded.proxy.get("/page", Cookie="c=d", X_Own="yes")
    seen = told(guarded.servers["auth"].heads[0])
    assert (seen["x-own"], "cookie" in seen, seen["x-forwarded-method"]) == ("yes", False, "GET")


@pytest.mark.parametrize(("believed", "host"), [(True, "forged.test"), (False, HOST)])
async def test_forwarded_headers_are_told_only_where_the_gateway_believes_them(believed: bool, host: str) -> None:
    config = ProxyConfig(trusted_proxies=("127.0.0.0/8",), forwarded_headers=believed)
    async with world(config=config, web=by_path(page=answer()), auth=by_path(index=answer())) as made:
        used(made, asks(made, trustForwardHeader=True))
        claims = {"X_Forwarded_For": "203.0.113.7", "X_Forwarded_Host": "forged.test"}
        assert (await made.proxy.get("/page", **claims)).status == 200
        assert told(made.servers["auth"].heads[0])["x-forwarded-host"] == host


@pytest.mark.parametrize(
    ("fields", "sent"),
    [
        ({}, {"x-user": "forged", "x-group": "forged"}),
        ({"authResponseHeaders": ["X-User", "X-Missing"]}, {"x-user": "jack", "x-group": "forged"}),
        ({"authResponseHeadersRegex": "^X-"}, {"x-user": "jack", "x-group": "b"}),
    ],
)
async def test_forward_auth_hands_on_headers_of_its_answer(guarded: World, fields: Any, sent: dict[str, str]) -> None:
    used(guarded, asks(guarded, **fields))
    forged = {"X_User": "forged", "X_Group": "forged", "X_Missing": "forged"}
    assert (await guarded.proxy.get("/page", **forged)).status == 200
    seen = told(guarded.servers["web"].heads[0])
    assert {name: seen[name] for name in sent} == sent
    assert ("x-missing" in seen) == (not fields)


async def test_forward_auth_hands_on_cookies_by_name(guarded: World) -> None:
    used(guarded, asks(guarded, addAuthCookiesToResponse=["s"]))
    got = await guarded.proxy.get("/")
    assert sorted(got.all("set-cookie")) == ["o=own", "s=1"]


@pytest.mark.parametrize(
    ("path", "fields", "status", "header"),
    [
        ("/no", {}, 401, ("www-authenticate", "Basic")),
        ("/no", {}, 401, ("x-why", "no")),
        ("/no", {}, 401, ("set-cookie", "u=1")),
        ("/no", {"authSigninURL": "https://login.test/?a=$b"}, 302, ("location", "https://login.test/?a=$b")),
        ("/away", {}, 302, ("location", "http://127.0.0.1:{port}/login?x=1")),
        ("/away", {"preserveLocationHeader": True}, 302, ("location", "/login?x=1")),
        ("/long", {"maxResponseBodySize": 100}, 401, ("x-why", "")),
        ("/", {"forwardBody": True, "maxBodySize": 3}, 401, ("x-why", "")),
        ("/", {"forwardBody": True, "maxBodySize": 4}, 200, ("x-why", "")),
    ],
)
async def test_forward_auth_answers(
    guarded: World, path: str, fields: Any, status: int, header: tuple[str, str]
) -> None:
    used(guarded, asks(guarded, path, **fields))
    got = await guarded.proxy.post(b"body", "/page")
    assert got.status == status
    assert got[header[0]] == header[1].format(port=guarded.port("auth"))


async def test_forward_auth_sends_the_method_and_the_body(guarded: World) -> None:
    used(guarded, asks(guarded, forwardBody=True, preserveRequestMethod=True))
    assert (await guarded.proxy.post(b"body", "/page")).status == 200
    head = guarded.servers["auth"].heads[0]
    assert head.startswith(b"POST / ")
    assert told(head)["content-length"] == "4"
    assert told(guarded.servers["web"].heads[0])["content-length"] == "4"


async def test_a_dead_server_of_forward_auth_is_a_500(guarded: World) -> None:
    used(guarded, {"forwardAuth": {"address": "http://127.0.0.1:1/"}})
    assert await guarded.proxy.status("/page") == 500


@pytest.mark.parametrize(
    ("tls", "status"),
    [
        ({"caSecret": "ca", "certSecret": "own"}, 200),
        ({"insecureSkipVerify": True, "certSecret": "own"}, 200),
        ({"caSecret": "ca"}, 500),
        ({"certSecret": "own"}, 500),
    ],
)
async def test_tls_towards_the_server_of_forward_auth(tmp_path: Path, tls: Any, status: int) -> None:
    authority = Authority("auth")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.issue("localhost", x509.DNSName("localhost")).write(tmp_path))
    context.load_verify_locations(cadata=authority.pem.decode())
    context.verify_mode = ssl.CERT_REQUIRED
    async with origins(by_path(check=answer()), tls=context) as (server,), world(web=by_path(page=answer())) as made:
        made.proxy.apply(tls_secret("ca", authorities_pem=authority.pem.decode()), pair("own", authority.issue("us")))
        used(made, forwardAuth={"address": f"https://localhost:{server.port}/check?a=b", "tls": tls})
        assert await made.proxy.status("/page") == status
        assert [head.split(b"\r\n")[0] for head in server.heads] == [b"GET /check?a=b HTTP/1.1"] * (status == 200)


async def test_the_service_is_told_of_the_query_that_the_server_gets() -> None:
    async with world(web=by_path(page=answer()), auth=by_path(index=answer())) as made:
        used(made, asks(made))
        assert await made.proxy.status("/page?a=1;admin=yes") == 200
        assert told(made.servers["auth"].heads[0])["x-forwarded-uri"] == "/page?a=1&admin=yes"
        assert made.servers["web"].heads[0].startswith(b"GET /page?a=1&admin=yes HTTP/1.1\r\n")
