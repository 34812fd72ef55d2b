"""`headgate history`: the revisions of a table and what led to them."""

import asyncio
import json
import os
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import click

from headgate.cli.running.revisions import find_revision, parse_name
from headgate.cli.running.store import ask_stores, store_options
from headgate.cli.terminal.errors import UsageMistake
from headgate.cli.terminal.group import TeachingCommand
from headgate.cli.terminal.moments import FORMS, parse_moment
from headgate.cli.terminal.rendering import age, count_of, print_json, print_table
from headgate.common.errors import NotFound
from headgate.common.snapshot import TABLE_KIND, Cause, ChangedEntries, Manifest, Version
from headgate.common.stores import SnapshotStore
from headgate.common.stores.opening import Stores
from headgate.common.table import ENTRIES, EntryKind

SHOWN = 20
SHOWN_CAUSES = 3
SHOWN_HOSTS = 3
READ_AT_ONCE = 16

IsWanted = Callable[[Manifest], bool]


@click.command(
    cls=TeachingCommand,
    examples=[
        "headgate history",
        "headgate history --no-endpoints",
        "headgate history --since 2h --host shop.example",
        "headgate history --since 14:00 --until 14:30    # what changed meanwhile",
        "headgate history --at 14:03                     # what was served then, and what led to it",
        "headgate history --json-lines >> audit.jsonl",
        "headgate history --json-lines --since 1767225600.57    # what came after that revision",
    ],
    read_more="docs/history.md",
)
@click.option("--limit", type=click.IntRange(1), metavar="N", help=f"How many at most; {SHOWN}, or all as JSON lines.")
@click.option(
    "--since",
    default="",
    show_default=False,
    metavar="WHEN",
    help="Only what came after a revision (57, HEAD~5) or since a time (2h, 14:03, 2026-01-31).",
)
@click.option(
    "--until",
    default="",
    show_default=False,
    metavar="WHEN",
    help="Only what came up to a revision or a time.",
)
@click.option(
    "--at",
    default="",
    show_default=False,
    metavar="WHEN",
    help="Only the revision that was the newest at a time.",
)
@click.option("--host", default="", show_default=False, metavar="HOST", help="Only what changed this virtual host.")
@click.option("--no-endpoints", is_flag=True, help="Leave out revisions to which nothing but endpoints led.")
@click.option("--json-lines", is_flag=True, help="Print one JSON object for each revision, oldest first: for audits.")
@store_options
def history(
    limit: int | None,
    since: str,
    until: str,
    at: str,
    host: str,
    no_endpoints: bool,
    json_lines: bool,
    nats_url: str,
    data_dir: Path,
    table: str,
    as_json: bool,
) -> None:
    """List the revisions of the route table, newest first: when, which objects led to it, by whom, which hosts changed.

    Who it was is the user that the API server named to the webhook, else the field manager of the object's last change,
    as Kubernetes keeps it, or the file that the object stands in. Kubernetes does not record who deleted an object.
    While the table is pinned, changes that wait are listed too.
    """
    if as_json and json_lines:
        raise UsageMistake("--json and --json-lines exclude each other")
    if at and (since or until):
        raise UsageMistake("--at asks for one revision: leave out --since and --until")
    most = 1 if at else limit or (None if json_lines else SHOWN)
    window = _Window(since, until or at, "--at" if at else "--until")

    def is_wanted(manifest: Manifest) -> bool:
        return not (no_endpoints and manifest.is_routine) and (not host or host in changed_hosts(manifest))

    found = ask_stores(nats_url, data_dir, lambda stores: _read(stores, table, most, window, is_wanted))
    if as_json:
        print_json([as_document(manifest) for manifest in found])
    elif json_lines:
        for manifest in reversed(found):
            click.echo(json.dumps(as_document(manifest)))
    else:
        _print(found)


class _Window(NamedTuple):
    """Which revisions are asked for, by time or number."""

    since: str
    until: str
    flag: str
    """That named the end."""


async def _read(stores: Stores, table: str, limit: int | None, window: _Window, is_wanted: IsWanted) -> list[Manifest]:
    snapshots = stores.snapshots
    after = await _parse_bound(snapshots, table, window.since, "--since")
    past = await _parse_bound(snapshots, table, window.until, window.flag)
    found: list[Manifest] = []
    newest_first = [*reversed(await snapshots.versions(table))]
    for start in range(0, len(newest_first), READ_AT_ONCE):
        group = newest_first[start : start + READ_AT_ONCE]
        for manifest in await asyncio.gather(*(_manifest(snapshots, table, version) for version in group)):
            if manifest is None:
                continue
            if (window.since and not after(manifest)) or (limit is not None and len(found) == limit):
                return found
            if is_wanted(manifest) and not (window.until and past(manifest)):
                found.append(manifest)
    return found


async def _parse_bound(snapshots: SnapshotStore, table: str, text: str, flag: str) -> IsWanted:
    """Return whether a revision came after what a flag names: after a revision, or at a time or later."""
    if not text:
        return lambda _: True
    try:
        parse_name(text)
    except UsageMistake:
        pass
    else:
        version = (await find_revision(snapshots, table, text)).version
        return lambda manifest: manifest.version > version
    try:
        moment = parse_moment(text, datetime.now(UTC))
    except UsageMistake:
        raise UsageMistake(f"{flag} {text!r}: give a revision such as 57 or HEAD~5, or {FORMS}") from None
    if flag == "--since":
        return lambda manifest: manifest.created_at >= moment
    return lambda manifest: manifest.created_at > moment


async def _manifest(snapshots: SnapshotStore, table: str, version: Version) -> Manifest | None:
    try:
        return await snapshots.get_manifest(table, version)
    except NotFound:
        return None  # collected between the two questions


def as_document(manifest: Manifest) -> dict[str, Any]:
    """Return all that is known of a revision but its chunks, as JSON data."""
    left_out: dict[str, Any] = {"chunks": True, "traceparent": True, "pin": {"live"}, "rollout": {"live", "next"}}
    document = manifest.model_dump(mode="json", exclude=left_out)
    named = {"revision": str(manifest.version)} | document  # as it is typed, besides the two numbers
    if manifest.pin:
        named["pin"]["revision"] = str(manifest.pin.version)
    return named


def changed_hosts(manifest: Manifest) -> set[str]:
    """Return the hosts that a revision changed, or would have without a pin or a rollout."""
    held = manifest.pin or manifest.rollout
    parts = [manifest.changed, held.waiting if held else {}]
    return {name for changed in parts if "hosts" in changed for name in changed["hosts"].names}


def _print(found: list[Manifest]) -> None:
    print_table(("REVISION", "AGE", "PUBLISHED", "CHANGED", "CAUSES"), (row for one in found for row in _rows(one)))
    if found and found[0].pin:
        click.echo(f"pinned to {found[0].pin.version}: `headgate diff pinned live` shows what waits")
    if found and found[0].rollout:
        click.echo(f"{found[0].rollout.target} is not served by all: `headgate rollout` says why")


def _rows(manifest: Manifest) -> Iterator[tuple[object, ...]]:
    """Yield the lines of a revision: a cause on each, so that they stay narrow."""
    published = f"{manifest.created_at.astimezone():%Y-%m-%d %H:%M:%S}"
    first, *others = describe_causes(manifest)
    yield manifest.version, age(manifest.created_at), published, describe_changes(manifest), first
    for cause in others:
        yield "", "", "", "", cause


def describe_changes(manifest: Manifest) -> str:
    """Say in a few words what a revision changed, and what of it waits."""
    served = describe_entries(manifest.changed)
    held = manifest.pin or manifest.rollout
    waiting = describe_entries(held.waiting) if held else ""
    is_first = manifest.rollout is not None and manifest.rollout.target == manifest.version
    verb = "rolls out" if is_first else "waits"
    return "; ".join([*filter(None, [served]), *([f"{verb}: {waiting}"] if waiting else [])]) or "-"


def describe_entries(changed: Mapping[EntryKind, ChangedEntries]) -> str:
    """Say which entries, or how many."""
    return ", ".join(_parts(changed))


def _parts(changed: Mapping[EntryKind, ChangedEntries]) -> Iterator[str]:
    if hosts := changed.get("hosts"):
        yield from hosts.names[:SHOWN_HOSTS]
        if hosts.count > SHOWN_HOSTS:
            yield f"{count_of(hosts.count - SHOWN_HOSTS, 'more host')}"
    for kind, row in ENTRIES.items():
        if kind in changed and kind != "hosts":
            yield count_of(changed[kind].count, row.noun)


def describe_causes(manifest: Manifest) -> list[str]:
    """Say what led to a revision, a line for each of the first causes."""
    shown = [_describe_cause(cause) for cause in manifest.causes[:SHOWN_CAUSES]]
    more = manifest.cause_count - len(shown)
    return [*shown, f"and {more} more"] if more > 0 else shown or ["translated again"]


def _describe_cause(cause: Cause) -> str:
    by = f" by {shown_author(cause.by)}" if cause.by else ""
    if cause.kind == TABLE_KIND:
        return f"{cause.operation} {cause.note}{by}"
    name = "/".join(part for part in (cause.cluster, cause.namespace, cause.name) if part)
    return f"{cause.operation} {cause.kind} {name}{by}{f': {cause.note}' if cause.note else ''}"


def shown_author(name: str) -> str:
    """Files are named from here, where that is shorter."""
    return min(name, os.path.relpath(name), key=len) if name.startswith("/") else name
