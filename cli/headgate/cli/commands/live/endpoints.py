"""`headgate endpoints`: which endpoints get no requests, and why."""

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from headgate.cli.commands.live.hearing import beside, hear
from headgate.cli.running.console import Console, find_console, server_option
from headgate.cli.running.store import ask_stores, store_options
from headgate.cli.terminal.errors import ExitCode, UsageMistake
from headgate.cli.terminal.group import TeachingCommand
from headgate.cli.terminal.rendering import print_json, print_table
from headgate.common.stores.opening import Stores
from headgate.common.table import TableEntry
from headgate.common.traffic import INTERVAL_S, TrafficSummary
from headgate.operations.tables.endpoints import EndpointLine, lines_of
from headgate.operations.tables.entries import read_published

LISTENS_S = INTERVAL_S + 0.3
"""In which every worker that has something to say has said it."""


@click.command(
    cls=TeachingCommand,
    examples=[
        "headgate endpoints                       # those that get no requests",
        "headgate endpoints local/shop/cart:80    # all of one upstream",
        "headgate endpoints --all --json | jq -r '.endpoints[] | [.state, .endpoint] | @tsv'",
    ],
    read_more="docs/health.md",
)
@click.argument("upstream", default="", metavar="[UPSTREAM]")
@click.option("--all", "shows_all", is_flag=True, help="List those that get requests, too.")
@server_option
@store_options
def endpoints(
    upstream: str, shows_all: bool, server: str, nats_url: str, data_dir: Path, table: str, as_json: bool
) -> int:
    """List endpoints that get no requests: not ready, unhealthy by active checks, or ejected as requests failed.

    With UPSTREAM, as `headgate routes` names it, all of its endpoints are listed. Gateways say each second which
    endpoints they keep from requests, since when, until when, and what the last error was. The exit code is 1 if there
    is one.
    """
    console = find_console(server, nats_url, data_dir, table)
    if console is not None:
        version, found = _of_console(console, upstream)
    else:
        version, found = _of_stores(nats_url, data_dir, table)
    if upstream:
        found = [line for line in found if line.upstream == upstream]
        if not found:
            raise UsageMistake(f"the table {table!r} has no endpoints of {upstream!r}: see `headgate routes` for names")
    shown = found if upstream or shows_all else [line for line in found if not line.is_fit]
    if as_json:
        print_json({"table": table, "version": version, "endpoints": [_as_document(line) for line in shown]})
    else:
        now = datetime.now(UTC)
        if shown:
            headings = ("UPSTREAM", "ENDPOINT", "STATE", "SINCE", "UNTIL", "WORKERS", "LAST ERROR")
            print_table(headings, [tuple(_cells(line, now)) for line in shown])
        fit = sum(line.is_fit for line in found)
        click.echo(f"{fit:,} of {len(found):,} endpoints get requests")
    return ExitCode.OK if all(line.is_fit for line in found) else ExitCode.NEGATIVE


def _of_console(console: Console, upstream: str) -> tuple[str, list[EndpointLine]]:
    version = console.ask("/now")["revision"] or ""
    return version, [EndpointLine(**item) for item in console.items("/endpoints", upstream=upstream)]


def _of_stores(nats_url: str, data_dir: Path, table: str) -> tuple[str, list[EndpointLine]]:
    told: list[TrafficSummary] = []

    async def read(stores: Stores) -> tuple[str, list[TableEntry]]:
        found = await read_published(stores.snapshots, table, frozenset({"upstreams"}))
        await asyncio.sleep(LISTENS_S)
        return found

    async def ask(stores: Stores) -> tuple[str, list[TableEntry]]:
        return await beside(hear(stores, table, told.append), read(stores))

    version, entries = ask_stores(nats_url, data_dir, ask)
    return version, lines_of(entries, told)


def _cells(line: EndpointLine, now: datetime) -> Iterator[str]:
    yield line.upstream
    yield line.endpoint
    yield line.state
    yield f"{_span(now.timestamp() - line.since)} ago" if line.since else "-"
    yield f"in {_span(line.until - now.timestamp())}" if line.until else "-"
    yield str(line.workers or "-")
    yield line.error or "-"


def _span(seconds: float) -> str:
    whole = max(0, round(seconds))
    return f"{whole} s" if whole < 120 else f"{whole // 60} min" if whole < 7200 else f"{whole // 3600} h"


def _as_document(line: EndpointLine) -> dict[str, Any]:
    at = {name: _moment(seconds) for name, seconds in (("since", line.since), ("until", line.until))}
    return {**line._asdict(), **at}


def _moment(seconds: float) -> str | None:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds") if seconds else None
