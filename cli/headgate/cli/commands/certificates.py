"""`headgate certificates`: when the certificates of a table end, and which hosts they are presented for."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import click

from headgate.cli.running.store import ask_stores, store_options
from headgate.cli.terminal.errors import ExitCode, UsageMistake
from headgate.cli.terminal.group import TeachingCommand
from headgate.cli.terminal.rendering import print_json, print_table
from headgate.operations.moments import parse_span
from headgate.operations.tables.certificates import CertificateLine, as_document, lines_of
from headgate.operations.tables.entries import read_published


@click.command(
    cls=TeachingCommand,
    examples=[
        "headgate certificates",
        "headgate certificates --expiring 30d    # exit code 1 if there is one",
        "headgate certificates --json | jq -r '.certificates[] | [.not_after, .secret] | @tsv'",
    ],
    read_more="docs/cli.md",
)
@click.option(
    "--expiring",
    default="",
    show_default=False,
    metavar="SPAN",
    help="Only certificates that have ended or end within this time: 30d, 12h, 2w.",
)
@store_options
def certificates(expiring: str, nats_url: str, data_dir: Path, table: str, as_json: bool) -> int:
    """List the certificates of the published table, the one that ends first on top: hosts, end, Secret, cluster.

    The exit code is 1 if one has ended or, with --expiring, if any is listed.
    """
    span = parse_span(expiring) if expiring else None
    if expiring and span is None:
        raise UsageMistake(f"--expiring {expiring!r}: give a span such as 12h, 30d or 2w")
    version, entries = ask_stores(
        nats_url, data_dir, lambda stores: read_published(stores.snapshots, table, frozenset({"certificates"}))
    )
    lines = lines_of(entries, datetime.now(UTC))
    if span is not None:
        lines = [line for line in lines if line.left is not None and line.left < span]
    if as_json:
        print_json({"table": table, "version": version, "certificates": [as_document(line) for line in lines]})
    else:
        print_table(
            ("ENDS", "LEFT", "SECRET", "CLUSTER", "HOSTS"),
            ((line.not_after or "?", _left(line), line.secret, line.cluster, _hosts(line)) for line in lines),
        )
    has_ended = any(line.left is not None and line.left < timedelta() for line in lines)
    return ExitCode.NEGATIVE if has_ended or (span is not None and lines) else ExitCode.OK


def _left(line: CertificateLine) -> str:
    if line.left is None:
        return "?"
    if line.left < timedelta():
        return f"ended {-line.left.total_seconds() / 86_400:.0f}d ago"
    days = line.left.days
    return f"{days}d" if days else f"{line.left.seconds // 3600}h"


def _hosts(line: CertificateLine) -> str:
    return ", ".join(line.hosts) or "-"
