"""What stands in for a version with errors, heard of in order, in the history or in records."""

from datetime import UTC, datetime

from headgate.common.deltas import Delta, GoodVersion, LastGood, Operation
from headgate.common.problems import Problem
from headgate.common.resources import ObjectRef
from headgate.translator.world.last_good import JudgedVersion, ObjectVersions, VersionId
from headgate.translator.world.versions import NO_RECORD, Record, VersionTracker

REF = ObjectRef("a", "", "services", "default", "web")
NOW = datetime(2024, 1, 1, tzinfo=UTC)
BAD = Problem(reason="Bad", message="bad")


def delta(sequence: int, content: str = "", uid: str = "u") -> Delta:
    """`content`: what is written; `bad` has errors, none is a deletion."""
    return Delta(
        ref=REF,
        operation=Operation.APPLY if content else Operation.DELETE,
        uid=uid,
        resource_version=str(sequence),
        observed_at=NOW,
        object={"content": content} if content else None,
        sequence=sequence,
    )


def judge(one: Delta | GoodVersion) -> JudgedVersion:
    content = (one.object or {})["content"]
    version = VersionId(one.uid, one.resource_version, 0, one.sequence)
    return JudgedVersion(content, version, (BAD,) if content == "bad" else ())


def follow(tracker: VersionTracker, *deltas: Delta) -> ObjectVersions | None:
    for one in deltas:
        tracker.follow(REF, judge(one) if one.object else None)
    return tracker.get(REF)


def record(refused: int, good: Delta | None = None) -> LastGood:
    if good is None:
        return LastGood(ref=REF, refused=refused)
    version = GoodVersion(
        uid=good.uid, resource_version=good.resource_version, object=good.object or {}, sequence=good.sequence
    )
    return LastGood(ref=REF, refused=refused, good=version)


def remember(tracker: VersionTracker, said: LastGood) -> None:
    tracker.remember(REF, said, judge)


def stand_in(tracker: VersionTracker) -> int | None:
    """Sequence of the version that stands in."""
    standing = tracker.get(REF)
    return standing.good.version.sequence if standing and standing.good else None


def test_whoever_followed_from_the_beginning_is_sure() -> None:
    tracker = VersionTracker()
    follow(tracker, delta(1, "good"), delta(2, "bad"))
    assert stand_in(tracker) == 1
    assert not tracker.unsure


def test_a_version_with_errors_that_is_the_first_to_be_heard_of_leaves_doubt() -> None:
    tracker = VersionTracker()
    follow(tracker, delta(9, "bad"))
    assert list(tracker.unsure) == [REF]
    assert tracker.record(REF) is None


def test_the_history_names_the_good_version() -> None:
    tracker = VersionTracker()
    follow(tracker, delta(9, "bad"))
    tracker.recall(REF, [delta(3, "good"), delta(5, "bad"), delta(9, "bad")], judge)
    assert stand_in(tracker) == 3
    assert not tracker.unsure


def test_a_record_of_the_very_version_settles_it() -> None:
    tracker = VersionTracker()
    follow(tracker, delta(9, "bad"))
    remember(tracker, record(9, delta(3, "good")))
    assert stand_in(tracker) == 3
    assert not tracker.unsure
    assert not tracker.unwritten


def test_a_record_that_there_is_none_settles_it_too() -> None:
    tracker = VersionTracker()
    follow(tracker, delta(9, "bad"))
    remember(tracker, record(9))
    assert stand_in(tracker) is None
    assert not tracker.unsure
    assert not tracker.unwritten


def test_a_record_of_an_earlier_version_counts_only_after_the_history_was_read() -> None:
    tracker = VersionTracker()
    remember(tracker, record(5, delta(3, "good")))
    follow(tracker, delta(9, "bad"))
    assert stand_in(tracker) is None
    tracker.recall(REF, [delta(8, "bad"), delta(9, "bad")], judge)
    assert stand_in(tracker) == 3


def test_nothing_from_before_a_deletion_stands_in_whatever_records_say() -> None:
    tracker = VersionTracker()
    remember(tracker, record(5, delta(3, "good")))
    follow(tracker, delta(9, "bad"))
    tracker.recall(REF, [delta(5, "bad"), delta(7), delta(9, "bad")], judge)
    assert stand_in(tracker) is None


def test_nor_does_a_record_that_is_heard_of_before_the_history_was_read() -> None:
    tracker = VersionTracker()
    follow(tracker, delta(9, "bad"))
    remember(tracker, record(5, delta(3, "good")))
    tracker.recall(REF, [delta(5, "bad"), delta(7), delta(9, "bad")], judge)
    assert stand_in(tracker) is None


def test_a_record_from_after_a_deletion_counts() -> None:
    tracker = VersionTracker()
    remember(tracker, record(10, delta(9, "good")))
    follow(tracker, delta(12, "bad"))
    tracker.recall(REF, [delta(8), delta(12, "bad")], judge)
    assert stand_in(tracker) == 9


def test_a_newer_good_version_of_the_history_goes_before_a_record() -> None:
    tracker = VersionTracker()
    remember(tracker, record(5, delta(3, "good")))
    follow(tracker, delta(9, "bad"))
    tracker.recall(REF, [delta(7, "better"), delta(9, "bad")], judge)
    assert stand_in(tracker) == 7


def test_a_late_record_of_an_older_version_changes_nothing() -> None:
    tracker = VersionTracker()
    follow(tracker, delta(1, "good"), delta(2, "bad"), delta(3, "better"), delta(4, "bad"))
    remember(tracker, record(2, delta(1, "good")))
    assert stand_in(tracker) == 3
    assert tracker.record(REF) == Record(4, 3)
    assert list(tracker.unwritten) == [REF]


def test_a_record_of_a_newer_version_than_was_heard_of_is_taken() -> None:
    tracker = VersionTracker()
    follow(tracker, delta(1, "good"), delta(9, "bad"))
    remember(tracker, record(9, delta(5, "missed")))
    assert stand_in(tracker) == 5


def test_a_record_of_another_object_of_that_name_is_ignored() -> None:
    tracker = VersionTracker()
    follow(tracker, delta(9, "bad", uid="new"))
    remember(tracker, record(9, delta(3, "good", uid="old")))
    assert stand_in(tracker) is None


def test_a_record_is_withdrawn_when_the_object_is_mended_or_gone() -> None:
    tracker = VersionTracker()
    follow(tracker, delta(1, "good"), delta(2, "bad"))
    remember(tracker, record(2, delta(1, "good")))
    for last in (delta(3, "mended"), delta(4)):
        follow(tracker, last)
        assert tracker.record(REF) == NO_RECORD
        assert list(tracker.unwritten) == [REF]
    remember(tracker, record(0))
    assert not tracker.unwritten


def test_a_version_that_is_no_longer_good_by_our_rules_does_not_stand_in() -> None:
    tracker = VersionTracker()
    follow(tracker, delta(9, "bad"))
    remember(tracker, record(9, delta(3, "bad")))
    assert stand_in(tracker) is None
