"""Which file each object comes from, and what a changed file changes; pure.

The last good content of a file stays in force while the file is broken. A file that was never wholly good since it
was first seen gives whatever documents in it are good. Of one object in several files the first file by path counts.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from headgate.common.problems import Problem
from headgate.common.resources import ObjectRef
from headgate.watcher.sources.manifests.objects import describe
from headgate.watcher.sources.manifests.reader import FileObject, FileProblem, ManifestRead


class Change(NamedTuple):
    """One object before and after; None is absent."""

    before: FileObject | None
    after: FileObject | None


@dataclass(slots=True)
class _File:
    objects: dict[ObjectRef, FileObject]
    problems: tuple[FileProblem, ...]
    is_good: bool
    """Whether `objects` are the whole content of a file that had no fault."""


class ManifestIndex:
    """Objects of many files."""

    def __init__(self) -> None:
        self._files: dict[str, _File] = {}
        self._claims: dict[ObjectRef, tuple[FileObject, ...]] = {}
        """In order of files: the first is in force. Replaced, not changed in place: other threads look objects up."""
        self._contested: set[ObjectRef] = set()

    def __contains__(self, file: object) -> bool:
        return file in self._files

    def files(self) -> Iterable[str]:
        """Return the files that are known."""
        return self._files.keys()

    def files_under(self, folder: str) -> list[str]:
        """Return the known files in a folder and those in it."""
        prefix = folder.rstrip("/") + "/"
        return [file for file in self._files if file.startswith(prefix)]

    def has_objects(self, file: str) -> bool:
        """Whether a file's content in force holds any object."""
        return file in self._files and bool(self._files[file].objects)

    def update(self, reads: Iterable[tuple[str, ManifestRead]], removed: Iterable[str] = ()) -> list[Change]:
        """Take in files that were read and forget those that are gone; return what that changes.

        Moving an object from one file to another is no change of it.
        """
        before: dict[ObjectRef, FileObject | None] = {}
        for file, read in reads:
            self._take(file, read, before)
        for file in removed:
            if known := self._files.pop(file, None):
                self._claim(file, known.objects, {}, before)
        changes = (Change(was, self.get(ref)) for ref, was in before.items())
        return [change for change in changes if _differs(change)]

    def _take(self, file: str, read: ManifestRead, before: dict[ObjectRef, FileObject | None]) -> None:
        known = self._files.get(file)
        if read.problems and known is not None and known.is_good:
            known.problems = read.problems
            return
        objects = {one.ref: one for one in read.objects}
        self._files[file] = _File(objects, read.problems, is_good=not read.problems)
        self._claim(file, known.objects if known else {}, objects, before)

    def _claim(
        self,
        file: str,
        old: dict[ObjectRef, FileObject],
        new: dict[ObjectRef, FileObject],
        before: dict[ObjectRef, FileObject | None],
    ) -> None:
        for ref in {**old, **new}:  # in the order of the file, the same at every run
            claims = self._claims.get(ref, ())
            before.setdefault(ref, claims[0] if claims else None)
            others = [one for one in claims if one.file != file] if claims else []
            claims = _in_order([*others, new[ref]] if ref in new else others)
            (self._contested.add if len(claims) > 1 else self._contested.discard)(ref)
            if claims:
                self._claims[ref] = claims
            else:
                self._claims.pop(ref, None)

    def get(self, ref: ObjectRef) -> FileObject | None:
        """Return the object in force."""
        claims = self._claims.get(ref)
        return claims[0] if claims else None

    def objects(self) -> Iterator[FileObject]:
        """Yield all objects in force."""
        for claims in self._claims.values():
            yield claims[0]

    def problems(self) -> list[FileProblem]:
        """Return what is wrong, in order of files and lines."""
        found = [problem for file in self._files.values() for problem in file.problems]
        found += (problem for ref in self._contested for problem in self._duplicates(ref))
        return sorted(found, key=lambda one: (one.file, one.line))

    def _duplicates(self, ref: ObjectRef) -> Iterator[FileProblem]:
        first, *losers = self._claims[ref]
        message = f"stands in {first.file}:{first.line} too; that file comes first by path and is the one in force"
        problem = Problem(reason="DuplicateObject", message=message)
        for loser in losers:
            yield FileProblem(loser.file, loser.line, describe(loser.object), problem)


def _in_order(claims: list[FileObject]) -> tuple[FileObject, ...]:
    return tuple(claims if len(claims) < 2 else sorted(claims, key=lambda one: one.file))


def _differs(change: Change) -> bool:
    if change.before is None or change.after is None:
        return change.before is not change.after
    return change.before.version != change.after.version
