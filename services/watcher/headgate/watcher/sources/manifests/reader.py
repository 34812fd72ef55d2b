"""The bytes of one manifest file as objects and problems; pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import msgspec

from headgate.common.deltas import Author, is_too_deep
from headgate.common.problems import Problem
from headgate.common.resources import ALL_KINDS, JsonObject, Kinds, ObjectRef, ResourceKind
from headgate.watcher.objects.preparing import MAX_OBJECT_BYTES, encode, is_published, is_sealed
from headgate.watcher.sources.manifests.documents import Document, read_documents
from headgate.watcher.sources.manifests.objects import BadObject, Versioner, describe, list_items, read_object

MAX_FILE_BYTES = 16 * 1024 * 1024
_decode = msgspec.json.Decoder(dict[str, Any]).decode


class FileObject(msgspec.Struct, frozen=True, gc=False):
    """An object and where it stands."""

    kind: ResourceKind
    ref: ObjectRef
    uid: str
    version: str
    """Equal for equal content."""
    content: bytes
    """`object` in JSON, a sixth of what it takes as dictionaries."""
    file: str
    """Empty for one of a cluster."""
    line: int
    """Where its document begins, from 1; 0 for one of a cluster."""
    is_ready: bool
    """Whether the content is what a delta carries: see `ReadyObject`."""

    @classmethod
    def of(
        cls, kind: ResourceKind, ref: ObjectRef, manifest: JsonObject, file: str = "", line: int = 0
    ) -> "FileObject":
        """Take a complete object."""
        metadata = manifest["metadata"]
        content = encode(manifest)
        return cls(
            kind,
            ref,
            str(metadata.get("uid", "")),
            str(metadata.get("resourceVersion", "")),
            content,
            file,
            line,
            _is_ready(kind, manifest, content),
        )

    @property
    def digest(self) -> bytes:
        """The version of an object from a file, which is made from its content."""
        return bytes.fromhex(self.version)

    @property
    def author(self) -> Author:
        """The file: files do not say who writes them."""
        return _author(self.file)

    @property
    def object(self) -> JsonObject:
        """Complete, with defaults, `uid` and `resourceVersion`; stripped. Decoded at every access."""
        return _decode(self.content)


def _is_ready(kind: ResourceKind, manifest: JsonObject, content: bytes) -> bool:
    if is_sealed(kind) or not is_published(kind, manifest):
        return False
    return len(content) <= MAX_OBJECT_BYTES and not is_too_deep(manifest, content)


@lru_cache(maxsize=1024)
def _author(file: str) -> Author:
    """One for all objects of a file."""
    return Author(file)


@dataclass(frozen=True, slots=True)
class FileProblem:
    """Something wrong in a file (or with a folder), said so that its author can mend it."""

    file: str
    line: int
    """From 1; 0 if it is about the whole file."""
    object: str
    """`Ingress default/web`, as far as the document says; empty if it is about the whole file."""
    problem: Problem

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}" if self.line else self.file
        return ": ".join(part for part in (where, self.object, str(self.problem)) if part)

    def as_json(self) -> JsonObject:
        """Return it as the admin site shows it."""
        return {
            "file": self.file,
            "line": self.line,
            "object": self.object,
            "problem": self.problem.model_dump(mode="json"),
        }


@dataclass(frozen=True, slots=True)
class PassedOver:
    """An object of a kind that is not read, in a group that is about routing."""

    file: str
    line: int
    object: str
    """`L4RoutePolicy default/web`."""
    kind: str


@dataclass(frozen=True, slots=True)
class ManifestRead:
    """What was read: of one file, or of many."""

    objects: tuple[FileObject, ...] = ()
    problems: tuple[FileProblem, ...] = ()
    passed_over: tuple[PassedOver, ...] = ()


def whole_file(file: str, reason: str, message: str) -> FileProblem:
    """Make a problem that is about a file (or folder) as a whole."""
    return FileProblem(file, 0, "", Problem(reason=reason, message=message))


def read_manifest(data: bytes, file: str, versioner: Versioner, kinds: Kinds = ALL_KINDS) -> ManifestRead:
    """Read a file's content: every good document gives objects, every bad one a problem."""
    if len(data) > MAX_FILE_BYTES:
        return ManifestRead((), (whole_file(file, "TooLarge", f"larger than {MAX_FILE_BYTES} bytes: split it"),))
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        problem = Problem(reason="NotUtf8", message="is not UTF-8 text")
        return ManifestRead((), (FileProblem(file, line, "", problem),))
    documents, bad = read_documents(text)
    reader = _FileReader(file, versioner, kinds)
    for one in bad:
        reader.complain(one.line, one.object, Problem(reason=one.reason, message=one.message))
    for document in documents:
        for value, line in _flatten(document):
            reader.read(value, line)
    return ManifestRead(tuple(reader.objects.values()), tuple(reader.problems), tuple(reader.passed_over))


def _flatten(document: Document) -> Iterator[tuple[Any, int]]:
    """Yield the objects of a document, those in Lists (and Lists in them) included; nothing for an empty one."""
    waiting = [(document.value, document.line)]
    while waiting:
        value, line = waiting.pop()
        if value is None:
            continue
        items = list_items(value) if isinstance(value, dict) else None
        if items is None:
            yield value, line
        else:
            waiting += [(item, document.lines.get(id(item), line)) for item in reversed(items)]


class _FileReader:
    def __init__(self, file: str, versioner: Versioner, kinds: Kinds) -> None:
        self.objects: dict[ObjectRef, FileObject] = {}
        self.problems: list[FileProblem] = []
        self.passed_over: list[PassedOver] = []
        self._file = file
        self._versioner = versioner
        self._kinds = kinds

    def complain(self, line: int, what: str, problem: Problem) -> None:
        self.problems.append(FileProblem(self._file, line, what, problem))

    def read(self, value: object, line: int) -> None:
        try:
            found = read_object(value, self._versioner, self._kinds)
        except BadObject as bad:
            self.complain(line, describe(value), bad.problem)
            return
        if found is not None:
            self._add(*found, line)
        elif isinstance(value, dict) and self._kinds.has_whole_group(value["apiVersion"].rpartition("/")[0]):
            self.passed_over.append(PassedOver(self._file, line, describe(value), value["kind"]))

    def _add(self, kind: ResourceKind, manifest: JsonObject, line: int) -> None:
        metadata = manifest["metadata"]
        ref = ObjectRef(
            self._versioner.cluster, kind.group, kind.resource, metadata.get("namespace", ""), metadata["name"]
        )
        made = FileObject.of(kind, ref, manifest, self._file, line)
        first = self.objects.setdefault(ref, made)
        if first is not made:
            message = f"stands in this file twice; the first is at line {first.line}"
            self.complain(line, describe(manifest), Problem(reason="DuplicateObject", message=message))
