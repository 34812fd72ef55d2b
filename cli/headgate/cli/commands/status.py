"""`headgate status`: what runs, who serves which revision, which clusters are known, and what is wrong."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

import click

from headgate.cli.running import object_status
from headgate.cli.running.store import ask_stores, store_options
from headgate.cli.terminal.errors import CommandError, ExitCode
from headgate.cli.terminal.group import TeachingCommand
from headgate.cli.terminal.rendering import print_json, print_table
from headgate.cli.up.data_dir import read_state
from headgate.common.deltas import SyncState
from headgate.common.heartbeats import Heartbeat
from headgate.common.selection import EVERYTHING, Selection
from headgate.common.snapshot import Manifest, Version
from headgate.operations.status import objects
from headgate.operations.status.leaders import Leader
from headgate.operations.status.objects import ObjectName, parse_object
from headgate.operations.status.report import Report, as_document, is_well, read_report
from headgate.operations.status.up_state import UpState
from headgate.operations.tables.held import describe_pin, describe_rollout
from headgate.operations.wording import age, count_of


def describe_selection(selection: Selection) -> str:
    """Say which clusters and namespaces a table is made of."""
    parts = (("clusters", selection.clusters), ("namespaces", selection.namespaces))
    return "; ".join(f"{what} {', '.join(names) or '*'}" for what, names in parts)


@click.command(
    cls=TeachingCommand,
    examples=["headgate status", "headgate status ingress/shop/web", "headgate status service/shop/web --json"],
    read_more="docs/status.md",
)
@click.argument("object_name", metavar="[OBJECT]", required=False, default="")
@store_options
def status(object_name: str, nats_url: str, data_dir: Path, table: str, as_json: bool) -> int:
    """Say what runs, which revision is published and applied, which clusters are known, and what is wrong.

    With an OBJECT, written KIND/NAMESPACE/NAME, it prints the status of that object in every table that has it:
    whether it is accepted, what it refers to, in which revision and by which replicas it is served, and its last
    problem. KIND is ingress, service or a resource of Apache APISIX.

    The exit code is 1 if no table is published, a gateway lags behind, a change is not served for a minute, a watcher
    or an API server is away, or a file, an object, a kind or a service has an error. With an OBJECT it is 1 if that
    object is not served everywhere as it is written.
    """
    if object_name:
        return _status_of(parse_object(object_name), nats_url, data_dir, as_json=as_json)
    up = read_state(data_dir) if not nats_url else None
    report = ask_stores(nats_url, data_dir, lambda stores: read_report(stores, table, up))
    if as_json:
        print_json(as_document(report))
    else:
        print_report(report)
    return ExitCode.OK if is_well(report) else ExitCode.NEGATIVE


def _status_of(name: ObjectName, nats_url: str, data_dir: Path, *, as_json: bool) -> int:
    updates, heartbeats = ask_stores(nats_url, data_dir, lambda stores: objects.read_object(stores, name))
    if not updates:
        raise CommandError(
            f"nothing is known of {name}: there is no such object, it is of another class, or it was deleted"
        )
    if as_json:
        print_json(objects.as_document(updates, heartbeats))
    else:
        object_status.print_object(updates, heartbeats)
    return ExitCode.OK if objects.is_well(updates, heartbeats) else ExitCode.NEGATIVE


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
    has_shards = any(beat.shard for beat in report.heartbeats)
    shard = ["SHARD"] if has_shards else []
    _section(
        "gateways",
        ("REPLICA", "WORKER", *shard, "APPLIED", "BEHIND", "CONNECTIONS", "REQUESTS", "SEEN"),
        (
            _gateway_row(beat, manifest, has_shards=has_shards)
            for beat in sorted(report.heartbeats, key=partial(_place, manifest))
        ),
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


def leader_rows(leaders: Sequence[Leader]) -> Iterator[tuple[str, str, str, str]]:
    """Yield the work, who does it, since when, and when that was last heard."""
    for one in leaders:
        since = f"{age(one.since)} ago" if one.since and one.holder else "-"
        yield one.work, one.holder or "none", since, f"{age(one.seen)} ago"


def _place(manifest: Manifest | None, beat: Heartbeat) -> tuple[bool, Version]:
    """Order laggards first, those that are furthest behind on top."""
    return manifest is None or beat.version == manifest.version, beat.version or Version(0, 0)


def _gateway_row(beat: Heartbeat, manifest: Manifest | None, *, has_shards: bool) -> tuple[object, ...]:
    shard = [beat.shard or "all"] if has_shards else []
    numbers = beat.connections, beat.requests_total, age(beat.at)
    return beat.replica, beat.worker, *shard, _applied(beat), describe_lag(beat, manifest), *numbers


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
