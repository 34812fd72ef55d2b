"""The state of the folders on disk: what was read, and what has to be read again.

Blocking, for a thread of its own; one call at a time.
"""

import errno
import logging
import os
import stat
from collections.abc import Iterable, Iterator, Sequence

from headgate.common.resources import ALL_KINDS, Kinds, ObjectRef
from headgate.watcher.sources.manifests.bulk import BulkReader, is_bulk
from headgate.watcher.sources.manifests.files import unreadable
from headgate.watcher.sources.manifests.folders import Scan, Signature, is_hidden, is_manifest, read_bytes, scan
from headgate.watcher.sources.manifests.index import Change, ManifestIndex
from headgate.watcher.sources.manifests.objects import Versioner
from headgate.watcher.sources.manifests.reader import (
    FileObject,
    FileProblem,
    ManifestRead,
    read_manifest,
    whole_file,
)

_log = logging.getLogger(__name__)

_ABSENT = {errno.ENOENT, errno.ENOTDIR}


class ManifestTree:
    """Folders of manifests, and files that were named by themselves, read as far as is known."""

    def __init__(self, folders: Sequence[str], versioner: Versioner, kinds: Kinds = ALL_KINDS) -> None:
        self._folders = tuple(folders)
        self._versioner = versioner
        self._kinds = kinds
        self._index = ManifestIndex()
        self._signatures: dict[str, Signature] = {}
        self._unreadable: dict[str, OSError] = {}
        self._unfinished: dict[str, Signature] = {}
        self._bulk: BulkReader | None = None
        self._is_given_up = False

    @property
    def is_waiting(self) -> bool:
        """Whether a file looked half written, so that it has to be looked at again."""
        return bool(self._unfinished)

    def objects(self) -> Iterator[FileObject]:
        """Yield the objects in force."""
        return self._index.objects()

    def get(self, ref: ObjectRef) -> FileObject | None:
        """Return an object in force; safe to ask from another thread."""
        return self._index.get(ref)

    def is_kept(self, file: str) -> bool:
        """Whether objects of this file (or folder) are in force."""
        return self._index.has_objects(file) or bool(self._index.files_under(file))

    def problems(self) -> list[FileProblem]:
        """Return what is wrong in files and with folders."""
        folders = [problem for path, error in self._unreadable.items() for problem in unreadable(path, error).problems]
        return self._index.problems() + [
            one for one in folders if one.file not in self._index or one.file in self._folders
        ]

    def missing_folders(self) -> list[FileProblem]:
        """Return a problem for each folder, or file, that is not there."""
        return [_missing(folder) for folder in self._folders if not os.path.exists(folder)]

    def identify_folders(self) -> dict[str, tuple[int, ...] | None]:
        """Return what tells a folder, or a file that was named, from another one of the same name; None: missing."""
        return {folder: _identity(folder) for folder in self._folders}

    def read_first(self) -> Iterator[list[Change]]:
        """Walk through everything for the first time, and read what is there, some files at a time."""
        bulk = self._find_bulk()
        if bulk:
            try:
                yield from self._read_in_bulk(bulk)
            except (OSError, EOFError) as error:
                if self._is_given_up:
                    return
                _log.warning("reading the manifests in one process", extra={"reason": str(error)})
        yield self.rescan()

    def _find_bulk(self) -> list[tuple[str, int]]:
        """Return names and sizes of all files, in order; nothing if they are too few to start processes for."""
        found = {file: signature.size for folder in self._folders for file, signature in scan(folder).files.items()}
        is_known = self._kinds is ALL_KINDS  # what the processes read
        return sorted(found.items()) if is_known and is_bulk(found.values()) else []

    def _read_in_bulk(self, files: Sequence[tuple[str, int]]) -> Iterator[list[Change]]:
        self._bulk = reader = BulkReader(self._versioner)
        try:
            for contents in reader.read(files):
                reads = []
                for one in contents:
                    if one.signature is not None:  # another one is read by the walk that comes after
                        self._signatures[one.file] = one.signature
                        reads.append((one.file, one.as_read(self._versioner.cluster)))
                yield self._index.update(reads)
        finally:
            reader.close()

    def abort(self) -> None:
        """Have a `read_first` that runs in another thread end soon."""
        self._is_given_up = True
        if self._bulk is not None:
            self._bulk.kill()

    def rescan(self) -> list[Change]:
        """Walk through everything, and read what changed."""
        return self._compare(self._folders)

    def look(self, paths: Iterable[str]) -> list[Change]:
        """Look at paths where something happened, and at files that looked half written."""
        files: set[str] = set(self._unfinished)
        folders: set[str] = set()
        for path in paths:
            if target := self._target(path):
                (folders if os.path.isdir(target) else files).add(target)
        changes = self._compare(folders) if folders else []
        absent = {path for path in files if not os.path.lexists(path)}
        gone = [file for path in absent if path not in self._folders for file in self._known_at(path)]
        present = [path for path in files - absent if path in self._folders or is_manifest(os.path.basename(path))]
        return changes + self._take(present, gone)

    def _target(self, path: str) -> str | None:
        """Return what an event's path asks to look at: itself, the folder that a mount swapped, or nothing."""
        root = next((one for one in self._folders if path == one or path.startswith(one + "/")), None)
        if root is None or not os.path.exists(root):  # what is in a folder that is missing stays in force
            return None
        parent = root
        for part in path[len(root) :].strip("/").split("/"):
            if part.startswith(".."):  # a mounted ConfigMap: the links beside `..data` have new content
                return parent
            if is_hidden(part):
                return None
            parent = f"{parent}/{part}" if part else parent
        return path

    def _known_at(self, path: str) -> list[str]:
        return [path] if path in self._index else self._index.files_under(path)

    def _compare(self, folders: Iterable[str]) -> list[Change]:
        """Compare folders with what is known of them by what `stat` says."""
        changed: list[str] = []
        gone: list[str] = []
        for folder in folders:
            found = scan(folder)
            changed += (file for file, signature in found.files.items() if self._signatures.get(file) != signature)
            # A file that has objects in force says itself why it cannot be read.
            changed += (path for path in found.unreadable if path in self._index and path not in self._folders)
            gone += self._vanished(folder, found)
            self._note_unreadable(folder, found)
        return self._take(changed, gone)

    def _vanished(self, folder: str, found: Scan) -> list[str]:
        missing = [file for file in self._index.files_under(folder) if file not in found.files]
        if folder not in self._folders and _is_absent(found.unreadable.get(folder)):
            return missing
        return [file for file in missing if not os.path.lexists(file) and not _lies_in(file, found.unreadable)]

    def _note_unreadable(self, folder: str, found: Scan) -> None:
        for path in [path for path in self._unreadable if path == folder or path.startswith(folder + "/")]:
            del self._unreadable[path]
        for path, error in found.unreadable.items():
            if path in self._folders or not _is_absent(error) or os.path.islink(path):
                self._unreadable[path] = error

    def _take(self, files: Iterable[str], gone: Iterable[str]) -> list[Change]:
        """Read files again and forget others."""
        removed = set(gone)
        reads: list[tuple[str, ManifestRead]] = []
        for file in sorted(set(files) - removed):
            self._unreadable.pop(file, None)
            read = self._read(file)
            if isinstance(read, ManifestRead):
                reads.append((file, read))
            elif read is False:
                removed.add(file)
        for file in removed:
            self._signatures.pop(file, None)
            self._unfinished.pop(file, None)
        return self._index.update(reads, removed)

    def _read(self, file: str) -> ManifestRead | bool:
        """Read a file; False if it is gone, True if there is nothing to take from it yet."""
        try:
            data, signature = read_bytes(file)
        except OSError as error:
            self._signatures.pop(file, None)
            self._unfinished.pop(file, None)
            if not os.path.lexists(file):
                return file in self._folders  # a file that was named keeps what it had until it is there again
            if os.path.isdir(file) and file not in self._index:
                return True
            return unreadable(file, error) if not os.path.isdir(file) else _is_folder(file)
        if self._looks_unfinished(file, data) and self._unfinished.get(file) != signature:
            self._unfinished[file] = signature
            return True
        self._unfinished.pop(file, None)
        self._signatures[file] = signature
        return read_manifest(data, file, self._versioner, self._kinds)

    def _looks_unfinished(self, file: str, data: bytes) -> bool:
        """Whether a file that had objects may be in the middle of being written: empty, or without a last newline.

        Such a file is looked at again a moment later, and taken if it is the same then.
        """
        if not self._index.has_objects(file):
            return False
        return not data.strip() or (not data.endswith(b"\n") and not data.endswith((b"}", b"]")))


def _identity(folder: str) -> tuple[int, ...] | None:
    try:
        status = os.stat(folder)
    except OSError:
        return None
    place = status.st_dev, status.st_ino
    # A file that is made again may get the number of the one before, which the watch is still on.
    return place if stat.S_ISDIR(status.st_mode) else (*place, status.st_ctime_ns)


def _is_absent(error: OSError | None) -> bool:
    return error is not None and error.errno in _ABSENT


def _lies_in(file: str, folders: Iterable[str]) -> bool:
    return any(file.startswith(folder + "/") for folder in folders)


def _missing(folder: str) -> FileProblem:
    return whole_file(folder, "FolderMissing", "there is no such file or folder: waiting for it")


def _is_folder(file: str) -> ManifestRead:
    return ManifestRead((), (whole_file(file, "NotAFile", "was a file and is a folder now"),))
