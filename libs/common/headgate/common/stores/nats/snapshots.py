"""The snapshot store in a key-value bucket.

    chunk.<sha256>                          compressed chunk, or page of a large manifest, written once
    manifest.<table>.<epoch>.<revision>     compressed manifest
    pointer.<table>                         JSON of `Pointer`: what readers follow

Chunks and manifest are written first, then the pointer, with the sequence that its predecessor must have: what it names
is there. A manifest is never written over. Where one stands that no pointer names, its writer has ended or is about to
move the pointer: the next writer leaves it that version, and takes another epoch (decision 0082).

The pointer's message carries a small change in a header: who follows the pointer and has the revision before then reads
nothing else. A change that it carries wholly is committed by that message alone, and chunks and manifest are stored
afterwards (decision 0085): who finds no manifest under the version of the pointer makes it of the one before.

A reader watches for speed and reads for correctness: the pointer itself is read on every reconnection, after every
disturbance and every five seconds.
"""

import asyncio
import base64
import logging
import time
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import aclosing, suppress
from typing import NamedTuple

from headgate.common.bus.connection import Bus
from headgate.common.deltas import escape_token
from headgate.common.errors import Conflict, DecodeError, HistoryBroken, NotFound, StoreError, StoreUnavailable
from headgate.common.resources import JsonObject
from headgate.common.snapshot import (
    Chunk,
    ChunkName,
    Manifest,
    Pointer,
    Version,
    compress,
    digest_of,
)
from headgate.common.stores.announced import AnnouncedRevisions
from headgate.common.stores.collecting import CHUNK_GRACE_S
from headgate.common.stores.found import all_found
from headgate.common.stores.nats.answers import StreamMissing
from headgate.common.stores.nats.carried import (
    CHANGE_HEADER,
    CarriedRevisions,
    Revision,
    carried_by,
    new_manifest,
    page_messages,
)
from headgate.common.stores.nats.collector import Collector, stored_chunks
from headgate.common.stores.nats.contents import Contents
from headgate.common.stores.nats.following import Message, Restarted, follow
from headgate.common.stores.nats.jetstream import EXPECTED_LAST, Outgoing, Stored, Stream, Upkeep
from headgate.common.stores.nats.keys import (
    PREFIX,
    TABLES_BUCKET,
    chunk_key,
    manifest_key,
    pointer_key,
)
from headgate.common.stores.nats.manifests import manifests_of, stored_manifest
from headgate.common.stores.paged_manifests import StoredManifest, read_head
from headgate.common.stores.pointers import (
    Tell,
    check_expected,
    decode_pointer,
    decode_versions,
    follow_pointer,
    pointer_to,
)
from headgate.common.stores.revision_change import CONTENTS_LIMIT, RevisionChange, decode_change, encode_change

_log = logging.getLogger(__name__)

_FEW = 16
_MOVING_S = 0.1
"""What a writer that has just stored a manifest needs at most to move the pointer, or it has ended."""


def bucket_config(bucket: str, description: str) -> JsonObject:
    """A stream that every NATS tool shows as a key-value bucket (ADR-8), with one value for each key."""
    return {
        "name": f"KV_{bucket}",
        "subjects": [f"$KV.{bucket}.>"],
        "description": description,
        "storage": "file",
        "discard": "new",
        "max_msgs_per_subject": 1,
        "allow_rollup_hdrs": True,
        "allow_direct": True,
        "allow_atomic": True,
    }


def tables_stream(bus: Bus, upkeep: Upkeep) -> Stream:
    """The bucket's stream."""
    return Stream(bus, bucket_config(TABLES_BUCKET, "Route tables: chunks, manifests, pointers"), upkeep)


class _CommitMessages(NamedTuple):
    """What a commit stores."""

    revision: Revision
    headers: dict[str, str]
    """Of the pointer's message."""
    parent: Version | None = None
    """Revision of which the headers make this one, without anything else that is new; None: they do not."""


class _Written(NamedTuple):
    """The pointer that was written last."""

    pointer: Pointer | None
    sequence: int
    pages: frozenset[str]
    """Digests of those that its revision has."""


_NOTHING_WRITTEN = _Written(None, 0, frozenset())


class NatsSnapshotStore:
    """`SnapshotStore` on JetStream."""

    def __init__(
        self, stream: Stream, chunk_grace_s: float = CHUNK_GRACE_S, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._stream = stream
        contents = Contents(stream)
        self._collector = Collector(stream, contents, chunk_grace_s, clock)
        self._announced = AnnouncedRevisions()
        self._contents = contents
        self._manifests = manifests_of(contents)
        self._carried = CarriedRevisions(stream, self._manifests)
        self._left_over: dict[str, tuple[str, int]] = {}
        """By table, subject and sequence of a manifest that no pointer names."""
        self._written: dict[str, _Written] = {}
        """By table, what was written here last. What followed it may be lost by an outage."""
        stream.bus.on_disturbance(self._written.clear)

    async def read_pointer(self, table: str) -> Pointer | None:
        """Return the pointer as the stream's leader has it; None if there is none.

        In place of one that cannot be read stands the newest manifest, which was stored just before it.
        """
        return (await self._present_pointer(table))[0]

    async def _present_pointer(self, table: str) -> tuple[Pointer | None, int]:
        """Return the pointer and the sequence of what stands for it; 0 for nothing."""
        return await self._read(table, await self._stored_pointer(table))

    async def _read(self, table: str, stored: Stored | None) -> tuple[Pointer | None, int]:
        if stored is None:
            return None, 0
        try:
            return decode_pointer(stored.data), stored.sequence
        except DecodeError as error:
            _log.error("a pointer cannot be read", extra={"table": table, "reason": str(error)})
            return await self._pointer_of_newest(table), stored.sequence

    async def _pointer_of_newest(self, table: str) -> Pointer | None:
        for version in reversed(await self.versions(table)):
            stored = await self._stream.last(manifest_key(table, version))
            try:
                if stored is not None:
                    return pointer_to(read_head(stored.data)[0], stored.data)
            except DecodeError as error:
                _log.error("a manifest cannot be read", extra={"table": table, "reason": str(error)})
        return None

    async def _stored_pointer(self, table: str) -> Stored | None:
        try:
            return await self._stream.last(pointer_key(table))
        except StreamMissing:
            await self._stream.confirm_missing()
            return None

    async def missing(self, digests: Collection[str]) -> set[str]:
        """Return which chunks the store lacks: one request however many are asked for."""
        await self._collector.count_on(digests)
        await self._carried.settle_all()
        if len(digests) > _FEW:
            return set(digests) - await stored_chunks(self._stream)
        found = await asyncio.gather(*(self._stream.subjects(chunk_key(digest)) for digest in digests))
        return {digest for digest, subjects in zip(digests, found, strict=True) if not subjects}

    async def put_chunks(self, chunks: Sequence[Chunk]) -> None:
        """Store chunks; storing one twice does no harm."""
        await self._collector.count_on(chunk.digest for chunk in chunks)
        await self._stream.publish_many(Outgoing(chunk_key(chunk.digest), compress(chunk.content)) for chunk in chunks)

    async def get_chunks(self, names: Sequence[ChunkName]) -> Sequence[bytes]:
        """Return chunks as they are stored; any replica may answer, the leader is asked for what that one lacks."""
        return await self._announced.chunks(names, self._fetch_chunks)

    async def _fetch_chunks(self, names: Sequence[ChunkName]) -> Sequence[bytes]:
        await self._carried.settle_all()
        digests = [name.digest for name in names]
        return all_found("chunk {}", digests, await self._contents.find(digests))

    async def commit(
        self, manifest: Manifest, expected: Pointer | None, change: RevisionChange | None = None
    ) -> Pointer:
        """Move the pointer to a manifest that is stored before or, where the pointer carries what is new, afterwards.

        A commit that was made but not confirmed may be repeated: it returns the pointer as it stands.
        """
        table, stored_form = manifest.table, self._manifests.encode(manifest)
        await self._carried.settle(table)
        wanted = pointer_to(manifest, stored_form.content)
        known, sequence, pages = self._written.pop(table, _NOTHING_WRITTEN)
        is_ours = known is not None and known == expected
        messages = await self._messages(manifest, stored_form.without(pages if is_ours else ()), change)
        if not is_ours:
            if (stored := await self._stored_pointer(table)) is not None:
                await self._carried.complete(stored)
            current, sequence = await self._read(table, stored)
            if current is not None and current == wanted:
                return current
            check_expected(table, expected, current)
        if is_ours and expected is not None and messages.parent == expected.version:
            self._carried.check(messages.revision)
            sequence = await self._move(table, wanted, expected, sequence, messages.headers)
            self._carried.store_soon(table, messages.revision)
        else:
            sequence = await self._commit_in_two(table, wanted, expected, sequence, messages)
        if sequence:
            self._written[table] = _Written(wanted, sequence, frozenset([page.digest for page in stored_form.pages]))
        self._collector.note_commit(messages.revision.manifest.subject, manifest, stored_form.pages)
        await self._forget_left_over(table)
        return wanted

    async def _commit_in_two(
        self, table: str, wanted: Pointer, expected: Pointer | None, after: int, messages: _CommitMessages
    ) -> int:
        manifest = await self._store_manifest(table, expected, messages.revision)
        try:
            return await self._move(table, wanted, expected, after, messages.headers)
        except StoreError as error:
            if not isinstance(error, StoreUnavailable):  # the pointer was not moved
                with suppress(StoreError):
                    await self._stream.purge(messages.revision.manifest.subject, before=manifest + 1)
            raise

    async def _store_manifest(self, table: str, expected: Pointer | None, revision: Revision) -> int:
        """Store what the pointer is to name; return the manifest's sequence.

        Raises:
            Conflict: another writer has moved the pointer.
            HistoryBroken: another manifest stands under this version.
        """
        manifest = revision.manifest
        try:
            acks = await self._stream.publish_pipelined((*revision.chunks, manifest))
        except Conflict:
            stored = await self._stream.last(manifest.subject)
            if stored is not None and stored.data == manifest.payload:  # ours, which was not confirmed
                await self._stream.publish_pipelined(revision.chunks)
                return stored.sequence
            await asyncio.sleep(_MOVING_S)
            check_expected(table, expected, (await self._present_pointer(table))[0])
            if stored is not None:
                self._left_over[table] = manifest.subject, stored.sequence
            raise HistoryBroken(f"table {table}: {manifest.subject} is there, and no pointer names it") from None
        return acks[-1].sequence

    async def _move(
        self, table: str, wanted: Pointer, expected: Pointer | None, after: int, headers: dict[str, str]
    ) -> int:
        """Move a table's pointer; return its sequence, or 0 if that was done before."""
        content = wanted.model_dump_json().encode()
        try:
            ack = await self._stream.publish(
                Outgoing(pointer_key(table), content, headers | {EXPECTED_LAST: str(after)})
            )
        except Conflict:
            current, after = await self._present_pointer(table)
            if current == wanted:
                return 0
            check_expected(table, expected, current)  # else the same one was written again since
            ack = await self._stream.publish(
                Outgoing(pointer_key(table), content, headers | {EXPECTED_LAST: str(after)})
            )
        return ack.sequence

    async def _forget_left_over(self, table: str) -> None:
        """Remove a manifest that no pointer can come to name any more, now that it has moved on."""
        subject, sequence = self._left_over.pop(table, ("", 0))
        if subject:
            with suppress(StoreError):
                await self._stream.purge(subject, before=sequence + 1)

    async def _messages(
        self, manifest: Manifest, stored_form: StoredManifest, change: RevisionChange | None
    ) -> _CommitMessages:
        await self._collector.count_on(page.digest for page in stored_form.pages)
        named = new_manifest(manifest, stored_form.content)
        pages = page_messages(stored_form.pages)
        if change is None:
            return _CommitMessages(Revision(pages, named), {})
        await self._collector.count_on(chunk.digest for chunk in change.chunks)
        contents = [compress(chunk.content) for chunk in change.chunks]
        chunks = [
            Outgoing(chunk_key(chunk.digest), content) for chunk, content in zip(change.chunks, contents, strict=True)
        ]
        carried = encode_change(manifest, change, contents, self._manifests.pages_of(manifest.table))
        headers = {CHANGE_HEADER: base64.b64encode(carried).decode()} if carried else {}
        # Chunks that are stored and that only the pointer names another table's writer might drop.
        is_whole = carried and not change.stored and sum(map(len, contents)) <= CONTENTS_LIMIT
        parent = change.parent.version if is_whole else None
        return _CommitMessages(Revision([*chunks, *pages], named), headers, parent)

    async def get_manifest(self, table: str, version: Version) -> Manifest:
        """Return the manifest of a revision."""
        encoded = await stored_manifest(self._stream, table, version)
        if encoded is None:
            if (carried := await self._carried_manifest(table, version)) is not None:
                return carried
            encoded = await stored_manifest(self._stream, table, version)  # the pointer may have moved on in between
        if encoded is None:
            raise NotFound(f"table {table} has no revision {version}: never committed, or collected since")
        return await self._manifests.decode(encoded)

    async def get_manifest_head(self, table: str, version: Version) -> Manifest:
        """Return a revision's manifest, that of a large table without the names of its chunks."""
        encoded = await stored_manifest(self._stream, table, version)
        return read_head(encoded)[0] if encoded is not None else await self.get_manifest(table, version)

    async def _carried_manifest(self, table: str, version: Version) -> Manifest | None:
        """Make a manifest of the one before and of what the table's pointer carries; None if that is another one's."""
        stored = await self._stored_pointer(table)
        if stored is None or not (carried := carried_by(stored)):
            return None
        try:
            pointer, parent = decode_pointer(stored.data), decode_change(carried).parent
            encoded = await stored_manifest(self._stream, table, parent) if pointer.version == version else None
            if encoded is None:
                return None
            self._announced.note(await self._manifests.decode(encoded))
        except (DecodeError, NotFound):
            return None
        self._announced.hear(pointer, carried)
        return self._announced.manifest_of(pointer)

    async def manifest_of(self, pointer: Pointer) -> Manifest:
        """Return the manifest that a pointer names; nothing is read where notices brought all that is new in it."""
        table, version = pointer.table, pointer.version
        if (announced := self._announced.manifest_of(pointer)) is not None:
            return announced
        encoded = await stored_manifest(self._stream, table, version)
        if encoded is None or digest_of(encoded) != pointer.manifest_digest:
            # Another one is of a writer that lost the race for the pointer: it goes when the winner stores its own.
            if (carried := await self._carried_manifest(table, version)) is not None:
                return carried
            encoded = await stored_manifest(self._stream, table, version)
        if encoded is None:
            raise NotFound(f"table {table} has no revision {version}: never committed, or collected since")
        if digest_of(encoded) != pointer.manifest_digest and await self.read_pointer(table) != pointer:
            raise NotFound(f"table {table} moved on from revision {version} while it was read")
        return self._announced.note(await self._manifests.decode(encoded))

    async def versions(self, table: str) -> Sequence[Version]:
        """Return the versions whose manifests are kept, oldest first; that of the pointer is one of them."""
        await self._carried.settle(table)
        subjects = await self._stream.subjects(f"{PREFIX}.manifest.{escape_token(table)}.*.*")
        found = decode_versions(".".join(subject.rsplit(".", 2)[1:]) for subject in subjects)
        stored = await self._stored_pointer(table)
        if stored is not None and carried_by(stored):
            with suppress(DecodeError):
                found = sorted({*found, decode_pointer(stored.data).version})
        return found

    async def collect_garbage(self, table: str, expired: Collection[Version]) -> int:
        """Drop these revisions' manifests, and chunks that no table's manifest names.

        The manifest that the pointer names is always kept. An unused chunk goes some minutes after it was first
        found unused. Returns how many manifests and chunks were dropped.
        """
        await self._carried.settle(table)
        pointer = None
        if expired:
            stored = await self._stored_pointer(table)
            if stored is not None and not await self._carried.complete(stored):
                return 0  # the parent is needed as long as nothing else has the revision
            pointer, _ = await self._read(table, stored)
        old = [version for version in expired if pointer is None or version != pointer.version]
        await self._collector.drop_manifests([manifest_key(table, version) for version in old])
        return len(old) + await self._collector.drop_chunks()

    def follow(self, table: str) -> AsyncIterator[Pointer]:
        """Yield the pointer now and whenever its version or manifest changes, for ever."""
        return follow_pointer(table, self.read_pointer, self._watch, self._stream.bus.on_disturbance)

    async def _watch(self, table: str, tell: Tell) -> None:
        async with aclosing(follow(self._stream, [pointer_key(table)])) as items:
            async for item in items:
                if isinstance(item, Restarted):
                    tell(None)
                    continue
                for message in item:
                    self._hear(message, tell)

    def _hear(self, message: Message, tell: Tell) -> None:
        try:
            pointer = decode_pointer(message.data)
        except DecodeError as error:
            _log.error("a pointer cannot be read", extra={"subject": message.subject, "reason": str(error)})
            return
        if carried := carried_by(message):
            self._announced.hear(pointer, carried)
        tell(pointer)
