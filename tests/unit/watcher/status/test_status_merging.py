"""What several tables say of one object, brought together."""

from datetime import UTC, datetime, timedelta
from typing import Any

from headgate.common.resources import ObjectRef
from headgate.common.status import ConditionType, LoadBalancerAddress, StatusCondition, StatusUpdate
from headgate.watcher.status.merging import Parts, merge

NOW = datetime(2026, 3, 1, tzinfo=UTC)
ONE, TWO, SHARED = (LoadBalancerAddress(ip=f"192.0.2.{number}") for number in (1, 2, 3))


def condition(status: Any = "True", message: str = "", hours: int = 0) -> StatusCondition:
    since = NOW + timedelta(hours=hours)
    return StatusCondition(type=ConditionType.ACCEPTED, status=status, reason=status, message=message, since=since)


def said(table: str = "default", **changes: Any) -> StatusUpdate:
    values = {
        "ref": ObjectRef("a", "networking.k8s.io", "ingresses", "shop", "web"),
        "table": table,
        "api_version": "networking.k8s.io/v1",
        "kind": "Ingress",
        "uid": "u",
        "is_accepted": True,
        "addresses": (ONE,),
        "conditions": (condition(),),
        "at": NOW,
    }
    return StatusUpdate(**values | changes)


def gone(table: str) -> StatusUpdate:
    return said(table, addresses=None, conditions=(), is_accepted=False)


def let_go(table: str, *withdrawn: LoadBalancerAddress) -> StatusUpdate:
    return said(table, addresses=(), withdrawn=withdrawn, conditions=(), is_accepted=False)


def test_what_one_table_says_stays_as_it_is() -> None:
    alone = said(withdrawn=(TWO,))
    assert merge([alone]) == alone


def test_addresses_are_those_of_all_tables_the_default_ones_first() -> None:
    assert merge([said("a", addresses=(TWO, SHARED)), said(addresses=(SHARED, ONE))]).addresses == (SHARED, ONE, TWO)


def test_what_one_table_withdraws_stays_while_another_wants_it() -> None:
    merged = merge([said(addresses=(ONE,)), let_go("tenant", ONE, TWO)])
    assert (merged.addresses, merged.withdrawn, merged.is_accepted) == ((ONE,), (TWO,), True)


def test_addresses_that_nobody_knows_now_are_left_alone() -> None:
    assert merge([said(addresses=None), said("tenant", addresses=None)]).addresses is None
    assert merge([said(addresses=None), said("tenant")]).addresses == (ONE,)


def test_of_a_condition_the_worst_counts_and_says_in_which_table() -> None:
    bad = condition("False", "no path")
    [merged] = merge([said(conditions=(condition(message="fine"),)), said("tenant", conditions=(bad,))]).conditions
    assert (merged.status, merged.reason, merged.message) == ("False", "False", "table tenant: no path")


def test_a_condition_that_holds_everywhere_has_the_words_of_all_and_the_time_of_the_last() -> None:
    parts = [
        said("tenant", conditions=(condition(message="two", hours=2),)),
        said(conditions=(condition(message="one"),)),
    ]
    [merged] = merge(parts).conditions
    assert (merged.message, merged.since) == ("one; table tenant: two", NOW + timedelta(hours=2))


def test_a_condition_that_fails_fails_since_the_first_table_said_so() -> None:
    parts = [said(f"t{hours}", conditions=(condition("False", hours=hours),)) for hours in (3, 1, 2)]
    [merged] = merge(parts).conditions
    assert merged.since == NOW + timedelta(hours=1)


def test_the_generation_is_one_that_every_table_has_seen() -> None:
    assert merge([said(generation=4), said("tenant", generation=3)]).generation == 3
    assert merge([said(generation=4), let_go("tenant").model_copy(update={"generation": 0})]).generation == 4


def test_what_was_said_of_an_object_that_was_made_anew_counts_no_more() -> None:
    old = said("tenant", uid="old", addresses=(TWO,), at=NOW - timedelta(hours=1))
    assert merge([old, said()]).addresses == (ONE,)
    late = let_go("tenant", TWO).model_copy(update={"uid": "old", "at": NOW + timedelta(hours=1)})
    assert merge([said(), late]).uid == "u"


def test_each_table_has_its_last_word_until_the_object_is_gone() -> None:
    parts = Parts()
    parts.take(said())
    assert parts.take(said("tenant", addresses=(TWO,))).addresses == (ONE, TWO)
    assert parts.take(said("tenant", addresses=(SHARED,))).addresses == (ONE, SHARED)
    assert parts.take(gone("tenant")).addresses == (ONE,)
    assert parts.take(gone("default")).addresses is None
    assert parts.take(said("tenant", addresses=(TWO,))).addresses == (TWO,)
