"""`headgate remove-cluster`: a cluster that is gone for good.

Silence is no deletion: what a cluster whose watcher is away had last goes on being served, and after a loss of the log
it is waited for. So somebody has to say that it will not come back. This deletes all of its objects in the log, as its
watcher would if the cluster were emptied, keeps a decision that nobody waits for it, and forgets its watchers, so that
nobody is told that they are silent.
"""

from datetime import UTC, datetime
from pathlib import Path

import click

from headgate.cli.commands.clusters import change_cluster, change_options
from headgate.cli.running.store import ask_stores
from headgate.cli.running.watchers import SILENT_AFTER
from headgate.cli.terminal.errors import CommandError
from headgate.cli.terminal.group import TeachingCommand
from headgate.cli.terminal.people import current_user
from headgate.cli.terminal.rendering import age, count_of, print_json
from headgate.common.clusters import ClusterSettings, Removal, cluster_ref
from headgate.common.deltas import Author, Delta, Operation
from headgate.common.resources import ObjectRef
from headgate.common.stores.opening import Stores

_LOOKED_UP = ("", "discovery.k8s.io", "multicluster.x-k8s.io")
"""API groups of what others refer to: Services, Secrets, endpoints."""


@click.command(
    cls=TeachingCommand,
    examples=[
        "headgate drain west                            # first: others take its requests",
        "headgate remove-cluster west --dry-run         # its watchers have ended 90 s ago",
        "headgate remove-cluster west --reason 'moved to east'",
    ],
    read_more="docs/operations.md",
)
@click.option("--reason", default="", show_default=False, metavar="TEXT", help="Why; shown by `headgate clusters`.")
@click.option("--dry-run", is_flag=True, help="Say how many objects it has and change nothing.")
@change_options
def remove_cluster(
    cluster: str, by: str, reason: str, dry_run: bool, nats_url: str, data_dir: Path, table: str, as_json: bool
) -> None:
    """Take a cluster out of all tables: its routes, endpoints and certificates, and what was decided of it.

    For a cluster that is gone for good. Its watchers must have ended, as they would publish everything again. A watcher
    that is started under this name later brings the cluster back.
    """
    removal = Removal(by=by or current_user(), at=datetime.now(UTC), reason=reason)
    count = ask_stores(nats_url, data_dir, lambda stores: _remove(stores, table, cluster, removal, dry_run=dry_run))
    if as_json:
        print_json({"cluster": cluster, "objects": count, "is_removed": not dry_run})
    else:
        would = "would be removed" if dry_run else "removed"
        click.echo(f"cluster {cluster} with {count_of(count, 'object')} {would}")


async def _remove(stores: Stores, table: str, cluster: str, removal: Removal, *, dry_run: bool) -> int:
    """Delete all objects of a cluster and say that it is gone; return how many they were.

    Raises:
        CommandError: nobody knows the cluster, or it has a watcher.
    """
    last = (await stores.log_reader.position()).last_sequence
    watcher = await stores.log_reader.announcement(cluster)
    if watcher is not None and removal.at - watcher.announced_at <= SILENT_AFTER:
        raise CommandError(
            f"watcher {watcher.instance} of cluster {cluster} was heard of {age(watcher.announced_at)} ago and would "
            f"publish everything again: stop its watchers, and try again {SILENT_AFTER.total_seconds():.0f} s later"
        )
    logged = await stores.log_writer.read_state(cluster)
    if watcher is None and not logged:
        known = ", ".join(sorted(each.cluster for each in await stores.log_reader.announcements()))
        raise CommandError(f"no cluster {cluster!r} in the log; it has {known or 'none yet'}")
    there = [ref for ref, state in logged.items() if not state.is_deleted and ref != cluster_ref(cluster)]
    if dry_run:
        return len(there)
    author = Author(removal.by, removal.at)
    deletions = [
        Delta(
            ref=ref,
            operation=Operation.DELETE,
            uid=logged[ref].uid,
            resource_version=f"removed-{removal.at.isoformat()}",
            observed_at=removal.at,
            author=author,
        )
        for ref in sorted(there, key=_order)
    ]
    await stores.log_writer.append_all(deltas=deletions)
    changes = {**ClusterSettings().model_dump(), "removed": removal}
    await change_cluster(stores, table, cluster, removal.by, changes, is_known=True)
    await stores.log_writer.forget_cluster(cluster, last)  # at the end: without it, this can be said once more
    return len(there)


def _order(ref: ObjectRef) -> tuple[bool, ObjectRef]:
    """Routes before what they lead to, so that no route answers 503 for a moment that others would take over."""
    return ref.group in _LOOKED_UP, ref
