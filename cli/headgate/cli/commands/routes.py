"""`headgate routes`: what is served, one line for each route and backend."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import click

from headgate.cli.running.store import ask_stores, current_manifest, store_options
from headgate.cli.terminal.group import TeachingCommand
from headgate.cli.terminal.rendering import print_json, print_table
from headgate.common.stores.opening import Stores
from headgate.common.stores.reading import read_entries
from headgate.common.table import Route, TableEntry, Upstream, VirtualHost


class RouteLine(NamedTuple):
    """One backend of one route."""

    host: str
    path: str
    type: str
    backend: str
    weight: int
    ready: int
    """Endpoints that are ready."""
    endpoints: int
    unavailable: str
    """Why the backend answers 503; empty if it does not."""
    source: str


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
    version, entries = ask_stores(nats_url, data_dir, lambda stores: _read(stores, table))
    lines = [line for line in lines_of(entries) if host in ("", line.host)]
    if as_json:
        print_json({"table": table, "version": version, "routes": [line._asdict() for line in lines]})
        return
    print_table(
        ("HOST", "PATH", "TYPE", "BACKEND", "READY", "SOURCE"),
        ((line.host, line.path, line.type, _backend(line), _ready(line), line.source) for line in lines),
    )


async def _read(stores: Stores, table: str) -> tuple[str, list[TableEntry]]:
    _, manifest = await current_manifest(stores.snapshots, table)
    return str(manifest.version), await read_entries(stores.snapshots, manifest.chunks)


def lines_of(entries: Iterable[TableEntry]) -> list[RouteLine]:
    """Return the lines of a table, sorted by host, each host's routes in the order in which they win."""
    entries = list(entries)
    upstreams = {entry.key: entry for entry in entries if isinstance(entry, Upstream)}
    hosts = sorted((entry for entry in entries if isinstance(entry, VirtualHost)), key=lambda each: each.host)
    return [line for host in hosts for route in host.routes for line in _lines(host, route, upstreams)]


def _lines(host: VirtualHost, route: Route, upstreams: Mapping[str, Upstream]) -> Iterator[RouteLine]:
    for backend in route.backends:
        upstream = upstreams.get(backend.upstream)
        endpoints = upstream.endpoints if upstream else ()
        yield RouteLine(
            host=host.host,
            path=route.path.value,
            type=route.path.type.value,
            backend=backend.upstream,
            weight=backend.weight,
            ready=sum(endpoint.ready for endpoint in endpoints),
            endpoints=len(endpoints),
            unavailable=(upstream.unavailable or "") if upstream else "not in the table",
            source=str(route.provenance),
        )


def _backend(line: RouteLine) -> str:
    return line.backend if line.weight == 1 else f"{line.backend} (weight {line.weight})"


def _ready(line: RouteLine) -> str:
    return f"{line.ready}/{line.endpoints}" if not line.unavailable else f"503: {line.unavailable}"
