"""Consumers of one Gateway from manifests to the wire: routes of other Gateways do not recognise them."""

from typing import Any

import pytest

from fakes.gateway.served import HOST
from fakes.translator.apisix import resource as apisix
from fakes.translator.apisix import route as apisix_route
from fakes.translator.apisix import rule
from fakes.translator.applied import World, world
from fakes.translator.gateway_api import (
    extension,
    gateway,
    gateway_class,
    plugins,
    prefix,
    route,
    to,
)

GROUP = "apisix.apache.org"


def consumer(name: str, gateway_name: str, key: str, **more: Any) -> Any:
    credential = {"type": "key-auth", "name": "key", "config": {"key": key}}
    spec = {"gatewayRef": {"name": gateway_name}, "credentials": [credential], **more}
    return apisix("Consumer", name, spec, "v1alpha1")


def apisix_consumer(name: str, key: str) -> Any:
    return apisix("ApisixConsumer", name, {"authParameter": {"keyAuth": {"value": {"key": key}}}})


def guarded(name: str, *parents: str, named: str = "asking") -> Any:
    rule_of = to("web", matches=[prefix(f"/{name}")], filters=[extension(named)])
    return route(rule_of, name=name, parents=[{"name": each} for each in parents])


def installed(made: World, *objects: Any) -> None:
    made.proxy.apply(gateway_class(), gateway(name="one"), gateway(name="two"), plugins("asking", ("key-auth", {})))
    made.proxy.apply(guarded("one", "one"), guarded("two", "two"), guarded("both", "one", "two"), *objects)


async def statuses(made: World, key: str, *paths: str) -> list[int]:
    return [await made.proxy.status(path, Apikey=key) for path in paths]


async def test_routes_recognise_consumers_of_their_own_gateways() -> None:
    async with world("web") as made:
        installed(made, consumer("jack", "one", "of-one"), consumer("jill", "two", "of-two"))
        assert await statuses(made, "of-one", "/one", "/two", "/both") == [200, 401, 200]
        assert await statuses(made, "of-two", "/one", "/two", "/both") == [401, 200, 200]
        made.proxy.apply(consumer("jack", "two", "of-one"))
        assert await statuses(made, "of-one", "/one", "/two", "/both") == [401, 200, 200]


async def test_consumers_of_no_gateway_are_recognised_by_all() -> None:
    async with world("web") as made:
        installed(made, apisix_consumer("jack", "key"))
        assert await statuses(made, "key", "/one", "/two", "/both") == [200, 200, 200]


async def test_routes_of_no_gateway_recognise_all() -> None:
    async with world("web") as made:
        asked = rule("rule", "/apisix", hosts=[HOST], plugins=[{"name": "key-auth", "enable": True}])
        installed(made, apisix_route(asked), consumer("jack", "one", "of-one"), consumer("jill", "two", "of-two"))
        assert await statuses(made, "of-one", "/apisix") == [200]
        assert await statuses(made, "of-two", "/apisix") == [200]


async def test_consumers_of_two_gateways_may_have_the_same_key() -> None:
    async with world("web") as made:
        installed(made, consumer("jack", "one", "same"), consumer("jill", "two", "same"))
        assert await statuses(made, "same", "/one", "/two") == [200, 200]
        names = [head.lower().split(b"x-consumer-username: ")[1].split(b"\r")[0] for head in made.servers["web"].heads]
        assert names == [b"default_jack", b"default_jill"]


async def test_an_anonymous_consumer_is_of_the_gateway_too() -> None:
    async with world("web") as made:
        anyone = apisix("Consumer", "anyone", {"gatewayRef": {"name": "one"}}, "v1alpha1")
        asking = plugins("anonymous", ("key-auth", {"anonymous_consumer": "default_anyone"}))
        installed(made, anyone, asking)
        made.proxy.apply(guarded("one", "one", named="anonymous"), guarded("two", "two", named="anonymous"))
        assert [await made.proxy.status(path) for path in ("/one", "/two")] == [200, 401]


async def test_plugins_of_a_gateways_parameters_recognise_its_consumers() -> None:
    named = {"group": GROUP, "kind": "GatewayProxy", "name": "proxy"}
    proxy = apisix("GatewayProxy", "proxy", {"plugins": [{"name": "key-auth", "enabled": True}]}, "v1alpha1")
    spec = {"infrastructure": {"parametersRef": named}}
    async with world("web") as made:
        made.proxy.apply(gateway_class(), gateway(name="one", spec=spec), gateway(name="two", spec=spec), proxy)
        for name in ("one", "two"):
            rule_of = to("web", matches=[prefix(f"/{name}")])
            made.proxy.apply(route(rule_of, name=name, parents=[{"name": name}]))
        made.proxy.apply(consumer("jack", "one", "of-one"))
        assert await statuses(made, "of-one", "/one", "/two") == [200, 401]


@pytest.mark.parametrize("plugin", ["multi-auth", "basic-auth"])
async def test_other_plugins_hold_to_the_gateway_as_well(plugin: str) -> None:
    config: Any = {"auth_plugins": [{"key-auth": {}}, {"basic-auth": {}}]} if plugin == "multi-auth" else {}
    credential = {"type": "basic-auth", "name": "b", "config": {"username": "jack", "password": "secret"}}
    spec = {"gatewayRef": {"name": "one"}, "credentials": [credential]}
    async with world("web") as made:
        installed(made, plugins("asking", (plugin, config)), apisix("Consumer", "jack", spec, "v1alpha1"))
        basic = "Basic amFjazpzZWNyZXQ="
        got = [await made.proxy.status(path, Authorization=basic) for path in ("/one", "/two")]
        assert got == [200, 401]
