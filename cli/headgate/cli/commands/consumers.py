"""`headgate consumers`: whom the routes of a table can recognise, without anything that is secret."""

from collections.abc import Iterable
from pathlib import Path

import click

from headgate.cli.running.store import ask_stores, store_options
from headgate.cli.terminal.group import TeachingCommand
from headgate.cli.terminal.rendering import print_json, print_table
from headgate.operations.tables.consumers import lines_of
from headgate.operations.tables.entries import read_published


@click.command(
    cls=TeachingCommand,
    examples=["headgate consumers", "headgate consumers --json | jq '.consumers[].name'"],
    read_more="docs/consumers.md",
)
@store_options
def consumers(nats_url: str, data_dir: Path, table: str, as_json: bool) -> None:
    """List the consumers of the published table, with the plugins that recognise them and their own plugins."""
    version, entries = ask_stores(
        nats_url, data_dir, lambda stores: read_published(stores.snapshots, table, frozenset({"consumers"}))
    )
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


def _joined(names: Iterable[str]) -> str:
    return ", ".join(names) or "-"
