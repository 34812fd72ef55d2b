"""Mirrors of routes, from the table's field to the copy that arrives."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fakes.gateway.proxied import OK, Conversation, answering
from fakes.gateway.served import Served, at, origins, sealed, served, site, to
from fakes.gateway.table import ORIGIN
from fakes.waiting import until
from headgate.common.table import Consumer, Credential, Mirror, PluginUse, Route, TableEntry


@asynccontextmanager
async def shadowed(route: Route, *more: TableEntry) -> AsyncIterator[tuple[Served, list[bytes], list[bytes]]]:
    """A served route, and the copies that come to the upstreams `shadow` and `other`."""
    copies: tuple[list[bytes], list[bytes]] = [], []

    def collecting(seen: list[bytes]):
        async def shadow(conversation: Conversation) -> None:
            head, body = await conversation.request()
            seen.append(head + body)

        return shadow

    async with origins(answering(OK), *map(collecting, copies)) as (origin, shadow, other):
        upstreams = at(origin.port), at(shadow.port, key="shadow"), at(other.port, key="other")
        async with served(site(route), *upstreams, *more) as proxy:
            yield proxy, *copies


async def test_a_route_has_its_requests_copied_to_all_of_its_mirrors() -> None:
    mirrors = Mirror(upstream="shadow"), Mirror(upstream="other", path="/copies", path_mode="prefix", host="b.example")
    async with shadowed(to("up", mirrors=mirrors)) as (proxy, first, second):
        assert (await proxy.post(b"hello", "/x?q=1")).body == b"ok"
        await until(lambda: bool(first and second))
    assert first[0].startswith(b"POST /x?q=1 HTTP/1.1\r\nHost: a.example\r\n")
    assert second[0].startswith(b"POST /copies/x?q=1 HTTP/1.1\r\nHost: b.example\r\n")
    assert all(copies[0].endswith(b"\r\n\r\nhello") for copies in (first, second))


async def test_copies_are_made_of_what_the_plugins_of_the_route_made() -> None:
    route = to("up", plugins=[("proxy-rewrite", {"uri": "/v2"})], mirrors=[Mirror(upstream="shadow")])
    async with shadowed(route) as (proxy, copies, _):
        assert (await proxy.get("/x")).body == b"ok"
        await until(lambda: bool(copies))
    assert copies[0].startswith(b"GET /v2 HTTP/1.1\r\n")


async def test_a_mirror_without_a_share_copies_nothing() -> None:
    mirrors = Mirror(upstream="shadow", share=0), Mirror(upstream="other")
    async with shadowed(to("up", mirrors=mirrors)) as (proxy, none, all_of_them):
        assert await proxy.bodies(5) == ["ok"] * 5
        await until(lambda: len(all_of_them) == 5)
    assert none == []


async def test_a_mirror_of_a_consumer_stands_in_the_place_of_the_routes() -> None:
    use = PluginUse(name="key-auth", secrets={"key": sealed(b"jack")})
    jack = Consumer(
        key="c1/shop/jack",
        name="jack",
        credentials=(Credential(use=use),),
        plugins=(PluginUse(name="proxy-mirror", config={"upstream": "other"}),),
        provenance=ORIGIN,
    )
    route = to("up", plugins=[("key-auth", {})], mirrors=[Mirror(upstream="shadow")])
    async with shadowed(route, jack) as (proxy, of_route, of_consumer):
        assert (await proxy.get(apikey="jack")).body == b"ok"
        await until(lambda: bool(of_consumer))
    assert of_route == []


async def test_a_mirror_of_all_routes_copies_beside_the_routes_own() -> None:
    use = PluginUse(name="proxy-mirror", config={"upstream": "other"}, is_global=True)
    route = to("up", mirrors=[Mirror(upstream="shadow")]).model_copy(update={"plugins": (use,)})
    async with shadowed(route) as (proxy, of_route, of_all):
        assert (await proxy.get()).body == b"ok"
        await until(lambda: bool(of_route and of_all))


async def test_a_plugin_of_a_table_of_schema_6_is_a_mirror_of_its_route() -> None:
    async with shadowed(to("up", plugins=[("proxy-mirror", {"upstream": "shadow"})])) as (proxy, copies, _):
        assert (await proxy.get("/old")).body == b"ok"
        await until(lambda: bool(copies))
    assert copies[0].startswith(b"GET /old HTTP/1.1\r\n")
