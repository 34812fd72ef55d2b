"""Who is left out for failing requests, and for how long."""

import pytest

from headgate.common.table import Ejection
from headgate.gateway.health.ejection import Ejector, Outcome


def ejector(policy: Ejection, members: str = "abcd") -> Ejector[str]:
    made: Ejector[str] = Ejector(policy)
    made.set_members(members)
    return made


def feed(outlier: Ejector[str], *outcomes: Outcome, slot: str = "a", now: float = 0.0) -> list[bool]:
    return [outlier.report(slot, outcome, now) for outcome in outcomes]


def test_the_last_of_so_many_errors_in_a_row_ejects() -> None:
    assert feed(ejector(Ejection(consecutive_errors=3)), 500, "connect", 503) == [False, False, True]


@pytest.mark.parametrize("outcome", [200, 404, 501])
def test_an_answer_that_is_no_error_ends_the_row(outcome: int) -> None:
    assert feed(ejector(Ejection(consecutive_errors=2)), 500, outcome, 500, 500) == [False, False, False, True]


def test_errors_of_one_endpoint_do_not_count_for_another() -> None:
    outlier = ejector(Ejection(consecutive_errors=2))
    assert feed(outlier, 500, slot="a") + feed(outlier, 500, slot="b") == [False, False]


def test_errors_within_the_window_count_in_spite_of_successes_between() -> None:
    outlier = ejector(Ejection(consecutive_errors=2, window_s=10))
    assert feed(outlier, 500, 200, now=0) == [False, False]
    assert feed(outlier, 500, now=10) == [True]


def test_errors_older_than_the_window_are_forgotten() -> None:
    outlier = ejector(Ejection(consecutive_errors=2, window_s=10))
    assert [feed(outlier, 500, now=now) for now in (0, 10.5, 21)] == [[False], [False], [False]]


def test_local_errors_are_counted_apart_if_the_policy_says_so() -> None:
    policy = Ejection(consecutive_errors=2, consecutive_local_errors=3)
    assert feed(ejector(policy), "reset", 500, "timeout", 500) == [False, False, False, True]
    assert feed(ejector(policy), "reset", "connect", "timeout") == [False, False, True]


def test_any_answer_ends_a_row_of_local_errors_that_are_counted_apart() -> None:
    policy = Ejection(consecutive_errors=9, consecutive_local_errors=2)
    assert feed(ejector(policy), "reset", 500, "reset", "reset") == [False, False, False, True]


def test_only_local_errors_count_without_a_bound_for_answers() -> None:
    policy = Ejection(consecutive_errors=None, consecutive_local_errors=1)
    assert feed(ejector(policy), 500, 500, "reset") == [False, False, True]


def test_an_only_endpoint_is_never_ejected() -> None:
    assert not any(feed(ejector(Ejection(consecutive_errors=1, max_share=1), "a"), 500, 500))


def test_no_more_than_the_share_is_out_at_once_but_one_always_may() -> None:
    outlier = ejector(Ejection(consecutive_errors=1, max_share=0.1))
    assert feed(outlier, 500, slot="a") == [True]
    assert feed(outlier, 500, slot="b") == [False]


def test_an_endpoint_that_had_to_stay_goes_when_another_comes_back() -> None:
    outlier = ejector(Ejection(consecutive_errors=2, max_share=0.25, base_s=30))
    feed(outlier, 500, 500, slot="a")
    assert feed(outlier, 500, 500, slot="b", now=1) == [False, False]
    assert outlier.take_returned(30) == ["a"]
    assert feed(outlier, 500, slot="b", now=31) == [True]


def test_ejections_grow_by_the_base_up_to_the_bound() -> None:
    outlier = ejector(Ejection(consecutive_errors=1, base_s=30, max_s=75))
    now, lengths = 0.0, []
    for _ in range(4):
        feed(outlier, 500, now=now)
        until = outlier.next_return
        assert until is not None
        lengths.append(until - now)
        now = until
        outlier.take_returned(now)
    assert lengths == [30, 60, 75, 75]


def test_good_times_shorten_the_next_ejection_again() -> None:
    outlier = ejector(Ejection(consecutive_errors=1, base_s=10))
    for now in (0.0, 10.0):
        feed(outlier, 500, now=now)
        outlier.take_returned(now + 20)
    feed(outlier, 500, now=30 + 25)
    assert outlier.next_return == 55 + 10


def test_a_row_begins_anew_after_an_ejection() -> None:
    outlier = ejector(Ejection(consecutive_errors=2, base_s=5))
    feed(outlier, 500, 500)
    assert feed(outlier, 500, 500, 500, now=1) == [False, False, False]
    outlier.take_returned(5)
    assert feed(outlier, 500, 500, now=6) == [False, True]


def test_nobody_returns_before_the_time() -> None:
    outlier = ejector(Ejection(consecutive_errors=1, base_s=5))
    feed(outlier, 500)
    assert outlier.take_returned(4.9) == []
    assert outlier.take_returned(5) == ["a"]
    assert outlier.next_return is None


def test_an_endpoint_that_left_is_forgotten_and_those_that_stay_are_not() -> None:
    outlier = ejector(Ejection(consecutive_errors=1))
    feed(outlier, 500, slot="a")
    feed(outlier, 500, slot="b")
    outlier.set_members("bcde")
    assert list(outlier.ejected_until) == ["b"]
    assert feed(outlier, 500, slot="a") == [False]
