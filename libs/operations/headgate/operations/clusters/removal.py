"""Removing a cluster that is gone for good.

Silence is no deletion: what a cluster whose watcher is away had last goes on being served, and after a loss of the log
it is waited for. So a person has to say that it will not come back. This deletes all of its objects in the log, as its
watcher would if the cluster were emptied, keeps the decision so that translators do not wait for it, and forgets its
watchers, so that `status` does not report them as silent.
"""

from headgate.common.clusters import ClusterSettings, Removal, cluster_ref
from headgate.common.deltas import Author, Delta, Operation
from headgate.common.resources import ObjectRef
from headgate.common.stores.opening import Stores
from headgate.operations.clusters.decisions import change_cluster
from headgate.operations.errors import OperationError
from headgate.operations.status.watchers import SILENT_AFTER
from headgate.operations.wording import age

_LOOKED_UP = ("", "discovery.k8s.io", "multicluster.x-k8s.io")
"""API groups of what others refer to: Services, Secrets, endpoints."""


async def remove_cluster(stores: Stores, table: str, cluster: str, removal: Removal, *, dry_run: bool) -> int:
    """Delete all objects of a cluster and say that it is gone; return how many they were.

    Raises:
        OperationError: the log does not know the cluster, or the cluster has a watcher.
    """
    last = (await stores.log_reader.position()).last_sequence
    watcher = await stores.log_reader.announcement(cluster)
    if watcher is not None and removal.at - watcher.announced_at <= SILENT_AFTER:
        raise OperationError(
            f"watcher {watcher.instance} of cluster {cluster} announced itself {age(watcher.announced_at)} ago and "
            "would publish everything again: stop its watchers, and try again "
            f"{SILENT_AFTER.total_seconds():.0f} s later"
        )
    logged = await stores.log_writer.read_state(cluster)
    if watcher is None and not logged:
        known = ", ".join(sorted(each.cluster for each in await stores.log_reader.announcements()))
        raise OperationError(f"no cluster {cluster!r} in the log; it has {known or 'none yet'}")
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
