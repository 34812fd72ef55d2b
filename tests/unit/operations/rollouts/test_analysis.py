"""What counts as worse: enough of a difference, beyond chance."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.common.heartbeats import TrafficCounts
from headgate.operations.rollouts.analysis import Thresholds, judge, percentile_ms, total

BOUNDS_S = (0.01, 0.1, 1.0)
DEFAULT = Thresholds()


def counts(requests: int, errors: int = 0, *, buckets: tuple[int, ...] | None = None) -> TrafficCounts:
    return TrafficCounts(errors=errors, bounds_s=BOUNDS_S, buckets=buckets or (requests, 0, 0, 0))


@pytest.mark.parametrize(
    ("chosen", "others"),
    [
        (counts(1310, 55), counts(3902, 4)),
        (counts(50, 11), counts(500)),
        (counts(50, 50), counts(50)),
        (counts(1000, 21), counts(100_000)),
        (counts(100, 100), counts(10_000, 5000)),
    ],
)
def test_more_errors_than_the_others_beyond_chance_are_worse(chosen: TrafficCounts, others: TrafficCounts) -> None:
    assert judge(chosen, others, DEFAULT).worse.startswith("errors ")


@pytest.mark.parametrize(
    ("chosen", "others"),
    [
        (counts(50, 2), counts(500)),
        (counts(1000, 5), counts(3000)),
        (counts(1000, 500), counts(3000, 1500)),
        (counts(1000), counts(3000, 3000)),
        (counts(100_000, 900), counts(300_000)),
    ],
)
def test_errors_that_are_few_or_as_many_elsewhere_are_not(chosen: TrafficCounts, others: TrafficCounts) -> None:
    verdict = judge(chosen, others, DEFAULT)
    assert (verdict.is_judged, verdict.worse) == (True, "")


@pytest.mark.parametrize(("chosen", "others"), [(49, 10_000), (10_000, 49), (0, 0)])
def test_too_few_requests_on_either_side_are_not_judged(chosen: int, others: int) -> None:
    assert not judge(counts(chosen, chosen), counts(others), DEFAULT).is_judged


def test_it_says_the_figures() -> None:
    worse = judge(counts(1310, 55), counts(3902, 4), DEFAULT).worse
    assert worse == "errors 4.2% of 1,310 requests, against 0.1% of 3,902"


def test_slower_answers_are_worse_by_the_95th_percentile() -> None:
    worse = judge(counts(0, buckets=(800, 0, 200, 0)), counts(0, buckets=(2990, 10, 0, 0)), DEFAULT).worse
    assert worse == "95th percentile of the time to answer 1000 ms of 1,000 requests, against 10 ms of 3,000"


@pytest.mark.parametrize(
    ("chosen", "others"),
    [
        ((930, 70, 0, 0), (3000, 0, 0, 0)),  # by less than 50 ms, as far as the buckets tell
        ((940, 0, 60, 0), (3000, 0, 0, 0)),  # chance
        ((0, 0, 1000, 0), (0, 0, 3000, 0)),
        ((0, 0, 0, 1000), (0, 0, 3000, 0)),  # 1.5 s is in the last bucket, which has no bound
    ],
)
def test_what_is_not_slower_for_certain_is_not_worse(chosen: tuple[int, ...], others: tuple[int, ...]) -> None:
    assert judge(counts(0, buckets=chosen), counts(0, buckets=others), DEFAULT).worse == ""


def test_counts_are_added_up_where_they_have_the_same_bounds() -> None:
    other = TrafficCounts(errors=9, bounds_s=(1.0,), buckets=(9, 9))
    found = total([TrafficCounts(), counts(10, 1), other, counts(5, 2)])
    assert (found.requests, found.errors, percentile_ms(found)) == (15, 3, 10.0)


@pytest.mark.parametrize("usual", [0.0005, 0.005, 0.1])
def test_a_harmless_window_is_next_to_never_called_worse_by_chance(usual: float) -> None:
    draw = random.Random(1)

    def errors(requests: int) -> int:
        return sum(draw.random() < usual for _ in range(requests))

    def is_taken_back() -> bool:
        mine, theirs = 0, 0
        for second in range(1, 61):
            mine, theirs = mine + errors(10), theirs + errors(30)
            if judge(counts(10 * second, mine), counts(30 * second, theirs), DEFAULT).worse:
                return True
        return False

    assert sum(is_taken_back() for _ in range(100)) <= 1


def test_of_no_requests_there_are_figures_too() -> None:
    assert (percentile_ms(total([])), percentile_ms(counts(0)), total([]).requests) == (0.0, 0.0, 0)


SHARES = st.integers(0, 400)


@given(SHARES, SHARES)
def test_alike_sides_are_never_worse(errors: int, slow: int) -> None:
    side = counts(0, min(errors, 400), buckets=(400 - slow, 0, slow, 0))
    bigger = counts(0, 3 * errors, buckets=(3 * (400 - slow), 0, 3 * slow, 0))
    assert judge(side, bigger, DEFAULT).worse == ""


@given(SHARES, SHARES)
def test_more_errors_never_make_it_better(errors: int, usual: int) -> None:
    if judge(counts(400, errors), counts(400, usual), DEFAULT).worse.startswith("errors"):
        assert judge(counts(400, min(400, errors + 1)), counts(400, usual), DEFAULT).worse
