"""What the end-to-end tests of ingress-nginx say of a service that is asked, beside other Ingresses and over time.

Each test names its behaviour there (`test/e2e/annotations/auth.go`).
"""

import base64
from collections.abc import AsyncIterator
from typing import Any

import pytest

from fakes.gateway.proxied import Conversation
from fakes.gateway.served import HOST
from fakes.translator.applied import World, world
from fakes.translator.nginx import nginx_ingress
from headgate.translator.world.settings import NginxSettings, TranslationSettings

LOGIN = {"Authorization": f"Basic {base64.b64encode(b'user:password').decode()}"}
START = "http://$host/auth/start"
MISCONFIGURED = {"auth_type": "basic", "auth_secret": "something", "auth_realm": "test auth"}
SNIPPETS = TranslationSettings(nginx=NginxSettings(allow_snippets=True))


async def judge(conversation: Conversation) -> None:
    """An authentication service that lets one user in."""
    while True:
        head, _ = await conversation.request()
        status = b"200" if LOGIN["Authorization"].encode() in head else b"401"
        await conversation.send(b"HTTP/1.1 %b V\r\nWWW-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n" % status)


@pytest.fixture
async def shop() -> AsyncIterator[World]:
    """A proxy before a Service `one`, and a service that says who may come in."""
    async with world("one", auth=judge, settings=SNIPPETS) as made:
        yield made


def asking(made: World, name: str = "web", **more: Any) -> Any:
    url = f"http://127.0.0.1:{made.port('auth')}/basic-auth/user/password"
    return nginx_ingress(name, **{"auth_url": url, "auth_signin": START, **more})


def sign_in(param: str = "rd") -> str:
    return f"http://{HOST}/auth/start?{param}=http://{HOST}%2F%3Fa%3Db%26c%3Dd"


@pytest.mark.parametrize(("more", "param"), [({}, "rd"), ({"auth_signin_redirect_param": "orig"}, "orig")])
async def test_a_client_is_let_in_or_sent_to_sign_in(shop: World, more: dict[str, str], param: str) -> None:
    shop.proxy.apply(asking(shop, **more))
    assert await shop.proxy.status(**LOGIN) == 200
    got = await shop.proxy.get("/?a=b&c=d")
    assert (got.status, got["location"]) == (302, sign_in(param))


@pytest.mark.parametrize("more", [{}, {"auth_signin_redirect_param": "orig"}])
async def test_a_misconfigured_ingress_closes_its_paths_and_no_others(shop: World, more: dict[str, str]) -> None:
    shop.proxy.apply(asking(shop, **more))
    shop.proxy.apply(asking(shop, **more, **MISCONFIGURED))
    shop.proxy.apply(nginx_ingress("different", host="different.example"))
    assert await shop.proxy.status(host="different.example") == 200
    assert await shop.proxy.status(**LOGIN) != 200


async def test_an_answer_is_kept_for_each_host_and_path_after_the_service_has_gone(shop: World) -> None:
    kept = {"auth_cache_key": "fixed", "auth_cache_duration": "200 201 401 30m"}
    for host in (HOST, "different.example"):
        for path in ("/foo", "/bar"):
            shop.proxy.apply(asking(shop, f"{path[1:]}-{host}", path=path, host=host, **kept))
    got = await shop.proxy.get("/?a=b&c=d")
    assert (got.status, got["location"]) == (302, sign_in())
    assert await shop.proxy.status("/foo", **LOGIN) == 200
    await shop.servers["auth"].stop()
    assert await shop.proxy.status("/foo", **LOGIN) == 200
    assert await shop.proxy.status("/bar", **LOGIN) == 500
    assert await shop.proxy.status("/foo", host="different.example", **LOGIN) == 500


async def test_a_url_without_a_good_host_closes_the_path_and_says_why(shop: World) -> None:
    denied = nginx_ingress(path="/denied-auth", auth_url="https://invalid..auth.url")
    shop.proxy.apply(denied)
    assert await shop.proxy.status("/denied-auth") == 503
    assert "must be a URL that begins with http:// or https://, with a host" in shop.proxy.messages(denied)


@pytest.mark.parametrize(
    "keepalive",
    [
        {},
        {"auth_keepalive": "-1"},
        {"auth_keepalive": "123", "auth_keepalive_requests": "456", "auth_keepalive_timeout": "789"},
        {"auth_keepalive": "10", "auth_keepalive_share_vars": "true"},
        {"auth_keepalive": "many"},
    ],
)
async def test_connections_to_the_service_are_kept_whatever_is_said_of_them(
    shop: World, keepalive: dict[str, str]
) -> None:
    shop.proxy.apply(asking(shop, **keepalive))
    for _ in range(3):
        assert await shop.proxy.status(**LOGIN) == 200
    assert len(shop.servers["auth"].conversations) == 1


async def test_a_url_may_name_its_host_by_a_variable(shop: World) -> None:
    shop.proxy.apply(nginx_ingress(auth_url=f"http://$host:{shop.port('auth')}/path", auth_keepalive="123", host=""))
    assert [await shop.proxy.status(host="localhost", **LOGIN), await shop.proxy.status(host="localhost")] == [200, 401]


SNIPPET = {"auth_snippet": "\nproxy_set_header My-Custom-Header 42;"}


async def test_a_snippet_is_for_the_questions_alone(shop: World) -> None:
    shop.proxy.apply(asking(shop, **SNIPPET))
    assert await shop.proxy.status(**LOGIN) == 200
    assert b"\r\nMy-Custom-Header: 42\r\n" in shop.servers["auth"].heads[-1]
    assert b"My-Custom-Header" not in shop.servers["one"].heads[-1]
    shop.proxy.apply(nginx_ingress(**SNIPPET))
    assert await shop.proxy.status() == 200
    assert b"My-Custom-Header" not in shop.servers["one"].heads[-1]
    assert len(shop.servers["auth"].heads) == 1


async def test_headers_of_a_config_map_are_told_to_the_service(shop: World) -> None:
    metadata = {"name": "auth-headers", "namespace": "default"}
    headers = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"My-Custom-Header": "42"}}
    shop.proxy.apply(headers, asking(shop, auth_proxy_set_headers="default/auth-headers"))
    assert await shop.proxy.status(**LOGIN) == 200
    assert b"\r\nMy-Custom-Header: 42\r\n" in shop.servers["auth"].heads[-1]


async def test_a_header_of_the_answer_takes_the_place_of_the_clients_though_it_is_missing(shop: World) -> None:
    shop.proxy.apply(asking(shop, auth_response_headers="Foo"))
    assert await shop.proxy.status(**LOGIN, Foo="bar") == 200
    assert b"\r\nFoo: bar\r\n" not in shop.servers["one"].heads[-1]
