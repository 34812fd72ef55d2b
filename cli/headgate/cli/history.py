"""`headgate history`: the revisions of a table, newest first."""

import asyncio
from pathlib import Path

import click

from headgate.cli.group import TeachingCommand
from headgate.cli.rendering import age, print_json, print_table
from headgate.cli.store import ask_stores, store_options
from headgate.common.errors import NotFound
from headgate.common.snapshot import Cause, Manifest, Version
from headgate.common.stores.nats import NatsStores

SHOWN_CAUSES = 3


@click.command(
    cls=TeachingCommand,
    examples=["headgate history", "headgate history --limit 3 --json"],
    read_more="docs/cli.md",
)
@click.option("--limit", type=click.IntRange(1), metavar="N", default=20, help="How many revisions at most.")
@store_options
def history(limit: int, nats_url: str, data_dir: Path, table: str, as_json: bool) -> None:
    """List the revisions of the route table: when each was published and which objects' changes caused it."""
    manifests = ask_stores(nats_url, data_dir, lambda stores: _read(stores, table, limit))
    if as_json:
        print_json([manifest.model_dump(mode="json", exclude={"chunks", "traceparent"}) for manifest in manifests])
        return
    print_table(
        ("REVISION", "AGE", "PUBLISHED", "CAUSES"),
        (
            (manifest.version, age(manifest.created_at), f"{manifest.created_at:%Y-%m-%d %H:%M:%S}", describe(manifest))
            for manifest in manifests
        ),
    )


async def _read(stores: NatsStores, table: str, limit: int) -> list[Manifest]:
    versions = [*await stores.snapshots.versions(table)][-limit:]
    found = await asyncio.gather(*(_manifest(stores, table, version) for version in reversed(versions)))
    return [manifest for manifest in found if manifest is not None]


async def _manifest(stores: NatsStores, table: str, version: Version) -> Manifest | None:
    try:
        return await stores.snapshots.get_manifest(table, version)
    except NotFound:
        return None  # collected between the two questions


def describe(manifest: Manifest) -> str:
    """Say in a line what led to a revision."""
    shown = [_describe_cause(cause) for cause in manifest.causes[:SHOWN_CAUSES]]
    more = manifest.cause_count - len(shown)
    return ", ".join([*shown, f"and {more} more"] if more > 0 else shown) or "-"


def _describe_cause(cause: Cause) -> str:
    name = "/".join(part for part in (cause.cluster, cause.namespace, cause.name) if part)
    return f"{cause.operation} {cause.kind} {name}"
