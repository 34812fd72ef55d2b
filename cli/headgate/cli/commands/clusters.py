"""`headgate clusters`, `drain` and `undrain`: which clusters there are, and what people decide of them."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import click
from pydantic import ValidationError

from headgate.cli.running.inputs import read_kinds
from headgate.cli.running.store import ask_stores, current_manifest, store_options
from headgate.cli.running.watchers import SILENT_AFTER
from headgate.cli.terminal.errors import CommandError, UsageMistake
from headgate.cli.terminal.group import TeachingCommand
from headgate.cli.terminal.people import current_user
from headgate.cli.terminal.rendering import age, print_json, print_table
from headgate.common.clusters import MAX_WEIGHT, ClusterSettings, Decision, Drain, describe, read_settings
from headgate.common.deltas import ClusterAnnouncement
from headgate.common.errors import Conflict
from headgate.common.resources import CLUSTER
from headgate.common.selection import EVERYTHING
from headgate.common.stores import DeltaLogReader, DeltaSelection, LoggedDelta
from headgate.common.stores.opening import Stores
from headgate.common.table import DEFAULT_TABLE

_ATTEMPTS = 5

Command = TypeVar("Command", bound=Callable[..., Any])


class Known(NamedTuple):
    """What is known of one cluster."""

    settings: ClusterSettings
    is_served: bool
    """Its objects are in the table."""
    is_listed: bool
    """All of it was read; it may have nothing to serve."""
    last_change: datetime | None
    """When its last change was logged."""
    watcher: ClusterAnnouncement | None
    """What its watcher said last of itself."""

    @property
    def last_contact(self) -> datetime | None:
        """When what its watcher reads last gave a sign of life."""
        return self.watcher.heard_at if self.watcher else None


@click.command(
    cls=TeachingCommand,
    examples=[
        "headgate clusters",
        "headgate clusters --json | jq '.[] | select(.drained)'",
    ],
    read_more="docs/clusters.md",
)
@store_options
def clusters(nats_url: str, data_dir: Path, table: str, as_json: bool) -> None:
    """List the clusters of the table: what they get of Services that several have, who drained them, their last change.

    A cluster whose API server or watcher is away keeps its endpoints; its last contact grows old.
    """
    found = ask_stores(nats_url, data_dir, lambda stores: _read(stores, table))
    if as_json:
        print_json([_as_document(name, known) for name, known in found.items()])
        return
    rows = [(name, *_cells(known, table)) for name, known in found.items()]
    print_table(("CLUSTER", "STATE", "WEIGHT", "PRIORITY", "LAST CONTACT", "LAST CHANGE", "GATEWAYS"), rows)


def _cells(known: Known, table: str) -> tuple[object, ...]:
    settings = known.settings.of_table(table)
    if settings.removed and not known.is_served:
        why = f": {settings.removed.reason}" if settings.removed.reason else ""
        return f"removed by {settings.removed.by}, {age(settings.removed.at)} ago{why}", "-", "-", "-", "-", "-"
    state = "served" if known.is_served else "listed, nothing to serve" if known.is_listed else "not listed yet"
    if known.watcher and datetime.now(UTC) - known.watcher.announced_at > SILENT_AFTER:
        state += f", its watcher is silent since {age(known.watcher.announced_at)}"
    if settings.drained is not None:
        why = f": {settings.drained.reason}" if settings.drained.reason else ""
        state += f", drained by {settings.drained.by}, {age(settings.drained.at)} ago{why}"
    weight = "by endpoints" if settings.weight is None else settings.weight
    times = [f"{age(time)} ago" if time else "never" for time in (known.last_contact, known.last_change)]
    return state, weight, settings.priority, *times, ", ".join(settings.gateways) or "-"


def _as_document(name: str, known: Known) -> dict[str, Any]:
    return {
        "cluster": name,
        "is_served": known.is_served,
        "is_listed": known.is_listed,
        "last_contact": known.last_contact,
        "last_change": known.last_change,
        **known.settings.model_dump(mode="json"),
    }


def change_options(command: Command) -> Command:
    """Add the flags of commands that decide something of a cluster."""
    for option in (
        click.argument("cluster"),
        click.option("--by", default="", show_default=False, metavar="NAME", help="Who you are; default: USER@HOST."),
    ):
        command = option(command)
    return store_options(command)


@click.command(
    cls=TeachingCommand,
    examples=["headgate drain west --reason 'upgrade to 1.34'", "headgate drain west && headgate clusters"],
    read_more="docs/clusters.md",
)
@click.option("--reason", default="", show_default=False, metavar="TEXT", help="Why; shown by `headgate clusters`.")
@change_options
def drain(cluster: str, by: str, reason: str, nats_url: str, data_dir: Path, table: str, as_json: bool) -> None:
    """Give a cluster no new requests: other clusters' endpoints take them, where a Service has any.

    Sessions that stick to its endpoints finish there. What no other cluster has goes on being served by it: draining
    takes nothing away. `headgate undrain` undoes it.
    """
    person = by or current_user()
    decided = Drain(by=person, at=datetime.now(UTC), reason=reason)
    _change(cluster, person, {"drained": decided}, nats_url, data_dir, table, as_json=as_json)


@click.command(cls=TeachingCommand, examples=["headgate undrain west"], read_more="docs/clusters.md")
@change_options
def undrain(cluster: str, by: str, nats_url: str, data_dir: Path, table: str, as_json: bool) -> None:
    """Give a drained cluster requests again."""
    _change(cluster, by or current_user(), {"drained": None}, nats_url, data_dir, table, as_json=as_json)


@click.command(
    cls=TeachingCommand,
    examples=[
        "headgate set-cluster west --weight 10          # beside east with 90: a tenth",
        "headgate set-cluster west --priority 1         # only when too little of the others is healthy",
        "headgate set-cluster west --gateway http://203.0.113.7:80",
        "headgate set-cluster west --by-endpoints --direct",
    ],
    read_more="docs/clusters.md",
)
@click.option("--weight", type=click.IntRange(0, MAX_WEIGHT), metavar="N", help="Share beside other clusters' shares.")
@click.option("--by-endpoints", is_flag=True, help="No share of its own: as many endpoints, so many shares.")
@click.option("--priority", type=click.IntRange(0, 127), metavar="N", help="0 goes first.")
@click.option(
    "--gateway",
    "gateways",
    multiple=True,
    metavar="URL",
    help="Where its gateways of the --table are, as others cannot reach its pods; repeatable.",
)
@click.option("--direct", is_flag=True, help="Its pods can be reached from everywhere.")
@change_options
def set_cluster(
    cluster: str,
    weight: int | None,
    by_endpoints: bool,
    priority: int | None,
    gateways: tuple[str, ...],
    direct: bool,
    by: str,
    nats_url: str,
    data_dir: Path,
    table: str,
    as_json: bool,
) -> None:
    """Decide what a cluster gets of the requests for Services that several clusters have, and how it is reached."""
    if (by_endpoints and weight is not None) or (direct and gateways):
        raise UsageMistake("--weight and --by-endpoints exclude each other, and so do --gateway and --direct")
    changes: dict[str, Any] = {}
    if weight is not None or by_endpoints:
        changes["weight"] = weight
    if priority is not None:
        changes["priority"] = priority
    if gateways or direct:
        changes["gateways"] = gateways
    if not changes:
        raise UsageMistake("nothing to set: give --weight, --by-endpoints, --priority, --gateway or --direct")
    _change(cluster, by or current_user(), changes, nats_url, data_dir, table, as_json=as_json)


def _change(
    cluster: str,
    by: str,
    changes: Mapping[str, Any],
    nats_url: str,
    data_dir: Path,
    table: str,
    *,
    as_json: bool,
) -> None:
    settings = ask_stores(nats_url, data_dir, lambda stores: change_cluster(stores, table, cluster, by, changes))
    if as_json:
        print_json({"cluster": cluster, **settings.model_dump(mode="json")})
    else:
        click.echo(f"cluster {cluster}: {describe(settings.of_table(table))}")


async def _read(stores: Stores, table: str) -> dict[str, Known]:
    # Clusters that are waited for are listed before the first table; any other table that is not there is a slip.
    is_first = table == DEFAULT_TABLE and await stores.snapshots.read_pointer(table) is None
    manifest = None if is_first else (await current_manifest(stores.snapshots, table))[1]
    inputs, selection = (manifest.inputs, manifest.selection) if manifest else ({}, EVERYTHING)
    decided = {delta.ref.name: delta for delta in (each.delta for each in await _decisions(stores.log_reader))}
    watchers = {each.cluster: each for each in await stores.log_reader.announcements()}
    kinds = await read_kinds(stores.bus)
    listed = {kind.cluster for kind in kinds} - {kind.cluster for kind in kinds if kind.state == "awaited"}
    found = {}
    for name in sorted(filter(selection.has_cluster, {*inputs, *decided, *watchers})):
        settings = read_settings(decided[name].object or {}) if name in decided else ClusterSettings()
        last_change = await _logged_at(stores.log_reader, name, inputs.get(name, 0))
        found[name] = Known(settings, name in inputs, name in listed, last_change, watchers.get(name))
    return found


async def _decisions(log: DeltaLogReader, cluster: str = "") -> Sequence[LoggedDelta]:
    """Return what was decided last of each cluster."""
    selection = DeltaSelection(cluster=cluster, kinds=((CLUSTER.group, CLUSTER.resource),))
    last: dict[str, LoggedDelta] = {}
    async with aclosing(log.read_after(selection, 0)) as batches:
        async for batch in batches:
            last.update({each.delta.ref.name: each for each in batch})
    return list(last.values())


async def _logged_at(log: DeltaLogReader, cluster: str, sequence: int) -> datetime | None:
    if not sequence:
        return None
    async with aclosing(log.read_after(DeltaSelection(cluster=cluster), sequence - 1, with_objects=False)) as batches:
        async for batch in batches:
            return batch[-1].logged_at
    return None


async def change_cluster(
    stores: Stores, table: str, cluster: str, by: str, changes: Mapping[str, Any], *, is_known: bool = False
) -> ClusterSettings:
    """Change some of a cluster's settings, and no others that somebody else changes meanwhile.

    Args:
        stores: where it is written.
        table: has to have the cluster, and is the one whose gateways are changed.
        cluster: its name.
        by: who decides.
        changes: settings by name; whoever changes any takes a removal back.
        is_known: whether the cluster need not be looked for in the table.

    Raises:
        CommandError: the table has no such cluster, or others change it again and again.
        UsageMistake: a setting cannot be.
    """
    for _ in range(_ATTEMPTS):
        before = await _decisions(stores.log_reader, cluster)
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
    raise CommandError(f"cluster {cluster} is being changed by others again and again; try once more")


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
        raise UsageMistake(f"--gateway: {first['msg'].removeprefix('Value error, ')}") from None


async def _check_known(stores: Stores, table: str, cluster: str) -> None:
    pointer = await stores.snapshots.read_pointer(table)
    known = sorted((await stores.snapshots.get_manifest(table, pointer.version)).inputs) if pointer else []
    if cluster not in known:
        raise CommandError(f"no cluster {cluster!r} in table {table!r}; it has {', '.join(known) or 'none yet'}")
