"""`headgate rollback` and `headgate unpin`: back to an old revision, and forward again."""

from pathlib import Path

import click

from headgate.cli.running.changing import (
    dry_run_option,
    make_request,
    report_done,
    request_options,
)
from headgate.cli.running.store import ask_stores, store_options
from headgate.cli.terminal.group import TeachingCommand
from headgate.operations.changing import rollback as operations


@click.command(
    cls=TeachingCommand,
    examples=[
        "headgate rollback HEAD~1 --reason 'checkout answers 404'",
        "headgate rollback 57 --dry-run",
        "headgate rollback 57 --frozen     # its endpoints too",
        "headgate rollback HEAD            # freeze: nothing but endpoints changes before `headgate unpin`",
    ],
    read_more="docs/history.md",
)
@click.argument("revision")
@click.option("--frozen", is_flag=True, help="Keep the revision's endpoints too, instead of following those of today.")
@dry_run_option
@request_options
@store_options
def rollback(
    revision: str,
    frozen: bool,
    reason: str,
    by: str,
    dry_run: bool,
    nats_url: str,
    data_dir: Path,
    table: str,
    as_json: bool,
) -> int:
    """Pin the table to an old revision: serve its routes, certificates and policies until `headgate unpin`.

    Endpoints are those of today, also while the table is pinned: the pods of yesterday are gone. Changes of other
    objects are still read and listed by `headgate history`, and wait. The pin survives restarts of all services.
    """
    request = make_request(by, reason)
    done = ask_stores(
        nats_url,
        data_dir,
        lambda stores: operations.roll_back(stores, table, revision, request, is_frozen=frozen, dry_run=dry_run),
    )
    return report_done(done, table, as_json)


@click.command(
    cls=TeachingCommand,
    examples=["headgate diff pinned live     # what it will change", "headgate unpin --reason 'fixed in 1.4.2'"],
    read_more="docs/history.md",
)
@dry_run_option
@request_options
@store_options
def unpin(reason: str, by: str, dry_run: bool, nats_url: str, data_dir: Path, table: str, as_json: bool) -> int:
    """Serve the live table again: what the objects of all clusters say now, with every change that waited."""
    request = make_request(by, reason)
    done = ask_stores(nats_url, data_dir, lambda stores: operations.unpin(stores, table, request, dry_run=dry_run))
    return report_done(done, table, as_json)
