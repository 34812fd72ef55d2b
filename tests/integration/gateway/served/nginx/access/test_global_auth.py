"""What the end-to-end tests of ingress-nginx say of authentication for all Ingresses, by its ConfigMap.

Files there: `test/e2e/settings/global_external_auth.go`, `no_auth_locations.go`.
"""

import base64
from collections.abc import AsyncIterator
from typing import Any

import bcrypt
import pytest

from fakes.gateway.proxied import Conversation
from fakes.translator.applied import World, secret, world
from fakes.translator.deltas import ingress, ingress_class
from fakes.translator.nginx import nginx_ingress
from headgate.translator.world.settings import TranslationSettings


def config_map(name: str, namespace: str = "default", **data: str) -> Any:
    named = {key.replace("_", "-"): value for key, value in data.items()}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}, "data": named}


def options(made: World, **data: str) -> Any:
    url = f"http://127.0.0.1:{made.port('auth')}/check"
    return config_map("ingress-nginx-controller", "ingress-nginx", **{"global_auth_url": url, **data})


async def judge(conversation: Conversation) -> None:
    """A service that lets `good` in, and says who that is."""
    while True:
        head, _ = await conversation.request()
        verdict = (
            b"200 OK\r\nX-User: jo" if b"\r\nAuthorization: good\r\n" in head else b"401 No\r\nWWW-Authenticate: X"
        )
        await conversation.send(b"HTTP/1.1 %b\r\nContent-Length: 0\r\n\r\n" % verdict)


@pytest.fixture
async def shop() -> AsyncIterator[World]:
    """A proxy before a Service `one` with paths `/foo` and `/bar`, and an authentication service for all Ingresses."""
    settings = TranslationSettings(controller_names=frozenset({"k8s.io/internal-ingress-nginx"}))
    async with world("one", settings=settings, auth=judge) as made:
        made.proxy.apply(options(made), nginx_ingress("foo", path="/foo", ssl_redirect="false"))
        made.proxy.apply(nginx_ingress("bar", path="/bar", ssl_redirect="false"))
        yield made


GOOD = {"Authorization": "good"}


async def test_all_ingresses_ask_the_service(shop: World) -> None:
    for path in ("/foo", "/bar"):
        assert [await shop.proxy.status(path), await shop.proxy.status(path, **GOOD)] == [401, 200]


async def test_locations_can_be_left_out_for_all(shop: World) -> None:
    shop.proxy.apply(options(shop, no_auth_locations="/bar"))
    assert [await shop.proxy.status("/foo"), await shop.proxy.status("/bar")] == [401, 200]


async def test_an_ingress_can_leave_it_out(shop: World) -> None:
    shop.proxy.apply(nginx_ingress("bar", path="/bar", enable_global_auth="false"))
    assert [await shop.proxy.status("/foo"), await shop.proxy.status("/bar")] == [401, 200]


async def test_the_service_of_an_ingress_goes_before_that_of_all(shop: World) -> None:
    shop.proxy.apply(nginx_ingress("bar", path="/bar", auth_url="http://127.0.0.1:1/"))
    assert await shop.proxy.status("/bar", **GOOD) == 500


async def test_answers_are_kept_if_there_is_a_key(shop: World) -> None:
    shop.proxy.apply(options(shop, global_auth_cache_key="fixed", global_auth_cache_duration="200 201 401 30m"))
    assert await shop.proxy.status("/foo", **GOOD) == 200
    await shop.servers["auth"].stop()
    assert [await shop.proxy.status("/foo"), await shop.proxy.status("/bar")] == [200, 500]


async def test_method_headers_redirect_and_sign_in_are_those_of_the_config_map(shop: World) -> None:
    shop.proxy.apply(
        options(
            shop,
            global_auth_method="HEAD",
            global_auth_response_headers="X-User",
            global_auth_request_redirect="/other",
            global_auth_signin="http://sign.example/in",
        )
    )
    assert (await shop.proxy.get("/foo"))["location"] == "http://sign.example/in?rd=http://a.example%2Ffoo"
    assert await shop.proxy.status("/foo", **GOOD, X_User="forged") == 200
    question = shop.servers["auth"].heads[-1]
    assert question.startswith(b"HEAD /check ")
    assert b"\r\nX-Auth-Request-Redirect: /other\r\n" in question
    assert b"\r\nX-User: jo\r\n" in shop.servers["one"].heads[-1]


async def test_a_bad_url_never_lets_anybody_in() -> None:
    async with world("one", auth=judge) as made:
        made.proxy.apply(options(made, global_auth_url="http:///nowhere"), nginx_ingress(ssl_redirect="false"))
        assert await made.proxy.status(**GOOD) == 503
        made.proxy.apply(options(made))
        assert [await made.proxy.status(), await made.proxy.status(**GOOD)] == [401, 200]
        made.proxy.apply(options(made, global_auth_url="http:///nowhere"))
        assert await made.proxy.status() == 401


async def test_locations_without_authentication_ask_for_no_password_either(shop: World) -> None:
    basic = {"auth_type": "basic", "auth_secret": "people"}
    plain = config_map("ingress-nginx-controller", "ingress-nginx", no_auth_locations="/noauth")
    shop.proxy.apply(secret("people", auth="jo:{PLAIN}x"), plain)
    shop.proxy.apply(nginx_ingress("a", path="/foo", **basic), nginx_ingress("b", path="/noauth", **basic))
    assert [await shop.proxy.status("/foo"), await shop.proxy.status("/noauth")] == [401, 200]


async def test_orders_of_certificates_need_no_authentication(shop: World) -> None:
    shop.proxy.apply(nginx_ingress("acme", path="/.well-known/acme-challenge/token"))
    assert await shop.proxy.status("/.well-known/acme-challenge/token") == 200


async def test_questions_have_what_the_snippet_of_the_config_map_says_and_those_of_an_ingress_do_not(
    shop: World,
) -> None:
    own = {"auth_url": f"http://127.0.0.1:{shop.port('auth')}/own"}
    shop.proxy.apply(options(shop, global_auth_snippet="proxy_set_header My-Custom-Header 42;"))
    shop.proxy.apply(nginx_ingress("bar", path="/bar", **own))
    for path in ("/foo", "/bar"):
        assert await shop.proxy.status(path, **GOOD) == 200
    of_foo, of_bar = shop.servers["auth"].heads[-2:]
    assert b"\r\nMy-Custom-Header: 42\r\n" in of_foo
    assert b"My-Custom-Header" not in of_bar


async def test_snippet_of_the_config_map_that_cannot_be_followed_keeps_all_out(shop: World) -> None:
    bad = options(shop, global_auth_snippet="proxy_pass http://elsewhere;")
    shop.proxy.apply(bad)
    assert await shop.proxy.status("/foo", **GOOD) == 200  # the last good version
    shop.proxy.delete(bad)
    shop.proxy.apply(bad)
    assert await shop.proxy.status("/foo", **GOOD) == 503
    assert "proxy_pass" in shop.proxy.messages(bad)


async def test_ingress_without_annotations_asks_the_service_too(shop: World) -> None:
    shop.proxy.apply(ingress_class("nginx", "headgate.dev/ingress-controller"))
    shop.proxy.apply(ingress("plain", host="plain.example", service="one", class_name="nginx"))
    assert await shop.proxy.status(host="plain.example") == 200
    shop.proxy.apply(ingress_class("nginx", "k8s.io/internal-ingress-nginx"))
    assert await shop.proxy.status(host="plain.example") == 401


async def test_headers_of_the_services_answer_take_the_place_of_those_of_the_client(shop: World) -> None:
    shop.proxy.apply(options(shop, global_auth_response_headers="X-User, Bar"))
    assert await shop.proxy.status("/foo", **GOOD, X_User="forged", Bar="forged") == 200
    head = shop.servers["one"].heads[-1]
    assert b"\r\nX-User: jo\r\n" in head
    assert b"forged" not in head


# Cookies of the service


async def baking(conversation: Conversation) -> None:
    """A service that lets everybody in, with a cookie."""
    while True:
        await conversation.request()
        await conversation.send(b"HTTP/1.1 200 OK\r\nSet-Cookie: alma=armud\r\nContent-Length: 0\r\n\r\n")


async def failing(conversation: Conversation) -> None:
    """An upstream that fails for `/error`."""
    while True:
        head, _ = await conversation.request()
        status = b"503 No" if head.startswith(b"GET /error") else b"200 OK"
        await conversation.send(b"HTTP/1.1 %b\r\nContent-Length: 0\r\n\r\n" % status)


@pytest.mark.parametrize(("always", "on_error"), [(None, ""), ("false", ""), ("true", "alma=armud")])
async def test_cookies_of_the_service_go_to_the_client_and_with_errors_only_if_that_is_said(
    always: str | None, on_error: str
) -> None:
    async with world(one=failing, auth=baking) as made:
        more = {"global_auth_always_set_cookie": always} if always else {}
        made.proxy.apply(options(made, **more), nginx_ingress(ssl_redirect="false"))
        made.proxy.apply(nginx_ingress("error", path="/error", ssl_redirect="false"))
        for path, status, cookie in (("/?a=b&c=d", 200, "alma=armud"), ("/error?a=b&c=d", 503, on_error)):
            got = await made.proxy.get(path)
            assert (got.status, got["set-cookie"]) == (status, cookie)


# no-auth-locations


async def test_one_ingress_may_have_locations_with_and_without_passwords() -> None:
    backend = {"service": {"name": "one", "port": {"number": 80}}}
    paths = [{"path": path, "pathType": "Prefix", "backend": backend} for path in ("/", "/noauth")]
    spec = {"rules": [{"host": "a.example", "http": {"paths": paths}}]}
    async with world("one") as made:
        made.proxy.apply(config_map("ingress-nginx-controller", "ingress-nginx", no_auth_locations="/noauth"))
        hashed = bcrypt.hashpw(b"bar", bcrypt.gensalt(4)).decode()
        made.proxy.apply(secret("test-secret", auth=f"foo:{hashed}\n"))
        realm = {"auth_type": "basic", "auth_secret": "test-secret", "auth_realm": "test auth"}
        made.proxy.apply(nginx_ingress(spec=spec, **realm))
        got = await made.proxy.get("/")
        assert (got.status, got["www-authenticate"]) == (401, 'Basic realm="test auth"')
        known = {"Authorization": "Basic " + base64.b64encode(b"foo:bar").decode()}
        wrong = {"Authorization": "Basic " + base64.b64encode(b"foo:baz").decode()}
        assert [await made.proxy.status("/", **known), await made.proxy.status("/", **wrong)] == [200, 401]
        assert [await made.proxy.status("/noauth", **with_) for with_ in ({}, known, wrong)] == [200, 200, 200]
        made.proxy.delete(config_map("ingress-nginx-controller", "ingress-nginx"))
        assert await made.proxy.status("/noauth") == 401


# auth-proxy-set-headers


async def test_headers_of_a_config_map_are_told_to_the_service(shop: World) -> None:
    headers = {"X_Own": "$request_method of $host", "X_Sent_From": "shop"}
    shop.proxy.apply(config_map("headers", **headers))
    own = {"auth_url": f"http://127.0.0.1:{shop.port('auth')}/own", "auth_proxy_set_headers": "default/headers"}
    shop.proxy.apply(nginx_ingress("bar", path="/bar", **own))
    assert await shop.proxy.status("/bar", **GOOD) == 200
    question = shop.servers["auth"].heads[-1]
    assert b"\r\nX-Own: GET of a.example\r\n" in question
    assert question.count(b"X-Sent-From") == 1
    assert b"\r\nX-Sent-From: shop\r\n" in question
    shop.proxy.apply(config_map("headers", X_Own="changed"))
    await shop.proxy.get("/bar", **GOOD)
    assert b"\r\nX-Own: changed\r\n" in shop.servers["auth"].heads[-1]


@pytest.mark.parametrize("named", ["default/nowhere", "other/headers", "default/bad"])
async def test_a_config_map_that_cannot_be_used_closes_the_paths(shop: World, named: str) -> None:
    bad = config_map("bad")
    bad["data"] = {"X-Bad;": "x"}
    shop.proxy.apply(bad, config_map("headers", namespace="other", X_Own="x"))
    own = {"auth_url": f"http://127.0.0.1:{shop.port('auth')}/own", "auth_proxy_set_headers": named}
    shop.proxy.apply(nginx_ingress("new", path="/new", **own))
    assert await shop.proxy.status("/new", **GOOD) == 503
