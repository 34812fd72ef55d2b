"""L4RoutePolicies: checked, and said to be in force nowhere, which is no mistake of theirs."""

from typing import Any

import pytest

from fakes.apisix import Translated, resource
from headgate.common.problems import Severity

TCP = {"group": "gateway.networking.k8s.io", "kind": "TCPRoute", "name": "db"}
BLOCK = {"name": "ip-restriction", "config": {"blacklist": ["192.0.2.0/24"]}}


def translated(*plugins: Any, targets: Any = (TCP,)) -> Translated:
    spec = {"targetRefs": list(targets), "plugins": list(plugins)}
    return Translated(resource("L4RoutePolicy", "policy", spec, "v1alpha1"))


def test_one_with_nothing_wrong_is_accepted_and_says_that_its_routes_are_not_served() -> None:
    table = translated(BLOCK, {"name": "limit-conn", "config": {"conn": 1}})
    (problem,) = table.problems("policy")
    assert (problem.severity, problem.reason) == (Severity.INFO, "TargetsNotServed")
    assert "TCPRoutes" in problem.message
    assert table.is_accepted("policy")


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
    (problem, _) = translated(BLOCK, plugin).problems("policy")
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
