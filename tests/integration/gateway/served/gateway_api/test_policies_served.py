"""Policies of Apache APISIX that hold for routes of Gateway API, from manifests to the wire."""

from typing import Any

import pytest

from fakes.gateway.ports import free_port
from fakes.gateway.proxied import answering
from fakes.gateway.served import asking, named, origins, read_answer
from fakes.gateway.tls import SelfSigned
from fakes.translator.apisix import resource as apisix
from fakes.translator.applied import World, world
from fakes.translator.deltas import endpoint_slice, service
from fakes.translator.gateway_api import gateway, gateway_class, grpc_route, listener, prefix, route, stream_route, to

HEADER = ["http_x_hrp_name", "==", "one"]
ROUTE = {"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": "route"}


def policy(name: str = "policy", *targets: Any, **spec: Any) -> Any:
    refs = [{**ROUTE, **target} for target in targets] or [ROUTE]
    return apisix("HTTPRoutePolicy", name, {"targetRefs": refs, **spec}, "v1alpha1")


def served(made: World, *objects: Any) -> None:
    rules = to("one", name="a", matches=[prefix("/a")]), to("two", matches=[prefix("/b")])
    written = route(*rules, creationTimestamp="2026-01-01T00:00:00Z")
    made.proxy.apply(gateway_class(), gateway(), written, *objects)


async def statuses(made: World, **headers: str) -> tuple[int, int]:
    return await made.proxy.status("/a", **headers), await made.proxy.status("/b", **headers)


# HTTPRoutePolicy


async def test_requests_of_all_rules_have_to_satisfy_the_vars_until_the_policy_goes() -> None:
    async with world("one", "two") as made:
        served(made, policy(vars=[HEADER]))
        assert await statuses(made) == (404, 404)
        assert await statuses(made, X_HRP_Name="one") == (200, 200)
        assert made.proxy.problems(policy()) == []
        made.proxy.delete(policy())
        assert await statuses(made) == (200, 200)


async def test_a_section_is_a_rule_by_its_name() -> None:
    async with world("one", "two") as made:
        served(made, policy("policy", {"sectionName": "a"}, vars=[HEADER]))
        assert await statuses(made) == (404, 200)
        assert await statuses(made, X_HRP_Name="one") == (200, 200)
        missing = policy("policy", {"sectionName": "c"}, vars=[HEADER])
        made.proxy.apply(missing)
        assert await statuses(made) == (200, 200)
        assert made.proxy.errors(missing) == ["TargetNotFound"]
        assert "the names of its rules are: a" in made.proxy.messages(missing)


async def test_conditions_of_several_policies_hold_together_if_they_agree_about_the_priority() -> None:
    other = policy("other", {"sectionName": "a"}, vars=[["arg_x", "==", "1"]])
    async with world("one", "two") as made:
        served(made, policy(vars=[HEADER]), other)
        assert await made.proxy.status("/a", X_HRP_Name="one") == 404
        assert await made.proxy.status("/a?x=1", X_HRP_Name="one") == 200
        assert await statuses(made, X_HRP_Name="one") == (404, 200)


async def test_of_policies_that_disagree_about_a_rule_none_holds_there() -> None:
    other = policy("other", {"sectionName": "a"}, priority=2)
    async with world("one", "two") as made:
        served(made, policy(vars=[HEADER]), other)
        assert await statuses(made) == (200, 404)
        assert made.proxy.errors(policy()) == made.proxy.errors(other) == ["Conflicted"]


async def test_a_higher_priority_goes_before_the_older_route_for_the_same_path() -> None:
    async with world("one", "two") as made:
        older = route(to("two", matches=[prefix("/a")]), name="older", creationTimestamp="2020-01-01T00:00:00Z")
        served(made, older)
        assert (await made.proxy.get("/a")).body == b"two"
        made.proxy.apply(policy(priority=5, vars=[HEADER]))
        assert (await made.proxy.get("/a", X_HRP_Name="one")).body == b"one"
        assert (await made.proxy.get("/a")).body == b"two"


async def test_while_a_policy_cannot_be_read_the_requests_are_refused() -> None:
    wrong = policy("policy", {"sectionName": "a"}, vars=[["arg_a", "like", "1"]])
    async with world("one", "two") as made:
        served(made, wrong)
        assert await statuses(made) == (503, 200)
        assert "HTTPRoutePolicy default/policy cannot be followed" in made.proxy.messages(route())
        made.proxy.apply(policy("policy", {"sectionName": "a"}))
        assert await statuses(made) == (200, 200)


@pytest.mark.parametrize("kind", ["GRPCRoute", "Gateway", "TCPRoute"])
async def test_objects_of_other_kinds_cannot_be_targets(kind: str) -> None:
    async with world("one", "two") as made:
        wrong = policy("policy", {"kind": kind}, vars=[HEADER])
        served(made, wrong, grpc_route(to("one"), name="route", creationTimestamp="2026-02-01T00:00:00Z"))
        assert await statuses(made) == (200, 200)
        assert made.proxy.errors(wrong) == ["UnsupportedTarget"]


# L4RoutePolicy


def l4(name: str = "l4", *plugins: Any, kind: str = "TCPRoute", **metadata: Any) -> Any:
    target = {"group": ROUTE["group"], "kind": kind, "name": "stream"}
    return apisix("L4RoutePolicy", name, {"targetRefs": [target], "plugins": list(plugins)}, "v1alpha1", **metadata)


def restricted(**lists: Any) -> Any:
    return {"name": "ip-restriction", "config": lists}


async def is_let_in(made: World, port: int) -> bool:
    client = await made.proxy.proxy.connect(port=port)
    try:
        await client.send(asking())
        return (await read_answer(client)).status == 200
    except (ConnectionError, EOFError):
        return False


async def test_plugins_of_the_oldest_policy_hold_for_the_connections_of_a_tcp_route() -> None:
    port = free_port()
    async with world("one") as made:
        made.proxy.apply(gateway_class(), gateway(listener("tcp", port, "TCP")), stream_route("TCPRoute", "one"))
        assert await is_let_in(made, port)
        blocks = l4("l4", restricted(blacklist=["127.0.0.0/8"]), creationTimestamp="2026-01-02T00:00:00Z")
        made.proxy.apply(blocks)
        assert not await is_let_in(made, port)
        older = l4("older", restricted(whitelist=["127.0.0.0/8"]), creationTimestamp="2026-01-01T00:00:00Z")
        made.proxy.apply(older)
        assert await is_let_in(made, port)
        assert (made.proxy.errors(blocks), made.proxy.errors(older)) == (["Conflicted"], [])
        made.proxy.delete(older)
        assert not await is_let_in(made, port)
        made.proxy.delete(blocks)
        assert await is_let_in(made, port)


async def test_connections_are_refused_while_no_policy_for_a_route_can_be_followed() -> None:
    port = free_port()
    async with world("one") as made:
        written = stream_route("TCPRoute", "one")
        made.proxy.apply(gateway_class(), gateway(listener("tcp", port, "TCP")), written, l4("l4", {"name": "cors"}))
        assert not await is_let_in(made, port)
        assert "L4RoutePolicy default/l4 cannot be followed" in made.proxy.messages(written)
        made.proxy.apply(l4())
        assert await is_let_in(made, port)


async def test_a_policy_for_a_route_of_another_kind_is_none_for_this_one() -> None:
    port = free_port()
    async with world("one") as made:
        made.proxy.apply(gateway_class(), gateway(listener("tcp", port, "TCP")), stream_route("TCPRoute", "one"))
        made.proxy.apply(l4("l4", restricted(blacklist=["127.0.0.0/8"]), kind="UDPRoute"))
        assert await is_let_in(made, port)


async def test_what_passes_encrypted_is_not_served_with_a_plugin_that_reads_it() -> None:
    async with world("one") as made:
        passed = gateway(listener("tls", free_port(), "TLS", tls={"mode": "Passthrough"}))
        written = stream_route("TLSRoute", "one", hostnames=["a.example.com"])
        mqtt = {"name": "mqtt-proxy", "config": {"protocol_level": 4}}
        made.proxy.apply(gateway_class(), passed, written, l4("l4", mqtt, kind="TLSRoute"))
        assert made.proxy.errors(written) == ["UnsupportedValue"]


# BackendTrafficPolicy


async def test_a_scheme_of_tls_has_connections_of_a_tcp_route_go_on_over_tls() -> None:
    issued, port = SelfSigned("web.example"), free_port()
    async with origins(answering(named(b"secure")), tls=issued.server_context()) as (secure,), world() as made:
        made.proxy.apply(service("web"), endpoint_slice("web", "127.0.0.1", port=secure.port), gateway_class())
        made.proxy.apply(gateway(listener("tcp", port, "TCP")), stream_route("TCPRoute", "web"))
        spec = {"targetRefs": [{"group": "", "kind": "Service", "name": "web"}], "scheme": "tls"}
        made.proxy.apply(apisix("BackendTrafficPolicy", "web", spec, "v1alpha1"))
        assert await is_let_in(made, port)


async def test_schemes_of_streams_say_nothing_of_requests() -> None:
    spec = {"targetRefs": [{"group": "", "kind": "Service", "name": "one"}], "scheme": "tls", "passHost": "node"}
    async with world("one", "two") as made:
        served(made, apisix("BackendTrafficPolicy", "one", spec, "v1alpha1"))
        assert await statuses(made) == (200, 200)
