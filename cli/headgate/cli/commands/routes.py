"""`headgate routes`: what is served, one line for each route and backend."""

from pathlib import Path

import click

from headgate.cli.running.store import ask_stores, store_options
from headgate.cli.terminal.group import TeachingCommand
from headgate.cli.terminal.rendering import print_json, print_table
from headgate.common.table import OWN_LISTENERS
from headgate.operations.tables.entries import read_published
from headgate.operations.tables.routes import RouteLine, lines_of


@click.command(
    cls=TeachingCommand,
    examples=[
        "headgate routes",
        "headgate routes --host demo.localhost",
        "headgate routes --json | jq '.routes[].host'",
    ],
    read_more="docs/cli.md",
)
@click.option("--host", default="", show_default=False, metavar="HOST", help="Only this virtual host.")
@store_options
def routes(host: str, nats_url: str, data_dir: Path, table: str, as_json: bool) -> None:
    """List the routes of the published table, with their backends and the objects that they come from."""
    version, entries = ask_stores(nats_url, data_dir, lambda stores: read_published(stores.snapshots, table))
    lines = [line for line in lines_of(entries) if host in ("", line.host)]
    if as_json:
        print_json({"table": table, "version": version, "routes": [line._asdict() for line in lines]})
        return
    shows_listeners = any(line.listeners for line in lines)
    print_table(
        ("HOST", "PATH", "TYPE", "BACKEND", "READY", "SOURCE", *(["LISTENERS"] if shows_listeners else [])),
        (
            (
                *(line.host, line.path, line.type, _backend(line), _ready(line), line.source),
                *([_listeners(line)] if shows_listeners else []),
            )
            for line in lines
        ),
    )


def _backend(line: RouteLine) -> str:
    return line.backend if line.weight == 1 else f"{line.backend} (weight {line.weight})"


def _ready(line: RouteLine) -> str:
    return f"{line.ready}/{line.endpoints}" if not line.unavailable else f"503: {line.unavailable}"


def _listeners(line: RouteLine) -> str:
    return ", ".join(line.listeners or OWN_LISTENERS)
