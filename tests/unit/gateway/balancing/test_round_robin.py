"""Smooth weighted round robin: exact over a period, spread within it, undisturbed by swaps."""

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.gateway.balancing.deadline_turns import turns_by_weight
from headgate.gateway.balancing.round_robin import SmoothRoundRobin, Turns

WEIGHTS = st.lists(st.integers(0, 12), min_size=1, max_size=6)


def ring(weights: list[int], offset: int = 0) -> SmoothRoundRobin[int]:
    return SmoothRoundRobin(enumerate(weights), offset)


@given(WEIGHTS, st.integers(0, 1000))
def test_every_period_gives_each_item_exactly_its_weight(weights: list[int], offset: int) -> None:
    turns = ring(weights, offset)
    for _ in range(2):
        counts = Counter(turns.choose() for _ in range(sum(weights)))
        assert [counts[index] for index in range(len(weights))] == weights


def test_turns_of_a_heavy_item_are_spread() -> None:
    turns = ring([5, 1, 1])
    assert [turns.choose() for _ in range(7)] == [0, 0, 1, 0, 2, 0, 0]


@given(st.integers(1, 20), st.integers(0, 1000))
def test_equal_weights_never_repeat_an_item_within_a_round(count: int, offset: int) -> None:
    turns = ring([7] * count, offset)
    assert len({turns.choose() for _ in range(count)}) == count


def test_ring_without_weight_has_nobody() -> None:
    assert ring([0, 0]).choose() is None
    assert ring([]).choose(lambda item: True) is None


def test_different_offsets_begin_with_different_items() -> None:
    assert {ring([1] * 10, offset).choose() for offset in range(10)} == set(range(10))


@pytest.mark.parametrize("weights", [[1, 1, 1], [3, 1, 2]])
def test_skipped_items_get_no_turn_while_there_are_others(weights: list[int]) -> None:
    turns = ring(weights)
    assert {turns.choose(lambda item: item == 0) for _ in range(12)} == {1, 2}


@pytest.mark.parametrize("weights", [[1, 1], [3, 1]])
def test_a_skipped_item_is_chosen_if_all_are_skipped(weights: list[int]) -> None:
    assert ring(weights).choose(lambda item: True) in (0, 1)


@given(WEIGHTS, st.integers(0, 40))
def test_an_unchanged_ring_goes_on_where_its_predecessor_stood(weights: list[int], turns_before: int) -> None:
    old, undisturbed = ring(weights), ring(weights)
    for _ in range(turns_before):
        old.choose()
        undisturbed.choose()
    new = ring(weights, offset=5)
    new.adopt(old)
    assert [new.choose() for _ in range(20)] == [undisturbed.choose() for _ in range(20)]


def test_adding_an_item_does_not_restart_the_round() -> None:
    old = SmoothRoundRobin([("a", 1), ("b", 1), ("c", 1)])
    old.choose()
    new = SmoothRoundRobin([("a", 1), ("b", 1), ("c", 1), ("d", 1)])
    new.adopt(old)
    assert [new.choose() for _ in range(4)] == ["b", "c", "d", "a"]


def test_removing_the_next_item_goes_on_with_the_one_after_it() -> None:
    old = SmoothRoundRobin([("a", 1), ("b", 1), ("c", 1)])
    old.choose()
    new = SmoothRoundRobin([("a", 1), ("c", 1)])
    new.adopt(old)
    assert new.choose() == "c"


def test_smoothness_bounds_the_distance_between_turns() -> None:
    turns = ring([4, 2, 2])
    sequence = [turns.choose() for _ in range(24)]
    positions = [index for index, item in enumerate(sequence) if item == 0]
    assert max(after - before for before, after in pairwise(positions)) <= 3


def test_a_change_of_scale_does_not_let_an_item_run_on() -> None:
    old = SmoothRoundRobin([("a", 30_000), ("b", 29_999)])
    old.choose()
    new = SmoothRoundRobin([("a", 2), ("b", 1)])
    new.adopt(old)
    assert Counter(new.choose() for _ in range(12)) == {"a": 8, "b": 4}


def many(weights: list[int], offset: int = 0) -> Turns[int]:
    return turns_by_weight(enumerate(weights), offset)


UNEQUAL = [1, 2, 3, 7] * 50


def test_among_many_each_item_gets_its_weight_in_every_period() -> None:
    turns = many(UNEQUAL, offset=3)
    for _ in range(3):
        counts = Counter(turns.choose() for _ in range(sum(UNEQUAL)))
        assert all(abs(counts[index] - weight) <= 1 for index, weight in enumerate(UNEQUAL))


def test_turns_of_light_items_among_many_do_not_bunch() -> None:
    turns = many([3] * 100 + [1] * 100)
    sequence = [turns.choose() for _ in range(400)]
    assert all(15 <= sum(item >= 100 for item in sequence[start : start + 80]) <= 25 for start in range(0, 400, 80))


def test_a_turn_among_many_does_not_look_at_all_of_them() -> None:
    looked_at: list[int] = []
    turns = many([1 + index % 3 for index in range(5000)])
    turns.choose(lambda item: bool(looked_at.append(item)))
    assert len(looked_at) == 1


def test_among_many_skipped_items_get_no_turn_and_keep_theirs() -> None:
    turns, undisturbed = many(UNEQUAL), many(UNEQUAL)
    first = [undisturbed.choose() for _ in range(4)]
    skipped = turns.choose(lambda item: item in first[:3])
    assert skipped == first[3]
    assert [turns.choose() for _ in range(3)] == first[:3]
    assert turns.choose(lambda item: True) in range(len(UNEQUAL))


@pytest.mark.parametrize(("before", "after"), [(UNEQUAL, UNEQUAL), ([2] * 200, UNEQUAL), (UNEQUAL, [2] * 200)])
def test_among_many_no_round_is_begun_anew_by_a_swap(before: list[int], after: list[int]) -> None:
    old, new = many(before), many(after)
    had = {old.choose() for _ in range(60)}
    new.adopt(old)
    assert not {new.choose() for _ in range(20)} & {item for item in had if item is not None and before[item] < 3}


def test_many_without_weight_have_nobody() -> None:
    assert many([0] * 100).choose() is None
    assert len({many(UNEQUAL, offset).choose() for offset in range(8)}) > 1
