"""Answers that all workers of a gateway give, whichever of them brought one: files in a folder that they share.

Each worker has a folder of its own, in which it alone makes files, and keeps account of these: how much they take, and
which goes first. All workers read, and delete, in all folders. A file gets its name once it is whole, and is read only
if its checksum is right. The system's cache has the files in memory, once for all workers.

An answer that varies has a file for each variant. Their names contain a token that is in another file, with the names
of the headers; so whoever deletes that one has purged them all.
"""

import contextlib
import logging
import os
import secrets
import shutil
import struct
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Final, NamedTuple

from headgate.gateway.plugins.interface import AnswersFolder, Headers
from headgate.gateway.plugins.kit.kept_answers import MAX_BYTES, OVERHEAD, KeptAnswer, KeptAnswers, variant_of
from headgate.gateway.plugins.kit.keyed import Keyed

_log = logging.getLogger(__name__)
_CHECKED: Final = struct.Struct("=4sI")
"""What the file is, and the checksum of all behind it."""
_HEAD: Final = struct.Struct("=HddII")
"""Status, times, and the lengths of the two parts that follow: header lines and body."""
_BEGIN: Final = _CHECKED.size + _HEAD.size
_MAGIC: Final = b"hga1"
_VARIES: Final = 0
"""In the place of a status: the parts are names of headers and a token."""


class _Stored(NamedTuple):
    """A file of this worker."""

    name: str
    size: int
    found_by: str
    """Name of the file that leads to it; empty: it is that file."""


class SharedAnswers:
    """The answers of all owners, each a cluster and namespace.

    Args:
        folder: where they are.
        limit: bytes of those that this worker has brought.
    """

    def __init__(self, folder: AnswersFolder, limit: int = MAX_BYTES) -> None:
        folders = [folder.path / str(index) for index in range(folder.workers)]
        self._own = folders.pop(folder.worker)
        self._others = tuple(str(path) for path in folders)
        # Of an account that ended with the last route that kept answers.
        shutil.rmtree(self._own, ignore_errors=True)
        self._own.mkdir()
        self._account: KeptAnswers[_Stored] = KeptAnswers(limit, self._delete)
        self._checked: Keyed[tuple[int, int]] = Keyed()
        """Files whose checksums were right, by their names: inodes and times."""
        self._variants: Counter[str] = Counter()
        """How many of this worker's files an index leads to."""

    @property
    def size(self) -> int:
        """Bytes of the answers that this worker has brought."""
        return self._account.size

    def get(self, owner: str, key: str, headers: Headers) -> KeptAnswer | None:
        """Return what any worker has kept for a request with these headers."""
        name = _name(owner, key)
        found = self._read(name)
        if isinstance(found, _Variants):
            found = self._read(found.name(name, headers))
        if not isinstance(found, KeptAnswer):
            return None
        self._account.get(owner, key, headers)  # it was asked for
        return found

    def put(self, owner: str, key: str, headers: Headers, vary: Iterable[str], answer: KeptAnswer) -> None:
        """Keep an answer to a request with these headers, in the place of any that another worker has."""
        index, varies = _name(owner, key), tuple(sorted(vary))
        name, variants = index, None
        if varies:
            known = self._read(index)
            is_known = isinstance(known, _Variants) and known.headers == varies
            variants = known if is_known and isinstance(known, _Variants) else _Variants(varies, secrets.token_hex(8))
            name = variants.name(index, headers)
            self._variants[index] += 1
        parts = _parts(answer.status, answer.kept_at, answer.expires, answer.headers.to_lines(), answer.body)
        stored = _Stored(name, sum(map(len, parts)) + OVERHEAD, index if varies else "")
        self._account.put(owner, key, headers, varies, stored)
        if self._account.get(owner, key, headers) is not stored:
            return  # others have a better right to the room
        if variants is not None:
            self._write(index, variants.parts())
        self._write(name, parts)

    def drop(self, owner: str, key: str) -> bool:
        """Forget all of a key in all workers; False: there was nothing."""
        name = _name(owner, key)
        is_known = any([_remove(folder, name) for folder in (str(self._own), *self._others)])
        self._account.drop(owner, key)
        return is_known

    def _delete(self, stored: _Stored) -> None:
        """Delete a file that is kept no longer, and what leads to it if that leads to no other."""
        _remove(str(self._own), stored.name)
        if stored.found_by:
            self._variants[stored.found_by] -= 1
            if not self._variants[stored.found_by]:
                del self._variants[stored.found_by]
                _remove(str(self._own), stored.found_by)

    def _read(self, name: str) -> "KeptAnswer | _Variants | None":
        for folder in (str(self._own), *self._others):
            path = f"{folder}/{name}"
            try:
                with open(path, "rb", buffering=0) as file:
                    state = os.fstat(file.fileno())
                    content = file.read()
            except OSError:
                continue  # mostly: there is none
            identity = state.st_ino, state.st_mtime_ns
            # Of millions of bytes a checksum takes milliseconds.
            if self._checked.get(path) == identity or _is_right(content):
                self._checked.put(path, identity)
                if (found := _decoded(content)) is not None:
                    return found
        return None

    def _write(self, name: str, parts: Sequence[bytes]) -> None:
        unfinished = self._own / f".{name}"
        try:
            with unfinished.open("wb", buffering=0) as file:
                for part in parts:
                    written = 0
                    while written < len(part):
                        written += file.write(memoryview(part)[written:])
            unfinished.rename(self._own / name)
        except OSError as error:
            _log.warning("an answer is not kept: its file cannot be written", extra={"error": str(error)})
            with contextlib.suppress(OSError):
                unfinished.unlink()
            return
        for folder in self._others:
            _remove(folder, name)


class _Variants(NamedTuple):
    """What answers vary with, and the token in the names of their files."""

    headers: tuple[str, ...]
    token: str

    def name(self, index: str, headers: Headers) -> str:
        """Return the name of the file for a request with these headers."""
        return f"{index}-{self.token}-{_digest(variant_of(self.headers, headers))}"

    def parts(self) -> tuple[bytes, ...]:
        """Return the content of the file that says so."""
        return _parts(_VARIES, 0.0, 0.0, "\n".join(self.headers).encode(), self.token.encode())


def _remove(folder: str, name: str) -> bool:
    try:
        os.unlink(f"{folder}/{name}")
    except OSError:
        return False
    return True


def _name(owner: str, key: str) -> str:
    return _digest(f"{len(owner)}:{owner}{key}")


def _digest(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=20).hexdigest()


def _parts(status: int, kept_at: float, expires: float, first: bytes, second: bytes) -> tuple[bytes, ...]:
    head = _HEAD.pack(status, kept_at, expires, len(first), len(second)) + first
    return _CHECKED.pack(_MAGIC, zlib.crc32(second, zlib.crc32(head))), head, second


def _is_right(data: bytes) -> bool:
    """Tell whether a file holds what was written."""
    if len(data) < _BEGIN:
        return False
    magic, checksum = _CHECKED.unpack_from(data)
    return bool(magic == _MAGIC and zlib.crc32(memoryview(data)[_CHECKED.size :]) == checksum)


def _decoded(data: bytes) -> "KeptAnswer | _Variants | None":
    """Return what a file says; None if it is not whole."""
    status, kept_at, expires, first, second = _HEAD.unpack_from(data, _CHECKED.size)
    if len(data) != _BEGIN + first + second:
        return None
    middle = _BEGIN + first
    if status == _VARIES:
        return _Variants(tuple(data[_BEGIN:middle].decode().split("\n")), data[middle:].decode())
    return KeptAnswer(status, Headers.from_lines(data[_BEGIN:middle]), data[middle:], kept_at, expires)
