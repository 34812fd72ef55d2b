"""How answers look: aligned columns for people, JSON for programs."""

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import click


def print_json(value: Any) -> None:
    """Print a value as indented JSON; what JSON does not know is printed as text."""
    click.echo(json.dumps(value, indent=2, default=str))


def print_table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print rows under headings, every column as wide as its widest cell."""
    cells = [[str(cell) for cell in row] for row in rows]
    lines = [list(headings), *cells]
    widths = [max(len(line[column]) for line in lines) for column in range(len(headings))]
    for number, line in enumerate(lines):
        text = "  ".join(f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True)).rstrip()
        click.echo(click.style(text, bold=True) if number == 0 else text)


def count_of(number: int, noun: str) -> str:
    """Say how many: `1 error`, `3 errors`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def age(moment: datetime, now: datetime | None = None) -> str:
    """Say how long ago something was: `12s`, `3m`, `5h`, `2d`."""
    seconds = max(0, int(((now or datetime.now(UTC)) - moment).total_seconds()))
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"
