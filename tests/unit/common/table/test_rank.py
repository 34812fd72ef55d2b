"""The order of routes besides their paths, and how it stood in tables of schema 6."""

import json

import pytest
from pydantic import ValidationError

from headgate.common.table import (
    AllOf,
    AnyOf,
    Compare,
    Condition,
    Not,
    Operator,
    PathType,
    Rank,
    Route,
    Subject,
    count_comparisons,
)

ROUTE = {
    "name": "web",
    "path": {"type": "prefix", "value": "/"},
    "provenance": {"cluster": "a", "kind": "Ingress", "namespace": "default", "name": "web"},
}
BEFORE_OTHERS = (
    Rank(path_priority=1),
    Rank(written_length=1),
    Rank(has_method=True),
    Rank(headers=1),
    Rank(query_parameters=1),
    Rank(comparisons=1),
    Rank(),
)
"""Each goes before those that follow."""
METHOD = Compare(subject=Subject.METHOD, values=("GET",))
HEADER = Compare(subject=Subject.HEADER, name="x", operator=Operator.PRESENT)


@pytest.mark.parametrize("behind", [Rank(is_default=True), Rank(is_unreadable=True)])
def test_the_fields_decide_in_their_order_and_what_gives_way_goes_last(behind: Rank) -> None:
    order = [*BEFORE_OTHERS, behind]
    assert sorted(reversed(order), key=lambda rank: rank.within_path) == order


def test_a_greater_count_of_a_later_field_does_not_outweigh_an_earlier_one() -> None:
    assert Rank(headers=1).within_path < Rank(query_parameters=9, comparisons=9).within_path
    assert Rank(path_priority=1).within_path < Rank(written_length=100_000).within_path


def test_among_routes_for_the_same_requests_one_that_gives_way_loses_whatever_its_priority() -> None:
    order = [
        Rank(priority=1),
        Rank(path_priority=1),
        Rank(written_length=2),
        Rank(),
        Rank(priority=9, path_priority=9, is_default=True),
    ]
    assert sorted(reversed(order), key=lambda rank: rank.within_match) == order
    assert Rank(headers=1, comparisons=1).within_match == Rank().within_match


def test_priority_goes_before_the_kind_of_path_and_that_before_its_length() -> None:
    order = [
        Rank(priority=1).before_path(PathType.PREFIX, 1),
        Rank().before_path(PathType.EXACT, 1),
        Rank().before_path(PathType.REGEX, 1),
        Rank().before_path(PathType.PREFIX, 9),
        Rank().before_path(PathType.STRING_PREFIX, 8),
        Rank(priority=-1).before_path(PathType.EXACT, 9),
    ]
    assert sorted(order) == order


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (None, 0),
        (METHOD, 1),
        (Not(negated=AllOf(all_of=(METHOD, HEADER))), 1),
        (AllOf(all_of=(METHOD, HEADER)), 2),
        (AnyOf(any_of=(METHOD, AllOf(all_of=(METHOD, HEADER)))), 2),
        (AnyOf(any_of=()), 0),
    ],
)
def test_comparisons_are_counted_of_alternatives_the_most(condition: Condition | None, expected: int) -> None:
    assert count_comparisons(condition) == expected


def test_the_priority_of_a_route_of_schema_6_is_that_of_its_rank() -> None:
    assert Route.model_validate_json(json.dumps({**ROUTE, "priority": 10})).rank == Rank(priority=10)


def test_a_rank_comes_back_as_it_was() -> None:
    written = Route.model_validate({**ROUTE, "rank": {"priority": 1, "headers": 2, "is_default": True}})
    encoded = written.model_dump_json(exclude_defaults=True)
    assert json.loads(encoded)["rank"] == {"priority": 1, "headers": 2, "is_default": True}
    assert Route.model_validate_json(encoded) == written


@pytest.mark.parametrize("wrong", [{"rank": {"age": 1}}, {"rank": "high"}, {"rank": {}, "priority": 1}])
def test_a_rank_that_is_none_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Route.model_validate({**ROUTE, **wrong})
