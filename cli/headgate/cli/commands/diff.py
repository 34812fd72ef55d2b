"""`headgate diff`: what differs between two revisions of a table."""

from pathlib import Path

import click

from headgate.cli.running.store import ask_stores, store_options
from headgate.cli.terminal.diff_text import print_diff
from headgate.cli.terminal.errors import ExitCode
from headgate.cli.terminal.group import TeachingCommand
from headgate.cli.terminal.rendering import print_json
from headgate.operations.tables.differences import as_document, compare_revisions


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
    compared = ask_stores(
        nats_url, data_dir, lambda stores: compare_revisions(stores.snapshots, table, before or "HEAD~1", after)
    )
    found = compared.diff
    if as_json:
        print_json(as_document(table, compared))
    else:
        print_diff(found, f"table {table}: {compared.before.label}", compared.after.label)
    return ExitCode.NEGATIVE if exit_code and found.changes else ExitCode.OK
