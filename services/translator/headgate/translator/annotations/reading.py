"""Annotations of one object, read by the tables; every mistake noted at its annotation."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any

from headgate.common.problems import Problem, Severity
from headgate.common.resources import JsonObject
from headgate.translator.annotations.annotation import PREFIX, Annotation, AnnotationTable
from headgate.translator.annotations.meant import Meant, meant_guard
from headgate.translator.annotations.on_ingress import INGRESS_ANNOTATIONS
from headgate.translator.annotations.on_service import SERVICE_ANNOTATIONS
from headgate.translator.manifests.reading import shown, type_name

NO_DEFAULTS: Mapping[str, Mapping[str, Any]] = MappingProxyType({})
MISSPELT = 0.9
"""Likeness from which on a name must be meant for another: a letter or two of it differ."""
TABLES: Mapping[str, AnnotationTable] = {
    "Ingress": AnnotationTable.of(PREFIX, INGRESS_ANNOTATIONS),
    "Service": AnnotationTable.of(PREFIX, SERVICE_ANNOTATIONS),
}
"""Our own annotations, by the kind that they are on."""


def ours(manifest: JsonObject) -> JsonObject:
    """Return an object's annotations with our prefix, sorted by name."""
    return TABLES["Ingress"].written(manifest)


def field_of(name: str) -> str:
    """Return the field path of one of our annotations."""
    return f"metadata.annotations[{PREFIX}{name}]"


class Reading:
    """What one object's annotations of one vocabulary say."""

    def __init__(self, table: AnnotationTable, defaults: Mapping[str, Mapping[str, Any]] = NO_DEFAULTS) -> None:
        """Begin with the defaults, fields by group; annotations of the table are taken one by one."""
        self._table, self._defaults = table, defaults
        self._groups: dict[str, dict[str, Any]] = {}
        self._written: dict[str, Any] = {}
        self.problems: list[Problem] = []
        self.unreadable: list[str] = []
        """Names of annotations that keep requests out and cannot be read."""
        self.dropping: list[str] = []
        """Names of annotations that cannot be read, so that nothing of the object is served."""

    def copy(self) -> "Reading":
        """Return a reading that says the same, and to which more may be noted."""
        copied = Reading(self._table, self._defaults)
        copied._groups, copied._written = self._groups, dict(self._written)  # fields are never changed once read
        copied.problems, copied.unreadable = list(self.problems), list(self.unreadable)
        copied.dropping = list(self.dropping)
        return copied

    def note(self, name: str, written: Any) -> None:
        """Take what is written of an annotation that is not read."""
        self._written[name] = written

    def take(self, name: str, written: Any) -> None:
        """Read one annotation of the table."""
        annotation = self._table.rows[name]
        self._written[name] = written
        if not isinstance(written, str):
            return self.refuse(name, f"must be a string, but is {type_name(written)}; put it in quotes")
        try:
            value = annotation.read(written.strip())
        except ValueError as error:
            return self.refuse(name, str(error))
        group, _, field = annotation.target.rpartition(".")
        self._groups.setdefault(group, {}).update(value if field == "*" else {field: value})
        return None

    def refuse(self, name: str, message: str) -> None:
        """Note that an annotation cannot be followed: it is ignored, or what it guards is closed."""
        annotation = self._table.rows[name]
        if annotation.guards and name not in self.unreadable:
            self.unreadable.append(name)
        if annotation.drops and name not in self.dropping:
            self.dropping.append(name)
        self._complain("InvalidAnnotation", name, annotation, message)

    def close(self, name: str, message: str) -> None:
        """Note that what an annotation says is not there, or does not fit: all requests are refused until it does."""
        if name not in self.unreadable:
            self.unreadable.append(name)
        self._complain("InvalidAnnotation", name, replace(self._table.rows[name], guards=True, drops=False), message)

    def drop(self, name: str, message: str) -> None:
        """Note that nothing of the object may be served because of an annotation that the operator forbids."""
        if name not in self.dropping:
            self.dropping.append(name)
        row = self._table.rows.get(name, Annotation(name, str))
        self._complain("ForbiddenAnnotation", name, replace(row, guards=False, drops=True), message)

    def warn_unknown(self, name: str, written: Any) -> None:
        """Note that there is no such annotation."""
        self.problems.append(unknown_annotation(self._table, name, written))

    def caution(self, name: str, message: str) -> None:
        """Note that an annotation is followed and probably does not do what its author wants."""
        problem = Problem(
            severity=Severity.WARNING,
            reason="PluginCaution",
            field=self._table.field(name),
            value="***",
            message=message,
        )
        self.problems.append(problem)

    def refuse_misspelt(self, name: str, meant: str, written: Any) -> None:
        """Note that an annotation which keeps requests out is written wrongly: ignored, it would let them in."""
        self._written[meant] = written
        self.unreadable.append(meant)
        prefix = self._table.prefix
        message = f"there is no annotation {prefix}{name}; the nearest is {prefix}{meant}, which keeps requests out"
        self._complain("UnknownAnnotation", name, self._table.rows[meant], message)

    def refuse_synonym(self, name: str, meant: Meant, written: Any) -> None:
        """Note that an annotation of another controller, which keeps requests out, was given our prefix."""
        self._written.setdefault(meant.annotation, written)
        self.unreadable.append(meant.annotation)
        message = f"there is no annotation {self._table.prefix}{name}; what keeps these requests out is {meant.instead}"
        self._complain("UnknownAnnotation", name, self._table.rows[meant.annotation], message)

    def _complain(self, reason: str, name: str, annotation: Annotation, message: str) -> None:
        closed = "its port stays closed" if annotation.sets.startswith("stream.") else "every request is refused"
        closed = "nothing of the object is served" if annotation.drops else closed
        stays_out = annotation.guards or annotation.drops
        guarded = f"until then the last good version stays in force, or {closed}"
        written = self._written.get(annotation.name)
        self.problems.append(
            Problem(
                severity=Severity.ERROR if stays_out else Severity.WARNING,
                reason=reason,
                field=self._table.field(name),
                value=None if written is None else "***" if annotation.is_private else shown(written),
                message=f"{message}; {guarded if stays_out else 'it is ignored'}",
            )
        )

    def has(self, name: str) -> bool:
        """Whether an annotation of the table was written, readable or not."""
        return name in self._written

    def group(self, name: str = "") -> dict[str, Any]:
        """Return the fields of one group that were written and could be read, over the defaults."""
        return {**self._defaults.get(name, {}), **self._groups.get(name, {})}

    @property
    def groups(self) -> frozenset[str]:
        """The groups of which anything was written, readable or not, or has a default."""
        written = (self._table.groups[name] for name in self._written)
        return frozenset((*written, *(name for name, fields in self._defaults.items() if fields)))

    def written(self, group: str) -> list[str]:
        """Return the names of the annotations of a group that were written, readable or not."""
        groups = self._table.groups
        return [name for name in self._written if groups[name] == group]

    def closed(self, group: str) -> list[str]:
        """Return the names of the annotations of a group that keep requests out and cannot be read."""
        return [name for name in self.written(group) if name in self.unreadable]


def read_annotations(kind: str, annotations: Mapping[str, Any]) -> Reading:
    """Read the annotations with our prefix of an Ingress or a Service."""
    reading, table = Reading(TABLES[kind]), TABLES[kind].rows
    written = {key.removeprefix(PREFIX): value for key, value in annotations.items() if key.startswith(PREFIX)}
    for name in (name for name in table if name in written):
        reading.take(name, written[name])
    for name in sorted(written.keys() - table.keys()):
        guard, meant = _misspelt_guard(name, table), meant_guard(kind, name)
        if meant is not None and (kind == "Ingress" or "stream-port" in written):
            reading.refuse_synonym(name, meant, written[name])
        elif guard is not None and not reading.has(guard):
            reading.refuse_misspelt(name, guard, written[name])
        else:
            reading.problems.append(_unknown(kind, name, written[name]))
    return reading


def _misspelt_guard(name: str, table: Mapping[str, Annotation]) -> str | None:
    near = get_close_matches(name, list(table), n=1, cutoff=MISSPELT)
    return near[0] if near and table[near[0]].guards else None


def _unknown(kind: str, name: str, written: Any) -> Problem:
    elsewhere = [(other, table.rows[name]) for other, table in TABLES.items() if other != kind and name in table.rows]
    if not elsewhere:
        return unknown_annotation(TABLES[kind], name, written)
    (other, annotation), *_ = elsewhere
    message = f"{PREFIX}{name} belongs on an object of kind {other}; it is ignored here"
    value = "***" if annotation.is_private else shown(written)
    return Problem(
        severity=Severity.WARNING, reason="UnknownAnnotation", field=field_of(name), value=value, message=message
    )


def unknown_annotation(table: AnnotationTable, name: str, written: Any) -> Problem:
    """Return the warning of an annotation that does not exist, with the one that was probably meant."""
    near = nearest(name, table.rows)
    hint = f"; the nearest is {table.prefix}{near}" if near else ""
    is_private = near is not None and table.rows[near].is_private
    return Problem(
        severity=Severity.WARNING,
        reason="UnknownAnnotation",
        field=table.field(name),
        value="***" if is_private else shown(written),
        message=f"there is no annotation {table.prefix}{name}{hint}; it is ignored",
    )


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the annotation that was probably meant."""
    near = get_close_matches(name, list(known), n=1, cutoff=0.5)
    return near[0] if near else None
