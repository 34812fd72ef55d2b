"""Reading what people wrote: one field at a time, every mistake a `Problem` with its exact path.

A `Place` is a field of a manifest. Its accessors return the value where it has the right type, and else note what is
wrong and return None, so that one wrong field never hides another. null and an absent field are the same, as in the
Kubernetes API.

Rejected: pydantic models of the manifests. They accept or refuse an object as a whole, their error locations need
translating, and what is refused here is one rule, not the object.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import Any

import msgspec

from headgate.common.problems import Problem, Severity
from headgate.common.resources import JsonObject

SHOWN_CHARACTERS = 120
_TYPE_NAMES: Mapping[type, str] = {
    bool: "a boolean",
    int: "a number",
    float: "a fraction",
    str: "a string",
    list: "a list",
    dict: "an object",
}


def shown(value: object) -> str:
    """Return a value as a problem shows it, cut to 120 characters."""
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return text if len(text) <= SHOWN_CHARACTERS else text[: SHOWN_CHARACTERS - 1] + "…"


def type_name(value: object) -> str:
    """Return what JSON calls the type of a value."""
    return _TYPE_NAMES.get(type(value), "null")


def unknown_field(name: str, value: object, known: Iterable[str], at: str) -> Problem:
    """Return the warning of a field that does not exist, with the one that was probably meant."""
    by_folded = {one.lower(): one for one in known}
    near = get_close_matches(name.lower(), list(by_folded), n=1, cutoff=0.6)
    hint = f"did you mean {by_folded[near[0]]}?" if near else f"there are {', '.join(by_folded.values())}"
    return Problem(
        severity=Severity.WARNING,
        reason="UnknownField",
        field=f"{at}.{shown(name)}",
        value=shown(value),
        message=f"there is no such field, so it is ignored; {hint}",
    )


class Place:
    """One field of a manifest: its value, its path, and where mistakes about it are noted."""

    __slots__ = ("_name", "_within", "problems", "value")

    def __init__(self, value: Any, name: str | int, problems: list[Problem], within: "Place | None" = None) -> None:
        """Name a field: by its path from the top, or by its key or position within another."""
        self.value = value
        self._name = name
        self._within = within
        self.problems = problems

    @property
    def field(self) -> str:
        """Path from the top of the manifest; put together when it is asked for, as few fields are wrong."""
        if self._within is None:
            return str(self._name)
        above = self._within.field
        if isinstance(self._name, int):
            return f"{above}[{self._name}]"
        return f"{above}.{self._name}" if above else self._name

    def __getitem__(self, key: str) -> "Place":
        """Return a member; it is absent where this place holds no object."""
        value = self.value.get(key) if isinstance(self.value, dict) else None
        return Place(value, key, self.problems, self)

    @property
    def is_present(self) -> bool:
        """Whether something stands here."""
        return self.value is not None

    def refuse(self, reason: str, message: str, severity: Severity = Severity.ERROR) -> None:
        """Note that what stands here is wrong."""
        value = shown(self.value) if self.is_present else None
        self.problems.append(Problem(severity=severity, reason=reason, field=self.field, value=value, message=message))

    def refuse_type(self, wanted: str) -> None:
        """Note that the value has the wrong type."""
        self.refuse("WrongType", f"must be {wanted}, but is {type_name(self.value)}")

    def text(self) -> str | None:
        """Return the string that stands here."""
        if self.value is None or isinstance(self.value, str):
            return self.value
        self.refuse_type("a string")
        return None

    def required_text(self, remedy: str) -> str | None:
        """Return the string that must stand here; `remedy` says what to write where it is absent or empty."""
        text = self.text()
        if not text and (self.value is None or text == ""):
            self.refuse("Required", remedy)
        return text or None

    def is_object(self) -> bool:
        """Whether an object stands here; anything else but an absent field is refused."""
        if self.value is not None and not isinstance(self.value, dict):
            self.refuse_type("an object")
        return isinstance(self.value, dict)

    def items(self) -> Iterator["Place"]:
        """Yield the elements of the list that stands here."""
        if self.value is None:
            return
        if not isinstance(self.value, list):
            self.refuse_type("a list")
            return
        for position, element in enumerate(self.value):
            yield Place(element, position, self.problems, self)


def pack(content: JsonObject) -> bytes:
    """Encode what is kept of a manifest."""
    return msgspec.json.encode(content, enc_hook=str)


def unpack(content: bytes) -> JsonObject:
    """Undo `pack`."""
    decoded: JsonObject = msgspec.json.decode(content)
    return decoded


def as_object(value: Any) -> JsonObject:
    """Return a JSON object; an empty one where the value is something else."""
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """Return a JSON list; an empty one where the value is something else."""
    return value if isinstance(value, list) else []


def as_text(value: Any) -> str:
    """Return a string; an empty one where the value is something else."""
    return value if isinstance(value, str) else ""


def metadata(manifest: JsonObject) -> JsonObject:
    """Return an object's metadata."""
    return as_object(manifest.get("metadata"))


def creation_time(manifest: JsonObject) -> str:
    """Return metadata.creationTimestamp as comparable text in UTC; empty, the oldest, where there is none."""
    text = as_text(metadata(manifest).get("creationTimestamp"))
    try:
        return datetime.fromisoformat(text).astimezone(UTC).isoformat() if text else ""
    except ValueError:
        return ""
