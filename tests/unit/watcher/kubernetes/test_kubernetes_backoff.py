"""How long is waited."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from headgate.watcher.api.backoff import Backoff, WatchPauses, slow_backoff


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


def test_watches_that_do_not_live_are_waited_for_five_seconds_and_in_the_end_half_a_minute() -> None:
    pauses, now, delays = WatchPauses(Latest()), 0.0, []
    for _ in range(30):
        delays.append(pauses.next_delay(now))
        now += delays[-1]
    assert delays == [0.8, 1.6, 3.2, *[5.0] * 17, *[30.0] * 10]


def test_watches_that_end_now_and_then_are_never_waited_for_longer_than_five_seconds() -> None:
    pauses, now = WatchPauses(Latest()), 0.0
    for number in range(500):  # bursts of three, every 20 s
        delay = pauses.next_delay(now)
        assert delay <= 5.0
        now += delay + (0.0 if number % 3 else 20.0)


def test_a_watch_that_lived_for_some_seconds_makes_up_for_one_that_did_not() -> None:
    pauses = WatchPauses(Latest())
    pauses.next_delay(0)
    assert pauses.next_delay(0.8) == 1.6
    assert pauses.next_delay(0.8 + 1.6 + 10) == 0.8


def test_the_server_rests_from_a_list_for_as_long_as_it_took_which_is_no_time_that_a_watch_lived() -> None:
    pauses = WatchPauses(Latest())
    assert pauses.next_delay(0) == 0.8
    assert pauses.next_delay(0.8 + 10, list_s=10) == 1.6 + 10


@given(st.integers(0, 1000))
def test_waits_spread_over_the_whole_time(seed: int) -> None:
    delays = [Backoff(Random(seed + number)).next_delay(0) for number in range(50)]
    assert min(delays) < 0.2
    assert max(delays) > 0.6
