"""Hosts belong to the namespace of the oldest object that claims them: others take nothing away from it."""

from typing import Any

import pytest

from fakes.translator.apisix import route, rule
from fakes.translator.deltas import ingress, ref_of, service, service_export
from fakes.translator.shared_host import (
    NEW,
    NEWEST,
    OLD,
    SHARED,
    VICTIM,
    Annotations,
    Table,
    apisix_guest,
    guest,
    owner,
)
from headgate.common.problems import Severity
from headgate.gateway.table.explaining.explain import explain
from headgate.translator.assembly.boundaries import HostSharing

ATTACKS = {
    "the same path": guest(),
    "a canary with all of the weight": guest("/", {"canary": "true", "canary-weight": "100"}, path_type="Prefix"),
    "a condition that always holds": guest("/", {"match-headers": "host~."}, path_type="Prefix"),
    "a pattern with a priority": guest("/.*", {"path-type": "regex", "priority": "1000"}),
    "a pattern": guest("/.*", {"path-type": "regex"}),
    "text that all paths begin with": guest("/", {"path-type": "string-prefix"}),
    "an ApisixRoute with a priority": apisix_guest("/*", priority=10000),
    "an ApisixRoute with a condition": apisix_guest("/*", match_methods=["GET"]),
    "an exact path": guest("/", path_type="Exact"),
}


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS.keys())
def test_another_namespace_takes_nothing_from_the_owner(attack: Any) -> None:
    table = Table(VICTIM, attack)
    for path in ("/", "/login"):
        assert table.taker(path) == "team-a/shop"
    (problem,) = table.lost(attack)
    assert problem.severity is Severity.ERROR
    assert "owned by Ingress team-a/shop in cluster a, which is older" in problem.message
    assert 'headgate.dev/host-sharing-namespaces: "team-b"' in problem.message
    assert ref_of(attack) not in table.offline.accepted
    assert not any(one.canaries for one in table.host().routes)


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS.keys())
def test_the_owner_hears_nothing_of_it(attack: Any) -> None:
    alone, beside = Table(VICTIM), Table(VICTIM, attack)
    assert beside.offline.problems[ref_of(VICTIM)] == alone.offline.problems[ref_of(VICTIM)]


@pytest.mark.parametrize(
    ("path", "annotations", "path_type"),
    [
        ("/api", {}, "Prefix"),
        ("/api", {}, "Exact"),
        ("/api", {"match-methods": "POST"}, "Prefix"),
        ("/api(/|$)(.*)", {"path-type": "regex"}, "ImplementationSpecific"),
        ("/api", {"priority": "5"}, "Prefix"),
    ],
)
def test_another_namespace_adds_longer_paths(path: str, annotations: Annotations, path_type: str) -> None:
    made = guest(path, annotations, path_type=path_type)
    table = Table(VICTIM, made)
    assert table.lost(made) == []
    winner = explain(table.view, "POST", "open.test", "/api", {}).winner
    assert "team-b/guest" in str(winner)
    assert table.taker("/login") == "team-a/shop"


def test_a_prefix_gets_what_an_exact_path_of_the_owner_leaves() -> None:
    made = guest("/api", path_type="Prefix")
    table = Table(owner(("/api/v1", "Exact")), made)
    assert table.lost(made) == []
    assert (table.taker("/api/v1"), table.taker("/api/v2")) == ("team-a/shop", "team-b/guest")


@pytest.mark.parametrize("path", ["/api/", "/%61pi", "/api"])
def test_a_path_is_not_longer_by_a_slash_or_an_escape(path: str) -> None:
    table = Table(owner(("/api", "Prefix")), guest(path, path_type="Prefix"))
    assert table.taker("/api/users") == "team-a/shop"
    assert [problem.reason for problem in table.lost(guest(path))] == ["HostNotOwned"]


def test_an_exact_path_does_not_go_before_a_pattern_of_the_owner() -> None:
    pattern = owner(("/v[0-9]+/users", "ImplementationSpecific"), annotations={"path-type": "regex"})
    taking, beside = guest("/v1/users", path_type="Exact"), guest("/v1/orders", path_type="Exact", name="beside")
    table = Table(pattern, taking, beside)
    assert (table.taker("/v1/users"), table.taker("/v1/orders")) == ("team-a/shop", "team-b/beside")


def test_patterns_of_two_namespaces_stand_side_by_side_where_they_begin_differently() -> None:
    mine = owner(("/service-a(/|$)(.*)", "ImplementationSpecific"), annotations={"path-type": "regex"})
    theirs = guest("/service-b(/|$)(.*)", {"path-type": "regex"})
    table = Table(mine, theirs)
    assert table.lost(theirs) == []
    assert (table.taker("/service-a/x"), table.taker("/service-b/x")) == ("team-a/shop", "team-b/guest")


def test_a_priority_takes_no_path_below_from_the_owner() -> None:
    made = guest("/", {"priority": "9"}, path_type="Prefix")
    table = Table(owner(("/login", "Prefix")), made)
    assert table.taker("/login/x") == "team-a/shop"
    assert len(table.lost(made)) == 1


def test_the_default_backend_of_the_owner_keeps_what_is_left() -> None:
    made = owner(("/login", "Prefix"))
    made["spec"]["defaultBackend"] = made["spec"]["rules"][0]["http"]["paths"][0]["backend"]
    table = Table(made, guest("/", path_type="Prefix"))
    assert table.taker("/anything") == "team-a/shop"


def test_a_path_that_the_owner_takes_later_is_the_owners() -> None:
    later = ingress("later", host="open.test", path="/api", namespace="team-a", created=NEWEST)
    made = guest("/api", path_type="Prefix")
    table = Table(owner(("/login", "Prefix")), later, made)
    assert table.taker("/api") == "team-a/later"
    assert len(table.lost(made)) == 1


def test_guests_are_protected_from_each_other_too() -> None:
    made = guest("/api", path_type="Prefix")
    third = guest("/api", {"match-headers": "host~."}, namespace="team-c", created=NEWEST, path_type="Prefix")
    canary = guest("/api", {"canary": "true", "canary-weight": "100"}, namespace="team-c", name="c", path_type="Prefix")
    table = Table(VICTIM, made, third, canary)
    assert table.taker("/api") == "team-b/guest"
    assert len(table.lost(third)) == len(table.lost(canary)) == 1


def test_a_guest_has_canaries_on_its_own_routes() -> None:
    made = guest("/api", path_type="Prefix")
    canary = guest("/api", {"canary": "true", "canary-weight": "10"}, name="canary", path_type="Prefix")
    table = Table(VICTIM, made, canary)
    host = table.host()
    assert [len(one.canaries) for one in host.routes] == [1, 0]


def test_other_hosts_of_a_refused_object_are_served() -> None:
    made = guest()
    made["spec"]["rules"].append({**made["spec"]["rules"][0], "host": "own.test"})
    table = Table(VICTIM, made)
    assert table.taker("/", host="own.test") == "team-b/guest"
    assert ref_of(made) in table.offline.accepted


def test_an_owner_that_goes_leaves_the_host_to_the_next_one() -> None:
    assert Table(guest()).taker("/") == "team-b/guest"


def test_without_creation_times_the_first_by_namespace_owns() -> None:
    a = ingress("z", host="open.test", namespace="team-a")
    b = ingress("a", host="open.test", namespace="team-b")
    assert Table(b, a).taker("/") == "team-a/z"


def test_a_more_specific_host_is_a_claim_of_its_own() -> None:
    wildcard = ingress("wild", host="*.open.test", namespace="team-a", created=OLD)
    specific = ingress("own", host="b.open.test", namespace="team-b", created=NEW)
    table = Table(wildcard, specific)
    assert table.taker("/", host="b.open.test") == "team-b/own"


def test_the_catch_all_is_owned_too() -> None:
    mine = ingress("all", namespace="team-a", created=OLD)
    theirs = ingress("all", namespace="team-b", created=NEW)
    (problem,) = Table(mine, theirs).lost(theirs)
    assert problem.message.startswith("every host (requests that no other host takes) is owned by Ingress team-a/all")


@pytest.mark.parametrize("sharing", ["paths", "namespace"])
def test_namespaces_that_the_owner_names_count_as_its_own(sharing: HostSharing) -> None:
    pattern, canary = ATTACKS["a pattern with a priority"], ATTACKS["a canary with all of the weight"]
    table = Table(SHARED, pattern, sharing=sharing)
    assert table.taker("/login") == "team-b/guest"
    host = Table(SHARED, canary, sharing=sharing).host()
    assert len(host.routes[0].canaries) == 1


def test_an_apisix_route_shares_its_host_too() -> None:
    owning = route(
        rule("r", hosts=["open.test"]),
        name="shop",
        namespace="team-a",
        creationTimestamp=OLD,
        annotations={"headgate.dev/host-sharing-namespaces": "team-b"},
    )
    table = Table(owning, ATTACKS["an ApisixRoute with a priority"])
    assert table.taker("/") == "team-b/guest"


def test_what_cannot_be_read_shares_nothing() -> None:
    made = owner(("/", "Prefix"), annotations={"host-sharing-namespaces": "*"})
    table = Table(made, ATTACKS["a pattern"])
    assert table.taker("/") == "team-a/shop"
    reasons = [problem.reason for problem in table.offline.problems[ref_of(made)]]
    assert "InvalidAnnotation" in reasons


def test_a_host_that_is_kept_to_its_namespace_takes_no_paths_of_others() -> None:
    made = guest("/api", path_type="Prefix")
    table = Table(VICTIM, made, sharing="namespace")
    assert table.taker("/api") == "team-a/shop"
    assert "host_sharing: namespace" in table.lost(made)[0].message


def test_any_leaves_hosts_to_all() -> None:
    made = ATTACKS["a pattern with a priority"]
    table = Table(VICTIM, made, sharing="any")
    assert (table.taker("/"), table.lost(made)) == ("team-b/guest", [])


# Fall-through


def test_a_guest_does_not_keep_requests_of_the_owner_from_falling_through() -> None:
    owning = route(rule("r", "/shop*", hosts=["open.test"]), name="shop", namespace="team-a", creationTimestamp=OLD)
    table = Table(owning, guest("/api", path_type="Prefix"))
    host = table.host()
    assert host.unmatched == "next-host"


def test_a_guest_does_not_let_requests_of_the_owner_fall_through() -> None:
    table = Table(VICTIM, apisix_guest("/api*"))
    host = table.host()
    assert host.unmatched == "404"


# Clusters


def test_a_namesake_without_a_shared_service_is_a_guest() -> None:
    made = ingress(
        "shop", host="open.test", namespace="team-a", created=NEW, annotations={"headgate.dev/priority": "1"}
    )
    table = Table(VICTIM, also={"b": [service(namespace="team-a"), made]})
    (problem,) = table.lost(made, "b")
    assert "export its Service from both clusters" in problem.message


def test_a_namespace_in_two_clusters_that_share_its_service_is_one_owner() -> None:
    canary = ingress(
        "shop", host="open.test", namespace="team-a", created=NEW, annotations={"headgate.dev/priority": "1"}
    )
    exports = service_export(namespace="team-a")
    table = Table(VICTIM, exports, also={"b": [service(namespace="team-a"), exports, canary]})
    assert table.lost(canary, "b") == []
