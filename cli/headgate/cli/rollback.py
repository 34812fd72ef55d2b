"""`headgate rollback` and `headgate unpin`: back to an old revision, and forward again."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import click

from headgate.cli.diff import compare_images
from headgate.cli.diff_text import print_diff, summary
from headgate.cli.errors import CommandError, ExitCode
from headgate.cli.group import TeachingCommand
from headgate.cli.people import current_user
from headgate.cli.rendering import count_of, print_json
from headgate.cli.revisions import Image, find_image, find_revision
from headgate.cli.store import ask_stores, store_options
from headgate.common.errors import Conflict, DecodeError, NotFound
from headgate.common.heartbeats import Heartbeat
from headgate.common.snapshot import Chunk, Manifest, Version, decode_chunk
from headgate.common.stores.nats import NatsStores
from headgate.common.stores.reading import read_entries
from headgate.common.table import Certificate
from headgate.common.table_diff import TableDiff, diff_tables
from headgate.translator.pinning import NothingToDo, TablePins, Wish

SHOWN_NAMES = 3
APPLIED_S = 10.0
"""Gateways apply a revision within milliseconds; one that has not after so long is named."""
_POLL_S = 0.05


class Done(NamedTuple):
    """What was done, or would be."""

    version: Version | None
    """The new revision; None for a dry run."""
    difference: TableDiff
    """Between what was served before and after."""
    before: str
    after: str
    notes: Sequence[str] = ()
    behind: Sequence[str] = ()
    """Gateway workers that have not applied it in time."""
    gateways: int = 0


Command = TypeVar("Command", bound=Callable[..., Any])


def wish_options(command: Command) -> Command:
    """Add the flags that say who wants it and why."""
    for option in (
        click.option("--dry-run", is_flag=True, help="Say what would be served differently and change nothing."),
        click.option("--by", default="", show_default=False, metavar="NAME", help="Who you are; default: USER@HOST."),
        click.option(
            "--reason", default="", show_default=False, metavar="TEXT", help="Why; shown by history and status."
        ),
    ):
        command = option(command)
    return command


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
    wish = _wish(by, reason)
    done = ask_stores(
        nats_url, data_dir, lambda stores: _roll_back(stores, table, revision, frozen, wish, dry_run=dry_run)
    )
    return _report(done, table, as_json)


@click.command(
    cls=TeachingCommand,
    examples=["headgate diff pinned live     # what it will change", "headgate unpin --reason 'fixed in 1.4.2'"],
    read_more="docs/history.md",
)
@wish_options
@store_options
def unpin(reason: str, by: str, dry_run: bool, nats_url: str, data_dir: Path, table: str, as_json: bool) -> int:
    """Serve the live table again: what the objects of all clusters say now, with every change that waited."""
    wish = _wish(by, reason)
    done = ask_stores(nats_url, data_dir, lambda stores: _unpin(stores, table, wish, dry_run=dry_run))
    return _report(done, table, as_json)


async def _roll_back(stores: NatsStores, table: str, revision: str, frozen: bool, wish: Wish, *, dry_run: bool) -> Done:
    target = await find_revision(stores.snapshots, table, revision)
    served = await find_image(stores.snapshots, table, "HEAD")
    after = f"revision {target.version}"
    pins = await _pins(stores, table)
    with _told(f"table {table} was not pinned"):
        if dry_run:
            chunks = await pins.preview(target, wish, is_frozen=frozen)
            return Done(None, await _compare(stores, served, chunks), served.label, after)
        done = await pins.pin(target, wish, is_frozen=frozen)
    notes = [*_endpoint_notes(done.unknown), *await _key_notes(stores, done.manifest)]
    return await _finish(stores, served, done.manifest, after, notes)


async def _unpin(stores: NatsStores, table: str, wish: Wish, *, dry_run: bool) -> Done:
    served = await find_image(stores.snapshots, table, "HEAD")
    if dry_run and served.manifest.pin is not None:
        live = await find_image(stores.snapshots, table, "live")
        return Done(None, await compare_images(stores.snapshots, served, live), served.label, live.label)
    with _told(f"table {table} was not unpinned"):
        manifest = await (await _pins(stores, table)).unpin(wish)
    return await _finish(stores, served, manifest, "what all objects say now", [])


@contextmanager
def _told(what_not: str) -> Iterator[None]:
    """Say in a line why it was not done."""
    try:
        yield
    except NothingToDo as error:
        raise CommandError(str(error)) from error
    except (Conflict, NotFound, DecodeError) as error:
        raise CommandError(f"{what_not}: {error}") from error


async def _pins(stores: NatsStores, table: str) -> TablePins:
    # Heartbeats first: a pointer that is read later is older than one of them only if the store went back.
    served = [beat.version for beat in await stores.heartbeats.live() if beat.table == table and beat.version]
    return TablePins(stores.snapshots, table, max(served, default=None))


def _wish(by: str, reason: str) -> Wish:
    return Wish(by or current_user(), datetime.now(UTC), reason)


async def _compare(stores: NatsStores, served: Image, chunks: Sequence[Chunk]) -> TableDiff:
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


async def _key_notes(stores: NatsStores, manifest: Manifest) -> Iterator[str]:
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


async def _finish(stores: NatsStores, served: Image, manifest: Manifest, after: str, notes: Sequence[str]) -> Done:
    """Compare, and wait until the gateways have applied it."""
    now = Image(after, manifest.chunks, manifest)
    difference = await compare_images(stores.snapshots, served, now)
    beats = await _wait_for_gateways(stores, manifest)
    behind = [f"{beat.replica}/{beat.worker}" for beat in beats if not _has_applied(beat, manifest)]
    return Done(manifest.version, difference, served.label, after, notes, behind, len(beats))


async def _wait_for_gateways(stores: NatsStores, manifest: Manifest) -> list[Heartbeat]:
    end = asyncio.get_running_loop().time() + APPLIED_S
    while True:
        beats = [beat for beat in await stores.heartbeats.live() if beat.table == manifest.table]
        if all(_has_applied(beat, manifest) for beat in beats) or asyncio.get_running_loop().time() > end:
            return beats
        await asyncio.sleep(_POLL_S)


def _has_applied(beat: Heartbeat, manifest: Manifest) -> bool:
    return beat.version is not None and beat.version >= manifest.version


def _report(done: Done, table: str, as_json: bool) -> int:
    if as_json:
        print_json(
            {
                "table": table,
                "revision": done.version and str(done.version),
                "notes": [*done.notes],
                "gateways": done.gateways,
                "behind": [*done.behind],
                "counts": done.difference.counts,
                "changes": [
                    change.model_dump(mode="json", exclude_defaults=True) for change in done.difference.changes
                ],
            }
        )
    elif done.version is None:
        print_diff(done.difference, f"table {table}: {done.before}", done.after)
    else:
        click.echo(f"table {table} serves {done.after}, as revision {done.version}: {summary(done.difference)}")
        for note in done.notes:
            click.echo(note)
        click.echo(_describe_gateways(done))
    return ExitCode.NEGATIVE if done.behind else ExitCode.OK


def _describe_gateways(done: Done) -> str:
    if not done.gateways:
        return "no gateway is running"
    if done.behind:
        return f"not applied within {APPLIED_S:g} s by {', '.join(done.behind)}; `headgate status` says more"
    return f"applied by {count_of(done.gateways, 'gateway worker')}"
