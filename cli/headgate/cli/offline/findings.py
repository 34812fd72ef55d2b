"""What is said of objects in files: what is wrong with them, and why some are not ours."""

from datetime import UTC, datetime
from typing import NamedTuple

from headgate.common.deltas import Delta, Operation
from headgate.common.problems import Problem, Severity
from headgate.common.resources import JsonObject
from headgate.common.sealing import Sealer
from headgate.watcher.objects.preparing import is_published, prepare_stripped
from headgate.watcher.sources.manifests.files import FileObject


class Finding(NamedTuple):
    """Something wrong, and where it stands."""

    file: str
    line: int
    """From 1; 0 if it is about the whole file."""
    object: str
    """`Ingress default/web`; empty if it is about the whole file."""
    problem: Problem
    field_line: int = 0
    """Where the field stands, or the deepest one above it that is there, from 1; 0 if that was not looked for."""
    written: str = ""
    """That line, if something can be suggested."""
    corrected: str = ""
    """The line as it would probably be right."""

    def __str__(self) -> str:
        line = self.field_line or self.line
        where = f"{self.file}:{line}" if line else self.file
        what = f"{self.object}: " if self.object else ""
        told = f"{where}: {self.problem.severity}: {what}{self.problem} [{self.problem.reason}]"
        return f"{told}\n  - {self.written}\n  + {self.corrected}" if self.corrected else told

    def as_json(self) -> JsonObject:
        """Return it as JSON data."""
        places = {"file": self.file, "line": self.line, "field_line": self.field_line, "object": self.object}
        suggested = {"written": self.written, "corrected": self.corrected} if self.corrected else {}
        return {**places, **self.problem.model_dump(mode="json"), **suggested}

    @property
    def is_error(self) -> bool:
        """Whether a part of what is written is not served."""
        return self.problem.severity is Severity.ERROR


class Note(NamedTuple):
    """An object that is not served because of its class: no mistake, but perhaps not what its author expects."""

    file: str
    line: int
    object: str
    reason: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: info: {self.object}: not ours: {self.reason}"


def delta_of(one: FileObject, sealer: Sealer) -> Delta | None:
    """Return what a watcher would say of an object in a file; None if it would say nothing."""
    if not is_published(one.kind, one.object):
        return None
    return Delta(
        ref=one.ref,
        operation=Operation.APPLY,
        uid=str(one.object["metadata"].get("uid", "")),
        resource_version=one.version,
        observed_at=datetime.now(UTC),
        object=prepare_stripped(one.kind, one.object, sealer),
    )


def object_name(one: FileObject) -> str:
    """Name an object as messages do: `Ingress default/web`."""
    where = f"{one.ref.namespace}/{one.ref.name}" if one.ref.namespace else one.ref.name
    return f"{one.kind.kind} {where}"
