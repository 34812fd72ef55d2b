"""How far a changed table has got: which replicas serve it, how they do, and what waits behind it."""

from collections.abc import Mapping
from math import inf
from types import MappingProxyType
from typing import Any, NamedTuple

from headgate.common.heartbeats import TrafficCounts
from headgate.common.snapshot import ChangedEntries, Manifest, Rollout
from headgate.common.stores import SnapshotStore
from headgate.common.stores.chunk_entries import changed_entries
from headgate.common.stores.opening import Stores
from headgate.common.stores.reading import read_chunks
from headgate.common.table import EntryKind
from headgate.operations.rollouts.analysis import percentile_ms
from headgate.operations.rollouts.figures import Comparison, Side, compare
from headgate.operations.tables.revisions import current_manifest


class RolloutState(NamedTuple):
    """How far a table has got."""

    table: str
    manifest: Manifest
    figures: Comparison | None = None
    """None where nothing is rolled out."""
    waiting: Mapping[EntryKind, ChangedEntries] = MappingProxyType({})
    """Entries in which the next table and the live one differ."""
    replicas: int = 0


async def read_rollout(stores: Stores, table: str) -> RolloutState:
    """Ask how far a table has got.

    Raises:
        OperationError: the table was never published.
        StoreUnavailable: no answer.
    """
    _, manifest = await current_manifest(stores.snapshots, table)
    current = manifest.rollout
    if current is None:
        return RolloutState(table, manifest)
    beats = [beat for beat in await stores.heartbeats.live() if beat.table == table]
    waiting = await _waiting(stores.snapshots, current)
    return RolloutState(table, manifest, compare(current, beats), waiting, len({beat.replica for beat in beats}))


async def _waiting(snapshots: SnapshotStore, current: Rollout) -> dict[EntryKind, ChangedEntries]:
    shared = {name.digest for name in current.next} & {name.digest for name in current.live}
    sides = [[name for name in names if name.digest not in shared] for names in (current.next, current.live)]
    return changed_entries(*[await read_chunks(snapshots, names) for names in sides])


def as_document(state: RolloutState) -> dict[str, Any]:
    """Return it as JSON data."""
    current = state.manifest.rollout
    if current is None or state.figures is None:
        return {"table": state.table, "revision": str(state.manifest.version), "rollout": None}
    return {
        "table": state.table,
        "revision": str(state.manifest.version),
        "rollout": current.model_dump(mode="json", exclude={"next", "live", "waiting"})
        | {"base": str(current.base), "target": str(current.target), "begun": str(current.begun)},
        "chosen": _side_document(state.figures.chosen),
        "others": _side_document(state.figures.others),
        "waiting": {kind: changed.model_dump(mode="json") for kind, changed in state.waiting.items()},
    }


def _side_document(side: Side) -> dict[str, Any]:
    return {
        "replicas": [*side.replicas],
        "changed": _counts_document(side.changed),
        "all": _counts_document(side.all),
    }


def _counts_document(counts: TrafficCounts) -> dict[str, float | None]:
    percentile = percentile_ms(counts)
    known = None if percentile == inf else percentile
    return {"requests": counts.requests, "errors": counts.errors, "p95_ms": known}
