"""What watchers announce, as `headgate status` says it."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from headgate.common.deltas import ClusterAnnouncement
from headgate.common.heartbeats import Heartbeat
from headgate.common.leadership.leases import Lease
from headgate.common.problems import Severity
from headgate.common.snapshot import Manifest, Version
from headgate.operations.status.leaders import leader_problems, leaders_of
from headgate.operations.status.report import Report, is_well
from headgate.operations.status.watchers import watcher_problems

NOW = datetime.now(UTC)
MANIFEST = Manifest(
    table="default", version=Version(1, 7), created_at=NOW, causes=(), cause_count=0, inputs={"east": 9}, chunks=()
)
BEAT = Heartbeat(replica="g", worker=0, table="default", version=Version(1, 7), at=NOW)


def said(silent_s: float = 0.0, **fields: Any) -> ClusterAnnouncement:
    return ClusterAnnouncement(
        cluster="east",
        source="kubernetes",
        instance="we2",
        kinds=(),
        announced_at=NOW - timedelta(seconds=silent_s),
        **fields,
    )


def test_a_watcher_that_is_well_is_no_problem() -> None:
    well = said(40, unpublished=3, unpublished_since=NOW - timedelta(seconds=45))
    assert list(watcher_problems([well], NOW)) == []


@pytest.mark.parametrize(
    ("announced", "reason", "words"),
    [
        (said(180), "WatcherSilent", "watcher we2 was heard 3m ago"),
        (
            said(10, away_since=NOW - timedelta(seconds=32), troubles=("no answer from the API server",)),
            "ApiServerAway",
            "has not answered for 32s: no answer",
        ),
        (
            said(10, unpublished=600, unpublished_since=NOW - timedelta(minutes=8)),
            "NotPublished",
            "600 changes seen by watcher we2 not published, the oldest since 8m",
        ),
    ],
)
def test_what_keeps_changes_from_being_served_is_an_error(
    announced: ClusterAnnouncement, reason: str, words: str
) -> None:
    ((what, problem),) = watcher_problems([announced], NOW)
    assert (what, problem.reason, problem.severity) == ("cluster east", reason, Severity.ERROR)
    assert words in problem.message
    assert not is_well(Report("default", MANIFEST, (BEAT,), (), None, watchers=(announced,)))


def test_a_status_that_cannot_be_written_is_a_warning_from_anywhere() -> None:
    text = "the status of east/ingresses/shop/web cannot be written: forbidden; give the right with a Role"
    # The report goes by the clock, and this module may have been imported minutes ago.
    announced = said(troubles=(text,)).model_copy(update={"announced_at": datetime.now(UTC)})
    report = Report("default", MANIFEST, (BEAT,), (), None, watchers=(announced,))
    assert [(what, problem.message) for what, problem in report.problems] == [("cluster east", text)]
    assert is_well(report)


def test_a_translator_that_is_late_is_an_error() -> None:
    lease = Lease(
        holder="t1",
        duration_s=2.0,
        acquired_at=NOW,
        renewed_at=NOW,
        behind_since=NOW - timedelta(minutes=15),
    )
    ((what, problem),) = leader_problems(leaders_of("default", lease, []), NOW)
    assert (what, problem.reason, problem.severity) == ("translator of default", "NotCommitted", Severity.ERROR)
    assert "a change of 15m ago is in no revision" in problem.message
    soon = lease.model_copy(update={"behind_since": NOW - timedelta(seconds=20)})
    assert list(leader_problems(leaders_of("default", soon, []), NOW)) == []
