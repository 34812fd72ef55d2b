"""How answers look: aligned columns for people, JSON for programs."""

import itertools
import json
import re
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import click

_GAP: Final = 2
_NARROWEST: Final = 16
_COLOURS: Final[Mapping[str, str]] = {
    "error": "red",
    "refused": "red",
    "ignored !": "red",
    "warning": "yellow",
    "ignored": "yellow",
    "approximated": "yellow",
    "wins": "green",
    "honoured": "green",
    "served": "green",
}
"""Of cells that say how something is."""


def print_json(value: Any) -> None:
    """Print a value as indented JSON; what JSON does not know is printed as text."""
    click.echo(json.dumps(value, indent=2, default=str))


def print_table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print rows under headings. On a terminal the widest columns are wrapped so that lines fit; elsewhere none is."""
    lines = [list(headings), *([str(cell) for cell in row] for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(headings))]
    if (columns := terminal_width()) is not None:
        widths = fitting(widths, columns)
    for number, line in enumerate(lines):
        for text in _wrapped(line, widths):
            click.echo(click.style(text, bold=True) if number == 0 else _coloured(text, line))


def terminal_width() -> int | None:
    """Return the columns of the terminal that is printed to; None: it is none."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def fitting(widths: Sequence[int], columns: int) -> list[int]:
    """Return widths with which a table fits: the widest columns give way, none below 16 characters."""
    fitted = list(widths)
    while sum(fitted) + _GAP * (len(fitted) - 1) > columns:
        widest = max(fitted)
        if widest <= _NARROWEST:
            break
        fitted[fitted.index(widest)] -= 1
    return fitted


def _wrapped(cells: Sequence[str], widths: Sequence[int]) -> Iterator[str]:
    """Yield the lines of one row."""
    wrapped = [
        [cell] if len(cell) <= width else textwrap.wrap(cell, width, break_on_hyphens=False) or [""]
        for cell, width in zip(cells, widths, strict=True)
    ]
    for parts in itertools.zip_longest(*wrapped, fillvalue=""):
        yield (" " * _GAP).join(f"{part:<{width}}" for part, width in zip(parts, widths, strict=True)).rstrip()


def _coloured(text: str, cells: Sequence[str]) -> str:
    """Colour the words of a line that say how something is, where they stand as a cell of their own."""
    for cell in cells:
        if (colour := _COLOURS.get(cell.strip().lower())) is not None:
            text = re.sub(
                rf"(?<!\S){re.escape(cell.strip())}(?!\S)", click.style(cell.strip(), fg=colour), text, count=1
            )
    return text
