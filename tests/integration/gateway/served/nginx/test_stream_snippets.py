"""Ports that snippets of the stream block open (`test/e2e/annotations/streamsnippet.go`), and variations."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from fakes.gateway.ports import free_port
from fakes.gateway.proxied import Client
from fakes.gateway.served import asking, read_answer
from fakes.translator.applied import World, world
from fakes.translator.nginx import ADOPTED, NGINX_CLASS, classed, options
from headgate.translator.world.settings import NginxSettings, TranslationSettings

NOT_ALLOWED = TranslationSettings(controller_names=ADOPTED.controller_names, nginx=NginxSettings())


@pytest.fixture
async def two() -> AsyncIterator[World]:
    """Services `one` and `two`, with snippets allowed."""
    async with world("one", "two", settings=ADOPTED) as made:
        made.proxy.apply(NGINX_CLASS)
        yield made


def server(made: World, port: int, name: str = "one", **more: str) -> str:
    said = "".join(f"{key} {value};" for key, value in more.items())
    return f"server {{ listen {port}; proxy_pass 127.0.0.1:{made.port(name)}; {said} }}"


async def answer(port: int) -> str:
    """Send a request to a port; return who answers, or nothing if nobody does."""
    try:
        client = Client(*await asyncio.open_connection("127.0.0.1", port))
    except OSError:
        return ""
    await client.send(asking())
    try:
        return (await read_answer(client)).body.decode()
    except (asyncio.IncompleteReadError, ConnectionError):
        return "closed"
    finally:
        client.close()


async def test_a_snippet_opens_a_port(two: World) -> None:
    port = free_port()
    made = classed(stream_snippet=server(two, port))
    two.proxy.apply(made)
    assert (await answer(port), await two.proxy.status()) == ("one", 200)
    assert two.proxy.problems(made) == []
    two.proxy.delete(made)
    assert await answer(port) == ""


async def test_the_snippet_of_the_config_map_opens_a_port_if_those_of_ingresses_are_not_allowed() -> None:
    async with world("one", settings=NOT_ALLOWED) as made:
        of_all, of_one = free_port(), free_port()
        told = options(stream_snippet=server(made, of_all), allow_snippet_annotations="false")
        asking_too = classed(stream_snippet=server(made, of_one))
        made.proxy.apply(NGINX_CLASS, told, asking_too)
        assert [await answer(of_all), await answer(of_one)] == ["one", ""]
        assert made.proxy.problems(told) == []
        made.proxy.apply(options(stream_snippet=server(made, of_all), allow_snippet_annotations="true"))
        assert [await answer(of_all), await answer(of_one)] == ["one", "one"]


async def test_a_port_follows_its_snippet(two: World) -> None:
    port = free_port()
    two.proxy.apply(classed(stream_snippet=server(two, port)))
    two.proxy.apply(classed(stream_snippet=server(two, port, "two")))
    assert await answer(port) == "two"


async def test_connections_are_spread_over_an_upstream(two: World) -> None:
    port = free_port()
    servers = f"server 127.0.0.1:{two.port('one')} weight=3; server 127.0.0.1:{two.port('two')};"
    text = f"upstream both {{ {servers} }}\nserver {{ listen {port}; listen [::]:{port}; proxy_pass both; }}"
    two.proxy.apply(classed(stream_snippet=text))
    assert sorted([await answer(port) for _ in range(4)]) == ["one", "one", "one", "two"]


@pytest.mark.parametrize(("network", "expected"), [("127.0.0.0/8", "one"), ("192.0.2.0/24", "closed")])
async def test_clients_of_other_networks_are_kept_out(two: World, network: str, expected: str) -> None:
    port = free_port()
    two.proxy.apply(classed(stream_snippet=server(two, port, allow=network, deny="all")))
    assert await answer(port) == expected


async def test_of_two_snippets_for_a_port_the_oldest_has_it(two: World) -> None:
    port = free_port()
    old = classed("old", created="2024-01-01T00:00:00Z", stream_snippet=server(two, port))
    new = classed("new", created="2024-01-02T00:00:00Z", path="/new", stream_snippet=server(two, port, "two"))
    two.proxy.apply(new, old)
    assert await answer(port) == "one"
    assert two.proxy.problems(new) != []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("server {\n listen 8000 ssl; proxy_pass a:1; }", "line 2, column 2: listen: 'ssl' is not followed here"),
        ("server { listen 8000; }", "server: needs listen and proxy_pass"),
        ("server { listen 8000; proxy_pass nothing; }", "'nothing' is neither an upstream of the snippet nor"),
        ("map $a $b { default c; }", "map: is not followed here"),
        ("server { listen 8000; proxy_pass a:1; ssl_preread on; }", "ssl_preread: is not followed here"),
    ],
)
async def test_a_snippet_that_cannot_be_followed_refuses_its_ingress(two: World, text: str, message: str) -> None:
    made: Any = classed(stream_snippet=text)
    two.proxy.apply(made)
    assert await two.proxy.status() == 503
    assert message in two.proxy.messages(made)


async def test_a_snippet_of_the_config_map_that_cannot_be_followed_is_named(two: World) -> None:
    told = options(stream_snippet="server { listen 8000; }")
    two.proxy.apply(told, classed())
    assert await two.proxy.status() == 200
    assert "server: needs listen and proxy_pass" in two.proxy.messages(told)
