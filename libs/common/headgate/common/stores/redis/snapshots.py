"""The snapshot store in Redis.

    {headgate}:chunks                 hash    SHA-256 to compressed chunk, or page of a large manifest
    {headgate}:manifests:<table>      hash    <epoch>.<revision> to compressed manifest
    {headgate}:pointer:<table>        hash    json (what readers get), version, digest, history
    {headgate}:news:<table>           stream  the pointer at every commit, and the change if it is small: what
                                              readers wait for
    {headgate}:tables                 set     tables that were ever committed
    {headgate}:doomed                 set     chunks that are about to be dropped, unless somebody counts on them, and
                                              the token of the collector that drops them

A commit is one script, so one step: it compares the pointer, makes sure that the new chunks are there, stores the
manifest, moves the pointer and says so in the stream.

Redis confirms a write before its replicas have it, and before it is on disk. So a failover or a restart may lose the
last commits, which gateways have applied already, and the next one would give their version to another table. Every
pointer therefore carries the history that it was written in, which is the primary's replication id: that changes
whenever a replica is promoted and whenever a server starts. A commit on a pointer of another history than today's must
have a greater epoch; the script refuses any other.
"""

import asyncio
import logging
import random
import secrets
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from headgate.common.errors import (
    Conflict,
    DecodeError,
    HistoryBroken,
    NotFound,
    NotPermitted,
    StoreError,
    StoreUnavailable,
    TooLarge,
)
from headgate.common.snapshot import (
    ENTRY_LIMIT,
    Chunk,
    ChunkName,
    Manifest,
    Pointer,
    Version,
    compress,
    digest_of,
)
from headgate.common.stores.announced import AnnouncedRevisions
from headgate.common.stores.collecting import CHUNK_GRACE_S, NamedChunks, UnusedChunks, named_by
from headgate.common.stores.found import all_found
from headgate.common.stores.paged_manifests import PagedManifests, read_head
from headgate.common.stores.pointers import (
    Tell,
    decode_pointer,
    decode_version,
    decode_versions,
    follow_pointer,
    pointer_to,
)
from headgate.common.stores.redis.link import RedisLink, Script
from headgate.common.stores.redis.wire import ask_alone, hang_up
from headgate.common.stores.revision_change import RevisionChange, encode_change

_log = logging.getLogger(__name__)

CHUNKS, TABLES, DOOMED = "{headgate}:chunks", "{headgate}:tables", "{headgate}:doomed"
"""The braces put all keys into one slot, should the server be one of a cluster."""
BLOCK_S = 1.0
"""A wait for news lasts this long at most, so that a connection that went dead is noticed."""
BLOCK_GRACE_S = 1.5
NEWS_KEPT = 100
_FIRST_PAUSE_S, _LAST_PAUSE_S = 0.02, 1.0
_STORED_AT_ONCE = 1024 * 1024

_COMMIT = Script("""
local history = string.match(redis.call('INFO', 'replication'), 'master_replid:(%x+)')
local pointer, manifests, news, chunks, tables, doomed = unpack(KEYS)
local expected_version, expected_digest, version, digest, keeps_epoch = unpack(ARGV, 1, 5)
local manifest, json, name, kept, change = unpack(ARGV, 6, 10)
local named = 12 + 2 * tonumber(ARGV[11])
local found = redis.call('HMGET', pointer, 'version', 'digest', 'history', 'json')
if found[1] == version and found[2] == digest then return {'done', found[4]} end
if (found[1] or '') ~= expected_version or (found[2] or '') ~= expected_digest then
  return {'conflict', found[1] or ''}
end
if found[3] and found[3] ~= history and keeps_epoch == '1' then return {'history', found[1]} end
for i = 12, named - 1, 2 do redis.call('HSET', chunks, ARGV[i], ARGV[i + 1]) end
for i = named, #ARGV do
  if redis.call('HEXISTS', chunks, ARGV[i]) == 0 then return {'missing', ARGV[i]} end
end
redis.call('HSET', manifests, version, manifest)
redis.call('HSET', pointer, 'version', version, 'digest', digest, 'history', history, 'json', json)
redis.call('SADD', tables, name)
for i = named, #ARGV do redis.call('SREM', doomed, ARGV[i]) end
redis.call('XADD', news, 'MAXLEN', '~', kept, '*', 'pointer', json, 'change', change)
return {'done', json}
""")

_MISSING = Script("""
local missing = {}
for _, digest in ipairs(ARGV) do
  if redis.call('HEXISTS', KEYS[1], digest) == 0 then missing[#missing + 1] = digest end
  redis.call('SREM', KEYS[2], digest)
end
return missing
""")

_LIST_CHUNKS = Script("return table.concat(redis.call('HKEYS', KEYS[1]), ' ')")
"""One text instead of thousands, which the client would have to read one by one."""

_DOOM = Script("""
redis.call('DEL', KEYS[1])
for _, digest in ipairs(ARGV) do redis.call('SADD', KEYS[1], digest) end
""")

_DROP = Script("""
if redis.call('SREM', KEYS[1], ARGV[1]) == 0 then return 0 end
local dropped = 0
for i = 2, #ARGV do
  if redis.call('SREM', KEYS[1], ARGV[i]) == 1 then dropped = dropped + redis.call('HDEL', KEYS[2], ARGV[i]) end
end
return dropped
""")
"""Drops nothing for a collector that is not the last to have doomed: it may have looked before somebody counted on a
chunk that the last one has doomed again."""


class _Known(NamedTuple):
    """The manifest that was last committed or read."""

    digest: str
    manifest: Manifest | None
    pages: frozenset[str]
    """Digests of its pages, if it was committed here."""

    @property
    def digests(self) -> frozenset[str]:
        """Of all that it names."""
        return self.manifest.digests | self.pages if self.manifest is not None else frozenset()


_NOTHING_KNOWN = _Known("", None, frozenset())


class RedisSnapshotStore:
    """`SnapshotStore` on Redis."""

    def __init__(
        self, link: RedisLink, chunk_grace_s: float = CHUNK_GRACE_S, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._link = link
        self._unused = UnusedChunks(chunk_grace_s, clock)
        self._named = NamedChunks()
        """By table and version, in one history of the server."""
        self._history = ""
        self._announced = AnnouncedRevisions()
        self._manifests = PagedManifests(self._fetch_pages)
        self._last = _NOTHING_KNOWN

    async def read_pointer(self, table: str) -> Pointer | None:
        """Return the pointer as the primary has it; None if there is none.

        One that cannot be read is put together from what commits compare, so that the next one mends it.
        """
        stored, version, digest = await self._link.ask("HMGET", _pointer_key(table), "json", "version", "digest")
        if stored is None and version is None:
            return None
        try:
            return decode_pointer(stored or b"")
        except DecodeError as error:
            _log.error("a pointer cannot be read", extra={"table": table, "reason": str(error)})
        if version is None or digest is None:
            return None
        try:
            return Pointer(
                table=table,
                version=decode_version(version.decode(errors="replace")),
                manifest_digest=digest.decode(errors="replace"),
                committed_at=datetime.fromtimestamp(0, UTC),
            )
        except DecodeError:
            return None

    async def missing(self, digests: Collection[str]) -> set[str]:
        """Return which chunks the store lacks: one request however many are asked for."""
        self._unused.forget(digests)
        if not digests:
            return set()
        return {digest.decode() for digest in await self._link.run(_MISSING, [CHUNKS, DOOMED], *digests)}

    async def put_chunks(self, chunks: Sequence[Chunk]) -> None:
        """Store chunks; storing one twice does no harm.

        Raises:
            TooLarge: no reader would accept one of them; then none is stored.
        """
        self._count_on(chunks)
        for words in _bundles(chunks):
            await self._link.ask("SREM", DOOMED, *words[::2])
            await self._link.ask("HSET", CHUNKS, *words)

    async def get_chunks(self, names: Sequence[ChunkName]) -> Sequence[bytes]:
        """Return chunks as they are stored."""
        return await self._announced.chunks(names, self._fetch_chunks)

    async def _fetch_chunks(self, names: Sequence[ChunkName]) -> Sequence[bytes]:
        return await self._fetch("chunk {}", [name.digest for name in names])

    async def _fetch_pages(self, digests: Sequence[str]) -> Sequence[bytes]:
        return await self._fetch("page {} of a manifest", digests)

    async def _fetch(self, what: str, digests: Sequence[str]) -> Sequence[bytes]:
        return all_found(what, digests, await self._link.ask("HMGET", CHUNKS, *digests) if digests else [])

    def _count_on(self, chunks: Sequence[Chunk]) -> None:
        for chunk in chunks:
            if len(chunk.content) > ENTRY_LIMIT:
                raise TooLarge(
                    f"chunk {chunk.digest[:12]} of {chunk.kind}: {len(chunk.content):,} bytes, "
                    f"readers take at most {ENTRY_LIMIT:,}"
                )
        self._unused.forget(chunk.digest for chunk in chunks)

    async def commit(
        self, manifest: Manifest, expected: Pointer | None, change: RevisionChange | None = None
    ) -> Pointer:
        """Store the manifest and move the pointer to it, both or neither.

        A commit that was made but not confirmed may be repeated: it returns the pointer as it stands.

        Raises:
            Conflict: the pointer is not `expected` any more, or a chunk was collected before it was named.
            HistoryBroken: a failover or a restart may have lost commits; only a greater epoch is accepted.
        """
        table, encoded = manifest.table, self._manifests.encode(manifest)
        wanted = pointer_to(manifest, encoded.content)
        known = self._last if expected and self._last.digest == expected.manifest_digest else _NOTHING_KNOWN
        pages, chunks = encoded.without(known.pages).pages, change.chunks if change else ()
        self._count_on(chunks)
        self._unused.forget(page.digest for page in pages)
        stored = [compress(chunk.content) for chunk in chunks]
        carried = encode_change(manifest, change, stored, self._manifests.pages_of(table)) if change else None
        contents = dict(zip((chunk.digest for chunk in chunks), stored, strict=True))
        contents |= {page.digest: compress(page.content) for page in pages}
        named = manifest.digests.union(page.digest for page in encoded.pages)
        keeps_epoch = expected is not None and manifest.version.epoch <= expected.version.epoch
        outcome, detail = await self._link.run(
            _COMMIT,
            [_pointer_key(table), _manifests_key(table), _news_key(table), CHUNKS, TABLES, DOOMED],
            str(expected.version) if expected else "",
            expected.manifest_digest if expected else "",
            str(manifest.version),
            wanted.manifest_digest,
            int(keeps_epoch),
            encoded.content,
            wanted.model_dump_json(),
            table,
            NEWS_KEPT,
            carried or b"",
            len(contents),
            *(word for pair in contents.items() for word in pair),
            *(named - known.digests),  # what the manifest that is in force names is certainly there
        )
        if outcome == b"done":
            self._last = _Known(wanted.manifest_digest, manifest, frozenset(page.digest for page in encoded.pages))
            self._named.add_stored(_name_of(table, str(manifest.version)), manifest, encoded.pages)
            return decode_pointer(detail)
        raise _refusal(table, expected, outcome, detail.decode())

    async def get_manifest(self, table: str, version: Version) -> Manifest:
        """Return the manifest of a revision."""
        stored = await self._link.ask("HGET", _manifests_key(table), str(version))
        if stored is None:
            raise NotFound(f"table {table} has no revision {version}: never committed, or collected since")
        manifest = await self._manifests.decode(stored)
        self._last = _Known(digest_of(stored), manifest, frozenset())
        return manifest

    async def get_manifest_head(self, table: str, version: Version) -> Manifest:
        """Return a revision's manifest, that of a large table without the names of its chunks."""
        stored = await self._link.ask("HGET", _manifests_key(table), str(version))
        return read_head(stored)[0] if stored is not None else await self.get_manifest(table, version)

    async def manifest_of(self, pointer: Pointer) -> Manifest:
        """Return the manifest that a pointer names; nothing is read where notices brought all that is new in it."""
        if (announced := self._announced.manifest_of(pointer)) is not None:
            return announced
        return self._announced.note(await self.get_manifest(pointer.table, pointer.version))

    async def versions(self, table: str) -> Sequence[Version]:
        """Return the versions whose manifests are kept, oldest first."""
        fields = await self._link.ask("HKEYS", _manifests_key(table))
        return decode_versions(field.decode(errors="replace") for field in fields)

    async def collect_garbage(self, table: str, expired: Collection[Version]) -> int:
        """Drop these revisions' manifests, and chunks that no table's manifest names.

        The manifest that the pointer names is always kept. An unused chunk goes some minutes after it was first
        found unused. Returns how many manifests and chunks were dropped.
        """
        dropped = await self._drop_manifests(table, expired) if expired else 0
        chunks = await self._chunks()
        await self._learn_named()
        idle = self._unused.find_idle(chunks - self._named.digests())
        if not idle:
            return dropped
        token = secrets.token_hex(8)
        await self._link.run(_DOOM, [DOOMED], token, *idle)
        # Who counts on a chunk from now on takes it from the doomed; who did before has a manifest by now, or none yet.
        await self._learn_named()
        named = self._named.digests()
        unnamed = [digest for digest in idle if digest not in named]
        dropped += int(await self._link.run(_DROP, [DOOMED, CHUNKS], token, *unnamed))
        self._unused.forget(idle)
        return dropped

    async def _drop_manifests(self, table: str, expired: Collection[Version]) -> int:
        pointer = await self.read_pointer(table)
        old = [str(version) for version in expired if pointer is None or version != pointer.version]
        return int(await self._link.ask("HDEL", _manifests_key(table), *old)) if old else 0

    async def _chunks(self) -> set[str]:
        listed = await self._link.run(_LIST_CHUNKS, [CHUNKS])
        return set(listed.decode().split())

    async def _learn_named(self) -> None:
        """Know of every manifest which chunks it names; each that another one committed is read once."""
        if self._history != self._link.history:
            self._history, self._named = self._link.history, NamedChunks()
        before = set(self._named.manifests)
        there: dict[str, tuple[str, bytes]] = {}
        for table in [each.decode(errors="replace") for each in await self._link.ask("SMEMBERS", TABLES)]:
            for version in await self._link.ask("HKEYS", _manifests_key(table)):
                there[_name_of(table, version.decode(errors="replace"))] = (table, version)
        self._named.drop(before - there.keys())
        for key in there.keys() - self._named.manifests:
            await self._learn_manifest(key, *there[key])
        for page in self._named.lacking():
            self._named.add_page(page, await self._link.ask("HGET", CHUNKS, page))

    async def _learn_manifest(self, key: str, table: str, version: bytes) -> None:
        stored = await self._link.ask("HGET", _manifests_key(table), version)
        try:
            if stored is None:
                return
            self._named.add(key, named_by(stored))
        except DecodeError as error:  # it may be of a later release, and name chunks
            raise StoreError(f"no chunk is dropped while {key} cannot be read: {error}") from error

    def follow(self, table: str) -> AsyncIterator[Pointer]:
        """Yield the pointer now and whenever its version or manifest changes, for ever."""
        return follow_pointer(table, self.read_pointer, self._watch, self._link.on_disturbance)

    async def _watch(self, table: str, tell: Tell) -> None:
        pause_s, refused = _FIRST_PAUSE_S, ""
        while True:
            try:
                await self._listen(table, tell)
                pause_s, refused = _FIRST_PAUSE_S, ""
            except StoreError as error:
                is_lasting = isinstance(error, NotPermitted) or not isinstance(error, StoreUnavailable)
                if is_lasting and refused != str(error):
                    refused = str(error)
                    _log.warning("notices are not heard, reading instead", extra={"table": table, "reason": refused})
            await asyncio.sleep(pause_s * random.uniform(0.5, 1.0))  # noqa: S311 - not a secret
            pause_s = min(_LAST_PAUSE_S, pause_s * 2)

    def _hear(self, table: str, content: bytes, carried: bytes = b"") -> Pointer | None:
        try:
            pointer = decode_pointer(content)
        except DecodeError as error:
            _log.error("a notice cannot be read", extra={"table": table, "reason": str(error)})
            return None
        if carried:
            self._announced.hear(pointer, carried)
        return pointer

    async def _listen(self, table: str, tell: Tell) -> None:
        """Wait for news on a connection of its own, until the link has another one.

        The end of the stream is asked for each time: a replica that was promoted may be behind, and its clock too,
        so that what it adds has smaller ids than what was read elsewhere.
        """
        session, key = self._link.session, _news_key(table)
        wire = await self._link.dial()
        try:
            newest = await ask_alone(wire, BLOCK_GRACE_S, "XREVRANGE", key, "+", "-", "COUNT", 1)
            seen = newest[0][0] if newest else b"0-0"
            tell(None)
            while session == self._link.session:
                blocked = ("BLOCK", int(BLOCK_S * 1000), "STREAMS", key, seen)
                heard = await ask_alone(wire, BLOCK_S + BLOCK_GRACE_S, "XREAD", "COUNT", NEWS_KEPT, *blocked)
                if heard:
                    [[_, entries]] = heard
                    for _, (_, content, *rest) in entries:
                        tell(self._hear(table, content, *rest[1:]))
                    seen = entries[-1][0]
        finally:
            await hang_up(wire)


def _refusal(table: str, expected: Pointer | None, outcome: bytes, detail: str) -> StoreError:
    if outcome == b"history":
        return HistoryBroken(f"table {table}: commits after {detail} may have been lost; a new epoch is needed")
    if outcome == b"missing":
        return Conflict(f"table {table}: chunk {detail[:12]} is not in the store (any more)")
    wanted = f"revision {expected.version}" if expected else "no revision"
    return Conflict(f"table {table}: expected {wanted}, found {f'revision {detail}' if detail else 'no revision'}")


def _bundles(chunks: Sequence[Chunk]) -> Iterator[list[str | bytes]]:
    """Digests and compressed contents in turn, about a megabyte at a time."""
    words: list[str | bytes] = []
    size = 0
    for chunk in chunks:
        stored = compress(chunk.content)
        words += (chunk.digest, stored)
        size += len(stored)
        if size >= _STORED_AT_ONCE:
            yield words
            words, size = [], 0
    if words:
        yield words


def _pointer_key(table: str) -> str:
    return f"{{headgate}}:pointer:{table}"


def _manifests_key(table: str) -> str:
    return f"{{headgate}}:manifests:{table}"


def _news_key(table: str) -> str:
    return f"{{headgate}}:news:{table}"


def _name_of(table: str, version: str) -> str:
    return f"table {table}, revision {version}"
