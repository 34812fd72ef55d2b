"""Where HTTPRoutes are attached, and what their parents' entries of the status say."""

from typing import Any

import pytest

from fakes.translator.apisix import resource as apisix
from fakes.translator.deltas import ingress, service
from fakes.translator.gateway_api import (
    CONTROLLER,
    GROUP,
    Cluster,
    extension,
    gateway,
    gateway_class,
    grant,
    listener,
    plugins,
    prefix,
    route,
    to,
)
from headgate.common.snapshot import decode_chunk
from headgate.common.table import Upstream, VirtualHost

FOREIGN = {"parentRef": {"group": GROUP, "kind": "Gateway", "name": "other"}, "controllerName": "example.com/gateway"}
ATTACHED = {"Accepted": "True Accepted", "Programmed": "True Programmed", "ResolvedRefs": "True ResolvedRefs"}


def namespace(name: str, **labels: str) -> Any:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def accepted(cluster: Cluster, written: Any) -> list[str]:
    return [parent["Accepted"] for parent in cluster.parents(written)]


def test_a_route_is_accepted_by_its_gateway_which_counts_it() -> None:
    written = route(to("web"))
    cluster = Cluster(service("web"), gateway(), written)
    assert cluster.parents(written) == [ATTACHED]
    assert cluster.attached(gateway()) == {"http": 1}


def test_the_entry_names_the_parent_and_our_controller_and_leaves_others_alone() -> None:
    written = route(to("web"), parents=[{"name": "gw", "sectionName": "http", "port": 80}])
    status = Cluster(service("web"), gateway(), written).status({**written, "status": {"parents": [FOREIGN]}})
    assert status is not None
    theirs, ours = status["parents"]
    assert theirs == FOREIGN
    assert ours["controllerName"] == CONTROLLER
    named = {"group": GROUP, "kind": "Gateway", "namespace": "default", "name": "gw"}
    assert ours["parentRef"] == {**named, "sectionName": "http", "port": 80}


def test_a_route_of_others_gets_no_status() -> None:
    theirs = gateway(name="theirs", spec={"gatewayClassName": "other"})
    written = route(to("web"), parents=[{"name": "theirs"}])
    cluster = Cluster(gateway_class("other", "example.com/gateway"), theirs, written)
    assert cluster.status(written) is None


def test_of_several_parents_those_of_ours_have_an_entry() -> None:
    theirs = gateway(name="theirs", spec={"gatewayClassName": "other"})
    written = route(to("web"), parents=[{"name": "theirs"}, {"name": "gw"}, {"name": "web", "kind": "Service"}])
    cluster = Cluster(gateway_class("other", "example.com/gateway"), theirs, gateway(), service("web"), written)
    assert cluster.parents(written) == [ATTACHED]


@pytest.mark.parametrize(
    ("parent", "said"),
    [
        ({"sectionName": "http"}, "True Accepted"),
        ({"sectionName": "missing"}, "False NoMatchingParent"),
        ({"port": 80}, "True Accepted"),
        ({"port": 81}, "False NoMatchingParent"),
        ({"sectionName": "http", "port": 81}, "False NoMatchingParent"),
    ],
)
def test_a_parent_may_be_one_listener(parent: Any, said: str) -> None:
    written = route(to("web"), parents=[{"name": "gw", **parent}])
    cluster = Cluster(service("web"), gateway(), written)
    assert accepted(cluster, written) == [said]
    assert cluster.attached(gateway()) == {"http": int(said == "True Accepted")}


@pytest.mark.parametrize(
    ("allowed", "said"),
    [
        (None, "False NotAllowedByListeners"),
        ({"namespaces": {"from": "Same"}}, "False NotAllowedByListeners"),
        ({"namespaces": {"from": "All"}}, "True Accepted"),
        ({"namespaces": {"from": "None"}}, "False NotAllowedByListeners"),
        ({"namespaces": {"from": "Selector"}}, "False NotAllowedByListeners"),
        ({"namespaces": {"from": "Selector", "selector": {"matchLabels": {"team": "shop"}}}}, "True Accepted"),
        (
            {"namespaces": {"from": "Selector", "selector": {"matchLabels": {"team": "blog"}}}},
            "False NotAllowedByListeners",
        ),
        (
            {
                "namespaces": {
                    "from": "Selector",
                    "selector": {"matchExpressions": [{"key": "team", "operator": "In", "values": ["shop", "x"]}]},
                }
            },
            "True Accepted",
        ),
        (
            {
                "namespaces": {
                    "from": "Selector",
                    "selector": {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]},
                }
            },
            "False NotAllowedByListeners",
        ),
        ({"namespaces": {"from": "All"}, "kinds": [{"kind": "GRPCRoute"}]}, "False NotAllowedByListeners"),
    ],
)
def test_a_listener_says_whose_routes_it_takes(allowed: Any, said: str) -> None:
    written = route(to("web"), parents=[{"name": "gw", "namespace": "infra"}], namespace="shop")
    shared = gateway(listener(**({"allowedRoutes": allowed} if allowed else {})), namespace="infra")
    cluster = Cluster(namespace("shop", team="shop"), service("web", namespace="shop"), shared, written)
    assert accepted(cluster, written) == [said]


@pytest.mark.parametrize("known", [[], [namespace("shop")]])
def test_the_name_of_a_namespace_is_one_of_its_labels(known: Any) -> None:
    allowed = {"namespaces": {"from": "Selector", "selector": {"matchLabels": {"kubernetes.io/metadata.name": "shop"}}}}
    shared = gateway(listener(allowedRoutes=allowed), namespace="infra")
    parents = [{"name": "gw", "namespace": "infra"}]
    shop, blog = (route(to("web"), name=team, parents=parents, namespace=team) for team in ("shop", "blog"))
    cluster = Cluster(*known, shared, shop, blog)
    assert accepted(cluster, shop) == ["True Accepted"]
    assert accepted(cluster, blog) == ["False NotAllowedByListeners"]


def test_labels_of_a_namespace_that_change_let_its_routes_in() -> None:
    allowed = {"namespaces": {"from": "Selector", "selector": {"matchLabels": {"team": "shop"}}}}
    shared = gateway(listener(allowedRoutes=allowed), namespace="infra")
    written = route(to("web"), parents=[{"name": "gw", "namespace": "infra"}], namespace="shop")
    cluster = Cluster(namespace("shop"), service("web", namespace="shop"), shared, written)
    cluster.apply(namespace("shop", team="shop"))
    assert accepted(cluster, written) == ["True Accepted"]
    assert cluster.attached(shared) == {"http": 1}


def test_a_route_without_a_hostname_of_the_listener_is_not_accepted() -> None:
    written = route(to("web"), hostnames=["other.example"])
    cluster = Cluster(service("web"), gateway(listener(hostname="*.example.com")), written)
    assert accepted(cluster, written) == ["False NoMatchingListenerHostname"]


def test_a_gateway_that_changes_takes_its_routes_along() -> None:
    written = route(to("web"), hostnames=["a.example"])
    cluster = Cluster(service("web"), gateway(listener(hostname="b.example")), written)
    cluster.apply(gateway(listener(hostname="*.example"), generation=2))
    assert accepted(cluster, written) == ["True Accepted"]
    cluster.delete(gateway())
    assert cluster.status(written) is None


# References


@pytest.mark.parametrize(
    ("backend", "reason"),
    [
        ({"name": "gone", "port": 80}, "BackendNotFound"),
        ({"name": "web", "port": 81}, "BackendNotFound"),
        ({"name": "web"}, "BackendNotFound"),
        ({"name": "web", "port": 80, "group": "example.com", "kind": "Bucket"}, "InvalidKind"),
        ({"name": "web", "port": 80, "namespace": "other"}, "RefNotPermitted"),
        ({"name": "odd", "port": 80}, "UnsupportedProtocol"),
    ],
)
def test_a_service_that_cannot_be_had_is_no_reason_not_to_accept_the_route(backend: Any, reason: str) -> None:
    odd = service("odd")
    odd["spec"]["ports"][0]["appProtocol"] = "kubernetes.io/odd"
    written = route(to(backend))
    cluster = Cluster(service("web"), service("web", namespace="other"), odd, gateway(), written)
    (found,) = cluster.parents(written)
    assert found["Accepted"] == "True Accepted"
    assert found["ResolvedRefs"] == f"False {reason}"
    assert cluster.attached(gateway()) == {"http": 1}


def test_a_service_of_another_namespace_is_had_while_a_grant_is_there() -> None:
    written = route(to({"name": "web", "port": 80, "namespace": "other"}))
    permission = grant("HTTPRoute", "default", "Service", "web", namespace="other")
    cluster = Cluster(service("web", namespace="other"), gateway(), written, permission)
    assert cluster.parents(written)[0]["ResolvedRefs"] == "True ResolvedRefs"
    cluster.delete(permission)
    assert cluster.parents(written)[0]["ResolvedRefs"] == "False RefNotPermitted"


# Rules that cannot be followed


def test_a_route_of_which_a_rule_cannot_be_followed_is_accepted_and_partially_invalid() -> None:
    bad = to("web", matches=[prefix("/b")], filters=[{"type": "URLRewrite"}])
    written = route(to("web", matches=[prefix("/a")]), bad)
    (found,) = Cluster(service("web"), gateway(), written).parents(written)
    assert found["Accepted"] == "True Accepted"
    assert found["PartiallyInvalid"] == "True UnsupportedValue"


def test_a_filter_whose_object_is_missing_or_wrong_is_a_reference_that_is_not_resolved() -> None:
    written = route(to("web", filters=[extension("named")]), to("web", matches=[prefix("/b")]))
    cluster = Cluster(service("web"), gateway(), written)
    (found,) = cluster.parents(written)
    assert (found["Accepted"], found["ResolvedRefs"]) == ("True Accepted", "False FilterNotFound")
    cluster.apply(plugins("named", ("no-such-plugin", {})))
    assert cluster.parents(written)[0]["ResolvedRefs"] == "False InvalidFilter"
    cluster.apply(plugins("named", ("cors", {})))
    assert cluster.parents(written)[0]["ResolvedRefs"] == "True ResolvedRefs"
    unknown = route(to("web", filters=[extension("named", kind="Secret")]))
    cluster.apply(unknown)
    assert cluster.parents(unknown)[0]["ResolvedRefs"] == "False InvalidKind"


def test_a_version_that_cannot_be_followed_is_not_accepted_while_the_last_good_one_is_served() -> None:
    good = route(to("web", matches=[prefix("/a")]))
    cluster = Cluster(service("web"), gateway(), good)
    pattern = {"path": {"type": "RegularExpression", "value": "("}}
    bad = route(to("web", matches=[pattern]), generation=2)
    cluster.apply(bad)
    (found,) = cluster.parents(bad)
    assert found["Accepted"] == "False UnsupportedValue"
    assert b"/a" in (cluster.translation.assembly.image.get("hosts", "*@http") or b"")


def test_equal_matches_of_two_routes_are_the_older_ones() -> None:
    first = route(to("web"), name="first", creationTimestamp="2024-01-01T00:00:00Z")
    second = route(to("web"), name="second", creationTimestamp="2024-01-02T00:00:00Z")
    cluster = Cluster(service("web"), gateway(), first, second)
    assert cluster.parents(first) == [ATTACHED]
    assert cluster.parents(second) == [{**ATTACHED, "Programmed": "False PathConflict"}]
    assert cluster.attached(gateway()) == {"http": 2}


def test_a_route_some_of_whose_matches_an_older_one_has_is_partially_invalid() -> None:
    first = route(to("web"), name="first", creationTimestamp="2024-01-01T00:00:00Z")
    rules = (to("web"), to("web", matches=[prefix("/own")]))
    second = route(*rules, name="second", creationTimestamp="2024-01-02T00:00:00Z")
    cluster = Cluster(service("web"), gateway(), first, second)
    assert cluster.parents(second) == [{**ATTACHED, "PartiallyInvalid": "True PathConflict"}]


# Namespaces that share a Gateway share its hosts


def test_routes_of_several_namespaces_share_a_host_as_their_gateway_lets_them_in() -> None:
    shared = gateway(listener(allowedRoutes={"namespaces": {"from": "All"}}), namespace="infra")
    parents = [{"name": "gw", "namespace": "infra"}]
    routes = [
        route(
            to("web", matches=[prefix("/")]),
            to("web", matches=[prefix(f"/{team}")]),
            name=team,
            namespace=team,
            parents=parents,
            hostnames=["a.example"],
            creationTimestamp=created,
        )
        for team, created in (("blog", "2024-01-01T00:00:00Z"), ("shop", "2024-01-02T00:00:00Z"))
    ]
    services = [service("web", namespace=team) for team in ("blog", "shop")]
    cluster = Cluster(*services, *routes, shared)
    entry = cluster.translation.assembly.image.get("hosts", "a.example@http")
    assert entry is not None
    assert b"/blog" in entry
    assert b"/shop" in entry
    ref = next(ref for ref in cluster.translation.assembly.fragments if ref.name == "shop")
    condition = cluster.translation.condition(ref)
    assert condition is not None
    assert {problem.reason for problem in condition.problems} == {"PathConflict", "NoReadyEndpoints"}


def test_namespaces_that_share_a_gateway_are_guests_with_their_ingresses() -> None:
    shared = gateway(listener(allowedRoutes={"namespaces": {"from": "All"}}), namespace="infra")
    parents, first = [{"name": "gw", "namespace": "infra"}], "2024-01-01T00:00:00Z"
    rules = (to("web", matches=[prefix("/")]), to("web", matches=[prefix("/a")]))
    blog, shop = (
        route(rule, name=team, namespace=team, parents=parents, hostnames=["a.example"], creationTimestamp=first)
        for team, rule in zip(("blog", "shop"), rules, strict=True)
    )
    intruder = ingress("intruder", host="a.example", path="/", namespace="shop", created="2024-02-01T00:00:00Z")
    cluster = Cluster(shared, blog, shop, intruder)
    reasons = {
        ref.name: {problem.reason for problem in condition.problems}
        for ref in cluster.translation.assembly.fragments
        if (condition := cluster.translation.condition(ref)) is not None
    }
    assert "HostNotOwned" in reasons["intruder"]
    assert "HostNotOwned" not in reasons["shop"] | reasons["blog"] | reasons["gw"]


# Policies


def test_a_policy_for_a_service_holds_for_routes_to_it() -> None:
    target = {"name": "web", "kind": "Service", "group": ""}
    timeout, balancer = {"connect": "3s"}, {"type": "chash", "hashOn": "header", "key": "X-Client"}
    spec = {"targetRefs": [target], "retries": 4, "timeout": timeout, "loadbalancer": balancer}
    policy = apisix("BackendTrafficPolicy", "web", spec, "v1alpha1")
    cluster = Cluster(service("web"), gateway(), policy, route(to("web"), hostnames=["a.example"]))
    chunks = cluster.translation.assembly.image.chunks()
    entries = [entry for chunk in chunks for entry in decode_chunk(chunk.kind, chunk.content)]
    (found,) = (one for entry in entries if isinstance(entry, VirtualHost) for one in entry.routes)
    assert found.retries.attempts == 4
    assert found.backends[0].timeouts.connect_s == 3
    (upstream,) = (entry for entry in entries if isinstance(entry, Upstream))
    assert upstream.key == found.backends[0].upstream
    assert upstream.balancing != Upstream(key="plain", provenance=upstream.provenance).balancing
    cluster.delete(policy)
    assert cluster.translation.assembly.image.get("upstreams", "a/default/web:80") is not None
