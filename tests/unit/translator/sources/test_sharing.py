"""Services of several clusters are one where they are exported, and people decide what each cluster gets."""

from typing import Any

import pytest

from fakes.translator.deltas import (
    EPOCH,
    applied,
    decision,
    deleted,
    endpoint_slice,
    ingress,
    ref_of,
    service,
    service_export,
)
from headgate.common.clusters import Drain, Gateway
from headgate.common.snapshot import decode_chunk
from headgate.common.table import Endpoint, Upstream
from headgate.translator.composition import DIALECTS
from headgate.translator.translation import Translation

GLOBAL = {"headgate.dev/global": "true"}
KEY = "east/default/web:80"


class Clusters:
    """A translation of two clusters with a Service `web` each, of which the Ingress is in `east`."""

    def __init__(self, **annotations: dict[str, str]) -> None:
        self.translation = Translation(DIALECTS)
        self.apply("east", ingress("web", host="shop.example"))
        for number, (cluster, noted) in enumerate(annotations.items(), 1):
            made = service()
            made["metadata"]["annotations"] = noted
            self.apply(cluster, made)
            self.apply(cluster, endpoint_slice("web", f"10.{number}.0.1", f"10.{number}.0.2"))
            self.translation.activate(cluster)

    def apply(self, cluster: str, manifest: Any) -> None:
        self.translation.apply(applied(manifest, cluster))

    def decide(self, cluster: str, **settings: Any) -> None:
        self.apply(cluster, decision(cluster, **settings))

    def upstream(self, key: str = KEY) -> Upstream:
        for _ in self.translation.settle():
            pass
        chunks = self.translation.assembly.image.chunks()
        entries = [entry for chunk in chunks for entry in decode_chunk(chunk.kind, chunk.content)]
        return next(entry for entry in entries if isinstance(entry, Upstream) and entry.key == key)

    def endpoints(self, key: str = KEY) -> dict[str, Endpoint]:
        return {endpoint.address: endpoint for endpoint in self.upstream(key).endpoints}


def test_a_service_that_is_not_exported_is_its_clusters_alone() -> None:
    assert set(Clusters(east={}, west=GLOBAL).endpoints()) == {"10.1.0.1", "10.1.0.2"}
    assert set(Clusters(east=GLOBAL, west={}).endpoints()) == {"10.1.0.1", "10.1.0.2"}


def test_a_service_that_both_export_has_the_endpoints_of_both() -> None:
    found = Clusters(east=GLOBAL, west=GLOBAL).endpoints()
    assert {address: endpoint.cluster for address, endpoint in found.items()} == {
        "10.1.0.1": "east",
        "10.1.0.2": "east",
        "10.2.0.1": "west",
        "10.2.0.2": "west",
    }


def test_a_service_export_is_as_good_as_the_annotation_and_follows_its_service() -> None:
    clusters = Clusters(east=GLOBAL, west={})
    clusters.apply("west", service_export())
    assert len(clusters.endpoints()) == 4
    clusters.translation.apply(deleted(service_export(), "west"))
    assert len(clusters.endpoints()) == 2
    clusters.apply("west", service_export())
    clusters.translation.apply(deleted(service(), "west"))
    assert len(clusters.endpoints()) == 2


def test_what_others_export_stands_in_for_a_service_that_is_not_there() -> None:
    clusters = Clusters(east={}, west=GLOBAL)
    clusters.translation.apply(deleted(service(), "east"))
    assert set(clusters.endpoints()) == {"10.2.0.1", "10.2.0.2"}


def test_a_cluster_that_is_not_listed_yet_takes_no_part() -> None:
    clusters = Clusters(east=GLOBAL)
    made = service()
    made["metadata"]["annotations"] = GLOBAL
    clusters.apply("west", made)
    clusters.apply("west", endpoint_slice("web", "10.2.0.1"))
    assert len(clusters.endpoints()) == 2
    clusters.translation.activate("west")
    assert len(clusters.endpoints()) == 3


def test_changes_in_one_cluster_reach_the_routes_of_another() -> None:
    clusters = Clusters(east=GLOBAL, west=GLOBAL)
    assert len(clusters.endpoints()) == 4
    clusters.apply("west", endpoint_slice("web", "10.2.0.9"))
    assert set(clusters.endpoints()) == {"10.1.0.1", "10.1.0.2", "10.2.0.9"}


def test_a_cluster_whose_service_lacks_the_port_adds_nothing() -> None:
    clusters = Clusters(east=GLOBAL, west=GLOBAL)
    other = service(port=81)
    other["metadata"]["annotations"] = GLOBAL
    clusters.apply("west", other)
    assert len(clusters.endpoints()) == 2


def test_a_host_name_is_not_shared() -> None:
    clusters = Clusters(east=GLOBAL, west=GLOBAL)
    external = service(type="ExternalName", externalName="elsewhere.example")
    external["metadata"]["annotations"] = GLOBAL
    clusters.apply("west", external)
    assert len(clusters.endpoints()) == 2


def test_weights_are_shares_of_clusters_whatever_the_number_of_their_pods() -> None:
    clusters = Clusters(east=GLOBAL, west=GLOBAL)
    clusters.apply("west", endpoint_slice("web", *(f"10.2.0.{number}" for number in range(1, 9))))
    clusters.decide("west", weight=3)
    totals = {"east": 0, "west": 0}
    for endpoint in clusters.endpoints().values():
        totals[endpoint.cluster] += endpoint.weight
    assert totals["west"] == 3 * totals["east"]


def test_pods_that_are_not_ready_take_no_part_of_a_clusters_share() -> None:
    clusters = Clusters(east=GLOBAL, west=GLOBAL)
    clusters.apply("west", endpoint_slice("web", "10.2.0.3", name="web-2", ready=False))
    clusters.decide("west", weight=1)
    found = clusters.endpoints()
    assert found["10.2.0.1"].weight == found["10.1.0.1"].weight


def test_a_weight_of_0_gets_nothing() -> None:
    clusters = Clusters(east=GLOBAL, west=GLOBAL)
    clusters.decide("west", weight=0)
    assert {endpoint.weight for endpoint in clusters.endpoints().values() if endpoint.cluster == "west"} == {0}


def test_priorities_are_those_of_the_clusters() -> None:
    clusters = Clusters(east=GLOBAL, west=GLOBAL)
    clusters.decide("west", priority=2)
    found = clusters.endpoints()
    assert (found["10.1.0.1"].priority, found["10.2.0.1"].priority) == (0, 2)


def test_a_drained_cluster_finishes_its_sessions_and_comes_back() -> None:
    clusters = Clusters(east=GLOBAL, west=GLOBAL)
    before = clusters.endpoints()
    clusters.decide("west", drained=Drain(by="ada", at=EPOCH))
    west = clusters.endpoints()["10.2.0.1"]
    assert (west.ready, west.serving, west.terminating) == (False, True, True)
    assert clusters.upstream().unavailable is None
    clusters.decide("west")
    assert clusters.endpoints() == before


def test_pods_behind_gateways_are_local_and_the_gateways_stand_in_for_them_elsewhere() -> None:
    clusters = Clusters(east=GLOBAL, west=GLOBAL)
    clusters.decide("west", gateways=("http://192.0.2.1:80", "https://[2001:db8::1]:443"))
    found = clusters.endpoints()
    assert [found[f"10.2.0.{number}"].is_local for number in (1, 2)] == [True, True]
    assert not found["10.1.0.1"].is_local
    gateway, other = found["192.0.2.1"], found["2001:db8::1"]
    assert (gateway.port, gateway.hop, gateway.cluster, gateway.weight) == (80, "http", "west", 1)
    assert (other.port, other.hop) == (443, "https")
    clusters.apply("west", endpoint_slice("web", "10.2.0.1", ready=False))
    assert not clusters.endpoints()["192.0.2.1"].ready


def test_pods_of_two_clusters_with_one_address_are_two_where_only_their_own_gateways_reach_them() -> None:
    clusters = Clusters(east=GLOBAL, west=GLOBAL)
    clusters.apply("west", endpoint_slice("web", "10.1.0.1"))
    assert len(clusters.upstream().endpoints) == 2
    for cluster in ("east", "west"):
        clusters.decide(cluster, gateways=(f"http://{cluster}.example:80",))
    local = [endpoint for endpoint in clusters.upstream().endpoints if endpoint.is_local]
    assert [(each.address, each.cluster) for each in local] == [
        ("10.1.0.1", "east"),
        ("10.1.0.1", "west"),
        ("10.1.0.2", "east"),
    ]


def test_gateways_do_not_stand_in_for_pods_that_streams_go_to() -> None:
    annotations = {**GLOBAL, "headgate.dev/stream-port": "9000"}
    clusters = Clusters(east=annotations, west=GLOBAL)
    clusters.decide("west", gateways=("http://192.0.2.1:80",))
    assert set(clusters.endpoints(f"{KEY}/tcp")) == {"10.1.0.1", "10.1.0.2", "10.2.0.1", "10.2.0.2"}


def applied_to_both(west: Any) -> Clusters:
    clusters = Clusters(east=GLOBAL, west=GLOBAL)
    clusters.apply("east", ingress("shop", host="shop.example"))
    clusters.apply("west", west)
    clusters.upstream()
    return clusters


def standing_in_west(clusters: Clusters) -> tuple[bool, list[tuple[str, str]]]:
    condition = clusters.translation.condition(ref_of(ingress("shop"), "west"))
    assert condition is not None
    return condition.is_accepted, [(problem.reason, problem.severity) for problem in condition.problems]


def test_an_ingress_that_is_applied_to_every_cluster_is_served_once_and_accepted_by_all() -> None:
    clusters = applied_to_both(ingress("shop", host="shop.example"))
    assert standing_in_west(clusters) == (True, [("ServedByNamesake", "info")])
    clusters.translation.apply(deleted(ingress("shop"), "east"))
    assert set(clusters.endpoints("west/default/web:80")) == set(clusters.endpoints())
    assert standing_in_west(clusters) == (True, [])


def test_an_ingress_of_the_same_name_in_a_cluster_that_shares_nothing_loses_what_both_claim() -> None:
    clusters = applied_to_both(ingress("shop", host="shop.example"))
    clusters.apply("west", service())
    clusters.upstream()
    assert standing_in_west(clusters) == (False, [("HostNotOwned", "error")])
    clusters.apply("west", service_export())
    clusters.upstream()
    assert standing_in_west(clusters) == (True, [("ServedByNamesake", "info")])


@pytest.mark.parametrize(
    ("west", "reason"),
    [
        (ingress("shop", host="shop.example", service="other"), "HostNotOwned"),
        (ingress("shop", host="shop.example", annotations={"headgate.dev/read-timeout": "5s"}), "PathConflict"),
    ],
)
def test_an_ingress_that_is_another_one_in_another_cluster_loses_what_both_claim(west: Any, reason: str) -> None:
    accepted, problems = standing_in_west(applied_to_both(west))
    assert not accepted
    assert (reason, "error") in problems


def importing(name: str) -> Any:
    resource = {"apiGroup": "multicluster.x-k8s.io", "kind": "ServiceImport", "name": name}
    path = {"path": "/", "pathType": "Prefix", "backend": {"resource": resource}}
    return ingress("imported", spec={"rules": [{"host": "import.example", "http": {"paths": [path]}}]})


def test_a_service_import_needs_no_object_of_its_name() -> None:
    clusters = Clusters(east={}, west=GLOBAL)
    clusters.apply("east", importing("web"))
    assert set(clusters.endpoints("east/default/ServiceImport.multicluster.x-k8s.io/web")) == {"10.2.0.1", "10.2.0.2"}


def test_a_service_import_of_what_nobody_exports_says_so() -> None:
    clusters = Clusters(east={}, west={})
    clusters.apply("east", importing("web"))
    unavailable = clusters.upstream("east/default/ServiceImport.multicluster.x-k8s.io/web").unavailable
    assert unavailable is not None
    assert "no cluster exports a Service of that name" in unavailable


@pytest.mark.parametrize(
    "url", ["", "192.0.2.1:80", "ftp://a:80", "http://a", "http://a:0", "http://a:70000", "http://a:80/x"]
)
def test_what_is_no_gateways_address_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="not of the form"):
        Gateway.parse(url)
