"""BackendTLSPolicies: which holds for a Service, how each stands, and what is wrong with one."""

from typing import Any

import pytest

from fakes.gateway.tls import Authority
from fakes.translator.deltas import endpoint_slice, service, tls_secret
from fakes.translator.gateway_api import (
    Cluster,
    by_config_maps,
    gateway,
    gateway_class,
    grant,
    grpc_route,
    resource,
    route,
    tls_policy,
    to,
)
from headgate.common.snapshot import decode_chunk
from headgate.common.table import Upstream

WEB = (service("web"), endpoint_slice("web", "10.0.0.1"))
PEM = Authority().pem.decode()
GOOD = {"Accepted": "True Accepted", "ResolvedRefs": "True ResolvedRefs"}


def config_map(name: str = "ca", **data: str) -> Any:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}, "data": data}


CA = config_map(**{"ca.crt": PEM})


def upstreams(cluster: Cluster) -> list[Upstream]:
    chunks = (chunk for chunk in cluster.translation.assembly.image.chunks() if chunk.kind == "upstreams")
    entries = [entry for chunk in chunks for entry in decode_chunk(chunk.kind, chunk.content)]
    return [entry for entry in entries if isinstance(entry, Upstream)]


def stands(cluster: Cluster, policy: Any) -> dict[str, str]:
    """Return Accepted and ResolvedRefs at the Gateway `gw`."""
    found = cluster.ancestors(policy)["gw"]
    return {name: found[name] for name in GOOD}


def test_a_policy_says_how_tls_is_spoken_and_stands_at_the_gateways_of_its_routes() -> None:
    names = [{"type": "Hostname", "hostname": "a.example"}, {"type": "URI", "uri": "spiffe://a/b"}]
    policy = tls_policy(**by_config_maps("ca"), subjectAltNames=names)
    others = (gateway_class("theirs", "example.com/other"), gateway(name="other", spec={"gatewayClassName": "theirs"}))
    written = route(to("web"), parents=[{"name": "gw"}, {"name": "other"}])
    cluster = Cluster(gateway(), *others, written, policy, CA, *WEB)
    (only,) = upstreams(cluster)
    assert only.protocol == "https"
    assert only.tls is not None
    assert (only.tls.verify, only.tls.server_name, only.tls.ca_pem.strip()) == (True, "web.example", PEM.strip())
    assert only.tls.subject_names == ("a.example", "spiffe://a/b")
    assert list(cluster.ancestors(policy)) == ["gw"]
    assert stands(cluster, policy) == GOOD


def test_entries_are_of_the_controller_of_gateway_classes() -> None:
    policy = tls_policy()
    status = Cluster(gateway(), route(to("web")), policy, *WEB).status(policy)
    assert status is not None
    (entry,) = status["ancestors"]
    assert entry["controllerName"] == "headgate.dev/gateway-controller"
    ref = {"group": "gateway.networking.k8s.io", "kind": "Gateway", "namespace": "default", "name": "gw"}
    assert entry["ancestorRef"] == ref


def test_a_policy_for_a_service_that_no_route_of_ours_goes_to_gets_no_status() -> None:
    policy = tls_policy()
    assert Cluster(gateway(), policy, *WEB).status(policy) is None


def test_services_of_calls_and_of_mirrors_are_spoken_to_by_it_too() -> None:
    calls = Cluster(gateway(), grpc_route(to("web")), tls_policy(), *WEB)
    assert [one.protocol for one in upstreams(calls)] == ["h2"]
    mirror = {"type": "RequestMirror", "requestMirror": {"backendRef": {"name": "web", "port": 80}}}
    written = route(to("main", filters=[mirror]))
    cluster = Cluster(gateway(), written, tls_policy(), service("main"), *WEB)
    assert {one.protocol for one in upstreams(cluster)} == {"http", "https"}
    assert stands(cluster, tls_policy()) == GOOD


def test_a_policy_for_a_port_goes_before_one_for_the_service_and_both_hold() -> None:
    two = service("web")
    two["spec"]["ports"].append({"name": "more", "port": 81, "targetPort": 8081, "protocol": "TCP"})
    whole, part = tls_policy("whole"), tls_policy("part", section="http", hostname="part.example")
    written = route(to({"name": "web", "port": 80}, {"name": "web", "port": 81}))
    cluster = Cluster(gateway(), written, whole, part, two, endpoint_slice("web", "10.0.0.1"))
    names = {one.key.partition(":")[2][:2]: one.tls.server_name for one in upstreams(cluster) if one.tls is not None}
    assert names == {"80": "part.example", "81": "web.example"}
    assert stands(cluster, whole) == stands(cluster, part) == GOOD


@pytest.mark.parametrize("section", ["", "http"])
def test_of_two_policies_for_the_same_the_older_holds_and_the_other_is_conflicted(section: str) -> None:
    older, newer = tls_policy("b", section=section), tls_policy("a", section=section, hostname="newer.example")
    for day, one in enumerate((older, newer), start=1):
        one["metadata"]["creationTimestamp"] = f"2024-01-0{day}T00:00:00Z"
    cluster = Cluster(gateway(), route(to("web")), newer, older, *WEB)
    assert [one.tls.server_name for one in upstreams(cluster) if one.tls is not None] == ["web.example"]
    assert stands(cluster, older) == GOOD
    assert stands(cluster, newer)["Accepted"] == "False Conflicted"
    cluster.delete(older)
    assert stands(cluster, newer) == GOOD


BAD = "False NoValidCACertificate"


@pytest.mark.parametrize(
    ("refs", "accepted", "resolved"),
    [
        (["missing"], BAD, "False InvalidCACertificateRef"),
        (["junk"], BAD, "False InvalidCACertificateRef"),
        ([{"group": "", "kind": "Secret", "name": "ca"}], BAD, "False InvalidKind"),
        (["ca", "missing"], "True Accepted", "False InvalidCACertificateRef"),
    ],
)
def test_authorities_that_cannot_be_had_are_named_and_without_any_nothing_is_sent(
    refs: Any, accepted: str, resolved: str
) -> None:
    policy = tls_policy(**by_config_maps(*refs))
    cluster = Cluster(gateway(), route(to("web")), policy, CA, config_map("junk", **{"ca.crt": "x"}), *WEB)
    assert stands(cluster, policy) == {"Accepted": accepted, "ResolvedRefs": resolved}
    (only,) = upstreams(cluster)
    assert (only.unavailable is None) is (accepted == "True Accepted")


def test_authorities_that_come_later_mend_a_policy() -> None:
    policy = tls_policy(**by_config_maps("ca"))
    cluster = Cluster(gateway(), route(to("web")), policy, *WEB)
    cluster.apply(CA)
    assert stands(cluster, policy) == GOOD
    assert upstreams(cluster)[0].unavailable is None


@pytest.mark.parametrize(
    ("validation", "field"),
    [
        ({"wellKnownCACertificates": "example.com/set"}, "spec.validation.wellKnownCACertificates"),
        ({"wellKnownCACertificates": None}, "spec.validation"),
        ({**by_config_maps("ca"), "wellKnownCACertificates": "System"}, "spec.validation.wellKnownCACertificates"),
        ({"hostname": "*.example"}, "spec.validation.hostname"),
        ({"subjectAltNames": [{"type": "URI"}]}, "spec.validation.subjectAltNames[0].uri"),
    ],
)
def test_a_policy_that_cannot_be_followed_is_invalid_and_nothing_is_sent(validation: Any, field: str) -> None:
    policy = tls_policy(**validation)
    cluster = Cluster(gateway(), route(to("web")), policy, CA, *WEB)
    assert stands(cluster, policy)["Accepted"] == "False Invalid"
    ref = next(ref for ref in cluster.translation.assembly.fragments if ref.resource == "backendtlspolicies")
    condition = cluster.translation.condition(ref)
    assert condition is not None
    assert [problem.field for problem in condition.problems] == [field]
    assert upstreams(cluster)[0].unavailable is not None


def test_a_version_that_cannot_be_followed_is_not_accepted_after_a_good_one() -> None:
    cluster = Cluster(gateway(), route(to("web")), tls_policy(), *WEB)
    bad = tls_policy(hostname="*.example")
    bad["metadata"]["generation"] = 2
    cluster.apply(bad)
    assert stands(cluster, bad)["Accepted"].startswith("False")
    (only,) = upstreams(cluster)
    assert only.unavailable is not None or (only.tls is not None and only.tls.server_name == "web.example")


def test_of_two_targets_one_that_is_not_there_costs_itself() -> None:
    targets = [{"group": "", "kind": "Service", "name": name} for name in ("missing", "web")]
    policy = tls_policy(spec={"targetRefs": targets})
    cluster = Cluster(gateway(), route(to("web")), policy, *WEB)
    assert stands(cluster, policy)["Accepted"] == "True Accepted"
    assert upstreams(cluster)[0].protocol == "https"


def test_a_target_that_is_not_there_is_said() -> None:
    policy = tls_policy(section="odd")
    cluster = Cluster(gateway(), route(to("web")), policy, *WEB)
    assert stands(cluster, policy)["Accepted"] == "False TargetNotFound"
    assert upstreams(cluster)[0].protocol == "http"


def test_a_policy_without_targets_concerns_no_one() -> None:
    broken = resource("BackendTLSPolicy", "broken", {"targetRefs": "x", "validation": 1})
    cluster = Cluster(gateway(), route(to("web")), broken, *WEB)
    assert cluster.status(broken) is None
    assert upstreams(cluster)[0].protocol == "http"


# Certificates of the gateways' own


def shows(*secret: Any) -> Any:
    return {"tls": {"backend": {"clientCertificateRef": {"name": "cert", **(secret[0] if secret else {})}}}}


def secret_of(namespace: str = "default") -> Any:
    made = tls_secret("cert", "client.example")
    made["metadata"]["namespace"] = namespace
    return made


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ({"name": "missing"}, "False InvalidClientCertificateRef"),
        ({"kind": "ConfigMap"}, "False InvalidClientCertificateRef"),
        ({"group": "example.com"}, "False InvalidClientCertificateRef"),
        ({"name": ""}, "False InvalidClientCertificateRef"),
        ({"name": "bad"}, "False InvalidClientCertificateRef"),
        ({"namespace": "far"}, "False RefNotPermitted"),
        ({}, "True ResolvedRefs"),
    ],
)
def test_a_certificate_for_services_that_cannot_be_had_is_said_of_its_gateway(written: Any, reason: str) -> None:
    made = gateway(spec=shows(written))
    cluster = Cluster(secret_of(), secret_of("far"), tls_secret("bad", problem="no key"), made)
    found = cluster.conditions(made)
    assert (found["ResolvedRefs"], found["Accepted"]) == (reason, "True Accepted")
    cluster.apply(grant("Gateway", "default", "Secret", namespace="far"))
    if written == {"namespace": "far"}:
        assert cluster.conditions(made)["ResolvedRefs"] == "True ResolvedRefs"


def test_services_are_shown_the_certificate_of_the_gateway_by_routes_whose_gateways_agree() -> None:
    made, other = gateway(spec=shows()), gateway(name="other")
    written = route(to("web"))
    cluster = Cluster(secret_of(), made, other, written, tls_policy(), *WEB)
    (only,) = upstreams(cluster)
    assert only.tls is not None
    assert only.tls.certificate_pem
    assert only.tls.private_key is not None
    cluster.apply(route(to("web"), parents=[{"name": "gw"}, {"name": "other"}]))
    (only,) = upstreams(cluster)
    assert only.tls is not None
    assert not only.tls.certificate_pem
    cluster.apply(written)
    cluster.delete(secret_of())
    (only,) = upstreams(cluster)
    assert only.tls is not None
    assert not only.tls.certificate_pem


def test_a_policy_stands_where_routes_come_later_and_goes_with_their_gateway() -> None:
    policy, written = tls_policy(), route(to("web"))
    cluster = Cluster(policy, *WEB)
    assert cluster.status(policy) is None
    cluster.apply(written, gateway())
    assert stands(cluster, policy) == GOOD
    assert upstreams(cluster)[0].protocol == "https"
    cluster.delete(policy)
    assert upstreams(cluster)[0].protocol == "http"
    cluster.apply(policy)
    assert upstreams(cluster)[0].protocol == "https"
    cluster.delete(gateway())
    assert cluster.status(policy) is None
