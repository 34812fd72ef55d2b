"""`headgate clusters`, `drain` and `undrain`: which clusters there are, and what people decide of them."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import click

from headgate.cli.running.store import ask_stores, store_options
from headgate.cli.terminal.errors import UsageMistake
from headgate.cli.terminal.group import TeachingCommand
from headgate.cli.terminal.people import current_user
from headgate.cli.terminal.rendering import print_json, print_table
from headgate.common.clusters import MAX_WEIGHT, Drain, describe
from headgate.operations.clusters.decisions import change_cluster
from headgate.operations.clusters.known import KnownCluster, as_document, read_clusters
from headgate.operations.status.watchers import SILENT_AFTER
from headgate.operations.wording import age

Command = TypeVar("Command", bound=Callable[..., Any])


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
    found = ask_stores(nats_url, data_dir, lambda stores: read_clusters(stores, table))
    if as_json:
        print_json([as_document(name, known) for name, known in found.items()])
        return
    rows = [(name, *_cells(known, table)) for name, known in found.items()]
    print_table(("CLUSTER", "STATE", "WEIGHT", "PRIORITY", "LAST CONTACT", "LAST CHANGE", "GATEWAYS"), rows)


def _cells(known: KnownCluster, table: str) -> tuple[object, ...]:
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


def change_options(command: Command) -> Command:
    """Add the flags of commands that decide something of a cluster."""
    for option in (
        click.argument("cluster"),
        click.option("--by", default="", show_default=False, metavar="NAME", help="Your name; by default USER@HOST."),
    ):
        command = option(command)
    return store_options(command)


@click.command(
    cls=TeachingCommand,
    examples=["headgate drain west --reason 'upgrade to 1.34'", "headgate drain west && headgate clusters"],
    read_more="docs/clusters.md",
)
@click.option(
    "--reason", default="", show_default=False, metavar="TEXT", help="Reason, which `headgate clusters` shows."
)
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
@click.option("--by-endpoints", is_flag=True, help="Give it a share by the number of its endpoints.")
@click.option("--priority", type=click.IntRange(0, 127), metavar="N", help="Rank of the cluster; 0 goes first.")
@click.option(
    "--gateway",
    "gateways",
    multiple=True,
    metavar="URL",
    help="URL of its gateways of the --table, if others cannot reach its pods; repeatable.",
)
@click.option("--direct", is_flag=True, help="Say that its pods can be reached from everywhere.")
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
