"""How IngressRoutes below others stand."""

from typing import Any

import pytest

from fakes.translator.deltas import ref_of
from fakes.translator.traefik import ANY, route, rule
from fakes.translator.traefik_routes import Routes
from headgate.translator.dialects.traefik.routes import layers

ABOVE = route({"match": ANY, "kind": "Rule"}, name="above")


def below(*rules: Any, above: str = "above", **spec: Any) -> Any:
    return route(*rules, name="below", spec={"parentRefs": [{"name": above}], **spec})


@pytest.mark.parametrize(
    ("child", "is_accepted"),
    [
        (below(rule("Path(`/`)")), True),
        (below(rule("Path(`/`)"), rule("Pth(`/`)")), True),
        (below(rule("Pth(`/`)")), False),
        (below(rule("Path(`/`)"), above="missing"), False),
        (below(rule("Path(`/`)", {"name": "gone", "port": 80})), True),
    ],
)
def test_a_child_is_accepted_if_requests_come_to_a_route_of_it(child: Any, is_accepted: bool) -> None:
    made = Routes(ABOVE, child)
    assert (ref_of(child) in made.offline.accepted) is is_accepted
    assert bool(made.said()) is (child != below(rule("Path(`/`)")))


def test_a_child_makes_no_route_of_the_table() -> None:
    made = Routes(ABOVE, below(rule("Path(`/`)")))
    assert [one.provenance.name for one in made.all] == ["above"]
    assert len(made.groups) == 2


def test_a_route_that_no_request_satisfies_is_left_out() -> None:
    made = Routes(ABOVE, below(rule("Host(`*.a.test`)", syntax="v2")))
    assert ("warning", "InvalidRule", "spec.routes[0].match") in made.said()


def test_more_children_than_a_parent_may_have_are_left_out_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layers, "MAX_CHILDREN", 1)
    made = Routes(ABOVE, below(rule("Path(`/`)"), rule("Path(`/long`)")))
    assert made.said() == [("error", "TooMuchWork", "spec.routes")]
    (layer,) = (one.first_match for one in made.groups if one.first_match is not None)
    assert len(layer.choices) == 1


def test_a_rule_of_a_child_may_ask_for_any_combination() -> None:
    hosts = " || ".join(f"(Host(`h{number}.test`) && PathPrefix(`/{number}`))" for number in range(300))
    made = Routes(ABOVE, below(rule(hosts)))
    assert made.said() == []
