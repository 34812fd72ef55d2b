"""Who works, of the watchers and translators that run in pairs: as their leases and announcements say."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

from pydantic import BaseModel, ConfigDict

from headgate.common.deltas import ClusterAnnouncement
from headgate.common.leadership.leases import Lease, translator_lease
from headgate.common.problems import Problem, Severity
from headgate.common.stores import DeltaLogReader, LeaseBoard
from headgate.operations.status.watchers import LATE_AFTER
from headgate.operations.wording import age

SILENT_AFTER = timedelta(seconds=15)
"""A lease that was not renewed for this long has no holder any more; clocks of two machines differ by less."""


class Leader(BaseModel):
    """The process that does one work."""

    model_config = ConfigDict(frozen=True)

    work: str
    """`translator of default`, `watcher of paris`."""
    holder: str
    """Name of the process; empty: the lease was given back, and no other process has taken it."""
    since: datetime | None
    """None for watchers, as only the Lease in their cluster says it."""
    seen: datetime
    """When the holder gave its last sign of life, by its own clock."""
    is_lease: bool = False
    behind_since: datetime | None = None
    """When the oldest change was made that it has not put into a revision."""


async def read_leaders(leases: LeaseBoard, log: DeltaLogReader, table: str) -> list[Leader]:
    """Return who commits a table and who publishes each cluster; of services without a lease nothing is known."""
    stored = await leases.read(translator_lease(table))
    return leaders_of(table, stored.lease if stored else None, await log.announcements())


def leaders_of(table: str, lease: Lease | None, announcements: Sequence[ClusterAnnouncement]) -> list[Leader]:
    """Bring together what leases and announcements say."""
    found = []
    if lease is not None:
        found.append(
            Leader(
                work=f"translator of {table}",
                holder=lease.holder,
                since=lease.acquired_at,
                seen=lease.renewed_at,
                is_lease=True,
                behind_since=lease.behind_since,
            )
        )
    for one in sorted(announcements, key=lambda one: one.cluster):
        found.append(Leader(work=f"watcher of {one.cluster}", holder=one.instance, since=None, seen=one.announced_at))
    return found


def leader_problems(leaders: Sequence[Leader], now: datetime | None = None) -> Iterator[tuple[str, Problem]]:
    """Yield the leases that no process holds any more, and holders that are late with their work."""
    for one in leaders:
        if one.behind_since is not None and one.seen - one.behind_since > LATE_AFTER:
            message = (
                f"a change of {age(one.behind_since, now)} ago is in no revision; look at the log of {one.holder}, and "
                "whether it or NATS has too little CPU"
            )
            yield one.work, Problem(reason="NotCommitted", message=message)
        if one.is_lease and (now or datetime.now(UTC)) - one.seen > SILENT_AFTER:
            last = f"{one.holder} renewed the lease last" if one.holder else "the lease was given back"
            message = f"no process leads: {last}, {age(one.seen, now)} ago; changes wait"
            yield one.work, Problem(severity=Severity.WARNING, reason="NobodyLeads", message=message)
