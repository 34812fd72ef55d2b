"""What people decide of a cluster: draining it, its share, rank and gateways. A decision is an event in the log."""

from collections.abc import Mapping, Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Any

from pydantic import ValidationError

from headgate.common.clusters import ClusterSettings, Decision, read_settings
from headgate.common.errors import Conflict
from headgate.common.resources import CLUSTER
from headgate.common.stores import DeltaLogReader, DeltaSelection, LoggedDelta
from headgate.common.stores.opening import Stores
from headgate.operations.errors import InvalidRequest, OperationError

_ATTEMPTS = 5


async def read_decisions(log: DeltaLogReader, cluster: str = "") -> Sequence[LoggedDelta]:
    """Return what was decided last of each cluster."""
    selection = DeltaSelection(cluster=cluster, kinds=((CLUSTER.group, CLUSTER.resource),))
    last: dict[str, LoggedDelta] = {}
    async with aclosing(log.read_after(selection, 0)) as batches:
        async for batch in batches:
            last.update({each.delta.ref.name: each for each in batch})
    return list(last.values())


async def change_cluster(
    stores: Stores, table: str, cluster: str, by: str, changes: Mapping[str, Any], *, is_known: bool = False
) -> ClusterSettings:
    """Change some of a cluster's settings, and leave those that another person changes meanwhile.

    Args:
        stores: where it is written.
        table: has to have the cluster, and is the one whose gateways are changed.
        cluster: its name.
        by: who decides.
        changes: settings by name; any change takes a removal back.
        is_known: whether the cluster need not be looked for in the table.

    Raises:
        OperationError: the table has no such cluster, or others change it again and again.
        InvalidRequest: a setting cannot be.
    """
    for _ in range(_ATTEMPTS):
        before = await read_decisions(stores.log_reader, cluster)
        old = before[0].delta if before else None
        if old is None and not is_known:
            await _check_known(stores, table, cluster)
        settings = _changed(read_settings((old.object if old else None) or {}), table, changes)
        delta = Decision.make(settings, by, datetime.now(UTC)).as_delta(cluster)
        try:
            await stores.log_writer.append(delta, old.sequence if old else 0)
        except Conflict:
            continue
        return settings
    raise OperationError(f"cluster {cluster} is being changed by others again and again; try once more")


def _changed(settings: ClusterSettings, table: str, changes: Mapping[str, Any]) -> ClusterSettings:
    if changes.get("gateways"):
        settings = settings.with_gateways(table, changes["gateways"])
        changes = {name: value for name, value in changes.items() if name != "gateways"}
    elif "gateways" in changes:
        changes = {**changes, "table_gateways": {}}  # whether pods can be reached is no matter of tables
    try:
        return ClusterSettings.model_validate({**settings.model_dump(), "removed": None, **changes})
    except ValidationError as error:
        first = error.errors()[0]
        raise InvalidRequest(f"--gateway: {first['msg'].removeprefix('Value error, ')}") from None


async def _check_known(stores: Stores, table: str, cluster: str) -> None:
    pointer = await stores.snapshots.read_pointer(table)
    known = sorted((await stores.snapshots.manifest_of(pointer)).inputs) if pointer else []
    if cluster not in known:
        raise OperationError(f"no cluster {cluster!r} in table {table!r}; it has {', '.join(known) or 'none yet'}")
