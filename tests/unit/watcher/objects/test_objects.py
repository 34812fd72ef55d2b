"""What is published of an object."""

import copy
from datetime import UTC, datetime
from typing import Any

from headgate.common import resources
from headgate.common.deltas import Author
from headgate.common.sealing import Sealer
from headgate.watcher.objects.preparing import encode, is_published, managing_author, prepare, strip
from headgate.watcher.objects.secrets import throwaway_recipients

INGRESS: dict[str, Any] = {
    "apiVersion": "networking.k8s.io/v1",
    "kind": "Ingress",
    "metadata": {
        "name": "web",
        "managedFields": [{"manager": "kubectl"}],
        "selfLink": "/x",
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}", "a": "b"},
    },
    "spec": {"rules": []},
    "status": {"loadBalancer": {}},
}


def test_bookkeeping_and_our_own_status_are_stripped() -> None:
    assert strip(resources.INGRESS, INGRESS) == {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": {"name": "web", "annotations": {"a": "b"}},
        "spec": {"rules": []},
    }


def test_stripping_leaves_what_was_handed_in_alone() -> None:
    before = copy.deepcopy(INGRESS)
    strip(resources.INGRESS, INGRESS)
    assert before == INGRESS


def test_annotations_that_are_empty_afterwards_are_none() -> None:
    annotations = {"kubectl.kubernetes.io/last-applied-configuration": "{}"}
    service = {"kind": "Service", "metadata": {"name": "a", "annotations": annotations}}
    assert strip(resources.SERVICE, service)["metadata"] == {"name": "a"}


def test_the_status_of_services_stays() -> None:
    service = {
        "kind": "Service",
        "metadata": {"name": "a"},
        "status": {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}},
    }
    assert strip(resources.SERVICE, service) == service


def test_of_the_status_of_gateways_only_the_addresses_stay() -> None:
    addresses = [{"type": "IPAddress", "value": "192.0.2.1"}]
    made = {"kind": "Gateway", "metadata": {"name": "a"}, "status": {"addresses": addresses, "conditions": [{}]}}
    assert strip(resources.GATEWAY, made)["status"] == {"addresses": addresses}
    for status in ({"conditions": []}, None, "x"):
        assert "status" not in strip(resources.GATEWAY, {**made, "status": status})


def test_secrets_that_others_manage_are_not_published() -> None:
    secret = {"kind": "Secret", "type": "helm.sh/release.v1", "metadata": {"name": "a"}, "data": {"k": "eA=="}}
    assert not is_published(resources.SECRET, secret)
    assert prepare(resources.SECRET, secret, Sealer("paris", throwaway_recipients())) is None


def test_secrets_that_people_write_are_published_sealed() -> None:
    secret = {"kind": "Secret", "type": "Opaque", "metadata": {"name": "a"}, "data": {"k": "dmFsdWU="}}
    published = prepare(resources.SECRET, secret, Sealer("paris", throwaway_recipients()))
    assert published is not None
    assert published["sealed"]["values"].keys() == {"k"}
    assert b"dmFsdWU" not in encode(published)


def test_of_pods_only_names_and_labels_are_published() -> None:
    metadata = {"name": "a", "namespace": "b", "labels": {"c": "d"}, "annotations": {"e": "f"}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": []}, "status": {}}
    kept = {"name": "a", "namespace": "b", "labels": {"c": "d"}}
    assert strip(resources.POD, pod) == {"apiVersion": "v1", "kind": "Pod", "metadata": kept}


def test_of_definitions_that_of_gateway_classes_is_published_with_its_version_alone() -> None:
    name, version = "gatewayclasses.gateway.networking.k8s.io", {"gateway.networking.k8s.io/bundle-version": "v1.6.3"}
    metadata = {"name": name, "labels": {"c": "d"}, "annotations": {**version, "e": "f"}}
    definition = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": metadata}
    published = prepare(resources.DEFINITION, {**definition, "spec": {"group": "g"}}, Sealer("paris", ()))
    assert published == {**definition, "metadata": {"name": name, "annotations": version}}
    metadata["name"] = "gateways.gateway.networking.k8s.io"
    assert prepare(resources.DEFINITION, definition, Sealer("paris", ())) is None


def test_other_objects_are_prepared_by_stripping_alone() -> None:
    assert prepare(resources.INGRESS, INGRESS, Sealer("paris", ())) == strip(resources.INGRESS, INGRESS)


def test_equal_values_give_equal_bytes() -> None:
    assert encode({"b": 1, "a": {"d": 1, "c": 2}}) == encode({"a": {"c": 2, "d": 1}, "b": 1})


def managed(*entries: Any) -> Any:
    return {"kind": "Ingress", "metadata": {"name": "a", "managedFields": list(entries)}}


def test_the_author_is_the_manager_of_the_latest_change() -> None:
    first = {"manager": "kubectl-edit", "operation": "Update", "time": "2026-01-01T10:00:00Z"}
    last = {"manager": "argocd-controller", "operation": "Apply", "time": "2026-01-02T10:00:00Z"}
    assert managing_author(managed(last, first)) == Author("argocd-controller", datetime(2026, 1, 2, 10, tzinfo=UTC))


def test_the_author_is_never_who_wrote_the_status() -> None:
    status = {"manager": "headgate", "time": "2026-01-03T10:00:00Z", "subresource": "status"}
    spec = {"manager": "helm", "time": "2026-01-01T10:00:00Z"}
    assert managing_author(managed(spec, status)) == Author("helm", datetime(2026, 1, 1, 10, tzinfo=UTC))


def test_of_managers_of_the_same_second_the_last_named_is_the_author() -> None:
    time = "2026-01-01T10:00:00Z"
    found = managing_author(managed({"manager": "a", "time": time}, {"manager": "b", "time": time}))
    assert found is not None
    assert found.name == "b"


def test_managed_fields_that_say_nothing_have_no_author() -> None:
    broken = managed("x", {"time": "2026-01-01T10:00:00Z"}, {"manager": "", "time": 5})
    assert managing_author(broken) is None
    assert managing_author(managed({"manager": "kubectl", "time": "yesterday"})) == Author("kubectl", None)
    assert managing_author({"metadata": {"managedFields": None}}) is None
