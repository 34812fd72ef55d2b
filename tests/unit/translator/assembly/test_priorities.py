"""Which of two equal matches is served, where a dialect gives routes priorities."""

import pytest

from headgate.common.problems import Severity
from headgate.common.resources import ObjectRef
from headgate.common.table import PathMatch, PathType, Provenance, Rank, Route
from headgate.translator.assembly.conflicts import merge_host
from headgate.translator.fragments.fragment import Fragment, Identity, RouteClaim

HOST = "foo.com"


def claiming(name: str, created_at: str, rank: Rank) -> Fragment:
    """What an object of the namespace `default` contributes that wants all paths of the host."""
    ref = ObjectRef("a", "networking.k8s.io", "ingresses", "default", name)
    origin = Provenance(cluster="a", kind="Ingress", namespace="default", name=name, rule="spec.rules[0]")
    route = Route(name=name, path=PathMatch(type=PathType.PREFIX, value="/"), rank=rank, provenance=origin)
    identity = Identity(ref, "networking.k8s.io/v1", "Ingress", name, created_at)
    return Fragment(identity, hosts=(HOST,), routes=(RouteClaim(HOST, route, "spec.rules[0]"),))


@pytest.mark.parametrize("young_first", [True, False])
def test_of_equal_matches_the_one_with_the_higher_priority_is_served_whatever_its_age(young_first: bool) -> None:
    old = claiming("old", "2020", Rank(priority=5 if not young_first else 1))
    young = claiming("young", "2021", Rank(priority=1 if not young_first else 5))
    winner, loser = (young, old) if young_first else (old, young)
    merged = merge_host(HOST, (old, young))
    assert [route.name for route in merged.routes] == [winner.identity.ref.name]
    ((problem,),) = [merged.lost[loser.identity.ref]]
    assert problem.severity is Severity.WARNING
    assert "whose priority is 5, this one's is 1" in problem.message


def test_a_default_backend_gives_way_to_a_rule_whatever_its_priority() -> None:
    merged = merge_host(
        HOST, (claiming("old", "2020", Rank(priority=9, is_default=True)), claiming("young", "2021", Rank()))
    )
    assert [route.name for route in merged.routes] == ["young"]
