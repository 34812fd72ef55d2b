"""TraefikServices that copy requests, and those that stand in for each other, from manifests to the wire."""

from typing import Any

import pytest

from fakes.gateway.proxied import Conversation, answering
from fakes.gateway.served import named
from fakes.translator.applied import world
from fakes.translator.deltas import endpoint_slice
from fakes.translator.traefik import ANY, resource, route, rule
from fakes.waiting import until

UNAVAILABLE = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"


def to(name: str, **fields: Any) -> Any:
    return {"name": name, "port": 80, **fields}


def through(**spec: Any) -> tuple[Any, Any]:
    """A route to a TraefikService, and that service."""
    service = {"name": "chosen", "kind": "TraefikService"}
    return resource("TraefikService", "chosen", spec), route(rule(ANY, service))


class Reading:
    """A server that keeps the bodies of the requests that it gets."""

    def __init__(self, name: bytes) -> None:
        self._name = name
        self.bodies: list[bytes] = []

    async def __call__(self, conversation: Conversation) -> None:
        while True:
            self.bodies.append((await conversation.request())[1])
            await conversation.send(named(self._name))


# Mirrors


async def test_a_mirror_gets_its_share_of_the_requests() -> None:
    async with world("web", "all", "none") as made:
        mirrors = [to("all", percent=100), to("none", percent=0)]
        made.proxy.apply(*through(mirroring=to("web", mirrors=mirrors)))
        assert await made.proxy.bodies(5, "/x") == ["web"] * 5
        await until(lambda: len(made.servers["all"].heads) == 5)
        assert made.servers["all"].heads[0].startswith(b"GET /x HTTP/1.1\r\n")
        assert made.servers["none"].heads == []


@pytest.mark.parametrize(
    ("fields", "copied"), [({}, True), ({"mirrorBody": False}, False), ({"maxBodySize": 3}, False)]
)
async def test_a_body_is_copied_unless_it_is_too_long_or_not_to_be(fields: Any, copied: bool) -> None:
    shadow = Reading(b"shadow")
    async with world("web", shadow=shadow) as made:
        made.proxy.apply(*through(mirroring=to("web", mirrors=[to("shadow", percent=100)], **fields)))
        assert (await made.proxy.proxy.post(b"body")).status == 200
        assert await made.proxy.status("/after") == 200
        await until(lambda: len(shadow.bodies) == 1 + copied)
        assert (b"body" in shadow.bodies) is copied


async def test_a_mirror_that_is_missing_or_fails_costs_no_request() -> None:
    async with world("web", broken=answering(UNAVAILABLE)) as made:
        mirrors = [to("missing", percent=100), to("broken", percent=100)]
        made.proxy.apply(*through(mirroring=to("web", mirrors=mirrors)))
        assert await made.proxy.bodies(3) == ["web"] * 3


async def test_several_services_may_be_mirrored_together() -> None:
    inner = resource("TraefikService", "inner", {"weighted": {"services": [to("one"), to("two")]}})
    main = {"name": "inner", "kind": "TraefikService", "mirrors": [to("shadow", percent=100)]}
    async with world("one", "two", "shadow") as made:
        made.proxy.apply(inner, *through(mirroring=main))
        assert sorted(await made.proxy.bodies(4)) == ["one", "one", "two", "two"]
        await until(lambda: len(made.servers["shadow"].heads) == 4)


# Fallbacks


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_the_fallback_is_asked_again_after_a_status_whatever_the_method(method: str) -> None:
    fallback = Reading(b"spare")
    failover = {"service": to("main"), "fallback": to("spare"), "errors": {"status": ["500-504"]}}
    async with world(main=answering(UNAVAILABLE), spare=fallback) as made:
        made.proxy.apply(*through(failover=failover))
        assert (await made.proxy.proxy.post(b"body", method=method)).body == b"spare"
        assert fallback.bodies == [b"body"]


async def test_a_status_that_is_not_listed_is_passed_on() -> None:
    failover = {"service": to("main"), "fallback": to("spare"), "errors": {"status": ["500"]}}
    async with world("spare", main=answering(UNAVAILABLE)) as made:
        made.proxy.apply(*through(failover=failover))
        assert await made.proxy.status() == 503


async def test_the_fallback_stands_in_for_a_service_without_endpoints() -> None:
    async with world("main", "spare") as made:
        made.proxy.apply(*through(failover={"service": to("main"), "fallback": to("spare")}))
        assert await made.proxy.bodies(1) == ["main"]
        made.proxy.apply(endpoint_slice("main", []))
        assert await made.proxy.bodies(1) == ["spare"]


@pytest.mark.parametrize("written", ["50x", "599-500", "1000"])
async def test_a_status_that_is_none_is_named(written: str) -> None:
    failover = {"service": to("web"), "fallback": to("web"), "errors": {"status": [written]}}
    service, closed = through(failover=failover)
    async with world("web") as made:
        made.proxy.apply(service, closed)
        assert await made.proxy.status() == 503
        assert made.proxy.fields(service) == ["spec.failover.errors.status"]
