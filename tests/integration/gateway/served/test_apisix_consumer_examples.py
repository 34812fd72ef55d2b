"""The examples of Apache APISIX' documentation that are about consumers, from its resources to the wire."""

from typing import Any

import pytest

from fakes.apisix import resource, route, rule
from fakes.applied import World, secret, world
from fakes.served import HOST
from unit.gateway.plugins.people import basic

LIMITED = {"name": "limit-count", "enable": True, "config": {"count": 1, "time_window": 600, "rejected_code": 429}}
GENEROUS = {"name": "limit-count", "enable": True, "config": {"count": 3, "time_window": 600, "rejected_code": 429}}
GATEWAY = {
    "apiVersion": "gateway.networking.k8s.io/v1",
    "kind": "Gateway",
    "metadata": {"name": "entrance", "namespace": "default", "uid": "uid-entrance"},
    "spec": {"gatewayClassName": "headgate"},
}


def asking(plugin: str, made: World) -> None:
    """Serve a route that asks who is there, or takes the request as the anonymous consumer's."""
    config = {"anonymous_consumer": "default_anonymous"}
    use = {"name": plugin, "enable": True, "config": config}
    made.proxy.apply(
        route(rule(hosts=[HOST], backends=[{"serviceName": "one", "servicePort": 80}], plugins=[use])), GATEWAY
    )


def of_v1alpha1(name: str, *credentials: Any, plugins: Any) -> Any:
    spec = {"gatewayRef": {"name": "entrance"}, "plugins": plugins}
    return resource("Consumer", name, spec | ({"credentials": list(credentials)} if credentials else {}), "v1alpha1")


ANONYMOUS = [
    resource("ApisixConsumer", "anonymous", {"plugins": [LIMITED]}),
    of_v1alpha1("anonymous", plugins=[{"name": "limit-count", "config": LIMITED["config"]}]),
]


@pytest.mark.parametrize("plugin", ["key-auth", "basic-auth", "jwt-auth", "hmac-auth"])
@pytest.mark.parametrize("anonymous", ANONYMOUS, ids=["ApisixConsumer", "Consumer"])
async def test_rate_limit_with_anonymous_consumer(plugin: str, anonymous: Any) -> None:
    async with world("one") as made:
        asking(plugin, made)
        assert await made.proxy.status() == 401
        made.proxy.apply(anonymous)
        assert [await made.proxy.status() for _ in range(3)] == [200, 429, 429]
        assert b"\r\nX-Consumer-Username: default_anonymous\r\n" in made.servers["one"].heads[0]


@pytest.mark.parametrize(
    ("plugin", "parameter", "values", "brought"),
    [
        ("key-auth", "keyAuth", {"key": "john-key"}, {"Apikey": "john-key"}),
        ("basic-auth", "basicAuth", {"username": "john", "password": "p"}, dict([basic("john", "p")])),
    ],
)
async def test_a_recognised_consumer_has_its_own_quota(plugin: str, parameter: str, values: Any, brought: Any) -> None:
    john = {"authParameter": {parameter: {"secretRef": {"name": "john"}}}, "plugins": [GENEROUS]}
    async with world("one") as made:
        asking(plugin, made)
        made.proxy.apply(ANONYMOUS[0], secret("john", **values), resource("ApisixConsumer", "john", john))
        assert [await made.proxy.status(**brought) for _ in range(4)] == [200, 200, 200, 429]
        assert [await made.proxy.status() for _ in range(2)] == [200, 429]
