"""The one format of annotation tables, whatever vocabulary they are of."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from headgate.common.resources import JsonObject
from headgate.translator.manifests.reading import as_object, metadata

PREFIX = "headgate.dev/"


@dataclass(frozen=True, slots=True)
class Annotation:
    """One annotation: a row of a table. Reading, messages, audit and documentation follow from it."""

    name: str
    """Without the prefix."""
    read: Callable[[str], Any]
    """Text to value. Raises ValueError with a text that begins with `must be`."""
    sets: str = ""
    """Field that it sets, with the group that it belongs to: `timeouts.connect_s`; without a dot a field of the entry
    itself; empty: a value that goes by the annotation's own name."""
    value: str = ""
    """What may be written, in a few words."""
    default: str = ""
    does: str = ""
    example: str = ""
    drops: bool = False
    """Whether nothing of the object is served when it cannot be read."""
    guards: bool = False
    """Whether it keeps requests out: when it cannot be read, all are refused rather than let in."""
    is_private: bool = False
    """Whether its value may hold a secret, and is never shown."""
    kinds: tuple[str, ...] = ()
    """Kinds of objects on which it is read; empty: all that the table is for."""
    approximation: str = ""
    """Set if it is not followed in every case as by the controller that it comes from, and how it is."""

    @property
    def target(self) -> str:
        """Group and field that it sets."""
        return self.sets or self.name

    @property
    def group(self) -> str:
        """Group that it belongs to; empty for none."""
        return self.target.rpartition(".")[0]


@dataclass(frozen=True, slots=True, eq=False)
class AnnotationTable:
    """The annotations of one vocabulary on one kind of object, or on several."""

    prefix: str
    rows: Mapping[str, Annotation]
    """By name, without the prefix, in the order in which they are read."""
    groups: Mapping[str, str] = field(init=False)
    """The groups of the rows, by name."""

    def __post_init__(self) -> None:
        """Note the groups."""
        object.__setattr__(self, "groups", {name: row.group for name, row in self.rows.items()})

    @classmethod
    def of(cls, prefix: str, rows: "tuple[Annotation, ...]") -> "AnnotationTable":
        """Make a table of rows."""
        return cls(prefix, {row.name: row for row in rows})

    def written(self, manifest: JsonObject) -> JsonObject:
        """Return an object's annotations with the prefix, by their full names, sorted."""
        annotations = as_object(metadata(manifest).get("annotations"))
        if not annotations:
            return {}
        found = [key for key in annotations if key.startswith(self.prefix)]
        return {key: annotations[key] for key in sorted(found)}

    def field(self, name: str) -> str:
        """Return the field path of an annotation."""
        return f"metadata.annotations[{self.prefix}{name}]"
