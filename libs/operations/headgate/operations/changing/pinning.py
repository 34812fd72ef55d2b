"""Pinning a table to an old revision, and unpinning it, by hand."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from headgate.common.snapshot import Chunk, Manifest, Pin, Version
from headgate.common.stores import SnapshotStore
from headgate.common.stores.chunk_entries import entry_contents
from headgate.common.stores.reading import read_chunks
from headgate.operations.committing.held_table import HeldTable
from headgate.operations.committing.manual import ChangeRequest, ManualCommits, next_of
from headgate.operations.committing.publisher import Draft
from headgate.operations.errors import NothingToDo


class Pinned(NamedTuple):
    """The result of pinning."""

    manifest: Manifest
    unknown: tuple[str, ...] = ()
    """Upstreams of which nothing that is served names an endpoint: those of the old revision are taken until the
    translator has looked."""


class TablePins:
    """Pins and unpins one table."""

    def __init__(self, store: SnapshotStore, table: str, served: Version | None) -> None:
        """Prepare; takes what `ManualCommits` does."""
        self._hand = ManualCommits(store, table, served)
        self._store = store
        self._table = table

    async def pin(self, target: Manifest, request: ChangeRequest, *, is_frozen: bool = False) -> Pinned:
        """Serve an old revision from now on; a rollout ends with that.

        Args:
            target: the old revision.
            request: who wants it.
            is_frozen: keep its endpoints too, instead of following those of today.

        Raises:
            NothingToDo: the table is pinned like that already.
            NotFound: the table was never published, or a chunk of the old revision is gone.
            Conflict: others commit all the time.
            StoreError: the store did not do it.
        """
        unknown: tuple[str, ...] = ()

        async def compose(current: Manifest) -> Draft:
            nonlocal unknown
            pin = Pin(
                version=target.version, since=request.at, by=request.by, reason=request.reason, is_frozen=is_frozen
            )
            if _is_pinned_like(current.pin, pin):
                raise NothingToDo(f"table {self._table} is pinned to {pin.version} already")
            live = await read_chunks(self._store, current.live)
            chunks, unknown = await self._compose(target, current, live, is_frozen=is_frozen)
            cause = request.as_cause(self._table, "rollback", f"to {target.version}")
            return next_of(current, cause, Draft(chunks, pin=pin, live=live))

        return Pinned(await self._hand.commit(compose), unknown)

    async def preview(self, target: Manifest, *, is_frozen: bool = False) -> list[Chunk]:
        """Return what would be served; takes what `pin` takes, and raises what it does."""
        current = await self._hand.current()
        live = await read_chunks(self._store, current.live)
        return (await self._compose(target, current, live, is_frozen=is_frozen))[0]

    async def _compose(
        self, target: Manifest, current: Manifest, live: Sequence[Chunk], *, is_frozen: bool
    ) -> tuple[list[Chunk], tuple[str, ...]]:
        table = HeldTable.of(await read_chunks(self._store, target.chunks))
        served = await read_chunks(self._store, (name for name in current.chunks if name.kind == "upstreams"))
        unknown = () if is_frozen else _refresh(table, [*served, *live])
        return table.image.chunks(), unknown

    async def unpin(self, request: ChangeRequest) -> Manifest:
        """Serve the live table again.

        Raises:
            NothingToDo: the table is not pinned.
            NotFound: the table was never published, or a chunk is gone.
            Conflict: others commit all the time.
            StoreError: the store did not do it.
        """

        async def compose(current: Manifest) -> Draft:
            if current.pin is None:
                raise NothingToDo(f"table {self._table} is not pinned")
            cause = request.as_cause(self._table, "unpin", f"from {current.pin.version}")
            return next_of(current, cause, Draft(await read_chunks(self._store, current.live)))

        return await self._hand.commit(compose)


def _is_pinned_like(pin: Pin | None, other: Pin) -> bool:
    return pin is not None and (pin.version, pin.is_frozen) == (other.version, other.is_frozen)


def _refresh(table: HeldTable, current: Iterable[Chunk]) -> tuple[str, ...]:
    """Give old entries the endpoints that the current ones have; name those of Services that none of them tells of."""
    known: dict[str, bytes] = {}
    for chunk in current:
        if chunk.kind == "upstreams":
            known.update(entry_contents(chunk.content))
    for key in sorted(table.image.keys("upstreams")):
        table.refresh(key, known.get(key))
    return tuple(sorted(str(key) for key in table.apart if key.port is not None))
