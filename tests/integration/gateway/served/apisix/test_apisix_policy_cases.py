"""What the end-to-end tests of apisix-ingress-controller say of policies for Ingresses, from manifests to the wire."""

import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from fakes.gateway.proxied import OK, Conversation, answering
from fakes.gateway.served import HOST, named, origins, served
from fakes.gateway.tls import Authority
from fakes.translator.apisix import resource
from fakes.translator.applied import Applied, World, world
from fakes.translator.deltas import endpoint_slice, ingress, service
from fakes.waiting import until

SERVICE = {"group": "", "kind": "Service", "name": "web"}
INGRESS = {"group": "networking.k8s.io", "kind": "Ingress", "name": "web"}
ERROR = b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n"
WEB = ingress("web", host=HOST)


def backend_policy(**spec: Any) -> Any:
    return resource("BackendTrafficPolicy", "web", {"targetRefs": [SERVICE], **spec}, version="v1alpha1")


def route_policy(name: str = "web", **spec: Any) -> Any:
    return resource("HTTPRoutePolicy", name, {"targetRefs": [INGRESS], **spec}, version="v1alpha1")


async def says_its_host(conversation: Conversation) -> None:
    """Script: answer each request with the Host that it came with."""
    while True:
        head, _ = await conversation.request()
        lines = (line.partition(b":") for line in head.split(b"\r\n")[1:])
        await conversation.send(named(next(value.strip() for name, _, value in lines if name.lower() == b"host")))


async def fails_its_check(conversation: Conversation) -> None:
    """Script: answer requests, and fail when asked for health."""
    while True:
        head, _ = await conversation.request()
        await conversation.send(ERROR if head.startswith(b"GET /healthz ") else named(b"sick"))


@pytest.fixture
async def pair() -> AsyncIterator[World]:
    """A proxy before two Services: `web`, which says its host, and `other`."""
    async with world("other", web=says_its_host) as made:
        made.proxy.apply(WEB)
        yield made


async def test_the_host_that_nodes_see_follows_the_policy(pair: World) -> None:
    assert await pair.proxy.bodies(1) == [HOST]
    policy = backend_policy(passHost="rewrite", upstreamHost="one.example")
    pair.proxy.apply(policy)
    assert await pair.proxy.bodies(1) == ["one.example"]
    pair.proxy.apply(backend_policy(passHost="rewrite", upstreamHost="two.example"))
    assert await pair.proxy.bodies(1) == ["two.example"]
    pair.proxy.apply(backend_policy(passHost="node"))
    assert await pair.proxy.bodies(1) == [f"127.0.0.1:{pair.port('web')}"]
    pair.proxy.delete(policy)
    assert await pair.proxy.bodies(1) == [HOST]


async def test_a_policy_that_comes_before_its_service_is_told_and_holds_once_it_is_there(pair: World) -> None:
    policy = backend_policy(passHost="rewrite", upstreamHost="one.example")
    pair.proxy.delete(service("web"))
    pair.proxy.apply(policy)
    assert pair.proxy.errors(policy) == ["TargetNotFound"]
    pair.proxy.apply(service("web"))
    assert pair.proxy.errors(policy) == []
    assert await pair.proxy.bodies(1) == ["one.example"]


async def test_the_next_policy_holds_when_the_oldest_goes(pair: World) -> None:
    first = backend_policy(passHost="rewrite", upstreamHost="one.example")
    second = backend_policy(passHost="rewrite", upstreamHost="two.example")
    second["metadata"] |= {"name": "younger", "uid": "younger"}
    pair.proxy.apply(first, second)
    assert await pair.proxy.bodies(1) == ["one.example"]
    assert pair.proxy.errors(second) == ["Conflicted"]
    pair.proxy.delete(first)
    assert await pair.proxy.bodies(1) == ["two.example"]
    assert pair.proxy.errors(second) == []


async def test_a_version_that_cannot_be_followed_leaves_the_last_good_one_in_force(pair: World) -> None:
    pair.proxy.apply(backend_policy(passHost="rewrite", upstreamHost="one.example"))
    wrong = backend_policy(passHost="rewrite")
    pair.proxy.apply(wrong)
    assert await pair.proxy.bodies(1) == ["one.example"]
    assert pair.proxy.errors(wrong) == ["Required"]


async def test_health_checks_come_and_go_with_the_policy() -> None:
    async with origins(answering(named(b"well")), fails_its_check) as servers, served() as proxy:
        applied = Applied(proxy)
        slices = [
            endpoint_slice("web", "127.0.0.1", name=f"web-{number}", port=server.port)
            for number, server in enumerate(servers)
        ]
        applied.apply(service("web"), *slices, WEB)
        assert sorted(await applied.bodies(2)) == ["sick", "well"]
        unhealthy = {"interval": "1s", "httpFailures": 1}
        policy = backend_policy(healthCheck={"active": {"httpPath": "/healthz", "unhealthy": unhealthy}})
        applied.apply(policy)
        await until(lambda: proxy.health.stats.unavailable.get("a/default/web:80/policy") == 1)
        assert await applied.bodies(4) == ["well"] * 4
        applied.delete(policy)
        assert sorted(await applied.bodies(2)) == ["sick", "well"]


async def test_an_ingress_takes_what_its_policies_let_through(pair: World) -> None:
    policy = route_policy(priority=10, vars=[["http_x_hrp_name", "==", "one"], ["arg_hrp_name", "==", "two"]])
    pair.proxy.apply(policy)
    assert await pair.proxy.status() == 404
    assert await pair.proxy.status("/?hrp_name=two", X_Hrp_Name="one") == 200
    pair.proxy.apply(route_policy(priority=10, vars=[["http_x_hrp_name", "==", "new"]]))
    assert await pair.proxy.status("/?hrp_name=two", X_Hrp_Name="one") == 404
    assert await pair.proxy.status(X_Hrp_Name="new") == 200
    pair.proxy.delete(policy)
    assert await pair.proxy.status() == 200


async def test_policies_that_disagree_hold_again_once_they_agree(pair: World) -> None:
    one = route_policy("one", priority=1, vars=[["http_x_hrp_name", "==", "one"]])
    two = route_policy("two", priority=2)
    pair.proxy.apply(one, two)
    assert await pair.proxy.status() == 200
    assert pair.proxy.errors(one) == pair.proxy.errors(two) == ["Conflicted"]
    pair.proxy.apply(route_policy("two", priority=1))
    assert await pair.proxy.status() == 404
    assert pair.proxy.errors(one) == pair.proxy.errors(two) == []


async def test_a_policy_is_told_that_its_ingress_came_and_went(pair: World) -> None:
    policy = route_policy(vars=[["http_x_hrp_name", "==", "one"]])
    pair.proxy.apply(policy)
    assert pair.proxy.errors(policy) == []
    pair.proxy.delete(WEB)
    assert pair.proxy.errors(policy) == ["TargetNotFound"]
    pair.proxy.apply(WEB)
    assert pair.proxy.errors(policy) == []
    assert await pair.proxy.status() == 404


@pytest.mark.parametrize("by", ["appProtocol", "BackendTrafficPolicy"])
async def test_a_backend_of_an_ingress_is_spoken_to_as_its_port_says(by: str, tmp_path: Path) -> None:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(*Authority().issue("web").write(tmp_path))
    async with origins(answering(OK), tls=tls) as (origin,), served() as proxy:
        applied = Applied(proxy)
        ports = [{"name": "http", "port": 80, **({"appProtocol": "https"} if by == "appProtocol" else {})}]
        applied.apply(service("web", ports=ports), endpoint_slice("web", "127.0.0.1", port=origin.port), WEB)
        applied.apply(backend_policy(**({"scheme": "https"} if by == "BackendTrafficPolicy" else {"retries": 1})))
        assert await applied.status() == 200
