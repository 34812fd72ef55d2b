"""Going back to an old revision, and forward again, with what the person should know about it."""

from collections.abc import Iterator, Sequence

from headgate.common.snapshot import Chunk, Manifest, decode_chunk
from headgate.common.stores.opening import Stores
from headgate.common.stores.reading import read_entries
from headgate.common.table import Certificate
from headgate.common.table_diff import TableDiff, diff_tables
from headgate.operations.changing.outcome import Done, commit_errors, finish, greatest_served
from headgate.operations.changing.pinning import TablePins
from headgate.operations.committing.manual import ChangeRequest
from headgate.operations.tables.differences import compare_images
from headgate.operations.tables.revisions import Image, find_image, find_revision
from headgate.operations.wording import count_of

SHOWN_NAMES = 3


async def roll_back(
    stores: Stores, table: str, revision: str, request: ChangeRequest, *, is_frozen: bool, dry_run: bool
) -> Done:
    """Pin a table to the revision that a name means.

    Args:
        stores: where it is.
        table: its name.
        revision: the name, as people write it.
        request: who wants it.
        is_frozen: keep the endpoints of the old revision, instead of following those of today.
        dry_run: say what would be served differently, and change nothing.

    Raises:
        OperationError: it was not done.
        StoreError: the store did not do it.
    """
    target = await find_revision(stores.snapshots, table, revision)
    served = await find_image(stores.snapshots, table, "HEAD")
    after = f"revision {target.version}"
    pins = await _pins(stores, table)
    with commit_errors(f"table {table} was not pinned"):
        if dry_run:
            chunks = await pins.preview(target, is_frozen=is_frozen)
            return Done(None, await _compare(stores, served, chunks), served.label, after)
        done = await pins.pin(target, request, is_frozen=is_frozen)
    notes = [*_endpoint_notes(done.unknown), *await _key_notes(stores, done.manifest)]
    return await finish(stores, served, done.manifest, after, notes)


async def unpin(stores: Stores, table: str, request: ChangeRequest, *, dry_run: bool) -> Done:
    """Serve the live table again; raises what `roll_back` does."""
    served = await find_image(stores.snapshots, table, "HEAD")
    if dry_run and served.manifest.pin is not None:
        live = await find_image(stores.snapshots, table, "live")
        return Done(None, await compare_images(stores.snapshots, served, live), served.label, live.label)
    with commit_errors(f"table {table} was not unpinned"):
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
