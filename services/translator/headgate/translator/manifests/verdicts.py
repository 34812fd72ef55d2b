"""What becomes of a part of an object: the vocabulary of `headgate audit` and of the tables that dialects keep."""

import re
from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

_LINK = re.compile(r"\[([^]]*)\]\([^)]*\)")


class Verdict(StrEnum):
    """What becomes of a field or an annotation, the best first."""

    HONOURED = "honoured"
    APPROXIMATED = "approximated"
    """Followed, but not in every case as where it comes from."""
    IGNORED = "ignored"
    """The object is served without it."""
    REFUSED = "refused"
    """What it is about is not served until it is mended."""


class Likeness(StrEnum):
    """How a field compares with the same field where it comes from."""

    SAME = "same"
    BETTER = "better"
    STRICTER = "stricter"
    """The same, except that some values are refused, and named."""
    DIFFERENT = "different"
    UNUSED = "unused"
    REFUSED = "refused"

    @property
    def verdict(self) -> Verdict:
        """What becomes of such a field where nothing is wrong with its value."""
        return _VERDICTS.get(self, Verdict.HONOURED)


_VERDICTS = {
    Likeness.DIFFERENT: Verdict.APPROXIMATED,
    Likeness.UNUSED: Verdict.IGNORED,
    Likeness.REFUSED: Verdict.REFUSED,
}


def plain(markdown: str) -> str:
    """Return a note without the marks of Markdown."""
    return _LINK.sub(r"\1", markdown).replace("`", "")


class FieldVerdict(NamedTuple):
    """A row of a table of fields."""

    fields: tuple[str, ...]
    """Below `spec`, elements of lists as `[]`: `http[].match.hosts`; `*` for any name. What is in a field goes with it,
    unless a row of its own says else."""
    likeness: Likeness
    note: str = ""
    """How, why, or what to write instead; Markdown."""
    value: str = ""
    """Of the field, where the row is about one value only."""
    unless: tuple[str, ...] = ()
    """Annotations beside which the row does not hold."""
    label: str = ""
    """In the documentation, where it is not the fields."""


def field_table(rows: Sequence[FieldVerdict]) -> str:
    """Return rows as a Markdown table, for the documentation."""
    lines = (
        f"| {row.label or _label(row.fields)} | {row.likeness} | {row.note} |".replace("|  |", "| |") for row in rows
    )
    return "\n".join(("| field | | |", "|---|---|---|", *lines)) + "\n"


def _label(fields: Sequence[str]) -> str:
    return ", ".join(f"`{field}`" for field in fields)
