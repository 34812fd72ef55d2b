"""`headgate plan`: the difference that manifests would make, before they are applied."""

from pathlib import Path

import click

from headgate.cli.offline.class_options import class_options
from headgate.cli.offline.consequences import consequences
from headgate.cli.offline.correcting import place
from headgate.cli.offline.planning import TablePlan, choose_cluster, make_plan, read_world
from headgate.cli.offline.tables import Finding, translate_paths, translator_settings
from headgate.cli.running.store import ask_stores, store_options
from headgate.cli.terminal.diff_text import print_diff
from headgate.cli.terminal.errors import ExitCode
from headgate.cli.terminal.group import TeachingCommand
from headgate.cli.terminal.progress import long_work
from headgate.cli.terminal.rendering import print_json
from headgate.common.stores.opening import Stores
from headgate.common.table_diff import diff_tables
from headgate.operations.errors import OperationError
from headgate.operations.tables.revisions import current_manifest
from headgate.translator.settings import TranslatorSettings
from headgate.watcher.sources.manifests.files import read_paths

ANSWER_S = 120.0
"""The whole log is read and translated: some ten seconds for 10,000 Ingresses with 100,000 endpoints."""
_paths = click.Path(path_type=Path, exists=True)


@click.command(
    cls=TeachingCommand,
    examples=[
        "headgate plan web.yaml",
        "headgate plan manifests/ --prune",
        "headgate plan shop/ --cluster east --json | jq '.counts'",
        "headgate plan new/ --against old/       # needs no server",
        "kubectl kustomize overlays/prod > prod.yaml; headgate plan prod.yaml",
    ],
    read_more="docs/history.md",
)
@click.argument("paths", nargs=-1, required=True, metavar="PATH...", type=_paths)
@click.option(
    "--against", multiple=True, metavar="PATH", type=_paths, help="Compare with these manifests alone; repeatable."
)
@click.option(
    "--cluster",
    default="",
    show_default=False,
    metavar="NAME",
    help="Cluster that they are for, if the table has several.",
)
@click.option(
    "--prune",
    is_flag=True,
    help="Count objects that PATH lacks as deleted, for the kinds and namespaces that it has objects of.",
)
@class_options
@store_options
def plan(
    paths: tuple[Path, ...],
    against: tuple[Path, ...],
    cluster: str,
    prune: bool,
    class_flags: list[str],
    nats_url: str,
    data_dir: Path,
    table: str,
    as_json: bool,
) -> int:
    """Say what manifests would change in the live table if they were applied, and what is wrong with them.

    Each object replaces the one of its name, as `kubectl replace` does; fields that only a cluster knows (age, status)
    stay. These flags, HEADGATE_* variables and the TOML file in HEADGATE_CONFIG decide which objects are ours.

    The exit code is 0 without a difference, 1 with one, 2 if the manifests or the flags have errors, and 3 without an
    answer.
    """
    if against:
        found = _offline(paths, against, class_flags)
    else:
        settings = translator_settings(class_flags)
        found = ask_stores(
            nats_url,
            data_dir,
            lambda stores: _live(stores, table, paths, cluster, settings, prune=prune),
            answer_s=ANSWER_S,
        )
    found = found._replace(findings=tuple(place(found.findings)))
    if as_json:
        print_json(as_document(table, found))
    else:
        _print(found, "these manifests" if against else f"table {table}")
    if any(finding.is_error for finding in found.findings):
        return ExitCode.USAGE
    return ExitCode.NEGATIVE if found.diff.changes else ExitCode.OK


def _offline(paths: tuple[Path, ...], against: tuple[Path, ...], flags: list[str]) -> TablePlan:
    before, after = translate_paths(against, flags), translate_paths(paths, flags)
    difference = diff_tables(before.entries, after.entries, heeds_seals=False)
    return TablePlan(difference, after.findings, after.notes, tuple(consequences(before.entries, after.entries)))


async def _live(
    stores: Stores, table: str, paths: tuple[Path, ...], cluster: str, settings: TranslatorSettings, *, prune: bool
) -> TablePlan:
    try:
        _, published = await current_manifest(stores.snapshots, table)
    except OperationError:
        published = None
    selection = published.selection if published else settings.selection
    announced = {one.cluster: one for one in await stores.log_reader.announcements()}
    choose_cluster(announced, selection, cluster)  # before all of the log is read, which takes long
    with long_work() as progress:
        progress.begin("reading the log")
        world = await read_world(stores.log_reader, stores.last_good, table, settings, selection)
        progress.begin("reading manifests")
        chosen = choose_cluster(world.announcements, selection, cluster)
        read = read_paths(paths, cluster=chosen.cluster)
        progress.begin(f"translating {len(world.known):,} objects, without and with the manifests")
        found = make_plan(world, chosen, read.objects, published, prune=prune)
    unread = [Finding(one.file, one.line, one.object, one.problem) for one in read.problems]
    return found._replace(findings=tuple(sorted([*unread, *found.findings], key=lambda one: (one.file, one.line))))


def _print(found: TablePlan, before: str) -> None:
    print_diff(found.diff, before, "with these manifests")
    for remark in found.remarks:
        click.echo(click.style(remark, bold=True))
    for finding in (*found.findings, *found.notes):
        click.echo(str(finding), err=True)


def as_document(table: str, found: TablePlan) -> dict[str, object]:
    """Return a plan as JSON data."""
    return {
        "table": table,
        "counts": found.diff.counts,
        "changes": [change.model_dump(mode="json", exclude_defaults=True) for change in found.diff.changes],
        "findings": [finding.as_json() for finding in found.findings],
        "notes": [note._asdict() for note in found.notes],
        "remarks": [*found.remarks],
    }
