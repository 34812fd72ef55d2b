"""What the end-to-end tests of ingress-nginx say of default backends and custom errors, from an Ingress to the wire.

Each test names its behaviour there (`test/e2e/annotations/default_backend.go`, `customhttperrors.go`,
`disableproxyintercepterrors.go`).
"""

from collections.abc import AsyncIterator

import pytest

from fakes.gateway.proxied import Conversation
from fakes.gateway.served import HOST, named
from fakes.translator.applied import World, world
from fakes.translator.deltas import endpoint_slice, service
from fakes.translator.nginx import nginx_ingress, options
from headgate.translator.world.settings import NginxSettings, TranslationSettings


async def failing(conversation: Conversation) -> None:
    """An upstream that answers with the status in the path."""
    while True:
        head, _ = await conversation.request()
        status = head.split(b" ")[1].strip(b"/").partition(b"?")[0] or b"200"
        await conversation.send(b"HTTP/1.1 %b It\r\nContent-Length: 5\r\n\r\ntrace" % status)


async def telling(conversation: Conversation) -> None:
    """An error service: it answers 418 with what it was told."""
    while True:
        head, _ = await conversation.request()
        body = head.replace(b"\r\n", b"|")
        await conversation.send(named(body).replace(b"200 OK", b"418 Teapot"))


@pytest.fixture
async def shop() -> AsyncIterator[World]:
    """A proxy before a Service `one` that answers what it is asked to, and a Service `errors`."""
    async with world(one=failing, errors=telling) as made:
        made.proxy.apply(service("empty"))
        yield made


ERRORS = {"custom_http_errors": "404, 503", "default_backend": "errors"}


async def test_errors_are_answered_by_the_default_backend_which_is_told_of_them(shop: World) -> None:
    shop.proxy.apply(nginx_ingress(**ERRORS))
    assert (await shop.proxy.get("/200")).body == b"trace"
    assert (await shop.proxy.get("/500")).status == 500
    got = await shop.proxy.get("/404?a=b", Accept="application/json", X_Request_Id="something-unique")
    told = got.body.decode()
    assert got.status == 418
    assert told.startswith("GET /?a=b HTTP/1.1|Host: a.example|")
    for header in (
        "X-Code: 404",
        "X-Format: application/json",
        "X-Original-URI: /404?a=b",
        "X-Namespace: default",
        "X-Ingress-Name: web",
        "X-Service-Name: one",
        "X-Service-Port: 80",
        "X-Request-ID: something-unique",
    ):
        assert f"|{header}|".lower() in told.lower()


async def test_statuses_and_the_service_that_answers_for_them_can_change(shop: World) -> None:
    shop.proxy.apply(nginx_ingress(custom_http_errors="404,500"))
    asked = ("/404", "/500", "/503")
    assert [(await shop.proxy.get(path)).status for path in asked] == [404, 404, 503]
    assert (await shop.proxy.get("/500")).body == b"default backend - 404"
    shop.proxy.apply(nginx_ingress(custom_http_errors="503"))
    assert [(await shop.proxy.get(path)).body[:7] for path in asked] == [b"trace", b"trace", b"default"]
    shop.proxy.apply(nginx_ingress("else", path="/404", custom_http_errors="404, 503,503"))
    shop.proxy.apply(nginx_ingress(custom_http_errors="503", default_backend="errors"))
    assert "|X-Code: 503|" in (await shop.proxy.get("/503")).body.decode()
    assert (await shop.proxy.get("/404")).body == b"default backend - 404"


async def test_errors_of_the_gateway_itself_are_answered_so_too(shop: World) -> None:
    shop.proxy.apply(
        nginx_ingress(allowlist_source_range="192.0.2.0/24", custom_http_errors="403", default_backend="errors")
    )
    assert "|X-Code: 403|" in (await shop.proxy.get()).body.decode()


async def test_only_errors_of_the_gateway_are_answered_so_if_that_is_wanted(shop: World) -> None:
    rules = {**ERRORS, "disable_proxy_intercept_errors": "true"}
    shop.proxy.apply(
        nginx_ingress(**rules | {"disable_proxy_intercept_errors": "false"}),
        nginx_ingress("b", path="/denied", denylist_source_range="127.0.0.1", **rules | {"custom_http_errors": "403"}),
    )
    assert "|X-Code: 404|" in (await shop.proxy.get("/404")).body.decode()
    shop.proxy.apply(nginx_ingress(**rules))
    got = await shop.proxy.get("/404", X_Request_Id="proxy_intercept_errors")
    assert (got.status, got.body) == (404, b"trace")
    assert (await shop.proxy.get("/denied")).status == 418


async def test_the_clients_headers_and_method_go_along_and_its_body_does_not(shop: World) -> None:
    shop.proxy.apply(nginx_ingress(**ERRORS))
    got = await shop.proxy.proxy.post(b"body", "/404", X_Own="1")
    told = got.body.decode()
    assert told.startswith("POST / HTTP/1.1|")
    assert "|X-Own: 1|" in told
    assert "content-length: 4" not in told.lower()


async def test_without_a_default_backend_errors_become_a_404(shop: World) -> None:
    shop.proxy.apply(nginx_ingress(custom_http_errors="500,503"))
    got = await shop.proxy.get("/503")
    assert (got.status, got.body) == (404, b"default backend - 404")
    assert (await shop.proxy.get("/502")).status == 502


async def test_a_default_backend_that_is_missing_is_named_and_counts_as_none(shop: World) -> None:
    shop.proxy.apply(nginx_ingress(**ERRORS | {"default_backend": "nowhere"}))
    assert (await shop.proxy.get("/404")).body == b"default backend - 404"


@pytest.mark.parametrize("to", ["empty", "invalid"])
async def test_requests_for_a_backend_without_endpoints_go_to_the_default_backend(shop: World, to: str) -> None:
    shop.proxy.apply(nginx_ingress(to=to, default_backend="errors"))
    told = (await shop.proxy.get("/alma/armud?a=b", X_Request_Id="something-unique")).body.decode()
    assert told.startswith("GET /alma/armud?a=b HTTP/1.1|")
    for header in ("X-Code: 503", "X-Ingress-Name: web", f"X-Service-Name: {to}", "X-Request-ID: something-unique"):
        assert f"|{header}|".lower() in told.lower()


async def test_requests_go_to_the_backend_again_once_it_has_endpoints(shop: World) -> None:
    shop.proxy.apply(nginx_ingress(to="empty", default_backend="errors"))
    assert await shop.proxy.status("/200") == 418
    shop.proxy.apply(endpoint_slice("empty", "127.0.0.1", port=shop.port("one")))
    assert (await shop.proxy.get("/200")).body == b"trace"


async def test_bad_statuses_drop_the_ingress_and_a_bad_service_is_ignored(shop: World) -> None:
    shop.proxy.apply(nginx_ingress(custom_http_errors="200"), nginx_ingress("b", host="b.example", default_backend="-"))
    assert await shop.proxy.status("/503") == 404
    assert await shop.proxy.status("/201", host="b.example") == 201


async def test_a_default_backend_of_all_is_a_service_like_any_other() -> None:
    async with world("echo", settings=TranslationSettings(nginx=NginxSettings(default_backend="default/echo"))) as made:
        made.proxy.apply(options())
        for host in ("127.0.0.1", "any.example"):
            assert await made.proxy.bodies(1, host=host) == ["echo"]
        made.proxy.delete(endpoint_slice("echo"), service("echo"))
        assert await made.proxy.status() == 404


FOR_ALL = TranslationSettings(nginx=NginxSettings(default_backend="default/errors"))


async def test_the_default_backend_of_all_answers_for_errors_and_for_hosts_that_nobody_has() -> None:
    async with world(settings=FOR_ALL, one=failing, errors=telling) as made:
        made.proxy.apply(options(), nginx_ingress(path="/200", custom_http_errors="404"))
        made.proxy.apply(nginx_ingress("errors", path="/404", custom_http_errors="404"))
        assert "|X-Code: 404|" in (await made.proxy.get("/404")).body.decode()
        assert (await made.proxy.get("/x", host="unknown.example")).status == 418
        assert (await made.proxy.get("/x")).status == 418
        assert (await made.proxy.get("/200")).body == b"trace"
        made.proxy.apply(nginx_ingress("all", host="", path="/"))
        assert (await made.proxy.get("/201", host="unknown.example")).status == 201


async def test_the_default_backend_of_all_answers_for_paths_that_no_ingress_has() -> None:
    async with world("own", settings=FOR_ALL, one=failing, errors=telling) as made:
        made.proxy.apply(nginx_ingress(path="/200", enable_cors="false"))
        assert [await made.proxy.status(path) for path in ("/200", "/", "/2000")] == [200, 418, 418]
        assert (await made.proxy.get("/a?b")).body.startswith(b"GET /a?b HTTP/1.1|")
        made.proxy.apply(nginx_ingress("younger", path="/201", created="2025-01-01T00:00:00Z", enable_cors="false"))
        assert [await made.proxy.status(path) for path in ("/200", "/201", "/")] == [200, 201, 418]
        rest = {"service": {"name": "own", "port": {"number": 80}}}
        made.proxy.apply(nginx_ingress(spec={"rules": [{"host": HOST}], "defaultBackend": rest}, enable_cors="false"))
        assert [await made.proxy.status(path) for path in ("/201", "/")] == [201, 200]
        made.proxy.apply(nginx_ingress(path="/200", whitelist_source_range="192.0.2.0/24"))
        assert [await made.proxy.status(path) for path in ("/200", "/201", "/")] == [403, 201, 403]
        made.proxy.apply(nginx_ingress("root", to="own", path="/", enable_cors="false"))
        assert await made.proxy.bodies(1, "/x") == ["own"]
