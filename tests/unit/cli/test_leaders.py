"""Who works, as `headgate status` says it."""

from datetime import UTC, datetime, timedelta

from headgate.cli.commands.status import leader_rows
from headgate.common.deltas import ClusterAnnouncement
from headgate.common.heartbeats import Heartbeat
from headgate.common.leadership.leases import Lease
from headgate.common.snapshot import Manifest, Version
from headgate.common.stores.memory.stores import MemoryStores
from headgate.operations.status.leaders import SILENT_AFTER, leader_problems, leaders_of, read_leaders
from headgate.operations.status.report import Report, as_document, is_well

NOW = datetime.now(UTC)
MANIFEST = Manifest(
    table="default", version=Version(1, 7), created_at=NOW, causes=(), cause_count=0, inputs={"east": 9}, chunks=()
)
BEAT = Heartbeat(replica="g", worker=0, table="default", version=Version(1, 7), at=NOW)


def lease(holder: str, silent_for: timedelta = timedelta(0)) -> Lease:
    now = datetime.now(UTC)
    return Lease(holder=holder, duration_s=2.0, acquired_at=now - timedelta(hours=3), renewed_at=now - silent_for)


def announcement(cluster: str, instance: str) -> ClusterAnnouncement:
    now = datetime.now(UTC)
    return ClusterAnnouncement(cluster=cluster, source="kubernetes", instance=instance, kinds=(), announced_at=now)


def test_each_work_is_shown_with_who_does_it() -> None:
    found = leaders_of("default", lease("pod-1"), [announcement("west", "w-2"), announcement("east", "w-1")])
    assert list(leader_rows(found)) == [
        ("translator of default", "pod-1", "3h ago", "0s ago"),
        ("watcher of east", "w-1", "-", "0s ago"),
        ("watcher of west", "w-2", "-", "0s ago"),
    ]


def test_a_translator_without_a_lease_is_not_shown() -> None:
    assert leaders_of("default", None, []) == []


def test_a_lease_that_nobody_renews_is_a_problem() -> None:
    ((what, problem),) = leader_problems(leaders_of("default", lease("pod-1", timedelta(minutes=3)), []))
    assert (what, problem.reason) == ("translator of default", "NobodyLeads")
    assert "pod-1 renewed the lease last, 3m ago" in problem.message


def test_a_lease_that_was_given_back_is_one_only_if_nobody_takes_it() -> None:
    assert list(leader_problems(leaders_of("default", lease(""), []))) == []
    ((_, problem),) = leader_problems(leaders_of("default", lease("", SILENT_AFTER * 2), []))
    assert "was given back" in problem.message
    assert next(leader_rows(leaders_of("default", lease(""), [])))[1:3] == ("none", "-")


def test_the_report_names_leaders_and_is_well_with_them() -> None:
    leaders = tuple(leaders_of("default", lease("pod-1"), [announcement("east", "w-1")]))
    report = Report("default", MANIFEST, (BEAT,), (), None, leaders=leaders)
    assert is_well(report)
    assert [(one["work"], one["holder"]) for one in as_document(report)["leaders"]] == [
        ("translator of default", "pod-1"),
        ("watcher of east", "w-1"),
    ]


async def test_they_are_read_from_the_stores() -> None:
    stores = MemoryStores()
    await stores.leases.write("translator.edge", lease("pod-1"), None)
    await stores.log_writer.announce(announcement("east", "w-1"))
    found = await read_leaders(stores.leases, stores.log_reader, "edge")
    assert [(one.work, one.holder) for one in found] == [("translator of edge", "pod-1"), ("watcher of east", "w-1")]
