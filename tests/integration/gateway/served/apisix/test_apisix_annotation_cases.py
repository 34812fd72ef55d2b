"""What the end-to-end tests of apisix-ingress-controller say of annotations, from an Ingress to the wire.

Each test has the name of its case there (`ingress/annotations.go`, and `suite-annotations` of version 1.8).
"""

import asyncio
import base64
from collections.abc import AsyncIterator
from typing import Any

import pytest

from fakes.gateway.proxied import Conversation
from fakes.gateway.served import HOST
from fakes.translator.apisix import resource
from fakes.translator.applied import World, switching, world
from fakes.translator.deltas import endpoint_slice, ingress, service


def annotated(*, path: str = "/", name: str = "one", **annotations: str) -> Any:
    prefixed = {f"k8s.apisix.apache.org/{key.replace('_', '-')}": value for key, value in annotations.items()}
    return ingress("web", host=HOST, path=path, service=name, annotations=prefixed)


@pytest.fixture
async def one() -> AsyncIterator[World]:
    """A proxy before a Service `one`."""
    async with world("one") as made:
        yield made


@pytest.mark.parametrize(("retries", "attempts"), [("0", 1), ("1", 2), ("2", 3)])
async def test_retries(retries: str, attempts: int) -> None:
    async def hanging_up(conversation: Conversation) -> None:
        await conversation.request()

    async with world(a=hanging_up, b=hanging_up, c=hanging_up) as made:
        slices = [endpoint_slice("all", "127.0.0.1", name=name, port=made.port(name)) for name in "abc"]
        made.proxy.apply(service("all"), *slices, annotated(name="all", upstream_retries=retries))
        assert await made.proxy.status() == 502
        assert sum(len(server.heads) for server in made.servers.values()) == attempts


async def test_timeouts() -> None:
    async def silent(conversation: Conversation) -> None:
        await conversation.request()
        await asyncio.Event().wait()

    async with world(web=silent) as made:
        made.proxy.apply(annotated(name="web", upstream_retries="0", upstream_read_timeout="1s"))
        assert await made.proxy.status() == 504


async def test_cors(one: World) -> None:
    one.proxy.apply(annotated(enable_cors="true", cors_allow_origin="http://a.example", cors_allow_methods="GET,POST"))
    allowed = await one.proxy.get(Origin="http://a.example")
    assert allowed["access-control-allow-origin"] == "http://a.example"
    assert allowed["access-control-allow-methods"] == "GET,POST"
    assert (await one.proxy.get(Origin="http://b.example"))["access-control-allow-origin"] == ""
    one.proxy.apply(annotated(enable_cors="false", cors_allow_origin="http://a.example"))
    assert (await one.proxy.get(Origin="http://a.example"))["access-control-allow-origin"] == ""


@pytest.mark.parametrize(("value", "status"), [("true", b"101"), ("false", b"200")])
async def test_websocket(value: str, status: bytes) -> None:
    async with world(web=switching) as made:
        made.proxy.apply(annotated(name="web", enable_websocket=value))
        client = await made.proxy.offer_websocket()
        assert (await client.head()).startswith(b"HTTP/1.1 %b " % status)


@pytest.mark.parametrize(
    ("annotations", "status", "location"),
    [
        ({"http_to_https": "true"}, 301, f"https://{HOST}/ip"),
        ({"http_redirect": "/anything$uri", "http_redirect_code": "308"}, 308, "/anything/ip"),
        ({"http_redirect": "https://other.example/x", "http_redirect_code": "302"}, 302, "https://other.example/x"),
    ],
)
async def test_redirect(one: World, annotations: dict[str, str], status: int, location: str) -> None:
    one.proxy.apply(annotated(**annotations))
    got = await one.proxy.get("/ip")
    assert (got.status, got["location"]) == (status, location)


async def test_csrf(one: World) -> None:
    one.proxy.apply(annotated(enable_csrf="true", csrf_key="edd1c9f034335f136f87ad84b625c8f1"))
    cookie = (await one.proxy.get()).cookie
    token = cookie.partition("=")[2]
    refused = await one.proxy.proxy.post(b"")
    taken = await one.proxy.proxy.post(b"", Apisix_Csrf_Token=token, Cookie=cookie)
    assert (refused.status, taken.status) == (401, 200)


@pytest.mark.parametrize("annotations", [{"http_allow_methods": "GET,POST"}, {"http_block_methods": "PUT"}])
async def test_methods(one: World, annotations: dict[str, str]) -> None:
    one.proxy.apply(annotated(**annotations))
    assert [await one.proxy.status(method=method) for method in ("GET", "PUT")] == [200, 405]


@pytest.mark.parametrize(
    ("kind", "plugin", "credential", "sent"),
    [
        ("keyAuth", "key-auth", {"key": "k"}, {"Apikey": "k"}),
        (
            "basicAuth",
            "basic-auth",
            {"username": "jack", "password": "p"},
            {"Authorization": "Basic " + base64.b64encode(b"jack:p").decode()},
        ),
    ],
)
async def test_authentication(one: World, kind: str, plugin: str, credential: Any, sent: Any) -> None:
    jack = resource("ApisixConsumer", "jack", {"plugins": [{"name": plugin, "enable": True, "config": credential}]})
    one.proxy.apply(jack, annotated(auth_type=kind))
    assert [await one.proxy.status(**headers) for headers in (sent, {})] == [200, 401]


async def test_proxy_rewrite_with_rewrite_target(one: World) -> None:
    one.proxy.apply(annotated(rewrite_target="/get"))
    await one.proxy.get("/test?a=1")
    assert one.servers["one"].heads[0].startswith(b"GET /get?a=1 HTTP/1.1\r\n")


async def test_proxy_rewrite_with_regex(one: World) -> None:
    one.proxy.apply(annotated(rewrite_target_regex="/app/(.*)", rewrite_target_regex_template="/$1"))
    await one.proxy.get("/app/ip")
    assert one.servers["one"].heads[0].startswith(b"GET /ip HTTP/1.1\r\n")


async def test_response_rewrite(one: World) -> None:
    one.proxy.apply(
        annotated(
            enable_response_rewrite="true",
            response_rewrite_status_code="400",
            response_rewrite_body="bad request",
            response_rewrite_add_header="X-Header:v1",
            response_rewrite_set_header="X-Set:v2",
            response_rewrite_remove_header="Content-Type",
        )
    )
    got = await one.proxy.get()
    assert (got.status, got.body, got["x-header"], got["x-set"]) == (400, b"bad request", "v1", "v2")
    one.proxy.apply(annotated(enable_response_rewrite="false", response_rewrite_status_code="400"))
    assert await one.proxy.status() == 200


async def test_response_rewrite_with_base64(one: World) -> None:
    body = base64.b64encode(b"bad request").decode()
    one.proxy.apply(annotated(enable_response_rewrite="true", response_rewrite_body_base64=body))
    assert (await one.proxy.get()).body == b"bad request"


@pytest.mark.parametrize(
    ("annotations", "status"),
    [
        ({"allowlist_source_range": "127.0.0.0/8"}, 200),
        ({"allowlist_source_range": "10.0.5.0/16"}, 403),
        ({"blocklist_source_range": "127.0.0.1"}, 403),
        ({"blocklist_source_range": "10.0.5.0/16"}, 200),
    ],
)
async def test_ip_restriction(one: World, annotations: dict[str, str], status: int) -> None:
    one.proxy.apply(annotated(**annotations))
    assert await one.proxy.status() == status


async def test_forward_auth() -> None:
    async def guard(conversation: Conversation) -> None:
        while True:
            head, _ = await conversation.request()
            knows = b"\r\nAuthorization: 123\r\n" in head
            status, user = (b"200 OK", b"X-User-ID: user1\r\n") if knows else (b"403 Forbidden", b"Location: /auth\r\n")
            await conversation.send(b"HTTP/1.1 %b\r\n%bContent-Length: 0\r\n\r\n" % (status, user))

    async with world("one", guard=guard) as made:
        asked = {"auth_request_headers": "Authorization", "auth_client_headers": "Location"}
        uri = f"http://127.0.0.1:{made.port('guard')}/auth"
        made.proxy.apply(annotated(auth_uri=uri, auth_upstream_headers="X-User-ID", **asked))
        assert await made.proxy.status(Authorization="123") == 200
        assert b"\r\nX-User-ID: user1\r\n" in made.servers["one"].heads[0]
        refused = await made.proxy.get()
        assert (refused.status, refused["location"]) == (403, "/auth")


async def test_svc_namespace(one: World) -> None:
    there = (
        service("there", namespace="other"),
        endpoint_slice("there", "127.0.0.1", namespace="other", port=one.port("one")),
    )
    one.proxy.apply(*there, annotated(name="there"))
    assert await one.proxy.status() == 503
    one.proxy.apply(annotated(name="there", svc_namespace="other"))
    assert await one.proxy.status() == 200


async def test_regex_match(one: World) -> None:
    made = annotated(path="/anything/.*/ok", use_regex="true")
    made["spec"]["rules"][0]["http"]["paths"][0]["pathType"] = "ImplementationSpecific"
    one.proxy.apply(made)
    assert [await one.proxy.status(path) for path in ("/anything/a/ok", "/anything/a/notok")] == [200, 404]
