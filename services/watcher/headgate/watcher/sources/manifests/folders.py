"""Which manifest files a folder holds, and what tells that one has changed."""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from headgate.watcher.sources.manifests.reader import MAX_FILE_BYTES

SUFFIXES = (".yaml", ".yml", ".json")


class Signature(NamedTuple):
    """Changes whenever a file's content does, short of deceit."""

    modified_ns: int
    size: int
    inode: int
    device: int

    @classmethod
    def of(cls, status: os.stat_result) -> "Signature":
        """Take it from what `stat` says."""
        return cls(status.st_mtime_ns, status.st_size, status.st_ino, status.st_dev)


@dataclass(slots=True)
class Scan:
    """What a walk through a folder found."""

    files: dict[str, Signature] = field(default_factory=dict)
    unreadable: dict[str, OSError] = field(default_factory=dict)
    """Files and folders that are there but cannot be looked at; a folder that is not there at all."""


def is_manifest(name: str) -> bool:
    """Whether a file of this name is read: by its suffix, and neither hidden nor an editor's own."""
    return name.lower().endswith(SUFFIXES) and not name.startswith((".", "#", "~"))


def is_hidden(name: str) -> bool:
    """Whether a file or folder of this name is passed over (`.git`, and a mounted ConfigMap's `..data`)."""
    return name.startswith(".")


def scan(root: str) -> Scan:
    """Walk a folder and those in it, or look at the one file of that name; links are followed, loops are not."""
    found = Scan()
    if os.path.isfile(root):
        _visit_file(root, found)
    else:
        _walk(root, found, frozenset())
    return found


def _visit_file(path: str, found: Scan) -> None:
    try:
        found.files[path] = Signature.of(os.stat(path))
    except OSError as error:
        found.unreadable[path] = error


def _walk(folder: str, found: Scan, ancestors: frozenset[tuple[int, int]]) -> None:
    try:
        status = os.stat(folder)
        if (status.st_dev, status.st_ino) in ancestors:
            return
        inside = ancestors | {(status.st_dev, status.st_ino)}
        with os.scandir(folder) as entries:
            for entry in entries:
                if not is_hidden(entry.name):
                    _visit(entry, found, inside)
    except OSError as error:
        found.unreadable[folder] = error


def _visit(entry: os.DirEntry[str], found: Scan, ancestors: frozenset[tuple[int, int]]) -> None:
    try:
        if entry.is_dir():
            _walk(entry.path, found, ancestors)
        elif is_manifest(entry.name):
            found.files[entry.path] = Signature.of(entry.stat())
    except OSError as error:
        found.unreadable[entry.path] = error


def read_bytes(path: str) -> tuple[bytes, Signature]:
    """Read a file; never waits, as opening a pipe would.

    Returns:
        at most one byte more than the limit that `read_manifest` checks, and the signature from before reading.

    Raises:
        OSError: it cannot be read, or is no regular file.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    with open(descriptor, "rb", buffering=0) as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise IsADirectoryError(f"{path} is no regular file")
        return b"".join(_pieces(file.fileno())), Signature.of(status)


def _pieces(descriptor: int) -> Iterator[bytes]:
    left = MAX_FILE_BYTES + 1
    while left and (piece := os.read(descriptor, min(left, 1024 * 1024))):
        left -= len(piece)
        yield piece
