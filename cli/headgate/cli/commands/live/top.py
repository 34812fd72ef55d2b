"""`headgate top`: what traffic there is, as all workers say it each second."""

import asyncio
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from headgate.cli.commands.live.hearing import beside, hear
from headgate.cli.running.console import Console, find_console, server_option
from headgate.cli.running.store import ask_stores, store_options
from headgate.cli.terminal.group import TeachingCommand
from headgate.cli.terminal.rendering import print_json, print_table
from headgate.common.stores.opening import Stores
from headgate.common.traffic import CLASSES, Counts
from headgate.operations.traffic.window import Grouping, Order, TrafficLine, TrafficReport, TrafficWindow

Document = dict[str, Any]
_WINDOW_S, _ONCE_S = 10.0, 2.0
_LINES = 20
_FROM_THE_TOP = "\x1b[H\x1b[J"
"""Has a terminal begin again at its first line, and forget what was below."""
_SUMMED_UP = {
    Grouping.ROUTE: ("ROUTE", "UPSTREAM"),
    Grouping.HOST: ("HOST",),
    Grouping.ENDPOINT: ("ENDPOINT",),
}


@click.command(
    cls=TeachingCommand,
    examples=[
        "headgate top                          # routes with the most requests, live",
        "headgate top --by p99                 # the slowest",
        "headgate top --host --by errors       # hosts with the most failures",
        "headgate top --endpoint --once",
        "headgate top --for 30 --json | jq '.lines[0]'",
    ],
    read_more="docs/top.md",
)
@click.option("--route", "grouping", flag_value="route", default=True, help="A line for each route and upstream.")
@click.option("--host", "grouping", flag_value="host", help="A line for each host.")
@click.option("--endpoint", "grouping", flag_value="endpoint", help="A line for each endpoint.")
@click.option(
    "--by", "order", type=click.Choice([each.value for each in Order]), default="requests", help="What comes first."
)
@click.option("--limit", type=click.IntRange(1), default=_LINES, metavar="N", help="Greatest number of lines.")
@click.option(
    "--window", type=click.FloatRange(1, 900), default=_WINDOW_S, metavar="SECONDS", help="Time that is added up."
)
@click.option("--once", is_flag=True, help=f"Listen for {_ONCE_S:g} seconds, print, and end.")
@click.option(
    *("--for", "for_s"), type=click.FloatRange(1, 900), metavar="SECONDS", help="Listen for so long, print, and end."
)
@server_option
@store_options
def top(
    grouping: str,
    order: str,
    limit: int,
    window: float,
    once: bool,
    for_s: float | None,
    server: str,
    nats_url: str,
    data_dir: Path,
    table: str,
    as_json: bool,
) -> None:
    """Show what traffic there is now: requests a second, failures and durations, added up over all replicas.

    On a terminal the picture is drawn anew each second, until Ctrl-C. Otherwise, and with --once, --for or --json, it
    is printed once. Failures are answers of 500 and above. Durations are counted in buckets, ten to a factor of ten,
    and percentiles are right within the width of one.
    """
    is_live = not once and for_s is None and not as_json and sys.stdout.isatty()
    listens_s = for_s or _ONCE_S
    grouped, ordered = Grouping(grouping), Order(order)
    console = None if for_s or window != _WINDOW_S else find_console(server, nats_url, data_dir, table)
    if console is not None:
        replicas = _show_console(console, grouped, ordered, limit, is_live=is_live)
        document = _of_console(console, grouped, ordered, limit)
    else:
        heard = TrafficWindow(window if is_live else listens_s)

        async def show(stores: Stores) -> int:
            while is_live:
                await asyncio.sleep(1.0)
                click.echo(_FROM_THE_TOP, nl=False)
                _print(_document(heard.report(grouped, ordered), grouped, table, limit), grouped)
            await asyncio.sleep(listens_s)
            return len({beat.replica for beat in await stores.heartbeats.live() if beat.table == table})

        async def listen(stores: Stores) -> int:
            return await beside(hear(stores, table, heard.note), show(stores))

        replicas = ask_stores(nats_url, data_dir, listen, answer_s=None)
        document = _document(heard.report(grouped, ordered), grouped, table, limit)
    if as_json:
        print_json(document)
        return
    _print(document, grouped)
    if not document["workers"]:
        click.echo(
            f"no requests in {document['seconds']:g} s"
            if replicas
            else f"no gateway serves the table {table!r}: `headgate status` says what runs"
        )


def _show_console(console: Console, grouping: Grouping, order: Order, limit: int, *, is_live: bool) -> int:
    """Draw the picture each second, if it is live; return how many workers there are."""
    while is_live:
        click.echo(_FROM_THE_TOP, nl=False)
        _print(_of_console(console, grouping, order, limit), grouping)
        time.sleep(1.0)
    return int(console.ask("/fleet", limit=1)["total"])


def _of_console(console: Console, grouping: Grouping, order: Order, limit: int) -> Document:
    """Return what a console has heard in its last seconds."""
    said = console.ask("/traffic", of=grouping.value, by=order.value, limit=min(limit, 1000))
    del said["next"]
    lines = [{grouping.value: line.pop("name"), **line} for line in said.pop("items")]
    return {"table": console.ask("/now")["table"], **said, "lines": lines}


def _print(document: Document, grouping: Grouping) -> None:
    seconds, whole, others = document["seconds"], document["all"], document["others"]
    click.echo(
        f"{_rate(whole, seconds)} requests/s, {_share(whole)} failed, p50 {_ms(whole['p50_ms'])}, "
        f"p99 {_ms(whole['p99_ms'])}, {_size(whole['bytes_sent'] / seconds)}/s sent; "
        f"{document['workers']} workers in {seconds:.0f} s"
    )
    if document["lines"]:
        headings = (*_SUMMED_UP[grouping], "REQ/S", "FAILED", "4XX", "P50", "P99", "SENT/S")
        print_table(headings, [tuple(_cells(line, seconds, grouping)) for line in document["lines"]])
    hidden = document["total"] - len(document["lines"])
    if hidden > 0:
        click.echo(f"and {hidden:,} further lines: --limit N shows more")
    if others["requests"]:
        click.echo(f"and {_rate(others, seconds)} requests/s of further routes, not told by name")


def _cells(line: Document, seconds: float, grouping: Grouping) -> Iterator[str]:
    yield line[grouping.value] or "(no route)"
    if grouping is Grouping.ROUTE:
        yield line["upstream"]
    yield _rate(line, seconds)
    yield _share(line)
    yield f"{line['answers']['4xx'] / seconds:,.1f}"
    yield _ms(line["p50_ms"])
    yield _ms(line["p99_ms"])
    yield _size(line["bytes_sent"] / seconds)


def _rate(line: Document, seconds: float) -> str:
    return f"{line['requests'] / seconds:,.1f}"


def _share(line: Document) -> str:
    return f"{100 * line['answers']['5xx'] / (line['requests'] or 1):.1f}%"


def _ms(milliseconds: float) -> str:
    return f"{milliseconds / 1000:.1f} s" if milliseconds >= 1000 else f"{milliseconds:.3g} ms"


def _size(size: float) -> str:
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} GB"


def _document(report: TrafficReport, grouping: Grouping, table: str, limit: int) -> Document:
    return {
        "table": table,
        "seconds": round(report.seconds, 3),
        "workers": report.workers,
        "total": len(report.lines),
        "all": _as_document(report.all, report),
        "others": _as_document(report.others, report),
        "lines": [
            {
                grouping.value: line.name,
                **({"upstream": line.upstream} if grouping is Grouping.ROUTE else {}),
                **_as_document(line.counts, report),
            }
            for line in report.lines[:limit]
        ],
    }


def _as_document(counts: Counts, report: TrafficReport) -> dict[str, Any]:
    line = TrafficLine("", "", counts)
    return {
        "requests": counts.requests,
        "requests_per_second": round(counts.requests / report.seconds, 3),
        "answers": dict(zip(CLASSES, counts.answers, strict=True)),
        "p50_ms": round(line.percentile_ms(0.5), 3),
        "p99_ms": round(line.percentile_ms(0.99), 3),
        "bytes_received": counts.received,
        "bytes_sent": counts.sent,
    }
