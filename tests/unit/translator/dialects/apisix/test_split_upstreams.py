"""Upstreams that stand within the plugin traffic-split."""

from typing import Any

import pytest

from fakes.translator.apisix import Translated, resource, route, rule
from headgate.common.table import BackendProtocol, BalancingPolicy, Consumer, Endpoint, Upstream


def split(*choices: Any) -> dict[str, Any]:
    return {"name": "traffic-split", "enable": True, "config": {"rules": [{"weighted_upstreams": list(choices)}]}}


def translated(*choices: Any) -> Translated:
    return Translated(route(rule(plugins=[split(*choices)])))


def lifted(table: Translated) -> list[Upstream]:
    """Return the upstreams that the plugin of the route names."""
    (use,) = table.route().plugins
    rules: Any = use.config["rules"]
    return [table.upstream(choice["upstream_id"]) for choice in rules[0]["weighted_upstreams"] if len(choice) > 1]


def places(upstream: Upstream) -> list[tuple[str, int, int]]:
    return [(each.address, each.port, each.weight) for each in upstream.endpoints]


def test_nodes_become_endpoints_that_the_plugin_names() -> None:
    nodes = {"10.0.0.1:1980": 1, "Web.example.com": 2, "[2001:db8::1]:81": 3}
    (upstream,) = lifted(translated({"upstream": {"nodes": nodes, "type": "roundrobin"}, "weight": 5}, {"weight": 5}))
    assert places(upstream) == [("10.0.0.1", 1980, 1), ("2001:db8::1", 81, 3), ("web.example.com", 80, 2)]


def test_nodes_may_be_a_list_with_priorities() -> None:
    nodes = [
        {"host": "10.0.0.1", "port": 80, "weight": 1, "priority": 1},
        {"host": "10.0.0.2", "port": 80, "weight": 1, "priority": -1},
    ]
    (upstream,) = lifted(translated({"upstream": {"nodes": nodes}, "weight": 1}))
    assert upstream.endpoints == (
        Endpoint(address="10.0.0.1", port=80, cluster="a"),
        Endpoint(address="10.0.0.2", port=80, cluster="a", priority=2),
    )


def test_what_else_an_upstream_says_holds() -> None:
    written = {"nodes": {"b.example": 1}, "scheme": "https", "type": "chash", "key": "remote_addr"}
    (upstream,) = lifted(
        translated({"upstream": {**written, "pass_host": "rewrite", "upstream_host": "c.example"}, "weight": 1})
    )
    assert places(upstream) == [("b.example", 443, 1)]
    assert (upstream.protocol, upstream.host) == (BackendProtocol.HTTPS, "c.example")
    assert upstream.balancing.policy is BalancingPolicy.RING_HASH


def test_upstreams_that_say_the_same_are_one() -> None:
    one, other = (
        {"nodes": {"10.0.0.1:80": 1}, "type": "roundrobin"},
        {"type": "roundrobin", "nodes": {"10.0.0.1:80": 1}},
    )
    first, second = lifted(translated({"upstream": one, "weight": 1}, {"upstream": other, "weight": 2}))
    assert first.key == second.key


@pytest.mark.parametrize(
    ("upstream", "field"),
    [
        ({}, ".nodes"),
        ({"nodes": {}}, ".nodes"),
        ({"nodes": {"a:b": 1}}, ".nodes"),
        ({"nodes": {"a b:80": 1}}, ".nodes"),
        ({"nodes": {"a:80": -1}}, ".nodes"),
        ({"nodes": {"a:80": 1}, "scheme": "ftp"}, ".scheme"),
        ({"nodes": {"a:80": 1}, "type": "chash"}, ".key"),
        ({"nodes": {"a:80": 1}, "pass_host": "rewrite"}, ".upstream_host"),
        ([], ""),
    ],
)
def test_wrong_upstream_is_named_and_requests_are_refused(upstream: Any, field: str) -> None:
    table = translated({"upstream": upstream, "weight": 1})
    errors = table.errors()
    assert errors
    for error in errors:
        assert error.startswith(f"spec.http[0].plugins[0].config.rules[0].weighted_upstreams[0].upstream{field}")
    assert table.route().plugins == ()


def test_upstreams_of_shared_and_global_plugins_are_there_too() -> None:
    choice = split({"upstream": {"nodes": {"10.0.0.1:80": 1}}, "weight": 1})
    shared = resource("ApisixPluginConfig", "shared", {"plugins": [choice]})
    table = Translated(route(rule(plugin_config_name="shared")), shared)
    assert places(lifted(table)[0]) == [("10.0.0.1", 80, 1)]
    everywhere = resource("ApisixGlobalRule", "all", {"plugins": [choice]})
    assert places(lifted(Translated(route(rule()), everywhere))[0]) == [("10.0.0.1", 80, 1)]


def test_upstreams_of_a_consumers_plugin_are_there_too() -> None:
    choice = split({"upstream": {"nodes": {"10.0.0.1:80": 1}}, "weight": 1})
    parameter = {"keyAuth": {"value": {"key": "k"}}}
    consumer = resource("ApisixConsumer", "jack", {"authParameter": parameter, "plugins": [choice]})
    table = Translated(route(rule()), consumer)
    (entry,) = (one for one in table.offline.entries if isinstance(one, Consumer))
    rules: Any = entry.plugins[0].config["rules"]
    assert places(table.upstream(rules[0]["weighted_upstreams"][0]["upstream_id"])) == [("10.0.0.1", 80, 1)]
