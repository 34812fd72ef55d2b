"""Pinning a table to an old revision, and unpinning it: new revisions, committed by whoever asks for them.

The pin stands in the manifest, so it is as atomic and as lasting as the table, moves with a compare-and-set against
whatever the translator commits at that moment, and needs no translator to be running. The translator finds it there
and keeps it from then on.

Rejected: asking the translator to pin. Going back must work above all when something is wrong with the translator.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from headgate.common.errors import Conflict, NotFound
from headgate.common.snapshot import TABLE_KIND, Cause, Chunk, Manifest, Pin, Version, decode_chunk
from headgate.common.stores import SnapshotStore
from headgate.common.stores.reading import read_chunks
from headgate.common.table import Upstream
from headgate.translator.pinned_table import PinnedTable
from headgate.translator.publisher import Draft, Publisher
from headgate.translator.retention import Retention

ATTEMPTS = 20
"""A translator that follows a busy cluster commits ten times a second; it loses some of these races."""


class Wish(NamedTuple):
    """Who wants it, when, and why."""

    by: str
    at: datetime
    reason: str = ""

    def as_cause(self, table: str, operation: str, what: str = "") -> Cause:
        """Return it as the cause of a revision."""
        note = ": ".join(part for part in (what, self.reason) if part)
        return Cause(
            cluster="",
            kind=TABLE_KIND,
            namespace="",
            name=table,
            operation=operation,
            sequence=0,
            by=self.by,
            at=self.at,
            note=note,
        )


class NothingToDo(Exception):
    """The table is as wanted already; the text says how."""


class Pinned(NamedTuple):
    """What pinning did."""

    manifest: Manifest
    unknown: tuple[str, ...] = ()
    """Upstreams of which nothing that is served names an endpoint: those of the old revision are taken until the
    translator has looked."""


class TablePins:
    """Pins and unpins one table."""

    def __init__(self, store: SnapshotStore, table: str, served: Version | None) -> None:
        """Prepare.

        Args:
            store: where the table is.
            table: its name.
            served: greatest version in the gateways' heartbeats, read before anything of the store.
        """
        self._store = store
        self._table = table
        self._served = served

    async def pin(self, target: Manifest, wish: Wish, *, is_frozen: bool = False) -> Pinned:
        """Serve an old revision from now on.

        Args:
            target: the old revision.
            wish: who wants it.
            is_frozen: keep its endpoints too, instead of following those of today.

        Raises:
            NothingToDo: the table is pinned like that already.
            NotFound: the table was never published, or a chunk of the old revision is gone.
            Conflict: others commit all the time.
            StoreError: the store did not do it.
        """
        for _ in range(ATTEMPTS):
            publisher, current = await self._begin()
            pin = Pin(version=target.version, since=wish.at, by=wish.by, reason=wish.reason, is_frozen=is_frozen)
            if _is_pinned_like(current.pin, pin):
                raise NothingToDo(f"table {self._table} is pinned to {pin.version} already")
            live = await read_chunks(self._store, current.live)
            table, unknown = await self._compose(pin, target, current, live)
            cause = wish.as_cause(self._table, "rollback", f"to {target.version}")
            draft = _draft(current, cause, chunks=table.image.chunks(), pin=pin, live=live)
            if await self._commit(publisher, draft) and publisher.manifest is not None:
                return Pinned(publisher.manifest, unknown)
        raise Conflict(f"table {self._table}: others commit all the time; try again")

    async def preview(self, target: Manifest, wish: Wish, *, is_frozen: bool = False) -> list[Chunk]:
        """Return what would be served; takes what `pin` takes, and raises what it does."""
        _, current = await self._begin()
        pin = Pin(version=target.version, since=wish.at, is_frozen=is_frozen)
        live = await read_chunks(self._store, current.live)
        return (await self._compose(pin, target, current, live))[0].image.chunks()

    async def _compose(
        self, pin: Pin, target: Manifest, current: Manifest, live: Sequence[Chunk]
    ) -> tuple[PinnedTable, tuple[str, ...]]:
        old = await read_chunks(self._store, target.chunks)
        served = await read_chunks(self._store, (name for name in current.chunks if name.kind == "upstreams"))
        return _compose(pin, old, [*served, *live])

    async def unpin(self, wish: Wish) -> Manifest:
        """Serve the live table again.

        Raises:
            NothingToDo: the table is not pinned.
            NotFound: the table was never published, or a chunk is gone.
            Conflict: others commit all the time.
            StoreError: the store did not do it.
        """
        for _ in range(ATTEMPTS):
            publisher, current = await self._begin()
            if current.pin is None:
                raise NothingToDo(f"table {self._table} is not pinned")
            cause = wish.as_cause(self._table, "unpin", f"from {current.pin.version}")
            draft = _draft(current, cause, chunks=await read_chunks(self._store, current.live))
            if await self._commit(publisher, draft) and publisher.manifest is not None:
                return publisher.manifest
        raise Conflict(f"table {self._table}: others commit all the time; try again")

    async def _begin(self) -> tuple[Publisher, Manifest]:
        publisher = Publisher(self._store, self._table, Retention())
        await publisher.read()
        publisher.observe(publisher.pointer, self._served)
        if publisher.manifest is None:
            raise NotFound(f"table {self._table} was never published")
        return publisher, publisher.manifest

    async def _commit(self, publisher: Publisher, draft: Draft) -> bool:
        try:
            return await publisher.publish(draft) is not None
        except Conflict:
            return False


def _is_pinned_like(pin: Pin | None, other: Pin) -> bool:
    return pin is not None and (pin.version, pin.is_frozen) == (other.version, other.is_frozen)


def _compose(pin: Pin, old: Sequence[Chunk], current: Sequence[Chunk]) -> tuple[PinnedTable, tuple[str, ...]]:
    """Give the old entries the endpoints that the current ones have; name those that none of them has."""
    table = PinnedTable(pin, old)
    chunks = {chunk.digest: chunk for chunk in current if chunk.kind == "upstreams"}
    known = {
        entry.key: entry
        for chunk in chunks.values()
        for entry in decode_chunk(chunk.kind, chunk.content)
        if isinstance(entry, Upstream)
    }
    unknown = []
    for ref in sorted(table.follows, key=lambda ref: ref.key):
        if found := known.get(ref.key):
            table.refresh(ref, found)
        else:
            unknown.append(ref.key)
    return table, tuple(unknown)


def _draft(
    current: Manifest, cause: Cause, *, chunks: list[Chunk], pin: Pin | None = None, live: Sequence[Chunk] = ()
) -> Draft:
    return Draft(chunks, causes=(cause,), cause_count=1, inputs=current.inputs, log=current.log, pin=pin, live=live)
