"""What runs, who serves which revision, which clusters are known, and what is wrong.

What is wrong comes from three places: the status board (the translator, about objects), the log's markers (the
watchers, about kinds) and, for a stack of `up`, the admin sites of its services (files, objects too large, readiness).
"""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from headgate.common.deltas import ClusterAnnouncement, SyncState
from headgate.common.heartbeats import Heartbeat
from headgate.common.problems import Problem, Severity
from headgate.common.selection import EVERYTHING
from headgate.common.snapshot import Manifest, RolloutPhase
from headgate.common.status import StatusUpdate
from headgate.common.stores.opening import Stores
from headgate.common.stores.reading import read_entries
from headgate.common.table import Certificate
from headgate.common.table.shards import missing_shards
from headgate.operations.errors import OperationError
from headgate.operations.status.kinds import KindState, kind_problems, read_kinds
from headgate.operations.status.leaders import Leader, leader_problems, read_leaders
from headgate.operations.status.service_pages import ServicePage, read_pages
from headgate.operations.status.up_state import UpState
from headgate.operations.status.watchers import watcher_problems
from headgate.operations.tables.expiry import expiry_problems
from headgate.operations.tables.held import describe_pin, describe_rollout
from headgate.operations.tables.revisions import current_manifest


@dataclass(frozen=True)
class Report:
    """Everything that `status` knows."""

    table: str
    manifest: Manifest | None
    """None: never published."""
    heartbeats: tuple[Heartbeat, ...]
    updates: tuple[StatusUpdate, ...]
    """Statuses of objects with problems."""
    up: UpState | None
    """None: not started by `headgate up` on this data directory."""
    kinds: tuple[KindState, ...] = ()
    pages: tuple[ServicePage, ...] = ()
    """Admin sites of watcher and translator, if `up` runs them."""
    certificates: tuple[Certificate, ...] = ()
    """Certificates of the table."""
    leaders: tuple[Leader, ...] = ()
    watchers: tuple[ClusterAnnouncement, ...] = ()
    """What each cluster's watcher announced last."""

    @property
    def problems(self) -> list[tuple[str, Problem]]:
        """Everything that is wrong, each with what it is about: services, kinds, files, objects."""
        found = [*_stopped(self.up)] if self.up else []
        found += _pinned(self.manifest) if self.manifest else []
        found += _expiring(self)
        found += _held_back(self.manifest) if self.manifest else []
        found += _without_gateway(self)
        found += leader_problems(self.leaders)
        found += watcher_problems(self.watchers)
        found += [complaint for page in self.pages for complaint in page.complaints]
        is_page_read = any(page.service == "watcher" and not page.is_away for page in self.pages)
        # The watcher's page names each refused object; markers tell of them where there is no page.
        told = [kind.model_copy(update={"message": ""}) for kind in self.kinds if kind.state is SyncState.SYNCED]
        others = [kind for kind in self.kinds if kind.state is not SyncState.SYNCED]
        found += kind_problems([*told, *others] if is_page_read else self.kinds)
        on_board = {(str(update.ref), problem) for update in self.updates for problem in update.problems}
        announced = {trouble for one in self.watchers for trouble in one.troubles}
        for page in self.pages:
            found += [
                (one.what, one.problem)
                for one in page.problems
                if (one.object, one.problem) not in on_board and one.problem.message not in announced
            ]
        clusters = {*(self.manifest.inputs if self.manifest else ()), *(update.ref.cluster for update in self.updates)}
        for update in self.updates:
            where = f" in {update.ref.cluster}" if len(clusters) > 1 else ""
            what = f"{update.kind} {update.ref.namespace}/{update.ref.name}{where}"
            found += [(what, problem) for problem in update.problems]
        return [(what, problem) for what, problem in found if problem.severity is not Severity.INFO]


def _pinned(manifest: Manifest) -> Iterator[tuple[str, Problem]]:
    pin = manifest.pin
    if pin is None:
        return
    message = f"{describe_pin(pin)}; changes of objects wait for `headgate unpin`"
    yield f"table {manifest.table}", Problem(severity=Severity.WARNING, reason="Pinned", message=message)


def _held_back(manifest: Manifest) -> Iterator[tuple[str, Problem]]:
    rollout = manifest.rollout
    if rollout is not None and rollout.phase is RolloutPhase.HELD:
        message = f"{describe_rollout(rollout)}; changed objects wait, `headgate rollout` says which"
        yield f"table {manifest.table}", Problem(severity=Severity.WARNING, reason="HeldBack", message=message)


def _without_gateway(report: Report) -> Iterator[tuple[str, Problem]]:
    missing = missing_shards(beat.part for beat in report.heartbeats if beat.version is not None)
    if missing:
        message = (
            f"no gateway serves shard {', '.join(map(str, missing))}: requests for its hosts are answered with 421; "
            "start gateways with this HEADGATE_SHARD"
        )
        yield f"table {report.table}", Problem(reason="ShardWithoutGateway", message=message)


def _expiring(report: Report) -> Iterator[tuple[str, Problem]]:
    is_pinned = report.manifest is not None and report.manifest.pin is not None
    for certificate, problem in expiry_problems(report.certificates, datetime.now(UTC), is_pinned=is_pinned):
        yield f"certificate {certificate.key}", problem


def _stopped(up: UpState) -> list[tuple[str, Problem]]:
    problem = Problem(reason="NotRunning", message="it ended and is being started again; its log lines say why")
    return [(name, problem) for name in sorted(up.restarts) if name not in up.processes]


async def read_report(stores: Stores, table: str, up: UpState | None = None) -> Report:
    """Ask about a table everything that `Report` holds, and the services of an `up` besides.

    Raises:
        StoreUnavailable: no answer.
    """
    try:
        _, manifest = await current_manifest(stores.snapshots, table)
    except OperationError:
        manifest = None
    selection = manifest.selection if manifest else EVERYTHING
    announced = await stores.log_reader.announcements()
    kinds = [kind for kind in await read_kinds(stores.bus) if selection.has_cluster(kind.cluster)]
    pages = await read_pages(up) if up else []
    clusters = sorted({kind.cluster for kind in kinds}.union(manifest.inputs if manifest else ()))
    boards = await asyncio.gather(*(_problems(stores, cluster, table) for cluster in clusters))
    heartbeats = [beat for beat in await stores.heartbeats.live() if beat.table == table]
    certificates = await _certificates(stores, manifest) if manifest else ()
    return Report(
        table=table,
        manifest=manifest,
        heartbeats=tuple(sorted(heartbeats, key=lambda beat: (beat.replica, beat.worker))),
        updates=tuple(update for board in boards for update in board),
        up=up,
        kinds=tuple(kinds),
        pages=tuple(pages),
        certificates=tuple(certificates),
        leaders=tuple(await read_leaders(stores.leases, stores.log_reader, table)),
        watchers=tuple(one for one in announced if selection.has_cluster(one.cluster)),
    )


async def _certificates(stores: Stores, manifest: Manifest) -> list[Certificate]:
    names = [name for name in manifest.chunks if name.kind == "certificates"]
    return [entry for entry in await read_entries(stores.snapshots, names) if isinstance(entry, Certificate)]


async def _problems(stores: Stores, cluster: str, table: str) -> list[StatusUpdate]:
    updates = await stores.statuses.read(cluster, table, with_problems=True)
    return [update for update in updates if any(one.severity is not Severity.INFO for one in update.problems)]


def is_well(report: Report) -> bool:
    """Whether everything is served as it is written."""
    return (
        report.manifest is not None
        and bool(report.heartbeats)
        and all(beat.version == report.manifest.version for beat in report.heartbeats)
        and not any(problem.severity is Severity.ERROR for _, problem in report.problems)
    )


def as_document(report: Report) -> dict[str, Any]:
    """Return the report as JSON data."""
    manifest = report.manifest
    return {
        "is_well": is_well(report),
        "table": report.table,
        "published": manifest
        and manifest.model_dump(mode="json", include={"version", "created_at", "inputs", "cause_count", "selection"}),
        "pin": manifest and manifest.pin and manifest.pin.model_dump(mode="json", exclude={"live", "waiting"}),
        "rollout": manifest
        and manifest.rollout
        and manifest.rollout.model_dump(mode="json", exclude={"live", "next", "waiting"}),
        "leaders": [leader.model_dump(mode="json", exclude={"is_lease"}) for leader in report.leaders],
        "gateways": [beat.model_dump(mode="json") for beat in report.heartbeats],
        "objects": [update.model_dump(mode="json", include={"ref", "kind", "problems"}) for update in report.updates],
        "kinds": [kind.model_dump(mode="json") for kind in report.kinds],
        "services": [page.model_dump(mode="json", include={"service", "is_away", "checks"}) for page in report.pages],
        "problems": [{"what": what, **problem.model_dump(mode="json")} for what, problem in report.problems],
        "up": report.up and report.up.model_dump(mode="json"),
    }
