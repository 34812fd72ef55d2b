"""Differences between tables as a person reads them: signs and colours as in other diffs, one line for each field."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

import click
from pydantic import TypeAdapter

from headgate.common.table import Condition
from headgate.common.table_diff import DiffOperation, FieldChange, ItemChange, TableDiff
from headgate.operations.wording import count_of

_SIGNS = {DiffOperation.ADDED: "+", DiffOperation.REMOVED: "-", DiffOperation.CHANGED: "~"}
_COLOURS = {DiffOperation.ADDED: "green", DiffOperation.REMOVED: "red", DiffOperation.CHANGED: "yellow"}
_OUTER = {"route": "host", "endpoint": "upstream"}
_SHOWN_VALUE = 160
_CONDITION: TypeAdapter[Condition] = TypeAdapter(Condition)


def print_diff(diff: TableDiff, before: str, after: str) -> None:
    """Print what differs between two tables with these names."""
    if not diff.changes:
        click.echo(f"no difference between {before} and {after}")
        return
    click.echo(click.style(f"{before} -> {after}", bold=True))
    for line in lines_of(diff.changes):
        click.echo(line)
    click.echo(summary(diff))


def summary(diff: TableDiff) -> str:
    """Count what differs: `1 host added, 2 routes changed`."""
    parts = [
        f"{count_of(number, kind)} {operation}"
        for kind, operations in diff.counts.items()
        for operation, number in operations.items()
    ]
    return ", ".join(parts) or "no difference"


def lines_of(changes: Iterable[ItemChange]) -> Iterator[str]:
    """Yield the lines; routes and endpoints stand below what they are within."""
    above: tuple[str, str] | None = None
    for change in changes:
        if change.within:
            if above != (_OUTER[change.kind], change.within):
                above = (_OUTER[change.kind], change.within)
                yield f"  {above[0]} {above[1]}"
        else:
            above = (change.kind, change.name)
        yield from _lines(change, "  " if change.within else "")


def _lines(change: ItemChange, indent: str) -> Iterator[str]:
    text = f"{change.kind} {change.name}"
    if change.when is not None:
        text += f" if {_describe_condition(change.when)}"
    if change.source and change.kind != "upstream":
        text += f"  ({change.source})"
    yield click.style(f"{indent}{_SIGNS[change.operation]} {text}", fg=_COLOURS[change.operation])
    if change.operation is DiffOperation.ADDED:
        for field, value in change.content.items():
            yield f"{indent}    {field}: {_shown(field, value)}"
    for field_change in change.fields:
        yield f"{indent}    {_describe_change(field_change)}"


def _describe_change(change: FieldChange) -> str:
    before = click.style(_shown(change.field, change.before), fg="red")
    after = click.style(_shown(change.field, change.after), fg="green")
    return f"{change.field}: {before} -> {after}"


def _describe_condition(when: Any) -> str:
    from headgate.gateway.table.condition_text import describe  # the gateway's words for it, and its imports

    return describe(_CONDITION.validate_python(when))


def _shown(field: str, value: Any) -> str:
    if field == "backends" and isinstance(value, list):
        return ", ".join(map(_backend, value)) or "none"
    if field == "endpoints" and isinstance(value, list):
        return ", ".join(f"{one['address']}:{one['port']}" for one in value[:8]) + (", ..." if len(value) > 8 else "")
    if value is None or value == "":
        return "-"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN_VALUE else text[: _SHOWN_VALUE - 3] + "..."


def _backend(backend: Any) -> str:
    weight = backend.get("weight", 1)
    return f"{backend['upstream']}" if weight == 1 else f"{backend['upstream']} (weight {weight})"
