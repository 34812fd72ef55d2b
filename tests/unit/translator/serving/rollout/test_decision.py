"""The state machine of rollouts: what becomes of one, as of one look."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.common.snapshot import THIS_REVISION, Rollout, RolloutMove, RolloutPhase, Version
from headgate.operations.rollouts.analysis import RolloutVerdict
from headgate.translator.serving.rollout.decision import Observation, Outcome, RolloutPolicy, Tables, advance, choose

NOW = datetime(2026, 3, 1, tzinfo=UTC)
BASE = Version(7, 1)
POLICY = RolloutPolicy(shares=(10.0, 50.0), window_s=60)
LIVE = ("g1", "g2", "g3", "g4")
LATER = Tables(BASE, is_live_served=False, is_live_next=True)
WAITING = Tables(BASE, is_live_served=False, is_live_next=False)


def stepping(*replicas: str, **changes: Any) -> Rollout:
    values: dict[str, Any] = {"target": Version(7, 2), "begun": Version(7, 2), "shares": POLICY.shares, "since": NOW}
    return Rollout(base=BASE, replicas=replicas or ("g2",), **values | changes)


def held(**changes: Any) -> Rollout:
    return stepping(phase=RolloutPhase.HELD, reason="errors", **changes).model_copy(update={"replicas": ()})


def after(rollout: Rollout | None, tables: Tables = LATER, **seen: Any) -> Outcome:
    return advance(rollout, tables, Observation(**{"live": LIVE, **seen}), POLICY, NOW)


def moves(outcome: Outcome) -> list[RolloutMove]:
    return [moved.what for moved in outcome.moves]


def test_a_rollout_begins_where_the_live_table_differs_from_what_all_serve() -> None:
    outcome = after(None)
    assert outcome.rollout is not None
    assert (outcome.rollout.base, outcome.rollout.target, len(outcome.rollout.replicas)) == (BASE, THIS_REVISION, 1)
    assert moves(outcome) == [RolloutMove.BEGUN]
    assert after(None, LATER._replace(is_live_served=True)) == Outcome(None)


@pytest.mark.parametrize("live", [(), ("g1",)])
def test_with_fewer_than_two_replicas_nothing_is_staged(live: tuple[str, ...]) -> None:
    assert after(None, live=live) == Outcome(None)


def test_a_window_that_is_not_over_changes_nothing() -> None:
    assert after(stepping(), served_s=59.0) == Outcome(stepping())


def test_a_window_that_is_over_is_followed_by_more_replicas() -> None:
    outcome = after(stepping(), served_s=60.0)
    assert outcome.rollout is not None
    assert (outcome.rollout.step, len(outcome.rollout.replicas), outcome.rollout.begun) == (1, 2, THIS_REVISION)
    assert "g2" in outcome.rollout.replicas
    assert outcome.rollout.target == Version(7, 2)


def test_a_step_that_adds_no_replica_is_left_out() -> None:
    outcome = after(stepping(), live=("g1", "g2"), served_s=60.0)
    assert (outcome.rollout, moves(outcome)) == (None, [RolloutMove.DONE])


def test_after_the_last_step_come_all_and_what_waited_begins() -> None:
    last = stepping("g1", "g2", step=1)
    assert moves(after(last, served_s=60.0)) == [RolloutMove.DONE]
    outcome = after(last, WAITING, served_s=60.0)
    assert moves(outcome) == [RolloutMove.DONE, RolloutMove.BEGUN]
    assert outcome.rollout is not None
    assert (outcome.rollout.base, outcome.rollout.step) == (Version(7, 2), 0)


def test_what_is_worse_goes_back_before_the_window_is_over() -> None:
    outcome = after(stepping(), verdict=RolloutVerdict(is_judged=True, worse="errors 50%"))
    assert outcome.rollout is not None
    assert (outcome.rollout.phase, outcome.rollout.replicas, outcome.rollout.reason) == ("held", (), "errors 50%")
    assert moves(outcome) == [RolloutMove.WENT_BACK]


def test_what_went_back_stays_so_until_the_table_is_another() -> None:
    assert after(held(), served_s=1e9) == Outcome(held())
    outcome = after(held(), WAITING)
    assert moves(outcome) == [RolloutMove.BEGUN]
    assert outcome.rollout is not None
    assert (outcome.rollout.phase, outcome.rollout.reason, outcome.rollout.base) == ("stepping", "", BASE)


@pytest.mark.parametrize("live", [(), ("g1",)])
def test_what_went_back_stays_so_while_there_is_nothing_to_compare(live: tuple[str, ...]) -> None:
    assert after(held(), WAITING, live=live) == Outcome(held())


@pytest.mark.parametrize("rollout", [stepping(), held()])
def test_a_table_that_is_not_wanted_any_more_ends_its_rollout(rollout: Rollout) -> None:
    outcome = after(rollout, LATER._replace(is_live_served=True))
    assert (outcome.rollout, moves(outcome)) == (None, [RolloutMove.WITHDRAWN])


def test_a_replica_that_leaves_is_replaced_and_the_step_begins_anew() -> None:
    outcome = after(stepping(), live=("g1", "g3", "g4"))
    assert outcome.rollout is not None
    assert (len(outcome.rollout.replicas), outcome.rollout.begun, outcome.rollout.ended) == (1, THIS_REVISION, ())
    assert outcome.moves[0].note.startswith("g2 left; step 1 of 3: ")


def test_the_first_end_without_a_word_is_noted_and_the_second_goes_back() -> None:
    once = after(stepping(), ended=("g2",))
    assert once.rollout == stepping(ended=("g2",))
    twice = after(once.rollout, ended=("g2",))
    assert twice.rollout is not None
    assert twice.rollout.reason == "g2 ended 2 times without a word after taking it"


def test_one_replica_that_is_left_takes_the_table_after_a_window_and_not_before() -> None:
    assert after(stepping(), live=("g1",), alone_s=59.0) == Outcome(stepping())
    assert moves(after(stepping(), live=("g1",), alone_s=60.0)) == [RolloutMove.DONE]


def test_what_may_have_ended_a_replica_does_not_go_to_the_last_one() -> None:
    once = after(stepping(), live=("g1",), ended=("g2",))
    assert once.rollout == stepping(ended=("g2",))
    assert after(once.rollout, live=("g1",), alone_s=1e9) == Outcome(once.rollout)


def test_a_step_is_not_over_while_a_chosen_replica_is_away() -> None:
    assert after(stepping(), live=("g1",), served_s=1e9) == Outcome(stepping())


def test_while_no_replica_is_heard_of_nothing_is_decided() -> None:
    assert after(stepping(), live=(), waited_s=1e9) == Outcome(stepping())


def test_a_table_that_is_refused_or_not_taken_goes_back() -> None:
    for seen in ({"refusal": "g2 cannot apply it"}, {"waited_s": 61.0}):
        outcome = after(stepping(), **seen)
        assert moves(outcome) == [RolloutMove.WENT_BACK]


NAMES = st.sets(st.sampled_from([f"g{number}" for number in range(30)]), min_size=2)


@given(NAMES, st.floats(0.1, 99.9), NAMES)
def test_the_choice_is_of_those_that_live_at_least_one_and_never_all(
    live: set[str], percent: float, before: set[str]
) -> None:
    chosen = choose(sorted(before), sorted(live), percent, BASE)
    assert set(chosen) <= live
    assert 1 <= len(chosen) < len(live)
    assert chosen == tuple(sorted(chosen))
    if len(before & live) < len(live):
        assert before & live <= set(chosen)


@given(NAMES, st.integers(1, 99), st.integers(1, 99))
def test_a_greater_share_keeps_who_was_chosen(live: set[str], one: int, other: int) -> None:
    first = choose((), sorted(live), min(one, other), BASE)
    assert set(first) <= set(choose(first, sorted(live), max(one, other), BASE))


def test_a_share_is_rounded_to_whole_replicas() -> None:
    counts = {
        (percent, size): len(choose((), [f"g{n}" for n in range(size)], percent, BASE))
        for percent, size in [(10, 3), (10, 10), (50, 3), (50, 2), (99, 3), (33, 10)]
    }
    assert list(counts.values()) == [1, 1, 2, 1, 2, 3]
