"""Manifests read once, for what needs no server: `headgate check` and `headgate explain`.

found = read_paths([Path("manifests")])
for problem in found.problems:
print(problem)          # manifests/web.yaml:12: Ingress default/web: metadata.name: must be ...
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from headgate.common.resources import ALL_KINDS, Kinds
from headgate.watcher.sources.manifests.folders import read_bytes, scan
from headgate.watcher.sources.manifests.index import ManifestIndex
from headgate.watcher.sources.manifests.objects import Versioner
from headgate.watcher.sources.manifests.reader import (
    FileObject,
    FileProblem,
    ManifestRead,
    read_manifest,
    whole_file,
)

__all__ = ["FileObject", "FileProblem", "ManifestRead", "read_file", "read_paths", "unreadable"]


def read_paths(
    paths: Sequence[Path], cluster: str = "manifests", version_key: bytes | None = None, kinds: Kinds = ALL_KINDS
) -> ManifestRead:
    """Read files and folders of manifests as the watcher would read them at its start.

    Args:
        paths: files (of any name) and folders (whose `.yaml`, `.yml` and `.json` files are read, nested ones too).
        cluster: name of the cluster that the objects are said to come from.
        version_key: makes the versions of Secrets repeatable; by default they differ each time.
        kinds: what is read.

    Returns:
        each object once, with its file and line, everything that is wrong, and what is passed over.
    """
    versioner = Versioner(cluster, version_key or os.urandom(32))
    index = ManifestIndex()
    reads = list(_read_all(_files(paths), versioner, kinds))
    index.update(reads)
    passed_over = tuple(one for _, read in reads for one in read.passed_over)
    return ManifestRead(tuple(index.objects()), tuple(index.problems()), passed_over)


def _files(paths: Iterable[Path]) -> Iterator[tuple[str, OSError | None]]:
    for path in paths:
        if not path.is_dir():
            yield str(path), None
            continue
        found = scan(str(path))
        yield from ((file, found.unreadable.get(file)) for file in sorted([*found.files, *found.unreadable]))


def _read_all(
    files: Iterable[tuple[str, OSError | None]], versioner: Versioner, kinds: Kinds
) -> Iterator[tuple[str, ManifestRead]]:
    for file, error in files:
        yield file, unreadable(file, error) if error else read_file(file, versioner, kinds)


def read_file(file: str, versioner: Versioner, kinds: Kinds = ALL_KINDS) -> ManifestRead:
    """Read one file; that it cannot be read is a problem like others."""
    try:
        data, _ = read_bytes(file)
    except OSError as error:
        return unreadable(file, error)
    return read_manifest(data, file, versioner, kinds)


def unreadable(file: str, error: OSError) -> ManifestRead:
    """Say that a file or folder cannot be read."""
    return ManifestRead((), (whole_file(file, "Unreadable", f"cannot be read: {error.strerror or error}"),))
