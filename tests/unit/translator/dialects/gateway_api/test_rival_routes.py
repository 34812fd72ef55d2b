"""HTTPRoutes and GRPCRoutes with hosts in common at one listener: the older one alone is accepted."""

from typing import Any

import pytest

from fakes.translator.deltas import service
from fakes.translator.gateway_api import (
    Cluster,
    allowing,
    gateway,
    grpc_route,
    listener,
    listener_set,
    of_set,
    route,
    to,
)

OLD, NEW = "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"


def accepted(cluster: Cluster, *routes: Any) -> list[str]:
    return [one["Accepted"] for each in routes for one in cluster.parents(each)]


def calls(created: str = NEW, name: str = "calls", **fields: Any) -> Any:
    return grpc_route(to("web"), name=name, creationTimestamp=created, **fields)


def requests(created: str = OLD, name: str = "requests", **fields: Any) -> Any:
    return route(to("web"), name=name, creationTimestamp=created, **fields)


@pytest.mark.parametrize(
    ("one", "other", "are_rivals"),
    [
        ((), (), True),
        (("a.com",), ("a.com",), True),
        (("a.com",), ("b.com",), False),
        (("*.a.com",), ("x.y.a.com",), True),
        (("x.y.a.com",), ("*.a.com",), True),
        (("*.a.com",), ("a.com",), False),
        (("*.x.a.com",), ("*.a.com",), True),
        (("a.com",), (), True),
        ((), ("*.a.com",), True),
        (("a.com", "b.com"), ("c.com", "b.com"), True),
    ],
)
def test_the_younger_of_two_kinds_with_hosts_in_common_is_not_accepted(one: Any, other: Any, are_rivals: bool) -> None:
    old, young, gw = requests(hostnames=one), calls(hostnames=other), gateway()
    cluster = Cluster(gw, service("web"), old, young)
    loser = "False HostnameConflict" if are_rivals else "True Accepted"
    assert accepted(cluster, old, young) == ["True Accepted", loser]
    assert cluster.attached(gw) == {"http": 1 if are_rivals else 2}


def test_calls_that_are_older_win_and_what_has_lost_excludes_nothing() -> None:
    first = calls(OLD, hostnames=["a.com"])
    loser = requests(NEW, hostnames=["a.com", "b.com"])
    last = calls("2026-03-01T00:00:00Z", "last", hostnames=["b.com"])
    cluster = Cluster(gateway(), service("web"), first, loser, last)
    assert accepted(cluster, first, loser, last) == ["True Accepted", "False HostnameConflict", "True Accepted"]


def test_routes_of_equal_age_are_ordered_by_name() -> None:
    cluster = Cluster(gateway(), service("web"), b := requests(OLD, "b"), a := calls(OLD, "a"))
    assert accepted(cluster, a, b) == ["True Accepted", "False HostnameConflict"]


def test_a_route_that_loses_one_listener_is_served_at_the_other() -> None:
    gw = gateway(listener("a", hostname="a.com"), listener("b", hostname="b.com"))
    old = requests(parents=[{"name": "gw", "sectionName": "a"}])
    young = calls()
    cluster = Cluster(gw, service("web"), old, young)
    assert accepted(cluster, old, young) == ["True Accepted"] * 2
    assert cluster.attached(gw) == {"a": 1, "b": 1}


def test_the_younger_is_accepted_once_the_older_goes() -> None:
    cluster = Cluster(gateway(), service("web"), old := requests(), young := calls())
    cluster.delete(old)
    assert accepted(cluster, young) == ["True Accepted"]
    cluster.apply(old)
    assert accepted(cluster, young) == ["False HostnameConflict"]


def test_routes_of_a_set_and_of_its_gateway_are_no_rivals() -> None:
    gw = gateway(listener(hostname="a.com"), spec=allowing("Same"))
    more = listener_set(listener("b", hostname="b.com"))
    old, young = requests(), calls(parents=[of_set()])
    cluster = Cluster(gw, more, service("web"), old, young)
    assert accepted(cluster, old, young) == ["True Accepted"] * 2
