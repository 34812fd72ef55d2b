"""ListenerSets: which Gateways let them in, what goes before what, and what their statuses say."""

from typing import Any

import pytest

from fakes.translator.deltas import service
from fakes.translator.gateway_api import (
    Cluster,
    allowing,
    gateway,
    https,
    listener,
    listener_set,
    of_set,
    route,
    to,
)

OLD, NEW = "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"
GOOD = {
    "Accepted": "True Accepted",
    "Conflicted": "False NoConflicts",
    "ResolvedRefs": "True ResolvedRefs",
    "Programmed": "True Programmed",
}


def conflict(reason: str) -> dict[str, str]:
    said = {"Accepted": "False", "Conflicted": "True", "Programmed": "False"}
    return {"ResolvedRefs": "True ResolvedRefs"} | {name: f"{status} {reason}" for name, status in said.items()}


def attached_sets(cluster: Cluster, made: Any) -> int:
    return (cluster.status(made) or {}).get("attachedListenerSets") or 0


@pytest.mark.parametrize(
    ("allowed", "namespace", "is_let_in"),
    [
        ({}, "default", False),
        (allowing("None"), "default", False),
        (allowing("Same"), "default", True),
        (allowing("Same"), "other", False),
        (allowing("All"), "other", True),
        (allowing("Selector", selector={"matchLabels": {"kubernetes.io/metadata.name": "other"}}), "other", True),
        (allowing("Selector", selector={"matchLabels": {"kubernetes.io/metadata.name": "third"}}), "other", False),
    ],
)
def test_a_gateway_says_of_which_namespaces_sets_are_let_in(allowed: Any, namespace: str, is_let_in: bool) -> None:
    gw = gateway(listener(hostname="a.com"), spec=allowed)
    parent = {"name": "gw", "namespace": "default"}
    more = listener_set(listener("b", hostname="b.com"), parent=parent, namespace=namespace)
    cluster = Cluster(gw, more)
    said = cluster.conditions(more)
    expected = ("True Accepted", "True Programmed") if is_let_in else ("False NotAllowed", "False NotAllowed")
    assert (said["Accepted"], said["Programmed"]) == expected
    assert attached_sets(cluster, gw) == is_let_in
    assert cluster.addresses(more) == []


def test_of_listeners_with_one_hostname_that_of_the_gateway_counts_then_that_of_the_oldest_set() -> None:
    gw = gateway(listener("taken", hostname="a.com"), spec=allowing("All"))
    young = listener_set(
        listener("own", hostname="own.com"), listener("b", hostname="b.com"), name="young", creationTimestamp=NEW
    )
    old = listener_set(
        listener("b", hostname="b.com"), listener("a", hostname="a.com"), name="old", creationTimestamp=OLD
    )
    cluster = Cluster(gw, young, old)
    assert cluster.listeners(gw) == {"taken": GOOD}
    assert cluster.listeners(old) == {"b": GOOD, "a": conflict("HostnameConflict")}
    assert cluster.listeners(young) == {"own": GOOD, "b": conflict("HostnameConflict")}
    assert cluster.conditions(young)["Accepted"] == "True ListenersNotValid"
    assert attached_sets(cluster, gw) == 2


def test_a_set_without_any_good_listener_is_not_accepted_and_does_not_count() -> None:
    gw = gateway(listener("plain", port=8000), spec=allowing("All"))
    tls = {"certificateRefs": [{"name": "cert"}]}
    more = listener_set(listener("tls", 8000, "HTTPS", hostname="b.com", tls=tls))
    cluster = Cluster(gw, more)
    assert cluster.listeners(more)["tls"] == {**conflict("ProtocolConflict"), "ResolvedRefs": "True ResolvedRefs"}
    said = cluster.conditions(more)
    assert (said["Accepted"], said["Programmed"]) == ("False ListenersNotValid", "False ListenersNotValid")
    assert cluster.conditions(gw)["Accepted"] == "True Accepted"
    assert attached_sets(cluster, gw) == 0


def test_a_listener_that_loses_to_the_gateway_leaves_its_port_to_the_others_of_its_set() -> None:
    gw = gateway(listener(port=8000, hostname="a.com"), spec=allowing("All"))
    plain = [listener(name, 8000, hostname=f"{name}.com") for name in ("b", "c")]
    more = listener_set(plain[0], listener("tcp", 8000, "TCP"), plain[1])
    cluster = Cluster(gw, more)
    assert cluster.listeners(more) == {"b": GOOD, "tcp": conflict("ProtocolConflict"), "c": GOOD}


def test_routes_are_attached_to_a_set_or_to_its_gateway_and_not_to_both() -> None:
    gw = gateway(listener("own", hostname="a.com"), spec=allowing("Same"))
    more = listener_set(listener("b", hostname="b.com"), listener("c", hostname="c.com"))
    of_gateway = route(to("one"), name="of-gateway")
    of_both = route(to("one"), name="of-both", parents=[{"name": "gw"}, of_set()])
    of_section = route(to("one"), name="of-section", parents=[of_set(sectionName="c")])
    lost = route(to("one"), name="lost", parents=[{"name": "gw", "sectionName": "b"}])
    cluster = Cluster(gw, more, service("one"), of_gateway, of_both, of_section, lost)
    assert cluster.attached(gw) == {"own": 2}
    assert cluster.attached(more) == {"b": 1, "c": 2}
    assert [one["Accepted"] for one in cluster.parents(of_both)] == ["True Accepted"] * 2
    assert cluster.parents(lost)[0]["Accepted"] == "False NoMatchingParent"


def test_a_route_of_a_set_that_is_not_let_in_waits_and_is_served_once_it_is() -> None:
    more = listener_set(listener("b", hostname="b.com"))
    waiting = route(to("one"), parents=[of_set()])
    cluster = Cluster(gateway(), more, service("one"), waiting)
    assert cluster.parents(waiting)[0]["Accepted"] == "False Pending"
    cluster.apply(gateway(spec=allowing("All")))
    assert cluster.parents(waiting)[0]["Accepted"] == "True Accepted"
    cluster.delete(more)
    assert cluster.status(waiting) is None


def test_a_set_has_routes_of_its_own_namespace_unless_it_says_more() -> None:
    gw = gateway(listener("own", hostname="a.com"), spec=allowing("All"))
    parent = {"name": "gw", "namespace": "default"}
    more = listener_set(listener("b", hostname="b.com"), parent=parent, namespace="other")
    inside = route(to("one"), name="inside", parents=[of_set()], namespace="other")
    outside = route(to("one"), name="outside", parents=[of_set(namespace="other")])
    cluster = Cluster(gw, more, inside, outside)
    assert cluster.parents(inside)[0]["Accepted"] == "True Accepted"
    assert cluster.parents(outside)[0]["Accepted"] == "False NotAllowedByListeners"


def test_grants_to_a_gateway_are_none_to_its_sets() -> None:
    secret = {"name": "cert", "namespace": "certs"}
    gw = gateway(listener(), spec=allowing("All"))
    more = listener_set(https("tls", secret, hostname="b.com"))
    cluster = Cluster(gw, more, _grant("Gateway"))
    assert cluster.listeners(more)["tls"]["ResolvedRefs"] == "False RefNotPermitted"
    assert cluster.conditions(more)["Accepted"] == "False ListenersNotValid"
    cluster.apply(_grant("ListenerSet"))
    assert cluster.listeners(more)["tls"]["ResolvedRefs"] == "False InvalidCertificateRef"


def _grant(kind: str) -> Any:
    group = "gateway.networking.k8s.io"
    source = {"group": group, "kind": kind, "namespace": "default"}
    spec = {"from": [source], "to": [{"group": "", "kind": "Secret"}]}
    return {
        "apiVersion": f"{group}/v1",
        "kind": "ReferenceGrant",
        "metadata": {"name": "grant", "namespace": "certs", "uid": "grant"},
        "spec": spec,
    }


def test_a_set_of_a_gateway_of_others_has_no_status() -> None:
    more = listener_set(listener("b"), parent={"name": "theirs"})
    assert Cluster(gateway(), more).status(more) is None
