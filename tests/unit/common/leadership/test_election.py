"""When a lease may be taken, renewed and relied on."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.common.leadership.election import IMPATIENCE, LONGEST, Election, Pace, Timing
from headgate.common.leadership.leases import Lease, StoredLease

TIMING = Timing(duration_s=15.0, renew_deadline_s=10.0, retry_s=2.0)
WALL = datetime(2026, 3, 1, 12, tzinfo=UTC)


def wall(now: float) -> datetime:
    return WALL + timedelta(seconds=now)


def theirs(version: str = "1", holder: str = "other", transitions: int = 4) -> StoredLease:
    lease = Lease(holder=holder, duration_s=15.0, acquired_at=WALL, renewed_at=WALL, transitions=transitions)
    return StoredLease(lease, version)


def bid(election: Election, now: float, *, is_ready: bool = True) -> Lease | None:
    return election.bid(now, wall(now), is_ready=is_ready)


def test_a_lease_that_nobody_has_is_taken_at_once() -> None:
    one = Election("one", TIMING)
    one.observe(None, 0.0)
    lease = bid(one, 0.0)
    assert lease == Lease(holder="one", duration_s=15.0, acquired_at=WALL, renewed_at=WALL, transitions=0)


def test_a_lease_is_relied_on_from_when_writing_it_began() -> None:
    one = Election("one", TIMING)
    one.observe(None, 0.0)
    lease = bid(one, 0.0)
    assert lease is not None
    assert not one.is_leader(0.0)
    one.won(StoredLease(lease, "1"), began_at=0.0, now=5.0)
    assert one.is_leader(9.9)
    assert not one.is_leader(10.0)


def test_a_renewal_keeps_who_and_since_when() -> None:
    one = leader()
    lease = bid(one, 2.0)
    assert lease is not None
    assert (lease.holder, lease.acquired_at, lease.renewed_at, lease.transitions) == ("one", WALL, wall(2.0), 0)


def leader() -> Election:
    one = Election("one", TIMING)
    one.observe(None, 0.0)
    lease = bid(one, 0.0)
    assert lease is not None
    one.won(StoredLease(lease, "1"), 0.0, 0.0)
    return one


def test_a_lease_of_another_is_taken_when_it_stood_unchanged_for_its_duration() -> None:
    one = Election("one", TIMING)
    one.observe(theirs(), 100.0)
    one.observe(theirs(), 110.0)
    assert bid(one, 114.9) is None
    lease = bid(one, 115.0)
    assert lease is not None
    assert (lease.holder, lease.acquired_at, lease.transitions) == ("one", wall(115.0), 5)


def test_a_lease_that_was_renewed_is_waited_for_anew() -> None:
    one = Election("one", TIMING)
    one.observe(theirs("1"), 100.0)
    one.observe(theirs("2"), 114.0)
    assert bid(one, 128.9) is None
    assert bid(one, 129.0) is not None


@pytest.mark.parametrize("skew_s", [-86_400, 86_400])
def test_the_clock_of_the_holder_does_not_matter(skew_s: float) -> None:
    one, at = Election("one", TIMING), wall(skew_s)
    one.observe(StoredLease(theirs().lease.model_copy(update={"acquired_at": at, "renewed_at": at}), "1"), 0.0)
    assert bid(one, 14.9) is None
    assert bid(one, 15.0) is not None


def test_a_lease_that_was_given_back_is_taken_at_once() -> None:
    one = Election("one", TIMING)
    one.observe(theirs("1"), 0.0)
    one.observe(theirs("2", holder=""), 1.0)
    assert bid(one, 1.0) is not None


def test_one_that_is_not_ready_leaves_a_free_lease_to_others_for_a_while() -> None:
    one = Election("one", TIMING)
    one.observe(theirs(holder=""), 0.0)
    assert bid(one, 14.9, is_ready=False) is None
    assert bid(one, 15.0, is_ready=False) is not None


def test_one_that_is_not_ready_takes_a_lease_that_never_was() -> None:
    one = Election("one", TIMING)
    one.observe(None, 0.0)
    assert bid(one, 0.0, is_ready=False) is not None


def test_a_process_that_is_started_again_waits_for_three_renewals_only() -> None:
    again = Election("one", TIMING)
    again.observe(theirs(holder="one"), 0.0)
    assert bid(again, 5.9) is None
    assert bid(again, 6.0) is not None


def test_a_namesake_that_lives_keeps_its_lease() -> None:
    again = Election("one", TIMING)
    for second in range(0, 100, 2):
        again.observe(theirs(str(second), holder="one"), float(second))
        assert bid(again, float(second)) is None
        assert not again.is_ours


def test_a_write_that_was_not_confirmed_is_found_to_have_been_made() -> None:
    one = Election("one", TIMING)
    one.observe(None, 0.0)
    lease = bid(one, 0.0)
    assert lease is not None
    one.observe(StoredLease(lease, "1"), 3.0)
    assert one.is_ours
    assert bid(one, 3.0) is not None


def test_a_holder_that_sees_another_has_lost_it_at_once() -> None:
    one = leader()
    one.observe(theirs("2"), 3.0)
    assert not one.is_leader(3.0)
    assert bid(one, 4.0) is None


def test_giving_back_ends_it_and_names_nobody() -> None:
    one = leader()
    lease = one.resign(wall(3.0))
    assert lease is not None
    assert (lease.holder, lease.transitions) == ("", 0)
    assert not one.is_leader(3.0)


def test_what_is_not_ours_is_not_given_back() -> None:
    one = Election("one", TIMING)
    one.observe(theirs(), 0.0)
    assert one.resign(WALL) is None


def test_a_leader_looks_again_after_the_retry_period_or_when_it_expires() -> None:
    one = leader()
    assert one.next_look_at(1.0, 1.0, is_ready=True) == 3.0
    assert one.next_look_at(9.0, 1.0, is_ready=True) == 10.0


def test_one_that_waits_looks_again_with_jitter_or_when_the_lease_is_free() -> None:
    one = Election("one", TIMING)
    one.observe(theirs(), 0.0)
    assert one.next_look_at(1.0, 0.5, is_ready=True) == pytest.approx(3.2)
    assert one.next_look_at(14.0, 0.5, is_ready=True) == 15.0
    assert one.next_look_at(16.0, 0.5, is_ready=True) == pytest.approx(18.2)


@pytest.mark.parametrize(
    ("numbers", "words"), [((1, 2, 0), "retry"), ((15, 2.4, 2), "renew_deadline_s (2.4)"), ((10, 10, 2), "duration")]
)
def test_numbers_that_would_let_two_lead_are_refused(numbers: tuple[float, float, float], words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        Timing(*numbers)


def test_a_slow_holder_writes_a_longer_duration_and_relies_on_it_in_proportion() -> None:
    election, stored = Election("one", TIMING), None
    for count, began_s in enumerate((0.0, 12.0, 24.0)):  # each later than the renewal deadline
        election.observe(stored, began_s)
        lease = bid(election, began_s)
        assert lease is not None
        stored = StoredLease(lease, str(count))
        election.won(stored, began_s, began_s + 0.1)
    assert stored is not None
    stretch = stored.lease.duration_s / TIMING.duration_s
    assert 3.0 <= stretch <= LONGEST
    assert election.is_leader(24.0 + TIMING.renew_deadline_s * stretch - 0.01)
    assert not election.is_leader(24.0 + TIMING.renew_deadline_s * stretch)


def test_a_holder_that_is_fast_again_comes_back_to_the_planned_times() -> None:
    pace = Pace(TIMING)
    pace.renewed_after(100.0)
    assert pace.stretch == LONGEST
    for _ in range(60):
        pace.renewed_after(TIMING.retry_s)
    assert pace.stretch == 1.0


def test_a_lease_lost_to_another_is_held_for_longer_the_next_time() -> None:
    election = Election("one", TIMING)
    lease = bid(election, 0.0)
    assert lease is not None
    election.won(StoredLease(lease, "1"), 0.0, 0.1)
    election.observe(StoredLease(lease.model_copy(update={"holder": "other"}), "2"), 5.0)
    again = bid(election, 60.0)
    assert again is not None
    assert again.duration_s == TIMING.duration_s * IMPATIENCE


def test_a_board_that_was_away_is_no_slowness_of_the_holder() -> None:
    election = Election("one", TIMING)
    lease = bid(election, 0.0)
    assert lease is not None
    election.won(StoredLease(lease, "1"), 0.0, 0.1)
    election.board_was_away()
    again = bid(election, 60.0)
    assert again is not None
    assert again.duration_s == TIMING.duration_s


class Candidate:
    """One of several, each with a clock of its own."""

    def __init__(self, name: str, clock_at_start: float) -> None:
        self.election = Election(name, TIMING)
        self._start = clock_at_start

    def now(self, time: float) -> float:
        return self._start + time

    def act(self, time: float, stored: StoredLease | None) -> Lease | None:
        self.election.observe(stored, self.now(time))
        return bid(self.election, self.now(time))

    def leads(self, time: float) -> bool:
        return self.election.is_leader(self.now(time))


@given(
    st.lists(st.tuples(st.integers(0, 2), st.floats(0, 12), st.floats(0, 4), st.booleans()), max_size=60),
    st.tuples(*[st.floats(-1e4, 1e4)] * 3),
)
def test_never_two_lead_whatever_is_slow_or_lost(
    steps: list[tuple[int, float, float, bool]], clocks: tuple[float, float, float]
) -> None:
    """Each step: who acts, after which pause, for how long a write is on its way, and whether its answer is lost."""
    time, writes, stored = 0.0, 0, None
    candidates = [Candidate(f"c{number}", clock) for number, clock in enumerate(clocks)]
    for place, pause_s, way_s, is_answer_lost in steps:
        time += pause_s
        one = candidates[place]
        began, lease = time, one.act(time, stored)
        time += way_s
        if lease is not None:
            writes += 1
            stored = StoredLease(lease, str(writes))
            if not is_answer_lost:
                one.election.won(stored, one.now(began), one.now(time))
        assert sum(each.leads(time) for each in candidates) <= 1
