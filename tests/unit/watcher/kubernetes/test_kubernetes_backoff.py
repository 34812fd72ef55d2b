"""How long is waited."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from headgate.watcher.sources.kubernetes.backoff import Backoff, slow_backoff


class Latest(Random):
    """Always the longest wait."""

    def uniform(self, a: float, b: float) -> float:
        return b


def test_each_wait_may_be_twice_as_long_up_to_half_a_minute() -> None:
    backoff, now, delays = Backoff(Latest()), 0.0, []
    for _ in range(8):
        delays.append(backoff.next_delay(now))
        now += delays[-1]
    assert delays == [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30, 30]


def test_two_healthy_minutes_start_it_anew() -> None:
    backoff = Backoff(Latest())
    backoff.next_delay(0)
    assert backoff.next_delay(0.8 + 119) == 1.6
    assert backoff.next_delay(0.8 + 119 + 1.6 + 121) == 0.8


def test_what_the_server_asks_for_comes_on_top() -> None:
    assert Backoff(Latest()).next_delay(0, at_least_s=10) == 10.8


def test_missing_rights_are_asked_for_between_half_a_minute_and_five() -> None:
    backoff, now = slow_backoff(Random(1)), 0.0
    for _ in range(20):
        delay = backoff.next_delay(now)
        assert 30 <= delay <= 300
        now += delay


@given(st.integers(0, 1000))
def test_waits_spread_over_the_whole_time(seed: int) -> None:
    delays = [Backoff(Random(seed + number)).next_delay(0) for number in range(50)]
    assert min(delays) < 0.2
    assert max(delays) > 0.6
