"""Header names with underscores, which CGI and WSGI cannot tell from dashes."""

import pytest

from fakes.gateway.proxied import proxied
from fakes.peers.http2 import http2_client, request
from headgate.gateway.proxy.config import ProxyConfig, UnderscoreNames

START = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"


async def test_names_with_underscores_are_dropped_by_default() -> None:
    async with proxied() as proxy:
        await proxy.talk(START + b"X_Auth_User: root\r\nX-Kept: b\r\n_: c\r\n\r\n")
        assert b"root" not in proxy.origin.heads[0]
        assert b"X-Kept: b\r\n" in proxy.origin.heads[0]


async def test_names_with_underscores_pass_where_they_are_allowed() -> None:
    async with proxied(config=ProxyConfig(underscore_names="allow")) as proxy:
        await proxy.talk(START + b"X_User: b\r\nX_Forwarded_For: c\r\nKeep_Alive: d\r\n\r\n")
        head = proxy.origin.heads[0]
        assert b"X_User: b\r\n" in head
        assert b"X_Forwarded_For" not in head
        assert b"Keep_Alive" not in head


async def test_names_with_underscores_are_a_400_where_they_are_refused() -> None:
    async with proxied(config=ProxyConfig(underscore_names="refuse")) as proxy:
        assert (await proxy.talk(START + b"X_User: b\r\n\r\n")).startswith(b"HTTP/1.1 400 ")
        assert proxy.origin.heads == []


@pytest.mark.parametrize("mode", ["allow", "drop", "refuse"])
@pytest.mark.parametrize("name", [b"Content_Length", b"transfer_encoding"])
async def test_disguised_framing_is_always_refused(mode: UnderscoreNames, name: bytes) -> None:
    async with proxied(config=ProxyConfig(underscore_names=mode)) as proxy:
        assert (await proxy.talk(START + name + b": 1\r\n\r\n")).startswith(b"HTTP/1.1 400 ")


async def test_names_of_http2_are_treated_alike() -> None:
    async with proxied() as proxy, http2_client(proxy.port) as client:
        assert (await client.fetch(request(b"GET", b"/", (b"x_auth_user", b"root")))).status == 200
        assert b"root" not in proxy.origin.heads[0]
