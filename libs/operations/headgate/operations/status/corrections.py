"""What would probably be right in the place of something wrong, as its problem says it.

Problems are written for people: "must be one of Exact, Prefix", "did you mean number?". What they offer is read here as
a person would read it, and the nearest is chosen. Where nothing is near, nothing is suggested: a guess that has to be
undone costs more than none.
"""

import re
from collections.abc import Iterator
from difflib import get_close_matches
from typing import Final, NamedTuple

from headgate.common.problems import Problem

_NEAREST: Final = re.compile(r"(?:did you mean|the nearest is) ([^\s;?]+)")
_OFFERED: Final = re.compile(r"(?:must be one of|must be|there are) ([^;]+)")
_WORD: Final = re.compile(r"""'([^'\s]+)'|"([^"\s]+)"|([A-Za-z0-9][\w.:/-]*)""")
_JOINING: Final = frozenset(("or", "and", "but", "is", "of", "one", "a", "an", "the", "such", "as"))
_HOST: Final = re.compile(r"(\*\.)?[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")
_CUTOFF: Final = 0.5


class Correction(NamedTuple):
    """What should probably stand there instead."""

    text: str
    is_name: bool
    """Whether the field's name is wrong, and not its value."""


def correct(problem: Problem) -> Correction | None:
    """Return what would probably be right; None if that cannot be said."""
    value = problem.value
    if found := _NEAREST.search(problem.message):
        # Of a value too, or of a part of one: a plugin that is not there is the value of `name`.
        if _are_near(found[1], _last_of(problem.field)):
            return Correction(found[1], is_name=True)
        return Correction(found[1], is_name=False) if value and _are_near(found[1], value) else None
    if not value or value == "***" or len(value) > 100:
        return None
    if problem.reason == "InvalidHost" and _HOST.fullmatch(value.lower()):
        return Correction(value.lower(), is_name=False)
    if "must start with '/'" in problem.message:
        return Correction(f"/{value}", is_name=False)
    offered = {word.lower(): word for word in _offered(problem.message)}
    near = get_close_matches(value.lower(), [*offered], n=1, cutoff=_CUTOFF)
    if not near or offered[near[0]] == value:
        return None
    return Correction(offered[near[0]], is_name=False)


def _last_of(field: str) -> str:
    """Return the name at the end of a field: `host` of `spec.host`, `a.example/b` of `annotations[a.example/b]`."""
    return field[:-1].rpartition("[")[2] if field.endswith("]") else field.rpartition(".")[2]


def _are_near(one: str, other: str) -> bool:
    return bool(get_close_matches(one.lower(), [other.lower()], n=1, cutoff=_CUTOFF)) and " " not in other


def _offered(message: str) -> Iterator[str]:
    for found in _OFFERED.finditer(message):
        for quoted, double, plain in _WORD.findall(found[1].partition(", but ")[0]):
            if quoted or double or plain not in _JOINING:
                yield quoted or double or plain
