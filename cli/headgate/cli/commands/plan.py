"""`headgate plan`: the difference that manifests would make, before they are applied."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headgate.cli.offline.class_options import class_options
from headgate.cli.offline.correcting import place
from headgate.cli.offline.findings import Finding
from headgate.cli.offline.proposals import TablePlan, choose_cluster
from headgate.cli.running.store import ask_stores, store_options
from headgate.cli.terminal.diff_text import print_diff
from headgate.cli.terminal.errors import ExitCode
from headgate.cli.terminal.group import TeachingCommand
from headgate.cli.terminal.progress import Progress, long_work
from headgate.cli.terminal.rendering import print_json
from headgate.common.deltas import ClusterAnnouncement
from headgate.common.errors import NoAnswer
from headgate.common.snapshot import Manifest
from headgate.common.stores.opening import Stores
from headgate.common.table_diff import diff_tables
from headgate.operations.errors import OperationError
from headgate.operations.tables.revisions import current_manifest
from headgate.watcher.sources.manifests.files import FileObject, read_paths

if TYPE_CHECKING:
    from headgate.translator.settings import TranslatorSettings

ANSWER_S = 120.0
"""Where no translator answers, the whole log is read and translated: some ten seconds for 10,000 Ingresses with 100,000
endpoints."""
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
        found = ask_stores(
            nats_url,
            data_dir,
            lambda stores: _live(stores, table, paths, cluster, class_flags, prune=prune),
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
    from headgate.cli.offline.tables import translate_paths
    from headgate.translator.planning.consequences import consequences

    before, after = translate_paths(against, flags), translate_paths(paths, flags)
    difference = diff_tables(before.entries, after.entries, heeds_seals=False)
    return TablePlan(difference, after.findings, after.notes, tuple(consequences(before.entries, after.entries)))


async def _live(
    stores: Stores, table: str, paths: tuple[Path, ...], cluster: str, class_flags: list[str], *, prune: bool
) -> TablePlan:
    # The bus brings hundreds of modules along, which a plan without a server does without.
    from headgate.cli.running.planner import ask_translator

    try:
        _, published = await current_manifest(stores.snapshots, table)
    except OperationError:
        published = None
    selection = published.selection if published else _settings(class_flags).selection
    announced = {one.cluster: one for one in await stores.log_reader.announcements()}
    chosen = choose_cluster(announced, selection, cluster)  # before all of the log is read, which takes long
    with long_work() as progress:
        progress.begin("reading manifests")
        read = read_paths(paths, cluster=chosen.cluster)
        try:
            if published is None:
                raise NoAnswer("no table is published yet")
            if prune or class_flags:
                raise NoAnswer("it does not know these flags")
            progress.begin("asking a translator")
            found = await ask_translator(stores, chosen, read.objects, published)
        except NoAnswer as error:
            progress.begin(f"reading the log, as no plan came from a translator: {error}")
            settings = _settings(class_flags)
            found = await _plan_here(stores, table, chosen, read.objects, published, settings, progress, prune=prune)
    unread = [Finding(one.file, one.line, one.object, one.problem) for one in read.problems]
    return found._replace(findings=tuple(sorted([*unread, *found.findings], key=lambda one: (one.file, one.line))))


async def _plan_here(
    stores: Stores,
    table: str,
    cluster: ClusterAnnouncement,
    objects: Sequence[FileObject],
    published: Manifest | None,
    settings: "TranslatorSettings",
    progress: Progress,
    *,
    prune: bool,
) -> TablePlan:
    # The translator takes longer to be imported than one that runs takes to answer.
    from headgate.cli.offline.planning import make_plan, read_world

    selection = published.selection if published else settings.selection
    world = await read_world(stores.log_reader, stores.last_good, table, settings, selection)
    progress.begin(f"translating {len(world.known):,} objects, without and with the manifests")
    return make_plan(world, cluster, objects, published, prune=prune)


def _settings(class_flags: list[str]) -> "TranslatorSettings":
    from headgate.cli.offline.tables import translator_settings

    return translator_settings(class_flags)


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
