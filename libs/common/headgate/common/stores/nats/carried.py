"""Revisions that are committed by their pointer's message alone, as long as it carries all that is new in them.

Their chunks and manifest get keys of their own afterwards, and before the next commit. So at any time at most one
revision of a table is in its pointer's message only, and the revision before it is stored: together they are the table.
Where the writer ended in between, the next writer stores what the pointer carries before it commits.
"""

import asyncio
import base64
import binascii
import logging
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from headgate.common.errors import Conflict, DecodeError, NotFound, StoreError, StoreUnavailable, TooLarge
from headgate.common.snapshot import Manifest, compress, digest_of
from headgate.common.stores.name_pages import Page
from headgate.common.stores.nats.following import Message
from headgate.common.stores.nats.jetstream import EXPECTED_LAST, Outgoing, Stored, Stream
from headgate.common.stores.nats.keys import chunk_key, manifest_key
from headgate.common.stores.paged_manifests import PagedManifests
from headgate.common.stores.pointers import decode_pointer
from headgate.common.stores.revision_change import decode_change

_log = logging.getLogger(__name__)

_TRIES = 5
CHANGE_HEADER = "Headgate-Change"
"""Of a pointer's message: `encode_change` in base64."""


class Revision(NamedTuple):
    """What is stored of a revision, besides its pointer."""

    chunks: Sequence[Outgoing]
    """And pages of the manifest."""
    manifest: Outgoing


def carried_by(message: Stored | Message) -> bytes:
    """Return the encoded change that a pointer's message carries; empty if there is none that can be read."""
    try:
        return base64.b64decode(message.headers.get(CHANGE_HEADER, ""), validate=True)
    except (binascii.Error, ValueError):
        return b""


class CarriedRevisions:
    """Those of the tables that this process writes, and how to store what another one left."""

    def __init__(self, stream: Stream, manifests: PagedManifests) -> None:
        self._stream = stream
        self._manifests = manifests
        self._waiting: dict[str, Revision] = {}
        """By table, what its pointer carries and is not confirmed to be stored."""
        self._locks: dict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._tasks: set[asyncio.Task[None]] = set()

    def check(self, revision: Revision) -> None:
        """Look whether the server takes a revision's messages, before its pointer is moved.

        Raises:
            TooLarge: it does not take one of them.
        """
        for message in (*revision.chunks, revision.manifest):
            self._stream.check_size(message)

    def store_soon(self, table: str, revision: Revision) -> None:
        """Begin to store what a table's pointer carries by now; `settle` waits for it."""
        self._waiting[table] = revision
        task = asyncio.create_task(self._try(table))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _try(self, table: str) -> None:
        try:
            await self.settle(table)
        except StoreError as error:  # the next commit tries again, and tells
            _log.debug("a revision is in its pointer only", extra={"table": table, "reason": str(error)})

    async def settle(self, table: str) -> None:
        """See to it that a table's last revision is stored, if it was committed here.

        Raises:
            StoreUnavailable: not confirmed.
        """
        if table not in self._waiting:
            return
        async with self._locks[table]:
            if (revision := self._waiting.get(table)) is not None:
                try:
                    await self.store(revision)
                except TooLarge as error:  # the server takes less than when the pointer was moved
                    _log.error("a revision cannot be stored", extra={"table": table, "reason": str(error)})
                del self._waiting[table]

    async def settle_all(self) -> None:
        """Do so for all tables."""
        for table in tuple(self._waiting):
            await self.settle(table)

    async def store(self, revision: Revision) -> None:
        """Store what a pointer carries. Chunks go first, because readers of the manifest expect them to be there.

        Raises:
            StoreUnavailable: not confirmed.
        """
        await self._stream.publish_pipelined(revision.chunks)
        manifest = revision.manifest
        for _ in range(_TRIES):
            try:
                await self._stream.publish(manifest)
                return
            except Conflict:
                there = await self._stream.last(manifest.subject)
            if there is not None and there.data == manifest.payload:
                return
            if there is not None:
                # A writer that lost the race for the pointer has stored its own, and may not come to remove it.
                await self._stream.purge(manifest.subject, before=there.sequence + 1)
        raise StoreUnavailable(f"{manifest.subject} is stored by others again and again")

    async def complete(self, stored: Stored) -> bool:
        """Store what a pointer of another writer carries, unless that is done; return whether it is stored now.

        Raises:
            StoreUnavailable: not now.
        """
        carried = carried_by(stored)
        try:
            pointer = decode_pointer(stored.data)
        except DecodeError:
            return False
        there = await self._stream.last(manifest_key(pointer.table, pointer.version)) if carried else None
        if not carried or (there is not None and digest_of(there.data) == pointer.manifest_digest):
            return True
        try:
            change = decode_change(carried)
            parent = await self._stream.last(manifest_key(pointer.table, change.parent))
            before = await self._manifests.decode(parent.data) if parent is not None else None
            pages = self._manifests.pages_of(pointer.table)
            manifest = change.apply_to(before, pages) if before is not None else None
        except (DecodeError, NotFound):  # of a later release, or it lost a page
            manifest = None
        if manifest is None:  # where the parent was dropped, this one was stored before
            return there is not None
        chunks = [Outgoing(chunk_key(chunk.name.digest), chunk.stored) for chunk in change.new if chunk.stored]
        encoded = self._manifests.encode(manifest)
        try:
            chunks += page_messages(encoded.pages)
            await self.store(Revision(chunks, new_manifest(manifest, encoded.content)))
        except TooLarge as error:
            _log.error("what a pointer carries cannot be stored", extra={"table": pointer.table, "reason": str(error)})
            return False
        _log.info("stored what a pointer carried", extra={"table": pointer.table, "revision": str(pointer.version)})
        return True


def page_messages(pages: Iterable[Page]) -> list[Outgoing]:
    """Return the messages of a manifest's pages."""
    return [Outgoing(chunk_key(page.digest), compress(page.content)) for page in pages]


def new_manifest(manifest: Manifest, encoded: bytes) -> Outgoing:
    """Return the message of a manifest, which is stored only where none stands."""
    return Outgoing(manifest_key(manifest.table, manifest.version), encoded, {EXPECTED_LAST: "0"})
