"""`headgate history`: the revisions of a table and what led to them."""

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import click

from headgate.cli.running.store import ask_stores, store_options
from headgate.cli.terminal.errors import UsageMistake
from headgate.cli.terminal.group import TeachingCommand
from headgate.cli.terminal.rendering import print_json, print_table
from headgate.common.snapshot import TABLE_KIND, Cause, ChangedEntries, Manifest
from headgate.common.table import ENTRIES, EntryKind
from headgate.operations.tables.history import Window, as_document, changed_hosts, read_history
from headgate.operations.wording import age, count_of

SHOWN = 20
SHOWN_CAUSES = 3
SHOWN_HOSTS = 3


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
@click.option(
    "--limit",
    type=click.IntRange(1),
    metavar="N",
    help=f"Greatest number of revisions; {SHOWN} by default, or all as JSON lines.",
)
@click.option(
    "--since",
    default="",
    show_default=False,
    metavar="WHEN",
    help="Only revisions after one (57, HEAD~5) or since a time (2h, 14:03, 2026-01-31).",
)
@click.option(
    "--until",
    default="",
    show_default=False,
    metavar="WHEN",
    help="Only revisions up to one or to a time.",
)
@click.option(
    "--at",
    default="",
    show_default=False,
    metavar="WHEN",
    help="Only the revision that was the newest at a time.",
)
@click.option(
    "--host", default="", show_default=False, metavar="HOST", help="Only revisions that changed this virtual host."
)
@click.option("--no-endpoints", is_flag=True, help="Leave out revisions that changed endpoints only.")
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

    The author of a change is the user that the API server named to the webhook. Without a webhook it is the field
    manager of the object's last change, as Kubernetes keeps it, or the file with the object. Kubernetes does not record
    who deleted an object. While the table is pinned, changes that wait are listed too.
    """
    if as_json and json_lines:
        raise UsageMistake("--json and --json-lines exclude each other")
    if at and (since or until):
        raise UsageMistake("--at asks for one revision: leave out --since and --until")
    most = limit or (None if json_lines else SHOWN)
    window = Window(since, until, at)

    def is_wanted(manifest: Manifest) -> bool:
        return not (no_endpoints and manifest.is_routine) and (not host or host in changed_hosts(manifest))

    found = ask_stores(
        nats_url, data_dir, lambda stores: read_history(stores.snapshots, table, window, is_wanted, most)
    )
    if as_json:
        print_json([as_document(manifest) for manifest in found])
    elif json_lines:
        for manifest in reversed(found):
            click.echo(json.dumps(as_document(manifest)))
    else:
        _print(found)


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
