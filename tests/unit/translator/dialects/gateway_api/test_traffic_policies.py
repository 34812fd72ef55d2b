"""XBackendTrafficPolicies: how they stand at the Gateways whose routes go to their Services."""

from typing import Any

import pytest

from fakes.translator.deltas import service
from fakes.translator.gateway_api import Cluster, gateway, gateway_class, route, to, traffic_policy

STICKY: Any = {"sessionPersistence": {"type": "Header", "idleTimeout": "5m"}}


def test_a_policy_is_accepted_at_each_gateway_whose_routes_go_to_its_service() -> None:
    policy = traffic_policy(**STICKY)
    routed = route(to("web"), parents=[{"name": "gw"}, {"name": "other"}])
    cluster = Cluster(service("web"), gateway(), gateway(name="other"), gateway(name="third"), routed, policy)
    assert {name: said["Accepted"] for name, said in cluster.ancestors(policy).items()} == {
        "gw": "True Accepted",
        "other": "True Accepted",
    }
    cluster.delete(routed)
    assert cluster.ancestors(policy) == {}


@pytest.mark.parametrize(
    ("spec", "accepted"),
    [
        ({"retryConstraint": {"budget": {"percent": 101}}}, "False Invalid"),
        ({"sessionPersistence": {"type": "Cookies"}}, "False Invalid"),
        ({"retryConstraint": {}}, "True Accepted"),
    ],
)
def test_a_policy_that_cannot_be_read_is_told(spec: Any, accepted: str) -> None:
    policy = traffic_policy(**spec)
    cluster = Cluster(service("web"), gateway(), route(to("web")), policy)
    assert cluster.ancestors(policy)["gw"]["Accepted"] == accepted


def test_a_policy_that_another_one_outranks_or_whose_service_is_missing_is_told() -> None:
    older = traffic_policy("b", creationTimestamp="2025-01-01T00:00:00Z", **STICKY)
    newer = traffic_policy("a", creationTimestamp="2026-01-01T00:00:00Z", **STICKY)
    cluster = Cluster(service("web"), gateway(), route(to("web")), older, newer)
    assert cluster.ancestors(newer)["gw"]["Accepted"] == "False Conflicted"
    assert cluster.ancestors(older)["gw"]["Accepted"] == "True Accepted"
    cluster.delete(service("web"))
    assert cluster.ancestors(older)["gw"]["Accepted"] == "False TargetNotFound"


def test_a_policy_for_services_of_routes_of_other_controllers_has_no_status() -> None:
    theirs = gateway(spec={"gatewayClassName": "theirs"})
    policy = traffic_policy(**STICKY)
    cluster = Cluster(gateway_class("theirs", "example.com/other"), service("web"), theirs, route(to("web")), policy)
    assert cluster.status(policy) is None
