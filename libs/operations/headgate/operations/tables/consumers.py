"""The consumers of a table, without anything that is secret."""

from collections.abc import Iterable
from typing import NamedTuple

from headgate.common.table import Consumer, TableEntry


class ConsumerLine(NamedTuple):
    """One consumer."""

    name: str
    group: str
    credentials: tuple[str, ...]
    """Plugins that recognise it."""
    plugins: tuple[str, ...]
    """For its requests."""
    source: str


def lines_of(entries: Iterable[TableEntry]) -> list[ConsumerLine]:
    """Return the lines of a table, sorted by name."""
    found = sorted((entry for entry in entries if isinstance(entry, Consumer)), key=lambda each: (each.name, each.key))
    return [
        ConsumerLine(
            name=consumer.name,
            group=consumer.group,
            credentials=tuple(each.use.name for each in consumer.credentials),
            plugins=tuple(use.name for use in consumer.plugins),
            source=str(consumer.provenance),
        )
        for consumer in found
    ]
