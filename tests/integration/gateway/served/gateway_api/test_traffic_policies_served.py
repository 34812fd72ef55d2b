"""XBackendTrafficPolicies from manifests to the wire: sessions of a Service, and how many requests are sent again."""

from typing import Any

import pytest

from fakes.gateway.proxied import OK, Conversation, answering
from fakes.gateway.served import named, origins
from fakes.translator.applied import World, world
from fakes.translator.deltas import endpoint_slice, service
from fakes.translator.gateway_api import gateway, gateway_class, prefix, route, to, traffic_policy

STICKY = {"sessionPersistence": {"sessionName": "kept"}}


async def two_pods(made: World, ports: list[int], name: str = "pods") -> None:
    slices = endpoint_slice(name, "127.0.0.1", port=ports[0])
    other = endpoint_slice(name, "127.0.0.1", port=ports[1])
    other["metadata"]["name"] = f"{name}-other"
    made.proxy.apply(service(name), slices, other)


async def test_clients_keep_to_a_pod_of_the_only_service_of_a_rule_until_the_policy_goes() -> None:
    async with origins(answering(named(b"a")), answering(named(b"b"))) as pods, world() as made:
        await two_pods(made, [each.port for each in pods])
        made.proxy.apply(gateway_class(), gateway(), route(to("pods")), traffic_policy("traffic", "pods", **STICKY))
        got = await made.proxy.get()
        assert got["Set-Cookie"].startswith("kept=")
        assert set(await made.proxy.bodies(6, Cookie=got.cookie)) == {got.body.decode()}
        made.proxy.delete(traffic_policy("traffic", "pods"))
        assert (await made.proxy.get())["Set-Cookie"] == ""


async def test_of_several_services_that_with_a_policy_has_sessions_and_requests_are_still_shared() -> None:
    async with origins(answering(named(b"a")), answering(named(b"b"))) as pods, world("plain") as made:
        await two_pods(made, [each.port for each in pods])
        made.proxy.apply(gateway_class(), gateway(), route(to("pods", ("plain", 2))))
        made.proxy.apply(traffic_policy("traffic", "pods", **STICKY))
        got = [await made.proxy.get() for _ in range(6)]
        kept = [each for each in got if each["Set-Cookie"]]
        assert sorted(each.body for each in got if not each["Set-Cookie"]) == [b"plain"] * 4
        assert {each.body for each in kept} == {b"a", b"b"}
        found = set(await made.proxy.bodies(6, Cookie=kept[0].cookie))
        assert found & {"a", "b"} == {kept[0].body.decode()}


async def test_what_a_rule_says_of_sessions_goes_before_a_policy() -> None:
    async with world("web") as made:
        rule = to("web", sessionPersistence={"sessionName": "own"})
        made.proxy.apply(gateway_class(), gateway(), route(rule), traffic_policy(**STICKY))
        assert (await made.proxy.get())["Set-Cookie"].startswith("own=")


async def failing(conversation: Conversation) -> None:
    """Script: answer every other request with 503."""
    while True:
        await conversation.request()
        await conversation.send(b"HTTP/1.1 503 X\r\nContent-Length: 0\r\n\r\n")
        await conversation.request()
        await conversation.send(OK)


async def test_the_oldest_policy_for_a_service_holds_and_the_others_are_told() -> None:
    newer = traffic_policy("a", creationTimestamp="2026-02-01T00:00:00Z", **STICKY)
    other: Any = {"sessionPersistence": {"sessionName": "older"}}
    older = traffic_policy("b", creationTimestamp="2026-01-01T00:00:00Z", **other)
    async with world("web") as made:
        made.proxy.apply(gateway_class(), gateway(), route(to("web")), newer, older)
        assert (await made.proxy.get())["Set-Cookie"].startswith("older=")
        assert (made.proxy.errors(newer), made.proxy.errors(older)) == (["Conflicted"], [])
        wrong = traffic_policy(
            "b", creationTimestamp="2026-01-01T00:00:00Z", retryConstraint={"budget": {"percent": 101}}
        )
        made.proxy.delete(older)
        made.proxy.apply(wrong)
        assert (await made.proxy.get())["Set-Cookie"].startswith("kept=")


async def test_a_rule_with_a_budget_is_served_and_sends_again_what_is_within_it() -> None:
    policy = traffic_policy("traffic", "failing", retryConstraint={"budget": {"percent": 0, "interval": "10s"}})
    async with world(failing=failing) as made:
        retried = to("failing", matches=[prefix("/")], retry={"codes": [503], "attempts": 2})
        made.proxy.apply(gateway_class(), gateway(), route(retried), policy)
        assert await made.proxy.status() == 200
        assert made.proxy.problems(policy) == []


async def unavailable(conversation: Conversation) -> None:
    while True:
        await conversation.request()
        await conversation.send(b"HTTP/1.1 503 X\r\nContent-Length: 0\r\n\r\n")


@pytest.mark.parametrize(
    ("constraint", "retries"),
    [
        ({"budget": {"percent": 20, "interval": "1h"}, "minRetryRate": {"count": 1, "interval": "1h"}}, 2),
        ({"budget": {"percent": 0}, "minRetryRate": {"count": 4, "interval": "1h"}}, 4),
        ({"budget": {"percent": 100}, "minRetryRate": {"count": 1}}, 8),
        ({"budget": {"percent": 0}}, 8),
    ],
)
async def test_retries_of_a_service_are_a_share_of_its_requests_or_the_least_rate(
    constraint: Any, retries: int
) -> None:
    async with world(failing=unavailable) as made:
        policy = traffic_policy("traffic", "failing", retryConstraint=constraint)
        rules = [to("failing", matches=[prefix(path)], retry={"codes": [503], "attempts": 1}) for path in ("/a", "/b")]
        made.proxy.apply(gateway_class(), gateway(), route(*rules), policy)
        for path in ("/a", "/b") * 4:
            assert await made.proxy.status(path) == 503
        assert len(made.servers["failing"].heads) == 8 + retries


@pytest.mark.parametrize("interval", ["0s", "61m", "soon"])
async def test_an_interval_that_is_none_is_refused(interval: str) -> None:
    async with world("web") as made:
        policy = traffic_policy(retryConstraint={"budget": {"interval": interval}})
        made.proxy.apply(gateway_class(), gateway(), route(to("web")), policy)
        assert made.proxy.errors(policy) == ["InvalidValue"]
