"""What a gateway holds and gives away: memory of hosts that are gone, requests hidden in others, ports behind others.

Files there: `test/e2e/leaks/lua_ssl.go`, `test/e2e/security/request_smuggling.go`, `test/e2e/nginx/nginx.go`,
`test/e2e/settings/listen_nondefault_ports.go`.
"""

import gc
from collections.abc import AsyncIterator
from typing import Any

import pytest

from fakes.gateway.proxied import Conversation, answering
from fakes.gateway.served import asking, read_answer
from fakes.gateway.tls import unverified
from fakes.translator.applied import World, world
from fakes.translator.deltas import tls_secret
from fakes.translator.nginx import ADOPTED, NGINX_CLASS, classed, headers, options
from headgate.gateway.table.listener_ports import OWN_HTTPS

HOSTS = 40


def hosts() -> list[Any]:
    """Return Ingresses with certificates, each of a host of its own."""
    made = []
    for number in range(HOSTS):
        name = f"hostname-{number}"
        ingress = classed(name, host=f"{name}.example", proxy_body_size="2m", enable_cors="true")
        ingress["spec"]["tls"] = [{"hosts": [f"{name}.example"], "secretName": name}]
        made += [tls_secret(name, f"{name}.example"), ingress]
    return made


def held_objects() -> int:
    """Count what is held of our own: of each host that leaked there would be one at least."""
    gc.collect()
    return sum(str(type(each).__module__).startswith("headgate.") for each in gc.get_objects())


async def test_hosts_that_come_and_go_leave_nothing_behind() -> None:
    async with world("one", settings=ADOPTED) as made:
        made.proxy.apply(NGINX_CLASS)
        counts = []
        for _ in range(6):
            made.proxy.apply(*hosts(), options(hsts_max_age="60"))
            assert await made.proxy.status(host="hostname-7.example") == 308
            made.proxy.delete(*hosts(), options())
            assert await made.proxy.status(host="hostname-7.example") == 404
            made.proxy.proxy.log.records.clear()
            counts.append(held_objects())
        assert counts[-1] - counts[2] < HOSTS, counts


# Requests within requests


async def refusing(conversation: Conversation) -> None:
    """Script: a service that lets nobody in."""
    while True:
        await conversation.request()
        await conversation.send(b"HTTP/1.1 401 No\r\nContent-Length: 6\r\n\r\nsecret")


HIDDEN = b"GET /_hidden/index.html HTTP/1.1\r\nHost: notlocalhost\r\n\r\n"
SERVER = """
server {
    listen 80;
    server_name notlocalhost;
    location /_hidden/index.html {
        return 200 'This should be hidden!';
    }
}"""


@pytest.mark.parametrize("sign_in", [{}, {"auth_signin": "https://sign.example/in"}])
async def test_request_in_the_body_of_one_that_is_turned_away_is_not_answered(sign_in: dict[str, str]) -> None:
    async with world("one", settings=ADOPTED, auth=refusing) as made:
        url = f"http://127.0.0.1:{made.port('auth')}/"
        made.proxy.apply(NGINX_CLASS, options(http_snippet=SERVER), classed(auth_url=url, **sign_in))
        client = await made.proxy.proxy.connect()
        await client.send(
            asking("/echo", Content_Length=str(len(HIDDEN))) + HIDDEN + asking("/last", Connection="close")
        )
        first = await read_answer(client)
        rest = await client.rest()
        assert first.status == (302 if sign_in else 401)
        assert rest.count(b"HTTP/1.1 ") == 1
        assert b"hidden" not in first.head + first.body + rest
        assert b"secret" not in first.body + rest
        assert made.servers["one"].heads == []


# Files


@pytest.mark.parametrize("directive", ["alias /www/html;", "root /srv/www;", "try_files $uri /index.html;"])
@pytest.mark.parametrize("kind", ["configuration_snippet", "server_snippet"])
async def test_directives_of_files_are_refused(directive: str, kind: str) -> None:
    async with world("one", settings=ADOPTED) as made:
        manifest = classed(**{kind: directive})
        made.proxy.apply(NGINX_CLASS, manifest)
        assert await made.proxy.status() == 503
        assert directive.partition(" ")[0] in made.proxy.messages(manifest)


# Ports


@pytest.fixture
async def shop() -> AsyncIterator[World]:
    """A proxy with ports besides its own, before a Service `one`, and an authentication service."""
    letting = answering(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    async with world("one", settings=ADOPTED, auth=letting) as made:
        made.proxy.apply(NGINX_CLASS)
        yield made


async def test_port_of_requests_is_that_which_clients_connect_to(shop: World) -> None:
    proxy, server = shop.proxy.proxy, shop.proxy.proxy.server
    shop.proxy.apply(classed(ssl_redirect="false"))
    await shop.proxy.get()
    assert headers(shop)["x-forwarded-port"] == str(proxy.port)
    for public in (80, 1080):
        port = await server.listen_http("127.0.0.1", 0, public_port=public)
        client = await proxy.connect(port=port)
        await client.send(asking())
        assert (await read_answer(client)).status == 200
        assert headers(shop)["x-forwarded-port"] == str(public)


@pytest.mark.parametrize("asks", [False, True])
async def test_port_of_requests_over_tls_is_443_if_clients_connect_to_that(shop: World, asks: bool) -> None:
    proxy = shop.proxy.proxy
    url = f"http://127.0.0.1:{shop.port('auth')}/"
    shop.proxy.apply(classed(**({"auth_url": url, "auth_signin": "http://$host/auth/start"} if asks else {})))
    holder = proxy.routers.holder(OWN_HTTPS)
    port = await proxy.server.listen_https("127.0.0.1", 0, proxy.certificates, public_port=443, holder=holder)
    client = await proxy.connect(unverified(), port=port)
    await client.send(asking(Authorization="Basic dXNlcjpwYXNzd29yZA=="))
    assert (await read_answer(client)).status == 200
    got = headers(shop)
    assert (got["x-forwarded-port"], got["x-forwarded-proto"]) == ("443", "https")
