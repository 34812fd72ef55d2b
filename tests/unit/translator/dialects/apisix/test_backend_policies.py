"""BackendTrafficPolicy: what it says of Services as backends of Ingresses, and what its author is told."""

from typing import Any

import pytest

from fakes.translator.apisix import Translated, resource, route, rule
from fakes.translator.deltas import endpoint_slice, ingress, service
from headgate.common.problems import Severity
from headgate.common.table import BackendProtocol, BalancingPolicy, Route, Upstream

WEB = {"group": "", "kind": "Service", "name": "web"}
SHAPED = "a/default/web:80/policy"
PORTS = [{"name": "http", "port": 80}, {"name": "admin", "port": 81}]
OLDER, NEWER = "2020-01-01T00:00:00Z", "2021-01-01T00:00:00Z"


def policy(name: str = "policy", *targets: Any, metadata: Any = (), **spec: Any) -> Any:
    refs = [{**WEB, **target} for target in targets] or [WEB]
    return resource("BackendTrafficPolicy", name, {"targetRefs": refs, **spec}, version="v1alpha1", **dict(metadata))


def created(at: str) -> Any:
    return {"creationTimestamp": at}


def served(*manifests: Any, port: Any = 80) -> Translated:
    return Translated(ingress("web", host="a.com", port=port), endpoint_slice("web", "10.0.0.1"), *manifests)


def upstream(*manifests: Any) -> Upstream:
    return served(*manifests).upstream(SHAPED)


def found(table: Translated) -> Route:
    host = table.host("a.com")
    assert host is not None
    return host.routes[0]


def told(table: Translated, name: str = "policy") -> list[tuple[str, str]]:
    return [(one.reason, one.field) for one in table.problems(name)]


def test_the_host_that_nodes_see_is_rewritten() -> None:
    assert upstream(policy(passHost="rewrite", upstreamHost="b.com")).host == "b.com"
    assert upstream(policy(passHost="node")).host == ""


def test_an_ingress_without_a_policy_is_as_ever() -> None:
    table = served(policy("policy", {"name": "other"}, passHost="node"))
    assert [one.upstream for one in found(table).backends] == ["a/default/web:80"]


def test_the_policy_holds_for_every_ingress_with_the_service_and_names_its_upstream() -> None:
    table = served(policy(passHost="node"), ingress("other", host="b.com"))
    hosts = [table.host(host) for host in ("a.com", "b.com")]
    assert [one.routes[0].backends[0].upstream for one in hosts if one] == [SHAPED, SHAPED]


def test_backends_of_an_apisix_route_are_left_to_an_apisix_upstream() -> None:
    """As in Apache APISIX, where only Ingresses and routes of Gateway API heed it."""
    shaping = resource("ApisixUpstream", "web", {"passHost": "node"})
    table = served(policy(passHost="rewrite", upstreamHost="b.com"), route(rule()), shaping)
    assert table.upstream("a/default/web:80/apisix").host == ""
    assert table.upstream(SHAPED).host == "b.com"


def test_requests_are_balanced_as_it_says() -> None:
    balancing = upstream(policy(loadbalancer={"type": "chash", "hashOn": "header", "key": "x-user"})).balancing
    assert balancing.policy is BalancingPolicy.RING_HASH
    assert [(key.source, key.name) for key in balancing.hash] == [("header", "x-user")]


@pytest.mark.parametrize(
    ("scheme", "protocol"),
    [
        ("http", BackendProtocol.HTTP),
        ("https", BackendProtocol.HTTPS),
        ("grpc", BackendProtocol.H2C),
        ("grpcs", BackendProtocol.H2),
    ],
)
def test_the_scheme_goes_before_the_app_protocol_of_the_port(scheme: str, protocol: BackendProtocol) -> None:
    ports = [{"name": "http", "port": 80, "appProtocol": "https"}]
    assert upstream(policy(scheme=scheme), service(ports=ports)).protocol is protocol


def test_without_a_scheme_the_app_protocol_of_the_port_holds() -> None:
    ports = [{"name": "http", "port": 80, "appProtocol": "https"}]
    assert upstream(policy(retries=1), service(ports=ports)).protocol is BackendProtocol.HTTPS


def test_active_and_passive_health_checks_are_made() -> None:
    active = {
        "type": "http",
        "httpPath": "/healthz",
        "healthy": {"interval": "2s", "successes": 1},
        "unhealthy": {"interval": "1s", "httpFailures": 2, "timeouts": 3},
    }
    passive = {"unhealthy": {"httpCodes": [502], "httpFailures": 3, "timeouts": 2}}
    checked = upstream(policy(healthCheck={"active": active, "passive": passive}))
    assert checked.active_check is not None
    assert (checked.active_check.path, checked.active_check.interval_s) == ("/healthz", 2.0)
    assert (checked.active_check.healthy_after, checked.active_check.unhealthy_after) == (1, 2)
    assert checked.ejection is not None
    assert (checked.ejection.statuses, checked.ejection.consecutive_errors) == ((502,), 3)


def test_an_active_health_check_alone_ejects_nothing() -> None:
    checked = upstream(policy(healthCheck={"active": {"type": "tcp"}}))
    assert checked.active_check is not None
    assert checked.ejection is None


def test_timeouts_and_retries_are_those_of_the_routes() -> None:
    got = found(served(policy(timeout={"connect": "5s"}, retries=2)))
    assert (got.timeouts.connect_s, got.timeouts.send_s, got.timeouts.read_s) == (5.0, 60.0, 60.0)
    assert got.retries.attempts == 2


def test_annotations_of_the_ingress_go_before_the_policy() -> None:
    annotations = {
        "k8s.apisix.apache.org/upstream-read-timeout": "7s",
        "k8s.apisix.apache.org/upstream-retries": "1",
        "k8s.apisix.apache.org/upstream-scheme": "grpc",
    }
    table = Translated(
        ingress("web", host="a.com", annotations=annotations),
        policy(scheme="https", timeout={"read": "5s"}, retries=3, passHost="node"),
        endpoint_slice("web", "10.0.0.1"),
    )
    got = found(table)
    assert (got.timeouts.read_s, got.retries.attempts) == (7.0, 1)
    shaped = table.upstream("a/default/web:80/as=h2c/policy")
    assert (shaped.protocol, shaped.host) == (BackendProtocol.H2C, "")


def test_annotations_of_the_service_go_before_the_policy() -> None:
    annotated = service()
    annotated["metadata"]["annotations"] = {"headgate.dev/backend-protocol": "https"}
    shaped = upstream(policy(scheme="grpc", passHost="node"), annotated)
    assert (shaped.protocol, shaped.host) == (BackendProtocol.HTTPS, "")


@pytest.mark.parametrize("port", [80, "http"])
def test_a_policy_for_a_port_holds_for_that_port_only(port: Any) -> None:
    for_port = policy("policy", {"sectionName": "http"}, passHost="node")
    ports = service(ports=PORTS)
    assert served(for_port, ports, port=port).upstream(f"a/default/web:{port}/policy").host == ""
    other = found(served(for_port, ports, port=81))
    assert [one.upstream for one in other.backends] == ["a/default/web:81"]


def test_a_policy_for_a_port_goes_before_an_older_one_for_the_whole_service() -> None:
    whole = policy("whole", metadata=created(OLDER), passHost="rewrite", upstreamHost="b.com")
    for_port = policy("port", {"sectionName": "http"}, metadata=created(NEWER), passHost="node")
    table = served(whole, for_port, service(ports=PORTS), ingress("admin", host="b.com", port=81))
    assert table.upstream(SHAPED).host == ""
    assert table.upstream("a/default/web:81/policy").host == "b.com"
    assert told(table, "whole") == told(table, "port") == []


def test_of_two_policies_for_a_service_the_older_one_holds_and_the_other_is_told() -> None:
    older = policy("z", metadata=created(OLDER), passHost="rewrite", upstreamHost="z.com")
    newer = policy("a", metadata=created(NEWER), passHost="rewrite", upstreamHost="a.com")
    table = served(newer, older)
    assert table.upstream(SHAPED).host == "z.com"
    assert told(table, "z") == []
    (problem,) = table.problems("a")
    assert (problem.reason, problem.field) == ("Conflicted", "spec.targetRefs[0]")
    assert "BackendTrafficPolicy default/z, which is older" in problem.message
    assert not table.is_accepted("a")


def test_of_two_policies_as_old_the_first_by_name_holds() -> None:
    table = served(policy("b", passHost="node"), policy("a", passHost="rewrite", upstreamHost="a.com"))
    assert table.upstream(SHAPED).host == "a.com"
    assert "is as old and goes first by name" in table.problems("b")[0].message


def test_a_policy_that_conflicts_about_one_target_holds_for_the_others() -> None:
    older = policy("older", metadata=created(OLDER))
    newer = policy("newer", {}, {"name": "api"}, metadata=created(NEWER), passHost="node")
    table = served(older, newer, service("api"), ingress("api", host="b.com", service="api"))
    assert table.upstream("a/default/api:80/policy").host == ""
    assert told(table, "newer") == [("Conflicted", "spec.targetRefs[0]")]
    assert table.is_accepted("newer")


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ({"name": "gone"}, "Service default/gone not found"),
        ({"sectionName": "gone"}, "Service default/web has no port named 'gone'; it has 80 (http)"),
    ],
)
def test_a_target_that_is_not_there_is_told(target: Any, message: str) -> None:
    table = served(policy("policy", target))
    (problem,) = table.problems("policy")
    assert (problem.reason, problem.field, problem.message) == ("TargetNotFound", "spec.targetRefs[0]", message)
    assert not table.is_accepted("policy")


def test_a_policy_that_cannot_be_followed_gives_way_to_the_next() -> None:
    wrong = policy("wrong", metadata=created(OLDER), loadbalancer={"type": "chash"})
    right = policy("right", metadata=created(NEWER), passHost="node")
    table = served(wrong, right)
    assert table.upstream(SHAPED).host == ""
    assert told(table, "right") == []
    assert told(table, "wrong") == [("InvalidValue", "spec.loadbalancer.key")]


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"targetRefs": []}, "spec.targetRefs"),
        ({"targetRefs": [WEB] * 17}, "spec.targetRefs"),
        ({"targetRefs": [{**WEB, "kind": "Ingress"}]}, "spec.targetRefs[0].kind"),
        ({"targetRefs": [{"kind": "Service", "name": "web"}]}, "spec.targetRefs[0].group"),
        ({"loadbalancer": {"type": "roundrobin", "key": "uri"}}, "spec.loadbalancer.key"),
        ({"loadbalancer": {"hashOn": "vars"}}, "spec.loadbalancer.type"),
        ({"scheme": "ws"}, "spec.scheme"),
        ({"passHost": "rewrite"}, "spec.upstreamHost"),
        ({"upstreamHost": "a b"}, "spec.upstreamHost"),
        ({"healthCheck": {"passive": {}}}, "spec.healthCheck.active"),
        ({"healthCheck": {"active": {"unhealthy": {"timeouts": 255}}}}, "spec.healthCheck.active.unhealthy.timeouts"),
        ({"timeout": {"read": "soon"}}, "spec.timeout.read"),
    ],
)
def test_what_is_wrong_is_told_at_its_field(spec: Any, field: str) -> None:
    manifest = policy()
    manifest["spec"] |= spec
    table = served(manifest)
    errors = [one for one in table.problems("policy") if one.severity is Severity.ERROR]
    assert [one.field for one in errors] == [field]
    assert not table.is_accepted("policy")


def test_services_of_another_namespace_are_meant_by_its_own_policies_alone() -> None:
    annotations = {"k8s.apisix.apache.org/svc-namespace": "shop"}
    table = Translated(
        ingress("web", host="a.com", annotations=annotations),
        service(namespace="shop"),
        policy(passHost="node"),
        policy("shop", metadata={"namespace": "shop"}, passHost="rewrite", upstreamHost="b.com"),
    )
    assert table.upstream("a/shop/web:80/policy").host == "b.com"


def test_a_policy_that_cannot_be_followed_holds_for_none_of_its_targets() -> None:
    wrong = policy("policy", {}, {"name": "api", "kind": "Pod"}, passHost="node")
    table = served(wrong, service("api"))
    assert found(table).backends[0].upstream == "a/default/web:80"
    assert not table.is_accepted("policy")
