"""`headgate consumers`: whom the routes of a table can recognise, without anything that is secret."""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import click

from headgate.cli.running.store import ask_stores, current_manifest, store_options
from headgate.cli.terminal.group import TeachingCommand
from headgate.cli.terminal.rendering import print_json, print_table
from headgate.common.stores.opening import Stores
from headgate.common.stores.reading import read_entries
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


@click.command(
    cls=TeachingCommand,
    examples=["headgate consumers", "headgate consumers --json | jq '.consumers[].name'"],
    read_more="docs/consumers.md",
)
@store_options
def consumers(nats_url: str, data_dir: Path, table: str, as_json: bool) -> None:
    """List the consumers of the published table: by what they are recognised, and which plugins are theirs."""
    version, entries = ask_stores(nats_url, data_dir, lambda stores: _read(stores, table))
    lines = lines_of(entries)
    if as_json:
        print_json({"table": table, "version": version, "consumers": [line._asdict() for line in lines]})
        return
    print_table(
        ("NAME", "GROUP", "RECOGNISED BY", "PLUGINS", "SOURCE"),
        (
            (line.name, line.group or "-", _joined(line.credentials), _joined(line.plugins), line.source)
            for line in lines
        ),
    )


async def _read(stores: Stores, table: str) -> tuple[str, list[TableEntry]]:
    _, manifest = await current_manifest(stores.snapshots, table)
    names = [name for name in manifest.chunks if name.kind == "consumers"]
    return str(manifest.version), await read_entries(stores.snapshots, names)


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


def _joined(names: Iterable[str]) -> str:
    return ", ".join(names) or "-"
