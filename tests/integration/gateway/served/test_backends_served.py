"""What a backend says of its own requests: plugins, mirrors, timeouts."""

import asyncio
from typing import Any

import pytest

from fakes.gateway.proxied import OK, Conversation, answering
from fakes.gateway.served import at, named, origins, ports, served, site, to
from fakes.waiting import until
from headgate.common.table import Backend, Mirror, PluginUse, Route, Stickiness, Timeouts


def use(name: str, **config: Any) -> PluginUse:
    return PluginUse(name=name, config=config)


def split(*backends: Backend, **fields: Any) -> Route:
    return to("up", **fields).model_copy(update={"backends": backends})


def marking(name: str) -> tuple[PluginUse, PluginUse]:
    """Plugins that leave a mark on requests and on answers."""
    return (
        use("proxy-rewrite", headers={"set": {"X-To": name}}),
        use("response-rewrite", headers={"add": [f"X-From: {name}"]}),
    )


async def test_plugins_of_a_backend_run_for_its_requests_and_answers_alone() -> None:
    one, two = (Backend(upstream=name, plugins=marking(name)) for name in ("one", "two"))
    async with (
        origins(answering(named(b"1")), answering(named(b"2"))) as (first, second),
        served(site(split(one, two)), at(first.port, key="one"), at(second.port, key="two")) as proxy,
    ):
        answers = [await proxy.get() for _ in range(4)]
    assert sorted((got.body, got["x-from"]) for got in answers) == [(b"1", "one")] * 2 + [(b"2", "two")] * 2
    assert all(b"\r\nX-To: one\r\n" in head for head in first.heads)
    assert all(b"\r\nX-To: two\r\n" in head for head in second.heads)


async def test_plugins_of_the_route_go_before_those_of_the_backend_and_see_answers_after_them() -> None:
    of_route = [("proxy-rewrite", {"uri": "/v2"}), ("response-rewrite", {"headers": {"add": ["X-From: route"]}})]
    backend = Backend(upstream="up", plugins=(use("proxy-rewrite", regex_uri=["^/v2", "/v3"]), marking("up")[1]))
    async with (
        origins(answering(OK)) as (origin,),
        served(site(split(backend, plugins=of_route)), at(origin.port)) as proxy,
    ):
        got = await proxy.get("/x")
    assert origin.heads[0].startswith(b"GET /v3 ")
    assert got.all("x-from") == ["up", "route"]


async def test_a_plugin_of_a_backend_may_answer() -> None:
    backend = Backend(upstream="up", plugins=(use("redirect", uri="/new", ret_code=302),))
    async with origins(answering(OK)) as (origin,), served(site(split(backend)), at(origin.port)) as proxy:
        got = await proxy.get("/x")
    assert (got.status, got["location"], origin.heads) == (302, "/new", [])


async def test_body_goes_through_the_filters_of_route_and_backend() -> None:
    def wrapping(mark: str) -> PluginUse:
        return use("body-transformer", request={"template": f'{{"a": "{mark}{{{{a}}}}"}}', "input_format": "json"})

    backend = Backend(upstream="up", plugins=(wrapping("b"),))
    route = split(backend).model_copy(update={"plugins": (wrapping("r"),)})
    bodies: list[bytes] = []

    async def reading(conversation: Conversation) -> None:
        bodies.append((await conversation.request())[1])
        await conversation.send(OK)

    async with origins(reading) as (origin,), served(site(route), at(origin.port)) as proxy:
        got = await proxy.post(b'{"a": "x"}', Content_Type="application/json")
    assert (got.status, bodies) == (200, [b'{"a": "brx"}'])


async def test_mirrors_of_a_backend_copy_its_requests_alone() -> None:
    copied = Backend(upstream="one", mirrors=(Mirror(upstream="shadow"),))
    async with origins(answering(named(b"1")), answering(named(b"2")), answering(OK)) as (first, second, shadow):
        upstreams = at(first.port, key="one"), at(second.port, key="two"), at(shadow.port, key="shadow")
        async with served(site(split(copied, Backend(upstream="two"))), *upstreams) as proxy:
            assert sorted(await proxy.bodies(4)) == ["1", "1", "2", "2"]
            await until(lambda: len(shadow.heads) == 2)


@pytest.mark.parametrize(
    ("timeouts", "reason"),
    [
        (Timeouts(read_s=0.05), "upstream did not answer in time"),
        (Timeouts(request_s=0.05), "the request took longer than its route allows"),
    ],
)
async def test_timeouts_of_a_backend_stand_in_the_place_of_the_routes(timeouts: Timeouts, reason: str) -> None:
    async def silent(conversation: Conversation) -> None:
        await conversation.request()
        await asyncio.sleep(10)

    slow = Backend(upstream="up", timeouts=timeouts)
    route = split(slow, timeouts=Timeouts(read_s=30), retries={"attempts": 0})
    async with origins(silent) as (origin,), served(site(route), at(origin.port)) as proxy:
        got = await proxy.get()
    assert (got.status, got["x-headgate-reason"]) == (504, reason)


async def test_session_returns_to_the_backend_and_its_plugins() -> None:
    backends = [Backend(upstream=name, plugins=(marking(name)[1],)) for name in ("one", "two")]
    route = split(*backends, stickiness=Stickiness(cookie="S"))
    async with origins(answering(named(b"1")), answering(named(b"2"))) as running:
        upstreams = [at(port, key=key) for port, key in zip(ports(running), ("one", "two"), strict=True)]
        async with served(site(route), *upstreams) as proxy:
            await proxy.get()
            first = await proxy.get()
            again = [await proxy.get(Cookie=first.cookie) for _ in range(4)]
    assert {(got.body, got["x-from"], got.cookie) for got in again} == {(first.body, first["x-from"], "")}


async def test_requests_are_counted_for_the_upstream_that_they_went_to() -> None:
    plain, rich = Backend(upstream="one"), Backend(upstream="two", plugins=marking("two"))
    async with (
        origins(answering(OK)) as (origin,),
        served(site(split(plain, rich)), at(origin.port, key="one"), at(origin.port, key="two")) as proxy,
    ):
        await proxy.bodies(4)
        counted = {traffic.upstream: traffic.ok for traffic in proxy.stats.series() if traffic.ok}
    assert counted == {"one": 2, "two": 2}


async def test_bad_plugin_of_a_backend_refuses_the_route() -> None:
    bad = Backend(upstream="up", plugins=(use("cors", max_age="x"),))
    async with served(site(split(bad)), at(1)) as proxy:
        got = await proxy.get()
    assert got.status == 500
    assert "plugin cors" in got["x-headgate-reason"]


async def test_plugin_that_recognises_consumers_is_refused_on_a_backend() -> None:
    bad = Backend(upstream="up", plugins=(use("key-auth"),))
    async with served(site(split(bad)), at(1)) as proxy:
        got = await proxy.get()
    assert got.status == 500
    assert "recognises consumers" in got["x-headgate-reason"]


async def test_backends_of_one_upstream_are_told_apart_by_the_cookie() -> None:
    backends = [Backend(upstream="up", plugins=(marking(name)[1],)) for name in ("one", "two")]
    route = split(*backends, stickiness=Stickiness(cookie="S"))
    async with origins(answering(OK)) as (origin,), served(site(route), at(origin.port)) as proxy:
        for name in ("one", "two"):
            first = await proxy.get()
            again = {(await proxy.get(Cookie=first.cookie))["x-from"] for _ in range(3)}
            assert (first["x-from"], again) == (name, {name})
