"""L4RoutePolicies: what is checked of them, and which of several for a route holds."""

from typing import Any

import pytest

from fakes.translator.apisix import Translated, resource
from fakes.translator.gateway_api import gateway, gateway_class, listener, stream_route

NAMES = ("db", "web", "own")
PASSTHROUGH = {"mode": "Passthrough"}
TCP = {"group": "gateway.networking.k8s.io", "kind": "TCPRoute", "name": "db"}
BLOCK = {"name": "ip-restriction", "config": {"blacklist": ["192.0.2.0/24"]}}


ROUTES = (
    gateway_class(),
    gateway(listener("tcp", 5432, "TCP"), listener("udp", 53, "UDP"), listener("tls", 6443, "TLS", tls=PASSTHROUGH)),
    *(stream_route(kind, "web", name=name) for kind in ("TCPRoute", "UDPRoute", "TLSRoute") for name in NAMES),
)


def translated(*plugins: Any, targets: Any = (TCP,)) -> Translated:
    spec = {"targetRefs": list(targets), "plugins": list(plugins)}
    return Translated(*ROUTES, resource("L4RoutePolicy", "policy", spec, "v1alpha1"))


def test_one_with_nothing_wrong_is_accepted_and_tells_nothing() -> None:
    table = translated(BLOCK, {"name": "limit-conn", "config": {"conn": 1}})
    assert table.problems("policy") == []
    assert table.is_accepted("policy")


@pytest.mark.parametrize(
    ("target", "told"), [({"name": "gone"}, "not found"), ({"sectionName": "rule"}, "no sections")], ids=str
)
def test_a_target_that_is_not_there_is_told(target: Any, told: str) -> None:
    (problem,) = translated(BLOCK, targets=[{**TCP, **target}]).problems("policy")
    assert (problem.reason, problem.field) == ("TargetNotFound", "spec.targetRefs[0]")
    assert told in problem.message


def test_a_policy_for_a_route_of_another_controller_is_none_of_our_business() -> None:
    theirs = gateway(listener("tcp", 5432, "TCP"), spec={"gatewayClassName": "theirs"})
    others = (gateway_class("theirs", "example.com/other"), theirs, stream_route("TCPRoute", "web", name="db"))
    table = Translated(*others, policy("policy"))
    assert all(ref.name != "policy" for ref in [*table.offline.problems, *table.offline.foreign])


@pytest.mark.parametrize(
    ("plugin", "severity", "field", "told"),
    [
        ({"name": "ip-restriction", "config": {}}, "error", "config", "plugin ip-restriction: must have either"),
        ({"name": "limit-conn", "config": {"conn": 0}}, "error", "config", "plugin limit-conn: must have conn"),
        ({"name": "cors"}, "error", "name", "no such plugin for streams; there are ip-restriction"),
        ({"name": "syslog"}, "warning", "name", "not needed"),
        ({"config": {}}, "error", "name", "must be given"),
    ],
)
def test_a_plugin_that_cannot_be_followed_is_named(plugin: Any, severity: str, field: str, told: str) -> None:
    (problem,) = translated(BLOCK, plugin).problems("policy")
    assert (problem.severity, problem.field) == (severity, f"spec.plugins[1].{field}")
    assert told in problem.message
    assert "port" not in problem.message


@pytest.mark.parametrize(
    ("targets", "field"),
    [
        ((), "spec.targetRefs"),
        ((TCP, {**TCP, "kind": "HTTPRoute"}), "spec.targetRefs[1].kind"),
        (({**TCP, "group": "apps"},), "spec.targetRefs[0].group"),
        ([{**TCP, "name": f"db{number}"} for number in range(17)], "spec.targetRefs"),
    ],
)
def test_a_target_that_is_no_stream_route_is_named(targets: Any, field: str) -> None:
    assert translated(BLOCK, targets=targets).errors("policy") == [field]


def test_too_many_targets_are_counted_in_plain_words() -> None:
    problems = translated(BLOCK, targets=[{**TCP, "name": f"db{number}"} for number in range(17)]).problems("policy")
    assert "must have at most 16 elements" in [problem.message for problem in problems]


def test_mqtt_is_for_no_datagrams() -> None:
    mqtt = {"name": "mqtt-proxy", "config": {"protocol_level": 4}}
    assert translated(mqtt).errors("policy") == []
    assert translated(mqtt, targets=[{**TCP, "kind": "UDPRoute"}]).errors("policy") == ["spec.plugins[0].config"]


def policy(name: str, *targets: Any, created: str = "2026-01-01T00:00:00Z", plugin: Any = BLOCK) -> Any:
    spec = {"targetRefs": list(targets or (TCP,)), "plugins": [plugin]}
    return resource("L4RoutePolicy", name, spec, "v1alpha1", creationTimestamp=created)


def conflicts(table: Translated, name: str) -> list[str]:
    return [problem.message for problem in table.problems(name) if problem.reason == "Conflicted"]


def test_of_two_policies_for_a_target_the_older_one_has_it_and_the_other_is_told() -> None:
    table = Translated(*ROUTES, policy("a"), policy("z", created="2025-01-01T00:00:00Z"))
    assert conflicts(table, "z") == []
    assert conflicts(table, "a") == ["TCPRoute default/db has L4RoutePolicy default/z, which is older"]
    assert table.is_accepted("z")
    assert not table.is_accepted("a")


def test_of_policies_as_old_the_first_by_name_has_a_target() -> None:
    table = Translated(*ROUTES, policy("c"), policy("b"), policy("a"))
    assert conflicts(table, "a") == []
    for name in ("b", "c"):
        assert conflicts(table, name) == [
            "TCPRoute default/db has L4RoutePolicy default/a, which is as old and goes first by name"
        ]


def test_a_policy_that_conflicts_about_one_target_has_the_others() -> None:
    table = Translated(*ROUTES, policy("a"), policy("b", {**TCP, "name": "own"}, TCP))
    assert [problem.field for problem in table.problems("b") if problem.reason == "Conflicted"] == [
        "spec.targetRefs[1]"
    ]
    assert table.is_accepted("b")


@pytest.mark.parametrize(
    "other", [{**TCP, "kind": "TLSRoute"}, {**TCP, "name": "web"}, {**TCP, "sectionName": "rule"}], ids=str
)
def test_policies_for_other_targets_are_no_rivals(other: Any) -> None:
    assert conflicts(Translated(*ROUTES, policy("a"), policy("b", other)), "b") == []


def test_a_policy_that_cannot_be_followed_gives_way() -> None:
    broken = policy("a", plugin={"name": "ip-restriction", "config": {}})
    assert conflicts(Translated(*ROUTES, broken, policy("b")), "b") == []
