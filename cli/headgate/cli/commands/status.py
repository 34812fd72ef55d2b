"""`headgate status`: what runs, who serves which revision, which clusters are known, and what is wrong.

What is wrong comes from three places: the status board (the translator, about objects), the log's markers (the
watchers, about kinds) and, for a stack of `up`, the admin sites of its services (files, objects too large, readiness).
"""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import click

from headgate.cli.commands.rollout import describe_rollout
from headgate.cli.running import object_status
from headgate.cli.running.expiry import expiry_problems
from headgate.cli.running.inputs import KindState, kind_problems, read_kinds
from headgate.cli.running.leaders import Leader, leader_problems, leader_rows, read_leaders
from headgate.cli.running.object_status import ObjectName, parse_object
from headgate.cli.running.service_pages import ServicePage, read_pages
from headgate.cli.running.store import ask_stores, current_manifest, store_options
from headgate.cli.running.watchers import watcher_problems
from headgate.cli.terminal.errors import CommandError, ExitCode
from headgate.cli.terminal.group import TeachingCommand
from headgate.cli.terminal.rendering import age, count_of, print_json, print_table
from headgate.cli.up.data_dir import UpState, read_state
from headgate.common.deltas import ClusterAnnouncement, SyncState
from headgate.common.heartbeats import Heartbeat
from headgate.common.problems import Problem, Severity
from headgate.common.selection import EVERYTHING, Selection
from headgate.common.snapshot import Manifest, Pin, RolloutPhase, Version
from headgate.common.status import StatusUpdate
from headgate.common.stores.opening import Stores
from headgate.common.stores.reading import read_entries
from headgate.common.table import Certificate


@dataclass(frozen=True)
class Report:
    """Everything that `status` knows."""

    table: str
    manifest: Manifest | None
    """None: never published."""
    heartbeats: tuple[Heartbeat, ...]
    updates: tuple[StatusUpdate, ...]
    """Of objects with problems."""
    up: UpState | None
    """None: not started by `headgate up` on this data directory."""
    kinds: tuple[KindState, ...] = ()
    pages: tuple[ServicePage, ...] = ()
    """Of watcher and translator, if `up` runs them."""
    certificates: tuple[Certificate, ...] = ()
    """Of the table."""
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


def _expiring(report: Report) -> Iterator[tuple[str, Problem]]:
    is_pinned = report.manifest is not None and report.manifest.pin is not None
    for certificate, problem in expiry_problems(report.certificates, datetime.now(UTC), is_pinned=is_pinned):
        yield f"certificate {certificate.key}", problem


def describe_pin(pin: Pin) -> str:
    """Say what a table is pinned to, by whom, when and why."""
    frozen = ", endpoints too" if pin.is_frozen else ""
    by = f" by {pin.by}" if pin.by else ""
    return f"pinned to {pin.version}{frozen} {age(pin.since)} ago{by}{f': {pin.reason}' if pin.reason else ''}"


def describe_selection(selection: Selection) -> str:
    """Say which clusters and namespaces a table is made of."""
    parts = (("clusters", selection.clusters), ("namespaces", selection.namespaces))
    return "; ".join(f"{what} {', '.join(names) or '*'}" for what, names in parts)


def _stopped(up: UpState) -> list[tuple[str, Problem]]:
    problem = Problem(reason="NotRunning", message="it ended and is being started again; its log lines say why")
    return [(name, problem) for name in sorted(up.restarts) if name not in up.processes]


@click.command(
    cls=TeachingCommand,
    examples=["headgate status", "headgate status ingress/shop/web", "headgate status service/shop/web --json"],
    read_more="docs/status.md",
)
@click.argument("object_name", metavar="[OBJECT]", required=False, default="")
@store_options
def status(object_name: str, nats_url: str, data_dir: Path, table: str, as_json: bool) -> int:
    """Say what runs, which revision is published and applied, which clusters are known, and what is wrong.

    With an OBJECT, written KIND/NAMESPACE/NAME, say how that one stands in every table that it is in: whether it is
    accepted, what it refers to, in which revision it is served, by which replicas, and what was wrong last. KIND is
    ingress or service.

    Exit code 1 if no table is published, a gateway lags behind, a change is not served for a minute, a watcher or an
    API server is away, or there is an error: in a file, an object, a kind that may not be read, or a service; with an
    OBJECT, if that one is not served everywhere as it is written.
    """
    if object_name:
        return _status_of(parse_object(object_name), nats_url, data_dir, as_json=as_json)
    up = read_state(data_dir) if not nats_url else None
    report = ask_stores(nats_url, data_dir, lambda stores: _read(stores, table, up))
    if as_json:
        print_json(as_document(report))
    else:
        print_report(report)
    return ExitCode.OK if is_well(report) else ExitCode.NEGATIVE


def _status_of(name: ObjectName, nats_url: str, data_dir: Path, *, as_json: bool) -> int:
    updates, heartbeats = ask_stores(nats_url, data_dir, lambda stores: _read_object(stores, name))
    if not updates:
        raise CommandError(
            f"nothing is known of {name}: there is no such object, it is of another class, or it was deleted"
        )
    if as_json:
        print_json(object_status.as_document(updates, heartbeats))
    else:
        object_status.print_object(updates, heartbeats)
    return ExitCode.OK if object_status.is_well(updates, heartbeats) else ExitCode.NEGATIVE


async def _read_object(stores: Stores, name: ObjectName) -> tuple[list[StatusUpdate], list[Heartbeat]]:
    clusters = sorted({kind.cluster for kind in await read_kinds(stores.bus)})
    boards = await asyncio.gather(*(stores.statuses.read(cluster) for cluster in clusters))
    found = [update for board in boards for update in board if name.is_meant(update)]
    return object_status.present_only(found), [*await stores.heartbeats.live()]


async def _read(stores: Stores, table: str, up: UpState | None) -> Report:
    try:
        _, manifest = await current_manifest(stores.snapshots, table)
    except CommandError:
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
    updates = await stores.statuses.read(cluster, table)
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


def print_report(report: Report) -> None:
    """Print the report for people."""
    manifest = report.manifest
    if manifest is None:
        click.echo(f"table {report.table}: never published")
    else:
        click.echo(f"table {report.table}: revision {manifest.version}, published {age(manifest.created_at)} ago")
        if manifest.pin:
            click.echo(click.style(describe_pin(manifest.pin), bold=True))
        if manifest.rollout:
            click.echo(click.style(describe_rollout(manifest.rollout), bold=True))
        click.echo(f"clusters: {', '.join(sorted(manifest.inputs)) or 'none'}")
        if manifest.selection != EVERYTHING:
            click.echo(f"selects: {describe_selection(manifest.selection)}")
    if report.up:
        _section("services", ("SERVICE", "PROCESS", "RESTARTS"), _services(report.up))
    if report.leaders:
        _section("leaders", ("WORK", "WHO", "SINCE", "SEEN"), leader_rows(report.leaders))
    _section(
        "gateways",
        ("REPLICA", "WORKER", "APPLIED", "BEHIND", "CONNECTIONS", "REQUESTS", "SEEN"),
        (_gateway_row(beat, manifest) for beat in sorted(report.heartbeats, key=partial(_place, manifest))),
    )
    unread = [kind for kind in report.kinds if kind.state is not SyncState.SYNCED]
    if unread:
        rows = ((kind.cluster, kind.name, kind.state, kind.message or "-") for kind in unread)
        _section("kinds that are not read", ("CLUSTER", "KIND", "STATE", "WHY"), rows)
    _section(
        "problems",
        ("ABOUT", "SEVERITY", "REASON", "WHAT"),
        ((what, problem.severity, problem.reason, problem) for what, problem in report.problems),
    )


def _section(heading: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    found = list(rows)
    click.echo(f"\n{heading}: {len(found) or 'none'}")
    if found:
        print_table(columns, found)


def _services(up: UpState) -> list[tuple[str, object, int]]:
    names = sorted({*up.processes, *up.restarts})
    return [(name, up.processes.get(name, "being restarted"), up.restarts.get(name, 0)) for name in names]


def _place(manifest: Manifest | None, beat: Heartbeat) -> tuple[bool, Version]:
    """Order laggards first, those that are furthest behind on top."""
    return manifest is None or beat.version == manifest.version, beat.version or Version(0, 0)


def _gateway_row(beat: Heartbeat, manifest: Manifest | None) -> tuple[object, ...]:
    numbers = beat.connections, beat.requests_total, age(beat.at)
    return beat.replica, beat.worker, _applied(beat), describe_lag(beat, manifest), *numbers


def describe_lag(beat: Heartbeat, manifest: Manifest | None) -> str:
    """Say how many revisions a worker is behind what is published, and since when; `-`: none.

    A replica that does not know the current revision yet is behind at least since its creation.
    """
    if manifest is None or beat.version == manifest.version:
        return "-"
    if beat.version is None:
        missing = "all"
    elif beat.version.epoch != manifest.version.epoch:
        missing = "another epoch"
    elif beat.version > manifest.version:
        return "-"
    else:
        missing = count_of(manifest.version.revision - beat.version.revision, "revision")
    return f"{missing}, {age(min(beat.behind_since or manifest.created_at, manifest.created_at))}"


def _applied(beat: Heartbeat) -> str:
    if beat.version is None:
        return "nothing yet"
    notes = [f"pinned to {beat.pinned}"] if beat.pinned else []
    notes += [f"routes of {beat.routes}"] if beat.routes else []
    notes += [f"cannot apply {beat.refusal.version}: {beat.refusal.reason}"] if beat.refusal else []
    return f"{beat.version} ({', '.join(notes)})" if notes else str(beat.version)
