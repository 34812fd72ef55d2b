"""`headgate rollback` and `headgate unpin`: back to an old revision, and forward again."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from headgate.cli.running.changing import (
    Done,
    dry_run_option,
    finish,
    greatest_served,
    make_request,
    report_done,
    told,
    wish_options,
)
from headgate.cli.running.store import ask_stores, store_options
from headgate.cli.terminal.group import TeachingCommand
from headgate.common.snapshot import Chunk, Manifest, decode_chunk
from headgate.common.stores.opening import Stores
from headgate.common.stores.reading import read_entries
from headgate.common.table import Certificate
from headgate.common.table_diff import TableDiff, diff_tables
from headgate.operations.tables.differences import compare_images
from headgate.operations.tables.revisions import Image, find_image, find_revision
from headgate.operations.wording import count_of
from headgate.translator.serving.manual_commits import ChangeRequest
from headgate.translator.serving.pinning import TablePins

SHOWN_NAMES = 3


@click.command(
    cls=TeachingCommand,
    examples=[
        "headgate rollback HEAD~1 --reason 'checkout answers 404'",
        "headgate rollback 57 --dry-run",
        "headgate rollback 57 --frozen     # its endpoints too",
        "headgate rollback HEAD            # freeze: nothing but endpoints changes before `headgate unpin`",
    ],
    read_more="docs/history.md",
)
@click.argument("revision")
@click.option("--frozen", is_flag=True, help="Keep the revision's endpoints too, instead of following those of today.")
@dry_run_option
@wish_options
@store_options
def rollback(
    revision: str,
    frozen: bool,
    reason: str,
    by: str,
    dry_run: bool,
    nats_url: str,
    data_dir: Path,
    table: str,
    as_json: bool,
) -> int:
    """Pin the table to an old revision: serve its routes, certificates and policies until `headgate unpin`.

    Endpoints are those of today, also while the table is pinned: the pods of yesterday are gone. Changes of other
    objects go on being read, are listed by `headgate history`, and wait. The pin survives restarts of everything.
    """
    request = make_request(by, reason)
    done = ask_stores(
        nats_url, data_dir, lambda stores: _roll_back(stores, table, revision, frozen, request, dry_run=dry_run)
    )
    return report_done(done, table, as_json)


@click.command(
    cls=TeachingCommand,
    examples=["headgate diff pinned live     # what it will change", "headgate unpin --reason 'fixed in 1.4.2'"],
    read_more="docs/history.md",
)
@dry_run_option
@wish_options
@store_options
def unpin(reason: str, by: str, dry_run: bool, nats_url: str, data_dir: Path, table: str, as_json: bool) -> int:
    """Serve the live table again: what the objects of all clusters say now, with every change that waited."""
    request = make_request(by, reason)
    done = ask_stores(nats_url, data_dir, lambda stores: _unpin(stores, table, request, dry_run=dry_run))
    return report_done(done, table, as_json)


async def _roll_back(
    stores: Stores, table: str, revision: str, frozen: bool, request: ChangeRequest, *, dry_run: bool
) -> Done:
    target = await find_revision(stores.snapshots, table, revision)
    served = await find_image(stores.snapshots, table, "HEAD")
    after = f"revision {target.version}"
    pins = await _pins(stores, table)
    with told(f"table {table} was not pinned"):
        if dry_run:
            chunks = await pins.preview(target, is_frozen=frozen)
            return Done(None, await _compare(stores, served, chunks), served.label, after)
        done = await pins.pin(target, request, is_frozen=frozen)
    notes = [*_endpoint_notes(done.unknown), *await _key_notes(stores, done.manifest)]
    return await finish(stores, served, done.manifest, after, notes)


async def _unpin(stores: Stores, table: str, request: ChangeRequest, *, dry_run: bool) -> Done:
    served = await find_image(stores.snapshots, table, "HEAD")
    if dry_run and served.manifest.pin is not None:
        live = await find_image(stores.snapshots, table, "live")
        return Done(None, await compare_images(stores.snapshots, served, live), served.label, live.label)
    with told(f"table {table} was not unpinned"):
        manifest = await (await _pins(stores, table)).unpin(request)
    return await finish(stores, served, manifest, "what all objects say now", [])


async def _pins(stores: Stores, table: str) -> TablePins:
    return TablePins(stores.snapshots, table, await greatest_served(stores, table))


async def _compare(stores: Stores, served: Image, chunks: Sequence[Chunk]) -> TableDiff:
    kept = {chunk.digest for chunk in chunks} & {name.digest for name in served.chunks}
    old = await read_entries(stores.snapshots, (name for name in served.chunks if name.digest not in kept))
    new = [chunk for chunk in chunks if chunk.digest not in kept]
    return diff_tables(old, (entry for chunk in new for entry in decode_chunk(chunk.kind, chunk.content)))


def _endpoint_notes(unknown: Sequence[str]) -> Iterator[str]:
    if unknown:
        named = ", ".join(unknown[:SHOWN_NAMES]) + (", ..." if len(unknown) > SHOWN_NAMES else "")
        yield (
            f"until the translator has looked, {count_of(len(unknown), 'upstream')} that no route named before "
            f"{'has' if len(unknown) == 1 else 'have'} the endpoints of the old revision: {named}"
        )


async def _key_notes(stores: Stores, manifest: Manifest) -> Iterator[str]:
    """Warn of old certificates whose keys were sealed to none of the keys that certificates are sealed to now."""
    pinned, live = [
        await read_entries(stores.snapshots, (name for name in names if name.kind == "certificates"))
        for names in (manifest.chunks, manifest.live)
    ]
    known = {one for entry in live if isinstance(entry, Certificate) for one in entry.private_key.boxes}
    lost = [
        entry.key
        for entry in pinned
        if isinstance(entry, Certificate) and known and known.isdisjoint(entry.private_key.boxes)
    ]
    return (f"gateways may be unable to open the key of certificate {key}: it was sealed to others" for key in lost)
