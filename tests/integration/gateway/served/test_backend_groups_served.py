"""Groups of backends, from the table's entries to the endpoint that a request comes to."""

import asyncio
from collections import Counter
from typing import Any

import pytest

from fakes.gateway.groups import UNAVAILABLE, failover, group, grouped, mark, to_group, up, within
from fakes.gateway.proxied import Conversation, Script, answering
from fakes.gateway.served import at, closed_port, named, origins, served, site, to
from fakes.peers.grpc_service import grpc_server
from fakes.peers.http2 import http2_client, request
from fakes.waiting import until
from headgate.common.table import (
    Backend,
    BackendGroup,
    Choice,
    Compare,
    FirstMatch,
    Hashed,
    HashKey,
    Mirror,
    Mirroring,
    PluginUse,
    Stickiness,
    Subject,
    Timeouts,
    Weighted,
)


def weighted(key: str, *backends: Backend, **fields: Any) -> BackendGroup:
    return group(key, weighted=Weighted(backends=backends), **fields)


# Weighted


async def test_nested_groups_share_the_requests_by_the_weights_of_each_level() -> None:
    inner = weighted("inner", up("b", 1), up("c", 3))
    async with grouped(weighted("g", up("a"), within("inner")), inner) as (proxy, _):
        assert Counter(await proxy.bodies(16)) == {"a": 8, "b": 2, "c": 6}


async def test_a_group_that_changes_takes_effect_without_its_routes() -> None:
    async with grouped(weighted("g", up("a"))) as (proxy, _):
        assert await proxy.bodies(2) == ["a", "a"]
        proxy.put(weighted("g", up("b")))
        assert await proxy.bodies(2) == ["b", "b"]
        proxy.remove("backend_groups", "g")
        got = await proxy.get()
        assert (got.status, got["x-headgate-reason"]) == (503, "backend group g is not in the table")
        proxy.put(weighted("g", up("c")))
        assert await proxy.bodies(1) == ["c"]


async def test_a_backend_without_endpoints_fails_its_share() -> None:
    async with grouped(weighted("g", up("a"), up("gone"))) as (proxy, _):
        assert Counter([(await proxy.get()).status for _ in range(6)]) == {200: 3, 503: 3}


async def test_plugins_of_every_level_run_in_the_order_of_the_way() -> None:
    inner = weighted("inner", up("a", plugins=mark("leaf")))
    outer = weighted("g", within("inner", plugins=mark("inner")))
    route = to_group().model_copy(update={"backends": (within("g", plugins=mark("outer")),)})
    async with grouped(outer, inner, route=route) as (proxy, origin):
        got = await proxy.get()
    assert got.all("x-from") == ["leaf", "inner", "outer"]
    marks = [line for line in origin["a"].heads[0].split(b"\r\n") if line.startswith(b"X-To")]
    assert marks == [b"X-To: outer", b"X-To: inner", b"X-To: leaf"]


async def test_innermost_timeouts_hold() -> None:
    async def slow(conversation: Any) -> None:
        await conversation.request()
        await conversation.reader.read()

    quick = Timeouts(read_s=0.05)
    inner = weighted("inner", up("a", timeouts=quick))
    outer = weighted("g", within("inner", timeouts=Timeouts(read_s=30)))
    async with grouped(outer, inner, route=to_group(retries={"attempts": 0}), scripts={"a": slow}) as (proxy, _):
        assert (await proxy.get()).status == 504


# Stickiness


async def test_the_cookie_of_a_group_keeps_its_choice_and_the_endpoint() -> None:
    async with origins(*[answering(named(name.encode())) for name in "abcd"]) as (a, b, c, d):
        sticky = weighted("g", up("one"), up("two"), stickiness=Stickiness(cookie="G"))
        upstreams = at(a.port, b.port, key="one"), at(c.port, d.port, key="two")
        async with served(site(to_group()), sticky, *upstreams) as proxy:
            for _ in range(4):
                first = await proxy.get()
                assert first.cookie.startswith("G=")
                again = [await proxy.get(Cookie=first.cookie) for _ in range(5)]
                assert {(got.body, got.cookie) for got in again} == {(first.body, "")}


async def test_the_cookie_of_the_outer_group_keeps_the_choices_of_nested_ones() -> None:
    inner = weighted("inner", up("a"), up("b"))
    outer = weighted("g", within("inner"), up("c"), stickiness=Stickiness(cookie="G"))
    async with grouped(outer, inner) as (proxy, _):
        for _ in range(4):
            first = await proxy.get()
            assert first.cookie.count(".") == (1 if first.body == b"c" else 2)
            assert set(await proxy.bodies(4, Cookie=first.cookie)) == {first.body.decode()}


async def test_groups_at_two_levels_have_cookies_of_their_own() -> None:
    inner = weighted("inner", up("a"), up("b"), stickiness=Stickiness(cookie="I"))
    outer = weighted("g", within("inner"), up("c"), up("d"), stickiness=Stickiness(cookie="O"))
    async with grouped(outer, inner) as (proxy, _):
        first = await proxy.get()
        cookies = [line.partition(";")[0] for line in first.all("set-cookie")]
        assert [cookie[:2] for cookie in cookies] == ["O=", "I="]
        both = "; ".join(cookies)
        assert set(await proxy.bodies(6, Cookie=both)) == {first.body.decode()}
        # Without the outer cookie the group is chosen again, and the inner one decides within it.
        alone = await proxy.bodies(6, Cookie=cookies[1])
        assert [body for body in alone if body in "ab"] == [first.body.decode()] * 2


async def test_a_session_is_given_up_with_the_upstream_it_led_to() -> None:
    sticky = weighted("g", up("a"), up("b"), stickiness=Stickiness(cookie="G"))
    async with grouped(sticky) as (proxy, _):
        first = await proxy.get()
        left = "b" if first.body == b"a" else "a"
        proxy.put(at(key=first.body.decode()))
        moved = [await proxy.get(Cookie=first.cookie) for _ in range(2)]
        (served_now,) = [got for got in moved if got.status == 200]
        assert served_now.body.decode() == left
        assert served_now.cookie != first.cookie


# Bad groups


@pytest.mark.parametrize(
    ("groups", "reason"),
    [
        ([weighted("bad", within("bad"))], "backend group bad nests itself: bad -> bad"),
        (
            [weighted("bad", within("other")), weighted("other", within("bad"))],
            "backend group bad nests itself: bad -> other -> bad",
        ),
        (
            [weighted("bad", within("1")), *(weighted(str(n), within(str(n + 1)), up("a", 0)) for n in range(1, 16))],
            "backend group bad is nested deeper than 16 groups",
        ),
        (
            [weighted("bad", up("a", plugins=(PluginUse(name="cors", config={"max_age": "x"}),)))],
            "backend group bad of Ingress default/web spec.rules[0] cannot be served: plugin cors",
        ),
        (
            [weighted("bad", *[within("wide")] * 30), weighted("wide", *[up("a")] * 40)],
            "backend group bad has more than 1024 backends, with those of the groups within it",
        ),
        ([weighted("bad", up("a", 0))], "all backends of bad have weight 0"),
        ([group("bad", weighted={"backends": [up("a")]}, stickiness={"cookie": "a b"})], "backend group bad of "),
    ],
)
async def test_a_bad_group_refuses_its_requests_and_touches_nothing_else(
    groups: list[BackendGroup], reason: str
) -> None:
    good = weighted("g", up("b"), within("bad"))
    async with grouped(good, *groups) as (proxy, _):
        answers = [await proxy.get() for _ in range(4)]
    assert Counter(got.body for got in answers if got.status == 200) == {b"b": 2}
    refused = [got["x-headgate-reason"] for got in answers if got.status != 200]
    assert len(refused) == 2
    assert all(each.startswith(reason) for each in refused)


async def test_a_group_that_was_mended_is_served() -> None:
    async with grouped(weighted("g", within("g"))) as (proxy, _):
        assert (await proxy.get()).status == 503
        proxy.put(weighted("g", up("a")))
        assert await proxy.bodies(1) == ["a"]


# Hashed


async def test_a_hashed_group_keeps_each_key_with_its_backend() -> None:
    by_user = Hashed(backends=tuple(map(up, "abc")), keys=(HashKey(source="header", name="x-user"),))
    async with grouped(group("g", hashed=by_user)) as (proxy, _):
        users = [f"user{number}" for number in range(12)]
        found = {user: set(await proxy.bodies(2, X_User=user)) for user in users}
        assert all(len(bodies) == 1 for bodies in found.values())
        assert set().union(*found.values()) == {"a", "b", "c"}
        # Without a key the backends take turns.
        assert Counter(await proxy.bodies(6)) == {"a": 2, "b": 2, "c": 2}
        proxy.put(at(key="b"))
        after = {user: set(await proxy.bodies(1, X_User=user)) for user in users}
        assert {user for user in users if after[user] != found[user]} == {
            user for user in users if found[user] == {"b"}
        }
        assert set().union(*after.values()) == {"a", "c"}


# Mirroring


async def test_a_mirroring_group_sends_copies_beside_the_main_backend() -> None:
    mirrors = Mirror(upstream="b"), Mirror(upstream="c", share=0)
    mirroring = Mirroring(main=up("a"), mirrors=mirrors)
    async with grouped(group("g", mirroring=mirroring)) as (proxy, origin):
        assert (await proxy.post(b"body", "/x")).body == b"a"
        await until(lambda: bool(origin["b"].heads))
        assert origin["c"].heads == []


async def test_a_mirror_may_be_a_group_that_changes() -> None:
    shadows = weighted("shadows", up("b"), within("more"))
    route = to("a", mirrors=[Mirror(group="shadows")])
    async with grouped(shadows, weighted("more", up("c")), route=route) as (proxy, origin):
        assert await proxy.bodies(4) == ["a"] * 4
        await until(lambda: [len(origin[name].heads) for name in "bc"] == [2, 2])
        proxy.put(weighted("shadows", up("d")))
        assert await proxy.bodies(1) == ["a"]
        await until(lambda: len(origin["d"].heads) == 1)
        proxy.remove("backend_groups", "shadows")
        assert await proxy.bodies(1) == ["a"]


# With what takes longer, and over HTTP/2


def asking_first() -> PluginUse:
    """A plugin that waits: for the answer of the upstream `auth`."""
    return PluginUse(name="forward-auth", config={"upstream": "auth", "request_headers": ["x-user"]})


@pytest.mark.parametrize("user", ["jack", "jill"])
async def test_plugins_that_wait_may_be_on_every_level(user: str) -> None:
    async def judging(conversation: Conversation) -> None:
        while True:
            head, _ = await conversation.request()
            status = b"200 OK" if b"\r\nx-user: jack\r\n" in head.lower() else b"403 Forbidden"
            await conversation.send(b"HTTP/1.1 %b\r\nContent-Length: 0\r\n\r\n" % status)

    inner = failover("inner", up("a", plugins=(asking_first(), *mark("a"))), up("b", plugins=(asking_first(),)), 503)
    outer = weighted("g", within("inner", plugins=(asking_first(),)))
    route = to_group().model_copy(update={"plugins": (asking_first(),)})
    scripts: dict[str, Script] = {"a": answering(UNAVAILABLE), "auth": judging}
    async with grouped(outer, inner, route=route, scripts=scripts) as (proxy, origin):
        got = await proxy.get(X_User=user)
        asked = len(origin["auth"].heads)
    assert (got.status, asked) == ((200, 4) if user == "jack" else (403, 1))
    assert len(origin["a"].heads) == (user == "jack")


async def test_grpc_goes_through_groups_with_its_trailers() -> None:
    async with grpc_server() as (_, port):
        entries = at(port, key="grpc", protocol="h2c"), weighted("g", up("grpc"))
        async with served(site(to_group()), *entries) as proxy, http2_client(proxy.port) as client:
            fields = ((b"content-type", b"application/grpc"), (b"te", b"trailers"))
            asked = request(b"POST", b"/test.Echo/Unary", *fields, authority=b"a.example")
            answer = await client.fetch(asked, b"\0\0\0\0\3abc")
    assert bytes(answer.body) == b"\0\0\0\0\3cba"


async def test_a_request_that_a_plugin_split_off_goes_by_no_group() -> None:
    rules = {"rules": [{"weighted_upstreams": [{"upstream_id": "d", "weight": 1}]}]}
    route = to_group(plugins=[("traffic-split", rules)])
    async with grouped(weighted("g", up("a", plugins=mark("a"))), route=route) as (proxy, _):
        got = await proxy.get()
    assert (got.body, got["x-from"]) == (b"d", "")


async def test_groups_that_change_under_load_fail_no_request() -> None:
    async with grouped(weighted("g", up("a"), within("inner")), weighted("inner", up("b"))) as (proxy, _):

        async def ask() -> list[int]:
            return [(await proxy.get()).status for _ in range(30)]

        async def change() -> None:
            for number in range(30):
                proxy.put(weighted("inner", up("bcd"[number % 3], plugins=mark("x") if number % 2 else ())))
                await asyncio.sleep(0.002)

        *answers, _ = await asyncio.gather(ask(), ask(), ask(), change())
    assert {status for each in answers for status in each} == {200}


@pytest.mark.parametrize("plugins", [(), mark("g")])
async def test_a_retry_stays_with_the_backend_and_goes_to_another_endpoint(plugins: tuple[PluginUse, ...]) -> None:
    async with origins(answering(named(b"ok"))) as (origin,):
        entries = weighted("g", up("two", plugins=plugins)), at(closed_port(), origin.port, key="two")
        async with served(site(to_group()), *entries) as proxy:
            assert set(await proxy.bodies(4)) == {"ok"}
            assert sum(each.retries for each in proxy.stats.series()) >= 2


@pytest.mark.parametrize("mode", ["balanced", "persistent"])
async def test_the_cookie_of_the_route_keeps_what_groups_chose(mode: str) -> None:
    route = to_group(stickiness=Stickiness.model_validate({"cookie": "R", "mode": mode}))
    async with grouped(weighted("g", up("a"), within("inner")), weighted("inner", *map(up, "bc")), route=route) as (
        proxy,
        _,
    ):
        for _ in range(4):
            first = await proxy.get()
            assert set(await proxy.bodies(4, Cookie=first.cookie)) == {first.body.decode()}


async def test_a_persistent_session_outlasts_an_answer_of_another_endpoint() -> None:
    sticky = Stickiness(cookie="G", mode="persistent")
    async with origins(answering(named(b"1")), answering(named(b"2"))) as (one, two):
        entries = weighted("g", up("two"), stickiness=sticky), at(one.port, two.port, key="two")
        async with served(site(to_group()), *entries) as proxy:
            first = await proxy.get()
            gone = one if first.body == b"1" else two
            await gone.stop()
            other = await proxy.get(Cookie=first.cookie)
            assert (other.status, other.body != first.body, other.cookie) == (200, True, "")


async def test_a_hashed_group_without_an_endpoint_says_why() -> None:
    hashed = Hashed(backends=(up("gone"), up("lost"), up("a", 0)), keys=(HashKey(source="header", name="x-user"),))
    async with grouped(group("g", hashed=hashed)) as (proxy, _):
        reasons = {(await proxy.get(X_User=str(number)))["x-headgate-reason"] for number in range(8)}
        assert reasons == {"gone is not in the table", "lost is not in the table"}


async def test_a_hashed_group_of_one_upstream_twice_uses_both() -> None:
    hashed = Hashed(backends=(up("a", plugins=mark("1")), up("a", plugins=mark("2"))), keys=(HashKey(source="path"),))
    async with grouped(group("g", hashed=hashed)) as (proxy, _):
        assert {(await proxy.get(f"/{number}"))["x-from"] for number in range(12)} == {"1", "2"}


# First match


async def test_a_choice_is_made_by_the_request_behind_the_plugins_of_the_way() -> None:
    def asks(value: str) -> Compare:
        return Compare(subject=Subject.HEADER, name="x-step", values=(value,))

    def sets(value: str) -> tuple[PluginUse, ...]:
        return (PluginUse(name="proxy-rewrite", config={"headers": {"set": {"X-Step": value}}}),)

    inner = group("inner", first_match=FirstMatch(choices=(Choice(when=asks("2"), backend=up("b")),)))
    choices = (
        Choice(when=asks("0"), backend=up("a")),
        Choice(when=asks("1"), backend=within("inner", plugins=sets("2"))),
    )
    outer = group("g", first_match=FirstMatch(choices=choices))
    async with grouped(outer, inner) as (proxy, _):
        assert (await proxy.get("/", X_Step="0")).body == b"a"
        assert (await proxy.get("/", X_Step="1")).body == b"b"
        assert (await proxy.get("/", X_Step="3")).status == 404
