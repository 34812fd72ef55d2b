"""What the end-to-end tests of ingress-nginx say of authentication for all Ingresses, by its ConfigMap.

Files there: `test/e2e/settings/global_external_auth.go`, `no_auth_locations.go`.
"""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from fakes.gateway.proxied import Conversation
from fakes.translator.applied import World, secret, world
from fakes.translator.nginx import nginx_ingress


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
    async with world("one", auth=judge) as made:
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
