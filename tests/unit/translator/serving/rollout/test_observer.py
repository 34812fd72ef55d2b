"""What is seen of a rollout from look to look: when all have taken it, and who ended."""

from datetime import UTC, datetime, timedelta
from typing import Any

from headgate.common.heartbeats import Heartbeat, Refusal, RolloutReport, TrafficCounts
from headgate.common.snapshot import Rollout, Version
from headgate.translator.serving.rollout.decision import Observation, RolloutPolicy
from headgate.translator.serving.rollout.observer import SILENT_S, Observer

NOW = datetime(2026, 3, 1, tzinfo=UTC)
BASE, STEP = Version(7, 1), Version(7, 2)
ROLLOUT = Rollout(base=BASE, target=STEP, begun=STEP, shares=(50.0,), since=NOW, replicas=("g1", "g2"))
DONE = TrafficCounts(errors=0, bounds_s=(1.0,), buckets=(100, 0))


def beat(replica: str, worker: int = 0, *, started: int = 0, at: float = 0.0, **changes: Any) -> Heartbeat:
    report = RolloutReport(
        step=STEP, is_next=replica in ROLLOUT.replicas, started=NOW + timedelta(seconds=started), changed=DONE, all=DONE
    )
    values = {"version": STEP, "rollout": report, "table": "default", "at": NOW + timedelta(seconds=at), **changes}
    return Heartbeat(replica=replica, worker=worker, **values)


ALL = (beat("g1"), beat("g2"), beat("g3"))


def look(observer: Observer, now_s: float, *beats: Heartbeat) -> Observation:
    return observer.look(ROLLOUT, beats, RolloutPolicy(), now_s)


def test_the_window_begins_when_all_chosen_replicas_serve_the_table() -> None:
    observer = Observer()
    behind = beat("g2", version=BASE, rollout=None)
    assert look(observer, 10.0, ALL[0], behind, ALL[2]).served_s == 0.0
    assert look(observer, 12.0, *ALL).waited_s == 2.0
    assert look(observer, 15.0, *ALL).served_s == 3.0


def test_another_step_begins_with_another_window() -> None:
    observer = Observer()
    look(observer, 10.0, *ALL)
    later = ROLLOUT.model_copy(update={"begun": Version(7, 3)})
    assert observer.look(later, ALL, RolloutPolicy(), 20.0).waited_s == 0.0


def test_a_replica_of_several_workers_that_is_started_again_has_ended_once() -> None:
    observer = Observer()
    look(observer, 0.0, beat("g1", 0), beat("g1", 1), beat("g2"), beat("g3"))
    assert look(observer, 1.0, beat("g1", 0, started=5), beat("g1", 1), beat("g2"), beat("g3")).ended == ("g1",)
    assert look(observer, 2.0, beat("g1", 0, started=5), beat("g1", 1, started=5), beat("g2"), beat("g3")).ended == ()
    assert look(observer, 3.0, beat("g1", 0, started=9), beat("g1", 1, started=5), beat("g2"), beat("g3")).ended == (
        "g1",
    )


def test_a_replica_that_leaves_with_a_word_has_not_ended() -> None:
    observer = Observer()
    look(observer, 0.0, *ALL)
    look(observer, 1.0, *(beat(name, at=1.0) for name in ("g1", "g2", "g3")))
    assert look(observer, 2.0, beat("g2"), beat("g3")).ended == ()


def test_a_replica_that_is_gone_after_a_silence_has_ended_and_is_told_of_once() -> None:
    observer = Observer()
    look(observer, 0.0, *ALL)
    look(observer, SILENT_S + 0.5, *ALL)
    assert look(observer, SILENT_S + 1.0, ALL[1], ALL[2]).ended == ("g1",)
    assert look(observer, SILENT_S + 2.0, ALL[1], ALL[2]).ended == ()


def test_a_refusal_of_the_table_counts_and_one_of_an_older_revision_does_not() -> None:
    new, old = Refusal(version=STEP, reason="cannot be compiled"), Refusal(version=BASE, reason="damaged")
    assert look(Observer(), 0.0, beat("g1", refusal=new)).refusal == "g1 cannot apply it: cannot be compiled"
    assert look(Observer(), 0.0, beat("g1", refusal=old)).refusal == ""
    assert look(Observer(), 0.0, beat("g3", refusal=new)).refusal == ""


def test_without_a_rollout_there_is_the_fleet_to_see() -> None:
    assert Observer().look(None, ALL, RolloutPolicy(), 0.0) == Observation(("g1", "g2", "g3"))
    assert Observer().look(None, (), RolloutPolicy(), 0.0) == Observation()
