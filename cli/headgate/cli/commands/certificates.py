"""`headgate certificates`: when the certificates of a table end, and which hosts they are presented for."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import click

from headgate.cli.running.expiry import time_left
from headgate.cli.running.store import ask_stores, current_manifest, store_options
from headgate.cli.terminal.errors import ExitCode, UsageMistake
from headgate.cli.terminal.group import TeachingCommand
from headgate.cli.terminal.moments import parse_span
from headgate.cli.terminal.rendering import print_json, print_table
from headgate.common.stores.opening import Stores
from headgate.common.stores.reading import read_entries
from headgate.common.table import Certificate, TableEntry


class CertificateLine(NamedTuple):
    """One certificate."""

    secret: str
    """`NAMESPACE/NAME`."""
    cluster: str
    hosts: tuple[str, ...]
    """That it is presented for."""
    not_after: str
    """RFC 3339; empty: not known."""
    left: timedelta | None
    """Negative after its end."""


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
    help="Only those that have ended or end within so long: 30d, 12h, 2w.",
)
@store_options
def certificates(expiring: str, nats_url: str, data_dir: Path, table: str, as_json: bool) -> int:
    """List the certificates of the published table, the one that ends first on top: hosts, end, Secret, cluster.

    Exit code 1 if one has ended, or, with --expiring, if any is listed.
    """
    span = parse_span(expiring) if expiring else None
    if expiring and span is None:
        raise UsageMistake(f"--expiring {expiring!r}: give a span such as 12h, 30d or 2w")
    version, entries = ask_stores(nats_url, data_dir, lambda stores: _read(stores, table))
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


async def _read(stores: Stores, table: str) -> tuple[str, list[TableEntry]]:
    _, manifest = await current_manifest(stores.snapshots, table)
    names = [name for name in manifest.chunks if name.kind == "certificates"]
    return str(manifest.version), await read_entries(stores.snapshots, names)


def lines_of(entries: Iterable[TableEntry], now: datetime) -> list[CertificateLine]:
    """Return the lines of a table, the certificate that ends first on top, unknown ends last."""
    lines = [
        CertificateLine(
            secret=f"{one.provenance.namespace}/{one.provenance.name}",
            cluster=one.provenance.cluster,
            hosts=one.server_names,
            not_after=one.not_after,
            left=time_left(one, now),
        )
        for one in entries
        if isinstance(one, Certificate)
    ]
    return sorted(lines, key=lambda line: (line.left is None, line.left or timedelta(), line.cluster, line.secret))


def as_document(line: CertificateLine) -> dict[str, Any]:
    """Return a line as JSON data."""
    known = {name: value for name, value in line._asdict().items() if name != "left"}
    return {**known, "left_s": None if line.left is None else int(line.left.total_seconds())}


def _left(line: CertificateLine) -> str:
    if line.left is None:
        return "?"
    if line.left < timedelta():
        return f"ended {-line.left.total_seconds() / 86_400:.0f}d ago"
    days = line.left.days
    return f"{days}d" if days else f"{line.left.seconds // 3600}h"


def _hosts(line: CertificateLine) -> str:
    return ", ".join(line.hosts) or "-"
