"""`headgate remove-cluster`: a cluster that is gone for good."""

from datetime import UTC, datetime
from pathlib import Path

import click

from headgate.cli.commands.clusters import change_options
from headgate.cli.running.store import ask_stores
from headgate.cli.terminal.group import TeachingCommand
from headgate.cli.terminal.people import current_user
from headgate.cli.terminal.rendering import print_json
from headgate.common.clusters import Removal
from headgate.operations.clusters import removal
from headgate.operations.wording import count_of


@click.command(
    cls=TeachingCommand,
    examples=[
        "headgate drain west                            # first: others take its requests",
        "headgate remove-cluster west --dry-run         # its watchers have ended 90 s ago",
        "headgate remove-cluster west --reason 'moved to east'",
    ],
    read_more="docs/operations.md",
)
@click.option(
    "--reason", default="", show_default=False, metavar="TEXT", help="Reason, which `headgate clusters` shows."
)
@click.option("--dry-run", is_flag=True, help="Print how many objects it has, and change nothing.")
@change_options
def remove_cluster(
    cluster: str, by: str, reason: str, dry_run: bool, nats_url: str, data_dir: Path, table: str, as_json: bool
) -> None:
    """Take a cluster out of all tables: its routes, endpoints and certificates, and what was decided of it.

    For a cluster that is gone for good. Its watchers must have ended, as they would publish everything again. A watcher
    that is started under this name later brings the cluster back.
    """
    asked = Removal(by=by or current_user(), at=datetime.now(UTC), reason=reason)
    count = ask_stores(
        nats_url, data_dir, lambda stores: removal.remove_cluster(stores, table, cluster, asked, dry_run=dry_run)
    )
    if as_json:
        print_json({"cluster": cluster, "objects": count, "is_removed": not dry_run})
    else:
        would = "would be removed" if dry_run else "removed"
        click.echo(f"cluster {cluster} with {count_of(count, 'object')} {would}")
