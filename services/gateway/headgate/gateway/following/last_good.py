"""The last good table on disk: what a gateway starts from when the bus is away.

One file: a magic line, the SHA-256 of the rest, then the manifest and each chunk as the store has them, each after its
length in four bytes. It is replaced by a rename after an fsync, so a crash leaves the old file or the new one. Private
keys stay sealed in it.

A gateway that keeps a part of its table has chunks with fewer entries than their digests are of. Its file begins with
another line, names each chunk by its digest, and leaves out those of which nothing is kept.
"""

import asyncio
import hashlib
import logging
import os
import struct
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from headgate.common.errors import DecodeError
from headgate.common.snapshot import ENTRY_LIMIT, ChunkName, Manifest, decompress, open_chunk
from headgate.gateway.errors import DamagedFile
from headgate.gateway.table.chunks import EMPTY_CHUNK

_log = logging.getLogger(__name__)

MAGIC = b"HEADGATE-TABLE-1\n"
PART_MAGIC = b"HEADGATE-SHARD-1\n"
"""Of a part of a table; as long as the other."""
WRITE_INTERVAL_S = 1.0
"""Least time between two writes: a restart may lose what the store gives back within a second anyway."""
REST = 20
"""After a write that took so long, we wait so many times as long: the disk is there for others too."""
LONGEST_REST_S = 30.0
_LENGTH = struct.Struct(">I")


class StoredTable(NamedTuple):
    """A manifest and its chunks, compressed, by digest."""

    manifest: Manifest
    chunks: Mapping[str, bytes]
    served: tuple[ChunkName, ...]
    """Which of them are served, of those that the manifest names."""
    is_part: bool = False
    """Whether the chunks have only those entries that are kept."""

    async def get_chunks(self, names: Sequence[ChunkName]) -> Sequence[bytes]:
        """Return chunks as they stand in the file; empty ones in place of those that it lacks."""
        return [self.chunks.get(name.digest, EMPTY_CHUNK) for name in names]

    def open_chunk(self, name: ChunkName, stored: bytes) -> bytes:
        """Return a chunk's verified content.

        Raises:
            DamagedFile: the chunk is absent or damaged.
        """
        try:
            # Of a part the digest of the file is all that there is to verify.
            return decompress(stored, ENTRY_LIMIT) if self.is_part else open_chunk(name, stored)
        except DecodeError as error:
            raise DamagedFile(f"chunk {name.digest[:12]} of the table on disk cannot be used: {error}") from error


def write_last_good(path: Path, table: StoredTable) -> None:
    """Replace the file, which only its owner may read: plugins' passwords may stand in it. Blocks for an fsync.

    Raises:
        OSError: the disk does not take it; the old file is untouched.
    """
    magic, records = _records(table)
    content = b"".join(part for record in records for part in (_LENGTH.pack(len(record)), record))
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = path.with_name(f"{path.name}.{os.getpid()}.new")
    # One of a process that died, whose number is ours now, may have another mode.
    fresh.unlink(missing_ok=True)
    try:
        with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
            file.writelines((magic, hashlib.sha256(content).digest(), content))
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)
    _sync_folder(path.parent)


def _records(table: StoredTable) -> tuple[bytes, list[bytes]]:
    """Return the first line of a table's file and what follows it."""
    if not table.is_part:
        return MAGIC, [table.manifest.encode(), *(table.chunks[name.digest] for name in table.served)]
    kept = {digest: stored for digest, stored in table.chunks.items() if stored != EMPTY_CHUNK}
    named = (part for digest, stored in kept.items() for part in (digest.encode(), stored))
    return PART_MAGIC, [table.manifest.encode(), _digest_of_all(table.served), *named]


def _digest_of_all(names: Iterable[ChunkName]) -> bytes:
    return hashlib.sha256("".join([name.digest for name in names]).encode()).digest()


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_last_good(path: Path, replica: str = "") -> StoredTable | None:
    """Read the file; None if there is none.

    Args:
        path: of the file.
        replica: name of this one. One of another name may have written the file while a table was rolled out: then
            what that one served is what all are to serve.

    Raises:
        DamagedFile: it is cut, damaged or of another release.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise DamagedFile(f"{path} cannot be read: {error.strerror}") from error
    start = len(MAGIC) + hashlib.sha256().digest_size
    content = data[start:]
    if not data.startswith((MAGIC, PART_MAGIC)) or hashlib.sha256(content).digest() != data[len(MAGIC) : start]:
        raise DamagedFile(f"{path} is damaged or not a table of this release")
    is_part = data.startswith(PART_MAGIC)
    try:
        manifest_bytes, *records = _split(content)
        manifest = Manifest.decode(manifest_bytes)
        if is_part:
            served, chunks = _find_part(manifest, records)
        else:
            served = _find_served(manifest, records)
            chunks = {name.digest: chunk for name, chunk in zip(served, records, strict=True)}
        if served != manifest.served_by(replica):
            manifest = manifest.model_copy(update={"chunks": served, "rollout": None})
        return StoredTable(manifest, chunks, served, is_part)
    except (DecodeError, ValueError) as error:
        raise DamagedFile(f"{path} cannot be used: {error}") from error


def _find_served(manifest: Manifest, chunks: Sequence[bytes]) -> tuple[ChunkName, ...]:
    """Return which of the tables that a manifest names these chunks are."""
    if manifest.rollout is None:
        return manifest.chunks
    candidates = [names for names in (manifest.chunks, manifest.rollout.next) if len(names) == len(chunks)]
    return next((names for names in candidates if all(map(_is_content, names, chunks))), manifest.chunks)


def _find_part(manifest: Manifest, records: Sequence[bytes]) -> tuple[tuple[ChunkName, ...], dict[str, bytes]]:
    """Return the table of which a part was kept, and the part. Raises ValueError."""
    if not records:
        raise ValueError("the digest of its chunks is absent")
    candidates = [manifest.chunks, *([manifest.rollout.next] if manifest.rollout is not None else [])]
    served = next((names for names in candidates if _digest_of_all(names) == records[0]), None)
    if served is None:
        raise ValueError("its chunks are of another manifest")
    digests = [digest.decode() for digest in records[1::2]]
    return served, dict(zip(digests, records[2::2], strict=True))


def _is_content(name: ChunkName, stored: bytes) -> bool:
    try:
        open_chunk(name, stored)
    except DecodeError:
        return False
    return True


def _split(content: bytes) -> Iterable[bytes]:
    position = 0
    while position < len(content):
        (size,) = _LENGTH.unpack_from(content, position)
        position += _LENGTH.size
        yield content[position : position + size]
        position += size


class LastGoodWriter:
    """Writes the newest table in a thread, at most once a second, and no more than a twentieth of the time."""

    def __init__(self, path: Path, current: Callable[[], StoredTable | None]) -> None:
        self._path = path
        self._current = current
        self._changed = asyncio.Event()
        self._failure = ""

    def note_change(self) -> None:
        """Say that there is a new table."""
        self._changed.set()

    async def run(self) -> None:
        """Write whenever there is something new, for ever; a disk that is full is logged and tried again."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            started = time.monotonic()
            await self.flush()
            took_s = time.monotonic() - started
            await asyncio.sleep(max(WRITE_INTERVAL_S - took_s, min(REST * took_s, LONGEST_REST_S)))

    async def flush(self) -> None:
        """Write the current table now."""
        table = self._current()
        if table is None:
            return
        try:
            await asyncio.to_thread(write_last_good, self._path, table)
        except OSError as error:
            self._changed.set()
            if str(error) != self._failure:
                _log.error(
                    "the last good table cannot be written", extra={"path": str(self._path), "error": str(error)}
                )
            self._failure = str(error)
        else:
            self._failure = ""
