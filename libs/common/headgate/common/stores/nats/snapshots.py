"""The snapshot store in a key-value bucket.

    chunk.<sha256>                          compressed chunk, written once
    manifest.<table>.<epoch>.<revision>     compressed manifest
    pointer.<table>                         JSON of `Pointer`: what readers follow

Chunks and manifest are written first, then the pointer, with the sequence that its predecessor must have: what it names
is there. A manifest is never written over. Where one stands that no pointer names, its writer has ended or is about to
move the pointer: the next writer leaves it that version, and takes another epoch (decision 0082).

The pointer's message carries a small change in a header: who follows the pointer and has the revision before then reads
nothing else.

A reader watches for speed and reads for correctness: the pointer itself is read on every reconnection, after every
disturbance and every five seconds.
"""

import asyncio
import base64
import binascii
import logging
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Sequence
from contextlib import aclosing, suppress
from typing import NamedTuple

from headgate.common.bus.connection import Bus
from headgate.common.deltas import escape_token
from headgate.common.errors import Conflict, DecodeError, HistoryBroken, NotFound, StoreError
from headgate.common.resources import JsonObject
from headgate.common.snapshot import (
    Chunk,
    ChunkName,
    Manifest,
    Pointer,
    Version,
    compress,
    open_chunk,
)
from headgate.common.stores.announced import AnnouncedRevisions
from headgate.common.stores.collecting import CHUNK_GRACE_S, NamedChunks, UnusedChunks
from headgate.common.stores.nats.following import Message, Restarted, follow
from headgate.common.stores.nats.jetstream import (
    EXPECTED_LAST,
    Outgoing,
    Stored,
    Stream,
    StreamMissing,
    Upkeep,
)
from headgate.common.stores.pointers import Tell, decode_pointer, decode_versions, follow_pointer, pointer_to
from headgate.common.stores.revision_change import RevisionChange, encode_change

_log = logging.getLogger(__name__)

TABLES_BUCKET = "HEADGATE_TABLES"
CHANGE_HEADER = "Headgate-Change"
"""Of a pointer's message: `encode_change` in base64."""
_PREFIX = f"$KV.{TABLES_BUCKET}"
_FEW = 16
_MOVING_S = 0.1
"""What a writer that has just stored a manifest needs at most to move the pointer, or it has ended."""
_PURGES = 16
_PURGE_PAUSE_S = 0.03
"""Between so many purges: commits go on meanwhile, and the server rewrites a file for some of them."""


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
    """What is stored before a pointer, and with it."""

    chunks: Sequence[Outgoing]
    manifest: Outgoing
    headers: dict[str, str]
    """Of the pointer's message."""
    digests: frozenset[str]
    """Of all chunks that the manifest names."""


class NatsSnapshotStore:
    """`SnapshotStore` on JetStream."""

    def __init__(
        self, stream: Stream, chunk_grace_s: float = CHUNK_GRACE_S, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._stream = stream
        self._unused = UnusedChunks(chunk_grace_s, clock)
        self._dropping = asyncio.Lock()
        """Held while chunks are dropped: a writer that counts on one waits until it is known to be there or gone."""
        self._named = NamedChunks()
        """By key of the manifest, for one incarnation of the bucket."""
        self._incarnation = ""
        self._announced = AnnouncedRevisions()
        self._left_over: dict[str, tuple[str, int]] = {}
        """By table, subject and sequence of a manifest that no pointer names."""
        self._written: dict[str, tuple[Pointer, int]] = {}
        """By table, the pointer that was written here last and its sequence: as long as it is the one that is expected,
        the server compares it with the stored one."""

    async def read_pointer(self, table: str) -> Pointer | None:
        """Return the pointer as the stream's leader has it; None if there is none.

        In place of one that cannot be read stands the newest manifest, which was stored just before it.
        """
        return (await self._present_pointer(table))[0]

    async def _present_pointer(self, table: str) -> tuple[Pointer | None, int]:
        """Return the pointer and the sequence of what stands for it; 0 for nothing."""
        stored = await self._stored_pointer(table)
        if stored is None:
            return None, 0
        try:
            return decode_pointer(stored.data), stored.sequence
        except DecodeError as error:
            _log.error("a pointer cannot be read", extra={"table": table, "reason": str(error)})
            return await self._pointer_of_newest(table), stored.sequence

    async def _pointer_of_newest(self, table: str) -> Pointer | None:
        for version in reversed(await self.versions(table)):
            stored = await self._stream.last(_manifest_key(table, version))
            try:
                if stored is not None:
                    return pointer_to(Manifest.decode(stored.data), stored.data)
            except DecodeError as error:
                _log.error("a manifest cannot be read", extra={"table": table, "reason": str(error)})
        return None

    async def _stored_pointer(self, table: str) -> Stored | None:
        try:
            return await self._stream.last(_pointer_key(table))
        except StreamMissing:
            await self._stream.confirm_missing()
            return None

    async def missing(self, digests: Collection[str]) -> set[str]:
        """Return which chunks the store lacks: one request however many are asked for."""
        await self._count_on(digests)
        if len(digests) > _FEW:
            return set(digests) - await self._chunks()
        found = await asyncio.gather(*(self._stream.subjects(_chunk_key(digest)) for digest in digests))
        return {digest for digest, subjects in zip(digests, found, strict=True) if not subjects}

    async def _chunks(self) -> set[str]:
        return {subject.rsplit(".", 1)[1] for subject in await self._stream.subjects(f"{_PREFIX}.chunk.*")}

    async def _count_on(self, digests: Iterable[str]) -> None:
        async with self._dropping:
            self._unused.forget(digests)

    async def put_chunks(self, chunks: Sequence[Chunk]) -> None:
        """Store chunks; storing one twice does no harm."""
        await self._count_on(chunk.digest for chunk in chunks)
        await self._stream.publish_pipelined(
            [Outgoing(_chunk_key(chunk.digest), compress(chunk.content)) for chunk in chunks]
        )

    async def get_chunk(self, name: ChunkName) -> bytes:
        """Return a chunk's verified content; any replica may answer, the leader is asked when that one lacks it."""
        if (carried := self._announced.chunk(name)) is not None:
            return carried
        try:
            data = await self._stream.last_direct(_chunk_key(name.digest))
            if data is None:
                stored = await self._stream.last(_chunk_key(name.digest))
                data = stored.data if stored else None
        except StreamMissing:
            await self._stream.confirm_missing()
            data = None
        if data is None:
            raise NotFound(f"chunk {name.digest[:12]} is not in the store")
        return open_chunk(name, data)

    async def commit(
        self, manifest: Manifest, expected: Pointer | None, change: RevisionChange | None = None
    ) -> Pointer:
        """Store the manifest, then move the pointer to it.

        A commit that was made but not confirmed may be repeated: it returns the pointer as it stands.
        """
        table, encoded = manifest.table, manifest.encode()
        wanted = pointer_to(manifest, encoded)
        messages = await self._messages(manifest, encoded, change)
        known, sequence = self._written.pop(table, (None, 0))
        if known is None or known != expected:
            current, sequence = await self._present_pointer(table)
            if current is not None and current == wanted:
                return current
            _check_expected(table, expected, current)
        stored = await self._store_manifest(table, expected, messages)
        try:
            await self._move(table, wanted, expected, sequence, messages.headers)
        except Conflict:
            with suppress(StoreError):  # a manifest that stays does no harm
                await self._stream.purge(messages.manifest.subject, before=stored + 1)
            raise
        self._named.add(messages.manifest.subject, messages.digests)
        await self._forget_left_over(table)
        return wanted

    async def _store_manifest(self, table: str, expected: Pointer | None, messages: _CommitMessages) -> int:
        """Store what the pointer is to name; return the manifest's sequence.

        Raises:
            Conflict: another writer has moved the pointer.
            HistoryBroken: another manifest stands under this version.
        """
        manifest = messages.manifest
        try:
            acks = await self._stream.publish_pipelined((*messages.chunks, manifest))
        except Conflict:
            stored = await self._stream.last(manifest.subject)
            if stored is not None and stored.data == manifest.payload:
                return stored.sequence  # ours, which was not confirmed
            await asyncio.sleep(_MOVING_S)
            _check_expected(table, expected, (await self._present_pointer(table))[0])
            if stored is not None:
                self._left_over[table] = manifest.subject, stored.sequence
            raise HistoryBroken(f"table {table}: {manifest.subject} is there, and no pointer names it") from None
        return acks[-1].sequence

    async def _move(
        self, table: str, wanted: Pointer, expected: Pointer | None, after: int, headers: dict[str, str]
    ) -> None:
        content = wanted.model_dump_json().encode()
        try:
            ack = await self._stream.publish(
                Outgoing(_pointer_key(table), content, headers | {EXPECTED_LAST: str(after)})
            )
        except Conflict:
            current, after = await self._present_pointer(table)
            if current == wanted:
                return
            _check_expected(table, expected, current)  # else the same one was written again since
            ack = await self._stream.publish(
                Outgoing(_pointer_key(table), content, headers | {EXPECTED_LAST: str(after)})
            )
        self._written[table] = wanted, ack.sequence

    async def _forget_left_over(self, table: str) -> None:
        """Remove a manifest that no pointer can come to name any more, now that it has moved on."""
        subject, sequence = self._left_over.pop(table, ("", 0))
        if subject:
            with suppress(StoreError):
                await self._stream.purge(subject, before=sequence + 1)

    async def _messages(self, manifest: Manifest, encoded: bytes, change: RevisionChange | None) -> _CommitMessages:
        named = Outgoing(_manifest_key(manifest.table, manifest.version), encoded, {EXPECTED_LAST: "0"})
        if change is None:
            return _CommitMessages((), named, {}, manifest.digests)
        await self._count_on(chunk.digest for chunk in change.chunks)
        contents = [compress(chunk.content) for chunk in change.chunks]
        chunks = [
            Outgoing(_chunk_key(chunk.digest), content) for chunk, content in zip(change.chunks, contents, strict=True)
        ]
        carried = encode_change(manifest, change, contents)
        headers = {CHANGE_HEADER: base64.b64encode(carried).decode()} if carried else {}
        return _CommitMessages(chunks, named, headers, manifest.digests)

    async def get_manifest(self, table: str, version: Version) -> Manifest:
        """Return the manifest of a revision."""
        try:
            stored = await self._stream.last(_manifest_key(table, version))
        except StreamMissing:
            await self._stream.confirm_missing()
            stored = None
        if stored is None:
            raise NotFound(f"table {table} has no revision {version}: never committed, or collected since")
        return Manifest.decode(stored.data)

    async def manifest_of(self, pointer: Pointer) -> Manifest:
        """Return the manifest that a pointer names; nothing is read where notices brought all that is new in it."""
        if (announced := self._announced.manifest_of(pointer)) is not None:
            return announced
        return self._announced.note(await self.get_manifest(pointer.table, pointer.version))

    async def versions(self, table: str) -> Sequence[Version]:
        """Return the versions whose manifests are kept, oldest first."""
        subjects = await self._stream.subjects(f"{_PREFIX}.manifest.{escape_token(table)}.*.*")
        return decode_versions(".".join(subject.rsplit(".", 2)[1:]) for subject in subjects)

    async def collect_garbage(self, table: str, expired: Collection[Version]) -> int:
        """Drop these revisions' manifests, and chunks that no table's manifest names.

        The manifest that the pointer names is always kept. An unused chunk goes some minutes after it was first
        found unused. Returns how many manifests and chunks were dropped.
        """
        pointer = await self.read_pointer(table) if expired else None
        old = [version for version in expired if pointer is None or version != pointer.version]
        for group in _groups([_manifest_key(table, version) for version in old]):
            await asyncio.gather(*map(self._stream.purge, group))
            await asyncio.sleep(_PURGE_PAUSE_S)
        state = await self._stream.state()
        chunks = await self._chunks()
        await self._learn_named(state.created)
        dropped = await self._drop(self._unused.find_idle(chunks - self._named.digests(), state.last_sequence))
        return len(old) + dropped

    async def _learn_named(self, incarnation: str) -> None:
        """Know of every manifest which chunks it names; each that another one committed is read once."""
        if incarnation != self._incarnation:
            self._incarnation, self._named = incarnation, NamedChunks()
        before = set(self._named.manifests)
        keys = await self._stream.subjects(f"{_PREFIX}.manifest.>")
        self._named.drop(before - keys)
        for key in keys - self._named.manifests:
            if (stored := await self._stream.last(key)) is None:
                continue
            try:
                self._named.add(key, Manifest.decode(stored.data).digests)
            except DecodeError as error:  # it may be of a later release, and name chunks
                raise StoreError(f"no chunk is dropped while {key} cannot be read: {error}") from error

    async def _drop(self, idle: Sequence[str]) -> int:
        dropped = 0
        for group in _groups(idle):
            async with self._dropping:
                digests = self._unused.still_idle(group)
                dropped += sum(await asyncio.gather(*map(self._purge_chunk, digests)))
                self._unused.forget(digests)
            await asyncio.sleep(_PURGE_PAUSE_S)
        return dropped

    async def _purge_chunk(self, digest: str) -> int:
        """Drop a chunk, unless another table's writer has written it again since it was found unused."""
        return await self._stream.purge(_chunk_key(digest), before=self._unused.written_before(digest) + 1)

    def follow(self, table: str) -> AsyncIterator[Pointer]:
        """Yield the pointer now and whenever its version or manifest changes, for ever."""
        return follow_pointer(table, self.read_pointer, self._watch, self._stream.bus.on_disturbance)

    async def _watch(self, table: str, tell: Tell) -> None:
        async with aclosing(follow(self._stream, [_pointer_key(table)])) as items:
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
        if carried := message.headers.get(CHANGE_HEADER):
            with suppress(binascii.Error, ValueError):  # what is not carried is read
                self._announced.hear(pointer, base64.b64decode(carried, validate=True))
        tell(pointer)


def _groups(items: Sequence[str]) -> Iterator[Sequence[str]]:
    return (items[start : start + _PURGES] for start in range(0, len(items), _PURGES))


def _pointer_key(table: str) -> str:
    return f"{_PREFIX}.pointer.{escape_token(table)}"


def _manifest_key(table: str, version: Version) -> str:
    return f"{_PREFIX}.manifest.{escape_token(table)}.{version.epoch}.{version.revision}"


def _chunk_key(digest: str) -> str:
    return f"{_PREFIX}.chunk.{digest}"


def _check_expected(table: str, expected: Pointer | None, current: Pointer | None) -> None:
    if current != expected:
        raise Conflict(f"table {table}: expected {_name(expected)}, found {_name(current)}")


def _name(pointer: Pointer | None) -> str:
    return f"revision {pointer.version}" if pointer else "no revision"
