"""How many requests may be sent again, by what was sent lately."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.common.table import RetryBudget
from headgate.gateway.health.budget import RecentBudget


def budget(share: float = 0.2, interval_s: float = 10.0, least: int = 0, least_interval_s: float = 1.0) -> RecentBudget:
    return RecentBudget(RetryBudget(share=share, interval_s=interval_s, least=least, least_interval_s=least_interval_s))


def retried(bounds: RecentBudget, now: float, tries: int = 1000) -> int:
    return [bounds.begin_retry(now) for _ in range(tries)].count(True)


@pytest.mark.parametrize(("share", "retries"), [(0.0, 0), (0.2, 25), (0.5, 100), (1.0, 1000)])
def test_a_share_of_all_requests_may_be_retries(share: float, retries: int) -> None:
    bounds = budget(share)
    for _ in range(100):
        bounds.begin(50.0)
    assert retried(bounds, 50.0) == retries


def test_requests_count_for_the_interval_and_no_longer() -> None:
    bounds = budget(interval_s=10)
    for _ in range(100):
        bounds.begin(50.0)
    assert retried(bounds, 59.9, 10) == 10
    assert retried(bounds, 71.0) == 0


def test_retries_count_for_the_interval_and_no_longer() -> None:
    bounds = budget()
    for second in range(40):
        for _ in range(8):
            bounds.begin(float(second))
        retried(bounds, float(second), 5)
    assert retried(bounds, 39.0) == 0
    for _ in range(80):
        bounds.begin(50.0)
    assert retried(bounds, 50.0) == 20


def test_the_least_rate_holds_whatever_the_share_is() -> None:
    bounds = budget(share=0.0, least=3, least_interval_s=2)
    assert retried(bounds, 7.0) == 3
    assert retried(bounds, 8.9) == 0
    assert retried(bounds, 9.2) == 3


@given(st.lists(st.tuples(st.floats(0, 3), st.booleans()), max_size=60), st.sampled_from([0.1, 0.5, 1.0]))
def test_no_more_than_the_share_and_the_least_rate_are_retries(steps: list[tuple[float, bool]], share: float) -> None:
    bounds, now = budget(share, interval_s=4, least=2, least_interval_s=4), 100.0
    requests: list[float] = []
    retries: list[float] = []
    for wait_s, is_retry in steps:
        now += wait_s
        if not is_retry:
            bounds.begin(now)
            requests.append(now)
        elif bounds.begin_retry(now):
            retries.append(now)
            late = now - 4 * 22 / 20
            lately = len([at for at in retries if at > now - 4])
            everything = len([at for at in (*requests, *retries) if at >= late])
            assert lately <= max(2, share * everything) + 1e-9
