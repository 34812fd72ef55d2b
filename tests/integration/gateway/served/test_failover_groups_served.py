"""Groups with a fallback, from the table's entries to the endpoint that a request comes to."""

from typing import Any

import pytest

from fakes.gateway.groups import UNAVAILABLE, failover, grouped, mark, to_group, up, within
from fakes.gateway.proxied import Conversation, Script, answering
from fakes.gateway.served import at, named, read_answer
from fakes.peers.http2 import http2_client, request
from headgate.common.table import (
    Mirror,
    PluginUse,
    Stickiness,
)

# Failover


async def test_the_fallback_gets_the_requests_while_the_main_backend_has_no_endpoint() -> None:
    async with grouped(failover("g", up("a"), up("b"))) as (proxy, origin):
        assert await proxy.bodies(2) == ["a", "a"]
        proxy.put(at(key="a"))
        assert await proxy.bodies(2) == ["b", "b"]
        proxy.put(at(origin["a"].port, key="a"))
        assert await proxy.bodies(2) == ["a", "a"]


async def test_the_fallback_gets_the_requests_while_all_endpoints_of_the_main_backend_are_unhealthy() -> None:
    async with grouped(failover("g", up("a"), up("b"))) as (proxy, origin):
        assert await proxy.bodies(1) == ["a"]
        proxy.slot(origin["a"].port).mark(is_healthy=False)
        assert await proxy.bodies(2) == ["b", "b"]
        proxy.slot(origin["b"].port).mark(is_healthy=False)
        assert await proxy.bodies(1) == ["a"]
        proxy.slot(origin["b"].port).mark(is_healthy=True)
        assert await proxy.bodies(1) == ["b"]
        proxy.slot(origin["a"].port).mark(is_healthy=True)
        assert await proxy.bodies(2) == ["a", "a"]


async def test_a_client_of_the_fallback_stays_there_where_the_group_is_sticky() -> None:
    chosen = failover("g", up("a"), up("b")).model_copy(update={"stickiness": Stickiness(cookie="G")})
    async with grouped(chosen) as (proxy, origin):
        proxy.put(at(key="a"))
        moved = await proxy.get()
        proxy.put(at(origin["a"].port, key="a"))
        assert [await proxy.bodies(2, Cookie=moved.cookie), await proxy.bodies(2)] == [["b", "b"], ["a", "a"]]


async def test_the_fallback_gets_a_request_that_the_main_backend_answers_with_a_status() -> None:
    chosen = failover("g", up("a", plugins=mark("main")), up("b", plugins=mark("fallback")), 503)
    async with grouped(chosen, scripts={"a": answering(UNAVAILABLE)}) as (proxy, origin):
        got = await proxy.get("/x")
    assert (got.status, got.body, got.all("x-from")) == (200, b"b", ["fallback"])
    assert b"\r\nX-To: main\r\n" in origin["a"].heads[0]
    assert [line for line in origin["b"].heads[0].split(b"\r\n") if line.startswith(b"X-To")] == [b"X-To: fallback"]


async def test_a_path_that_the_main_backend_rewrote_is_the_clients_again_for_the_fallback() -> None:
    rewrite = PluginUse(name="proxy-rewrite", config={"uri": "/main", "host": "main.example", "method": "PUT"})
    chosen = failover("g", up("a", plugins=(rewrite,)), up("b"), 503)
    async with grouped(chosen, scripts={"a": answering(UNAVAILABLE)}) as (proxy, origin):
        await proxy.get("/x?q=1")
    assert origin["a"].heads[0].startswith(b"PUT /main?q=1 HTTP/1.1\r\nHost: main.example\r\n")
    assert origin["b"].heads[0].startswith(b"GET /x?q=1 HTTP/1.1\r\nHost: a.example\r\n")


@pytest.mark.parametrize(
    ("method", "route", "status"),
    [
        ("PUT", {}, 200),
        ("POST", {}, 503),
        ("POST", {"retries": {"unsafe": True}}, 200),
    ],
)
async def test_a_request_goes_to_the_fallback_only_where_it_might_be_sent_again(
    method: str, route: dict[str, Any], status: int
) -> None:
    bodies: list[bytes] = []

    async def reading(conversation: Any) -> None:
        bodies.append((await conversation.request())[1])
        await conversation.send(named(b"b"))

    scripts: dict[str, Script] = {"a": answering(UNAVAILABLE), "b": reading}
    chosen = failover("g", up("a"), up("b"), 503)
    async with grouped(chosen, route=to_group(**route), scripts=scripts) as (proxy, _):
        got = await proxy.post(b"body", method=method)
    assert (got.status, bodies) == (status, [b"body"] if status == 200 else [])


async def test_a_status_that_is_not_named_is_passed_on() -> None:
    async with grouped(failover("g", up("a"), up("b"), 500), scripts={"a": answering(UNAVAILABLE)}) as (proxy, _):
        assert (await proxy.get()).status == 503


async def test_a_main_backend_that_is_not_reached_fails_over_by_the_gateways_own_status() -> None:
    async with grouped(failover("g", up("dead"), up("b"), 502), at(1, key="dead")) as (proxy, _):
        got = await proxy.get()
        assert (got.status, got.body) == (200, b"b")


async def test_a_fallback_that_fails_too_is_answered() -> None:
    scripts = dict.fromkeys("ab", answering(UNAVAILABLE))
    async with grouped(failover("g", up("a"), up("b"), 503), scripts=scripts) as (proxy, origin):
        got = await proxy.get()
    assert (got.status, got.body) == (503, b"down")
    assert [len(origin[name].heads) for name in "ab"] == [1, 1]


async def test_failovers_within_failovers_are_tried_from_the_inside() -> None:
    inner = failover("inner", up("a"), up("b"), 503)
    scripts = dict.fromkeys("ab", answering(UNAVAILABLE))
    async with grouped(failover("g", within("inner"), up("c"), 503), inner, scripts=scripts) as (proxy, origin):
        assert (await proxy.get()).body == b"c"
    assert [len(origin[name].heads) for name in "abc"] == [1, 1, 1]


async def test_traffic_is_counted_for_the_upstream_that_answered() -> None:
    async with grouped(failover("g", up("a"), up("b"), 503), scripts={"a": answering(UNAVAILABLE)}) as (proxy, _):
        await proxy.get()
        counted = {each.upstream: (each.ok, each.retries) for each in proxy.stats.series() if each.ok or each.retries}
    assert counted == {"a": (0, 1), "b": (1, 0)}


async def test_requests_over_http2_fail_over_too() -> None:
    async with (
        grouped(failover("g", up("a"), up("b"), 503), scripts={"a": answering(UNAVAILABLE)}) as (proxy, origin),
        http2_client(proxy.port) as client,
    ):
        answers = [await client.fetch(request(b"GET", b"/x", authority=b"a.example")) for _ in range(2)]
        assert [(answer.status, bytes(answer.body)) for answer in answers] == [(200, b"b")] * 2
        assert [len(origin[name].heads) for name in "ab"] == [2, 2]


async def test_a_body_that_is_held_goes_to_the_fallback_whole() -> None:
    bodies: list[bytes] = []

    async def reading(conversation: Conversation) -> None:
        bodies.append((await conversation.request())[1])
        await conversation.send(named(b"b"))

    scripts: dict[str, Script] = {"a": answering(UNAVAILABLE), "b": reading}
    chosen = failover("g", up("a"), up("b"), 503)
    async with grouped(chosen, route=to_group(buffer_request=True), scripts=scripts) as (proxy, _):
        assert (await proxy.post(b"x" * 100_000, method="PUT")).body == b"b"
    assert bodies == [b"x" * 100_000]


async def test_a_body_that_streams_through_a_filter_is_not_sent_to_the_fallback() -> None:
    async def impatient(conversation: Conversation) -> None:
        await conversation.reader.readuntil(b"\r\n\r\n")
        await conversation.send(UNAVAILABLE)
        await conversation.reader.read()

    chosen = failover("g", up("a"), up("b"), 503)
    route = to_group(mirrors=[Mirror(upstream="c")])
    async with grouped(chosen, route=route, scripts={"a": impatient}) as (proxy, origin):
        client = await proxy.connect()
        await client.send(b"PUT / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 10\r\n\r\n12345")
        got = await read_answer(client)
        assert (got.status, got.body, origin["b"].heads) == (503, b"down", [])


async def test_status_of_a_main_backend_that_was_answered_by_a_plugin_is_its_own() -> None:
    answer = PluginUse(name="fault-injection", config={"abort": {"http_status": 503, "body": "no"}})
    async with grouped(failover("g", up("a", plugins=(answer,)), up("b"), 503)) as (proxy, origin):
        got = await proxy.get()
    assert (got.status, got.body, origin["b"].heads) == (503, b"no", [])
