"""Which backend and endpoint a request gets: sticky cookies and canaries, through the proxy."""

import asyncio

import pytest

from fakes.gateway.proxied import answering
from fakes.gateway.served import at, named, origins, ports, served, site, to
from headgate.common.table import Endpoint

STICKY = {"cookie": "route"}
PERSISTENT = {"cookie": "route", "mode": "persistent"}
BETA = {"subject": "header", "name": "X-Beta", "values": ["always"]}


async def test_first_answer_sets_a_cookie_and_the_next_ones_follow_it() -> None:
    async with (
        origins(answering(named(b"1")), answering(named(b"2"))) as servers,
        served(site(to("up", stickiness=STICKY)), at(*ports(servers))) as proxy,
    ):
        first = await proxy.get()
        assert first["set-cookie"].endswith("; Path=/; HttpOnly")
        for _ in range(3):
            again = await proxy.get(Cookie=first.cookie)
            assert (again.body, again.cookie) == (first.body, "")
        assert set(await proxy.bodies(4)) == {"1", "2"}


async def test_balanced_session_moves_when_its_endpoint_leaves_and_gets_a_new_cookie() -> None:
    async with (
        origins(answering(named(b"1")), answering(named(b"2"))) as servers,
        served(site(to("up", stickiness=STICKY)), at(*ports(servers))) as proxy,
    ):
        first = await proxy.get()
        stays = servers[1 if first.body == b"1" else 0].port
        proxy.put(at(stays))
        moved = await proxy.get(Cookie=first.cookie)
        assert moved.body != first.body
        assert moved.cookie not in ("", first.cookie)
        assert (await proxy.get(Cookie=moved.cookie)).cookie == ""


@pytest.mark.parametrize(("mode", "stays"), [(STICKY, True), (PERSISTENT, True)])
async def test_session_stays_with_an_endpoint_that_drains(mode: dict[str, object], stays: bool) -> None:
    async with (
        origins(answering(named(b"1")), answering(named(b"2"))) as servers,
        served(site(to("up", stickiness=mode)), at(*ports(servers))) as proxy,
    ):
        first = await proxy.get()
        leaving = servers[0 if first.body == b"1" else 1].port
        other = servers[1 if first.body == b"1" else 0].port
        draining = Endpoint(address="127.0.0.1", port=leaving, ready=False, serving=True, terminating=True)
        proxy.put(at(draining, other))
        assert ((await proxy.get(Cookie=first.cookie)).body == first.body) is stays
        assert first.body.decode() not in await proxy.bodies(4)


@pytest.mark.parametrize(("mode", "stays"), [(STICKY, False), (PERSISTENT, True)])
async def test_only_a_persistent_session_stays_with_an_endpoint_that_is_not_ready(
    mode: dict[str, object], stays: bool
) -> None:
    async with (
        origins(answering(named(b"1")), answering(named(b"2"))) as servers,
        served(site(to("up", stickiness=mode)), at(*ports(servers))) as proxy,
    ):
        first = await proxy.get()
        resting, other = (0, 1) if first.body == b"1" else (1, 0)
        unready = Endpoint(address="127.0.0.1", port=servers[resting].port, ready=False)
        proxy.put(at(unready, servers[other].port))
        again = await proxy.get(Cookie=first.cookie)
        assert (again.body == first.body) is stays
        assert (again.cookie == "") is stays


async def test_session_whose_endpoint_is_down_is_answered_by_another() -> None:
    async with (
        origins(answering(named(b"1")), answering(named(b"2"))) as servers,
        served(site(to("up", stickiness=STICKY)), at(*ports(servers))) as proxy,
    ):
        first = await proxy.get()
        await servers[0 if first.body == b"1" else 1].stop()
        moved = await proxy.get(Cookie=first.cookie)
        assert moved.status == 200
        assert moved.cookie not in ("", first.cookie)


async def test_session_stays_on_its_side_of_a_canary() -> None:
    async with origins(answering(named(b"old")), answering(named(b"new"))) as (old, new):
        route = to("up", canaries=[{"upstream": "beta", "when": BETA}], stickiness=STICKY)
        async with served(site(route), at(old.port), at(new.port, key="beta")) as proxy:
            stable = await proxy.get()
            canary = await proxy.get(X_Beta="always")
            assert (stable.body, canary.body) == (b"old", b"new")
            assert (await proxy.get(Cookie=canary.cookie)).body == b"new"
            assert (await proxy.get(Cookie=stable.cookie, X_Beta="always")).body == b"old"


@pytest.mark.parametrize(("needs_main", "status"), [(False, 200), (True, 503)])
async def test_canary_may_need_an_endpoint_of_the_main_backend(needs_main: bool, status: int) -> None:
    async with origins(answering(named(b"new"))) as (new,):
        canary = {"upstream": "beta", "share": 1, "needs_main": needs_main}
        async with served(site(to("up", canaries=[canary])), at(), at(new.port, key="beta")) as proxy:
            assert (await proxy.get()).status == status


async def test_canary_without_sessions_gives_no_cookie_and_is_found_by_none() -> None:
    async with origins(answering(named(b"old")), answering(named(b"new"))) as (old, new):
        canary = {"upstream": "beta", "when": BETA}
        both = (at(old.port), at(new.port, key="beta"))
        async with served(site(to("up", canaries=[canary], stickiness=STICKY)), *both) as proxy:
            before = await proxy.get(X_Beta="always")
            assert before.cookie != ""
            proxy.put(site(to("up", canaries=[canary | {"keeps_sessions": False}], stickiness=STICKY)))
            assert (await proxy.get(Cookie=before.cookie)).body == b"old"
            again = await proxy.get(X_Beta="always")
            assert (again.body, again.cookie) == (b"new", "")


async def test_canary_by_header_then_by_its_opposite_then_by_cookie() -> None:
    canary = {
        "upstream": "beta",
        "when": {"any_of": [BETA, {"subject": "cookie", "name": "beta", "values": ["always"]}]},
        "unless": {"subject": "header", "name": "X-Beta", "values": ["never"]},
        "share": 1,
    }
    async with (
        origins(answering(named(b"old")), answering(named(b"new"))) as (old, new),
        served(site(to("up", canaries=[canary])), at(old.port), at(new.port, key="beta")) as proxy,
    ):
        assert (await proxy.get(X_Beta="always")).body == b"new"
        assert (await proxy.get(X_Beta="never")).body == b"old"
        assert (await proxy.get(X_Beta="never", Cookie="beta=always")).body == b"new"
        assert (await proxy.get()).body == b"new"


@pytest.mark.parametrize(("share", "least", "most"), [(0, 0, 0), (0.5, 5, 55), (1, 60, 60)])
async def test_canary_gets_its_share(share: float, least: int, most: int) -> None:
    canary = {"upstream": "beta", "share": share}
    async with (
        origins(answering(named(b"old")), answering(named(b"new"))) as (old, new),
        served(site(to("up", canaries=[canary])), at(old.port), at(new.port, key="beta")) as proxy,
    ):
        bodies = [body for part in await asyncio.gather(*[proxy.bodies(15) for _ in range(4)]) for body in part]
        assert least <= bodies.count("new") <= most


async def test_canary_that_is_told_by_the_body_of_a_form() -> None:
    when = {"subject": "body", "name": "plan", "values": ["gold"]}
    async with origins(answering(named(b"old")), answering(named(b"new"))) as (old, new):
        route = to("up", canaries=[{"upstream": "beta", "when": when}])
        async with served(site(route), at(old.port), at(new.port, key="beta")) as proxy:
            form = {"Content_Type": "application/x-www-form-urlencoded"}
            assert (await proxy.post(b"plan=gold", **form)).body == b"new"
            assert (await proxy.post(b"plan=tin", **form)).body == b"old"
            assert (await proxy.get()).body == b"old"
            assert new.conversations[0].heads[0].count(b"Content-Length: 9\r\n") == 1


async def test_route_that_is_told_by_json_gets_the_whole_body() -> None:
    when = {"subject": "body", "name": "order.items.0", "values": ["tea"]}
    async with origins(answering(named(b"tea")), answering(named(b"rest"))) as (tea, rest):
        routes = (to("tea", name="tea", when=when), to("rest"))
        async with served(site(*routes), at(tea.port, key="tea"), at(rest.port, key="rest")) as proxy:
            client = await proxy.connect()
            head = b"POST / HTTP/1.1\r\nHost: a.example\r\nContent-Type: application/json\r\n"
            await client.send(head + b"Transfer-Encoding: chunked\r\n\r\n1c\r\n")
            await asyncio.sleep(0.02)
            await client.send(b'{"order": {"items": ["tea"]}\r\n1\r\n}\r\n0\r\n\r\n')
            assert (await client.answer())[1] == b"tea"
            assert b"Content-Length: 29\r\n" in tea.heads[0]


async def test_split_follows_its_weights() -> None:
    async with (
        origins(answering(named(b"a")), answering(named(b"b"))) as (one, two),
        served(site(to(("a", 3), ("b", 1))), at(one.port, key="a"), at(two.port, key="b")) as proxy,
    ):
        assert (await proxy.bodies(8)).count("a") == 6
