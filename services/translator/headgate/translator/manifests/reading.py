"""Values in manifests: reading them where they have the right type, and showing them in problems."""

import json
from collections.abc import Iterable, Mapping
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
