"""The clusters of a table: the operators' decision for each, whether it is served, and when its watcher last spoke."""

from contextlib import aclosing
from datetime import datetime
from typing import Any, NamedTuple

from headgate.common.clusters import ClusterSettings, read_settings
from headgate.common.deltas import ClusterAnnouncement
from headgate.common.selection import EVERYTHING
from headgate.common.stores import DeltaLogReader, DeltaSelection
from headgate.common.stores.opening import Stores
from headgate.common.table import DEFAULT_TABLE
from headgate.operations.clusters.decisions import read_decisions
from headgate.operations.status.kinds import read_kinds
from headgate.operations.tables.revisions import current_manifest


class KnownCluster(NamedTuple):
    """One cluster, as far as it is known."""

    settings: ClusterSettings
    is_served: bool
    """Its objects are in the table."""
    is_listed: bool
    """All of it was read; it may have nothing to serve."""
    last_change: datetime | None
    """When its last change was logged."""
    watcher: ClusterAnnouncement | None
    """The last announcement of its watcher."""

    @property
    def last_contact(self) -> datetime | None:
        """When what its watcher reads last gave a sign of life."""
        return self.watcher.heard_at if self.watcher else None


async def read_clusters(stores: Stores, table: str) -> dict[str, KnownCluster]:
    """Return the clusters of a table by name, with those that are decided of or announced and not served.

    Raises:
        OperationError: there is no such table.
        StoreUnavailable: no answer.
    """
    # Clusters that are waited for are listed before the first table; any other table that is not there is a slip.
    is_first = table == DEFAULT_TABLE and await stores.snapshots.read_pointer(table) is None
    manifest = None if is_first else (await current_manifest(stores.snapshots, table))[1]
    inputs, selection = (manifest.inputs, manifest.selection) if manifest else ({}, EVERYTHING)
    decided = {delta.ref.name: delta for delta in (each.delta for each in await read_decisions(stores.log_reader))}
    watchers = {each.cluster: each for each in await stores.log_reader.announcements()}
    kinds = await read_kinds(stores.bus)
    listed = {kind.cluster for kind in kinds} - {kind.cluster for kind in kinds if kind.state == "awaited"}
    found = {}
    for name in sorted(filter(selection.has_cluster, {*inputs, *decided, *watchers})):
        settings = read_settings(decided[name].object or {}) if name in decided else ClusterSettings()
        last_change = await _logged_at(stores.log_reader, name, inputs.get(name, 0))
        found[name] = KnownCluster(settings, name in inputs, name in listed, last_change, watchers.get(name))
    return found


async def _logged_at(log: DeltaLogReader, cluster: str, sequence: int) -> datetime | None:
    if not sequence:
        return None
    async with aclosing(log.read_after(DeltaSelection(cluster=cluster), sequence - 1, with_objects=False)) as batches:
        async for batch in batches:
            return batch[-1].logged_at
    return None


def as_document(name: str, known: KnownCluster) -> dict[str, Any]:
    """Return it as JSON data."""
    return {
        "cluster": name,
        "is_served": known.is_served,
        "is_listed": known.is_listed,
        "last_contact": known.last_contact,
        "last_change": known.last_change,
        **known.settings.model_dump(mode="json"),
    }
