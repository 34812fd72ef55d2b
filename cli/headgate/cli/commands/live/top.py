"""`headgate top`: what traffic there is, as all workers say it each second."""

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from headgate.cli.commands.live.hearing import beside, hear
from headgate.cli.running.store import ask_stores, store_options
from headgate.cli.terminal.group import TeachingCommand
from headgate.cli.terminal.rendering import print_json, print_table
from headgate.common.stores.opening import Stores
from headgate.common.traffic import CLASSES, Counts
from headgate.operations.traffic.window import Grouping, Order, TrafficLine, TrafficReport, TrafficWindow

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
@store_options
def top(
    grouping: str,
    order: str,
    limit: int,
    window: float,
    once: bool,
    for_s: float | None,
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
    heard = TrafficWindow(window if is_live else listens_s)
    grouped, ordered = Grouping(grouping), Order(order)

    async def show(stores: Stores) -> int:
        while is_live:
            await asyncio.sleep(1.0)
            click.echo(_FROM_THE_TOP, nl=False)
            _print(heard.report(grouped, ordered), grouped, limit)
        await asyncio.sleep(listens_s)
        return len({beat.replica for beat in await stores.heartbeats.live() if beat.table == table})

    async def listen(stores: Stores) -> int:
        return await beside(hear(stores, table, heard.note), show(stores))

    replicas = ask_stores(nats_url, data_dir, listen, answer_s=None)
    report = heard.report(grouped, ordered)
    if as_json:
        print_json(_document(report, grouped, table, limit))
        return
    _print(report, grouped, limit)
    if not report.workers:
        click.echo(
            f"no requests in {listens_s:g} s"
            if replicas
            else f"no gateway serves the table {table!r}: `headgate status` says what runs"
        )


def _print(report: TrafficReport, grouping: Grouping, limit: int) -> None:
    whole = TrafficLine("", "", report.all)
    click.echo(
        f"{_rate(whole, report)} requests/s, {_share(whole)} failed, p50 {_ms(whole, 0.5)}, p99 {_ms(whole, 0.99)}, "
        f"{_size(whole.counts.sent / report.seconds)}/s sent; {report.workers} workers in {report.seconds:.0f} s"
    )
    if report.lines:
        headings = (*_SUMMED_UP[grouping], "REQ/S", "FAILED", "4XX", "P50", "P99", "SENT/S")
        print_table(headings, [tuple(_cells(line, report, grouping)) for line in report.lines[:limit]])
    hidden = len(report.lines) - limit
    if hidden > 0:
        click.echo(f"and {hidden:,} further lines: --limit N shows more")
    if report.others.requests:
        click.echo(f"and {report.others.requests / report.seconds:,.1f} requests/s of further routes, not told by name")


def _cells(line: TrafficLine, report: TrafficReport, grouping: Grouping) -> Iterator[str]:
    yield line.name or "(no route)"
    if grouping is Grouping.ROUTE:
        yield line.upstream
    yield _rate(line, report)
    yield _share(line)
    yield f"{line.counts.answers[4] / report.seconds:,.1f}"
    yield _ms(line, 0.5)
    yield _ms(line, 0.99)
    yield _size(line.counts.sent / report.seconds)


def _rate(line: TrafficLine, report: TrafficReport) -> str:
    return f"{line.counts.requests / report.seconds:,.1f}"


def _share(line: TrafficLine) -> str:
    return f"{100 * line.failed / (line.counts.requests or 1):.1f}%"


def _ms(line: TrafficLine, share: float) -> str:
    milliseconds = line.percentile_ms(share)
    return f"{milliseconds / 1000:.1f} s" if milliseconds >= 1000 else f"{milliseconds:.3g} ms"


def _size(size: float) -> str:
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} GB"


def _document(report: TrafficReport, grouping: Grouping, table: str, limit: int) -> dict[str, Any]:
    return {
        "table": table,
        "seconds": round(report.seconds, 3),
        "workers": report.workers,
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
