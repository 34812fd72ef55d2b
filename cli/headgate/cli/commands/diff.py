"""`headgate diff`: what differs between two revisions of a table."""

from pathlib import Path
from typing import NamedTuple

import click

from headgate.cli.running.revisions import Image, find_image
from headgate.cli.running.store import ask_stores, store_options
from headgate.cli.terminal.diff_text import print_diff
from headgate.cli.terminal.errors import CommandError, ExitCode
from headgate.cli.terminal.group import TeachingCommand
from headgate.cli.terminal.rendering import print_json
from headgate.common.errors import NotFound
from headgate.common.stores import SnapshotStore
from headgate.common.stores.opening import Stores
from headgate.common.stores.reading import read_entries
from headgate.common.table_diff import TableDiff, diff_tables


class Compared(NamedTuple):
    """Two tables and what differs."""

    before: Image
    after: Image
    diff: TableDiff


@click.command(
    cls=TeachingCommand,
    examples=[
        "headgate diff                    # what the last revision changed",
        "headgate diff 57                 # what changed since revision 57",
        "headgate diff 57 60",
        "headgate diff HEAD~5 HEAD --json",
        "headgate diff pinned live        # what waits while the table is pinned",
        "headgate diff HEAD next          # what is rolled out",
    ],
    read_more="docs/history.md",
)
@click.argument("before", metavar="[A]", default="")
@click.argument("after", metavar="[B]", default="HEAD")
@click.option("--exit-code", is_flag=True, help="Exit with 1 if there is a difference.")
@store_options
def diff(before: str, after: str, exit_code: bool, nats_url: str, data_dir: Path, table: str, as_json: bool) -> int:
    """Say what differs between two tables: routes, backends, endpoints, plugins, certificates, streams, consumers.

    A and B are revisions as `headgate history` lists them (57, or 1767225600.57 with its epoch), HEAD for the newest,
    HEAD~2 for the second before it, `pinned` for what a pinned table serves, `next` for what is rolled out, `live` for
    what would be served otherwise.
    Unless they are given, B is HEAD and A the revision before it.
    """
    compared = ask_stores(nats_url, data_dir, lambda stores: _compare(stores, table, before or "HEAD~1", after))
    found = compared.diff
    if as_json:
        print_json(as_document(table, compared))
    else:
        print_diff(found, f"table {table}: {compared.before.label}", compared.after.label)
    return ExitCode.NEGATIVE if exit_code and found.changes else ExitCode.OK


async def _compare(stores: Stores, table: str, before: str, after: str) -> Compared:
    one = await find_image(stores.snapshots, table, before)
    other = await find_image(stores.snapshots, table, after)
    return Compared(one, other, await compare_images(stores.snapshots, one, other))


async def compare_images(snapshots: SnapshotStore, before: Image, after: Image) -> TableDiff:
    """Compare two tables; only chunks in which they differ are read.

    Raises:
        CommandError: one was collected meanwhile.
    """
    shared = {chunk.digest for chunk in before.chunks} & {chunk.digest for chunk in after.chunks}
    sides = [[chunk for chunk in image.chunks if chunk.digest not in shared] for image in (before, after)]
    try:
        return diff_tables(*[await read_entries(snapshots, chunks) for chunks in sides])
    except NotFound as error:
        raise CommandError(f"{before.label} or {after.label} was collected meanwhile; ask again") from error


def as_document(table: str, compared: Compared) -> dict[str, object]:
    """Return it as JSON data."""
    return {
        "table": table,
        "before": _about(compared.before),
        "after": _about(compared.after),
        "counts": compared.diff.counts,
        "changes": [change.model_dump(mode="json", exclude_defaults=True) for change in compared.diff.changes],
    }


def _about(image: Image) -> dict[str, str]:
    return {"name": image.label, "revision": str(image.manifest.version)}
