"""Consumers of v1alpha1, from manifests to the wire."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from fakes.gateway.served import HOST
from fakes.translator.apisix import resource, route, rule
from fakes.translator.applied import World, secret, world


def of_gateway_api(kind: str, name: str, **spec: Any) -> Any:
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
    return {"apiVersion": "gateway.networking.k8s.io/v1", "kind": kind, "metadata": metadata, "spec": spec}


GATEWAY = of_gateway_api("Gateway", "entrance", gatewayClassName="edge")
GATEWAY_CLASS = of_gateway_api("GatewayClass", "edge", controllerName="headgate.dev/gateway-controller")


def consumer(name: str, *plugins: Any, **credential: Any) -> Any:
    first = {"type": "key-auth", "name": "first", **credential}
    spec = {"gatewayRef": {"name": "entrance"}, "credentials": [first], "plugins": list(plugins)}
    return resource("Consumer", name, spec, "v1alpha1")


@pytest.fixture
async def guarded() -> AsyncIterator[World]:
    """A proxy before a route that asks for a key."""
    asked = rule(hosts=[HOST], backends=[{"serviceName": "one", "servicePort": 80}], plugins=[{"name": "key-auth"}])
    async with world("one") as made:
        made.proxy.apply(route(asked), GATEWAY, GATEWAY_CLASS)
        yield made


async def statuses(made: World, *keys: str) -> list[int]:
    return [await made.proxy.status(Apikey=key) for key in keys]


async def test_a_consumer_is_let_in_as_it_is_made_changed_and_deleted(guarded: World) -> None:
    assert await statuses(guarded, "first", "second") == [401, 401]
    guarded.proxy.apply(consumer("jack", config={"key": "first"}))
    assert await statuses(guarded, "first", "second") == [200, 401]
    assert b"\r\nX-Consumer-Username: default_jack\r\n" in guarded.servers["one"].heads[0]
    guarded.proxy.apply(consumer("jack", config={"key": "second"}))
    assert await statuses(guarded, "first", "second") == [401, 200]
    guarded.proxy.delete(consumer("jack"))
    assert await statuses(guarded, "first", "second") == [401, 401]


async def test_a_consumer_is_let_in_by_its_secret(guarded: World) -> None:
    guarded.proxy.apply(consumer("jack", secretRef={"name": "words"}), secret("words", key="first"))
    assert await statuses(guarded, "first", "second") == [200, 401]
    guarded.proxy.apply(secret("words", key="second"))
    assert await statuses(guarded, "first", "second") == [401, 200]


async def test_a_limit_of_a_consumer_holds_for_it_alone(guarded: World) -> None:
    limit = {"name": "limit-count", "config": {"count": 2, "time_window": 600, "rejected_code": 429}}
    guarded.proxy.apply(consumer("jack", limit, config={"key": "jack"}), consumer("jill", config={"key": "jill"}))
    assert await statuses(guarded, *["jack"] * 3) == [200, 200, 429]
    assert await statuses(guarded, *["jill"] * 3) == [200, 200, 200]
