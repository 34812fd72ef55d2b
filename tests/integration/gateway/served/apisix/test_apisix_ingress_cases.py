"""What the end-to-end tests of apisix-ingress-controller say of Ingresses, from manifests to the wire."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from fakes.gateway.served import HOST
from fakes.peers.name_server import NameServer
from fakes.translator.applied import World, world
from fakes.translator.deltas import endpoint_slice, ingress, ingress_class, service
from fakes.waiting import until
from headgate.gateway.health.resolve import SystemDns


@pytest.fixture
async def pair() -> AsyncIterator[World]:
    """A proxy before two Services, `one` and `two`."""
    async with world("one", "two") as made:
        yield made


def web(name: str = "one", **fields: Any) -> Any:
    return ingress("web", host=HOST, service=name, **fields)


async def test_an_ingress_follows_the_endpoints_of_its_service(pair: World) -> None:
    pair.proxy.apply(web())
    assert await pair.proxy.bodies(1) == ["one"]
    pair.proxy.apply(endpoint_slice("one"))
    assert await pair.proxy.status() == 503
    pair.proxy.apply(endpoint_slice("one", "127.0.0.1", port=pair.port("two")))
    assert await pair.proxy.bodies(1) == ["two"]


async def test_a_port_may_be_named(pair: World) -> None:
    pair.proxy.apply(web(port="http"))
    assert await pair.proxy.bodies(1) == ["one"]


async def test_an_external_name_is_asked() -> None:
    async with NameServer({}) as names, world("one", query=SystemDns(names.resolver())) as made:
        there = service("there", port=made.port("one"), type="ExternalName", externalName="localhost")
        del there["spec"]["ports"][0]["targetPort"]
        made.proxy.apply(there, web("there", port=made.port("one")))
        await until(lambda: bool(made.proxy.addresses("a/default/there:" + str(made.port("one")))))
        assert await made.proxy.bodies(1) == ["one"]


@pytest.mark.parametrize("way", ["class_name", "annotation"])
async def test_an_ingress_is_served_while_its_class_is_ours(pair: World, way: str) -> None:
    def of(name: str) -> Any:
        if way == "class_name":
            return web(class_name=name)
        return web(annotations={"kubernetes.io/ingress.class": name})

    pair.proxy.apply(ingress_class("ours"), ingress_class("theirs", "example.com/other"), of("ours"))
    assert await pair.proxy.status() == 200
    pair.proxy.apply(of("theirs"))
    assert await pair.proxy.status() == 404
    pair.proxy.apply(of("ours"))
    assert await pair.proxy.status() == 200


async def test_a_service_may_go_before_its_ingress(pair: World) -> None:
    pair.proxy.apply(web())
    pair.proxy.delete(service("one"), endpoint_slice("one"))
    got = await pair.proxy.get()
    assert (got.status, got["x-headgate-reason"]) == (503, "Service default/one not found")
    pair.proxy.delete(web())
    assert await pair.proxy.status() == 404


@pytest.mark.parametrize(
    ("path", "kind", "taken", "left"),
    [
        ("/ip", "Exact", ["/ip"], ["/ip/aha", "/i"]),
        ("/status", "Prefix", ["/status", "/status/500"], ["/statusaaa"]),
    ],
)
async def test_paths_are_exact_or_prefixes(pair: World, path: str, kind: str, taken: Any, left: Any) -> None:
    made = web(path=path)
    made["spec"]["rules"][0]["http"]["paths"][0]["pathType"] = kind
    pair.proxy.apply(made)
    assert {await pair.proxy.status(each) for each in taken} == {200}
    assert {await pair.proxy.status(each) for each in left} == {404}
