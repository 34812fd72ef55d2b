"""GRPCRoutes: where they are attached, how they stand, and what is wrong with one."""

from typing import Any

import pytest

from fakes.translator.deltas import applied, endpoint_slice, service
from fakes.translator.gateway_api import Cluster, call, gateway, grant, grpc_route, listener, route, to
from headgate.common.problems import Problem
from headgate.translator.offline import translate_all

WEB = (service("web"), endpoint_slice("web", "10.0.0.1"))


def test_a_route_is_attached_and_its_listener_takes_both_kinds() -> None:
    calls = grpc_route(to("web", matches=[call("a.B")]), hostnames=["calls.com"])
    cluster = Cluster(gateway(), calls, route(to("web"), hostnames=["web.com"]), *WEB)
    assert cluster.parents(calls) == [
        {"Accepted": "True Accepted", "ResolvedRefs": "True ResolvedRefs", "Programmed": "True Programmed"}
    ]
    assert cluster.attached(gateway()) == {"http": 2}
    status = cluster.status(gateway())
    assert status is not None
    assert [kind["kind"] for kind in status["listeners"][0]["supportedKinds"]] == ["HTTPRoute", "GRPCRoute"]


def test_a_listener_for_http_routes_alone_takes_no_calls() -> None:
    calls = grpc_route(to("web"))
    alone = gateway(listener(allowedRoutes={"kinds": [{"kind": "HTTPRoute"}]}))
    cluster = Cluster(alone, calls, *WEB)
    assert cluster.parents(calls)[0]["Accepted"] == "False NotAllowedByListeners"
    assert cluster.attached(alone) == {"http": 0}


@pytest.mark.parametrize(
    ("kind", "reason"), [("GRPCRoute", "True ResolvedRefs"), ("HTTPRoute", "False RefNotPermitted")]
)
def test_a_service_of_another_namespace_needs_a_grant_for_grpc_routes(kind: str, reason: str) -> None:
    far = (service("web", namespace="far"), grant(kind, "default", "Service", namespace="far"))
    calls = grpc_route(to({"name": "web", "namespace": "far", "port": 80}))
    assert Cluster(gateway(), calls, *far).parents(calls)[0]["ResolvedRefs"] == reason


def problems_of(written: Any) -> list[Problem]:
    found = translate_all(map(applied, [*WEB, gateway(spec={"gatewayClassName": "headgate"}), written])).problems
    return [problem for ref, problems in found.items() if ref.resource == "grpcroutes" for problem in problems]


@pytest.mark.parametrize(
    ("match", "field"),
    [
        ({"method": {}}, "method"),
        ({"method": {"service": "a/b"}}, "method.service"),
        ({"method": {"service": "a", "method": "b c"}}, "method.method"),
        ({"method": {"type": "RegularExpression", "method": "("}}, "method.method"),
        ({"headers": [{"type": "RegularExpression", "name": "a", "value": "("}]}, "headers[0].value"),
    ],
)
def test_a_match_that_cannot_be_followed_takes_no_calls_and_is_named(match: Any, field: str) -> None:
    (problem,) = problems_of(grpc_route(to("web", matches=[match]), to("web", matches=[call("good")])))
    assert problem.field == f"spec.rules[0].matches[0].{field}"


@pytest.mark.parametrize("kind", ["RequestRedirect", "URLRewrite", "CORS"])
def test_filters_of_http_routes_alone_are_refused(kind: str) -> None:
    (problem,) = problems_of(grpc_route(to("web", filters=[{"type": kind}])))
    assert (problem.reason, problem.field) == ("UnsupportedValue", "spec.rules[0].filters[0].type")
    assert "RequestMirror" in problem.message
