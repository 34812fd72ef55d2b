"""Selectors of labels as text, as kubectl takes them: `a=b,c!=d,e in (x, y),f notin (z),g,!h`."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final, NamedTuple

_NAME: Final = r"[A-Za-z0-9](?:[-A-Za-z0-9_./]*[A-Za-z0-9])?"
_VALUE: Final = r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?)?"
_REQUIREMENT: Final = re.compile(
    rf"\s*(?:(?P<key>{_NAME})\s*(?:(?P<sign>==|=|!=)\s*(?P<value>{_VALUE})"
    rf"|\s(?P<word>in|notin)\s*\((?P<values>[^()]*)\))?|!\s*(?P<absent>{_NAME}))\s*(?:,|$)"
)
_ONE_VALUE: Final = re.compile(_VALUE)


class Requirement(NamedTuple):
    """What is asked of one label."""

    key: str
    values: frozenset[str] | None
    """Of which the label has one; None: any."""
    is_negated: bool = False

    def takes(self, labels: Mapping[str, str]) -> bool:
        """Whether labels fulfil it. A label that is absent has none of the values."""
        value = labels.get(self.key)
        has = value is not None and (self.values is None or value in self.values)
        return has is not self.is_negated


@lru_cache(maxsize=64)
def read_selector(text: str) -> tuple[Requirement, ...]:
    """Read a selector; an empty one asks nothing. Raises ValueError, with the place of the mistake."""
    requirements: list[Requirement] = []
    position = 0
    while position < len(text.rstrip()):
        found = _REQUIREMENT.match(text, position)
        if found is None:
            at = text[position : position + 30]
            raise ValueError(f"is no selector of labels such as team=shop,tier!=test, at {at!r}")
        requirements.append(_requirement(found))
        position = found.end()
    return tuple(requirements)


def _requirement(found: re.Match[str]) -> Requirement:
    if found["absent"]:
        return Requirement(found["absent"], None, is_negated=True)
    if found["sign"]:
        return Requirement(found["key"], frozenset((found["value"],)), is_negated=found["sign"] == "!=")
    if not found["word"]:
        return Requirement(found["key"], None)
    values = [value.strip() for value in found["values"].split(",")]
    for value in values:
        if not _ONE_VALUE.fullmatch(value):
            raise ValueError(f"has {value!r}, which is no value of a label")
    return Requirement(found["key"], frozenset(values), is_negated=found["word"] == "notin")


def selects(text: str, labels: Mapping[str, str]) -> bool:
    """Whether a selector takes labels."""
    return all(requirement.takes(labels) for requirement in read_selector(text))
