"""The last good table on disk: what a gateway starts from when the bus is away.

One file: a magic line, the SHA-256 of the rest, then the manifest and each chunk as the store has them, each after its
length in four bytes. It is replaced by a rename after an fsync, so a crash leaves the old file or the new one. Private
keys stay sealed in it.
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
from headgate.common.snapshot import ChunkName, Manifest, open_chunk
from headgate.gateway.errors import DamagedFile

_log = logging.getLogger(__name__)

MAGIC = b"HEADGATE-TABLE-1\n"
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

    def open_chunk(self, name: ChunkName) -> bytes:
        """Return a chunk's verified content.

        Raises:
            DamagedFile: the chunk is absent or damaged.
        """
        try:
            return open_chunk(name, self.chunks[name.digest])
        except (KeyError, DecodeError) as error:
            raise DamagedFile(f"chunk {name.digest[:12]} of the table on disk cannot be used: {error}") from error


def write_last_good(path: Path, table: StoredTable) -> None:
    """Replace the file, which only its owner may read: plugins' passwords may stand in it. Blocks for an fsync.

    Raises:
        OSError: the disk does not take it; the old file is untouched.
    """
    records = [table.manifest.encode(), *(table.chunks[name.digest] for name in table.served)]
    content = b"".join(part for record in records for part in (_LENGTH.pack(len(record)), record))
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = path.with_name(f"{path.name}.{os.getpid()}.new")
    # One of a process that died, whose number is ours now, may have another mode.
    fresh.unlink(missing_ok=True)
    try:
        with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
            file.writelines((MAGIC, hashlib.sha256(content).digest(), content))
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)
    _sync_folder(path.parent)


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
    if not data.startswith(MAGIC) or hashlib.sha256(content).digest() != data[len(MAGIC) : start]:
        raise DamagedFile(f"{path} is damaged or not a table of this release")
    try:
        manifest_bytes, *chunks = _split(content)
        manifest = Manifest.decode(manifest_bytes)
        served = _find_served(manifest, chunks)
        if served != manifest.served_by(replica):
            manifest = manifest.model_copy(update={"chunks": served, "rollout": None})
        return StoredTable(manifest, {name.digest: chunk for name, chunk in zip(served, chunks, strict=True)}, served)
    except (DecodeError, ValueError) as error:
        raise DamagedFile(f"{path} cannot be used: {error}") from error


def _find_served(manifest: Manifest, chunks: Sequence[bytes]) -> tuple[ChunkName, ...]:
    """Return which of the tables that a manifest names these chunks are."""
    if manifest.rollout is None:
        return manifest.chunks
    candidates = [names for names in (manifest.chunks, manifest.rollout.next) if len(names) == len(chunks)]
    return next((names for names in candidates if all(map(_is_content, names, chunks))), manifest.chunks)


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
