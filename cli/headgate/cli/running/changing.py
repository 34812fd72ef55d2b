"""What commands have in common that change what a table serves: who wants it, what it did, whether gateways have it."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, NamedTuple, TypeVar

import click

from headgate.cli.terminal.diff_text import print_diff, summary
from headgate.cli.terminal.errors import CommandError, ExitCode
from headgate.cli.terminal.people import current_user
from headgate.cli.terminal.rendering import print_json
from headgate.common.errors import Conflict, DecodeError, NotFound
from headgate.common.heartbeats import Heartbeat
from headgate.common.snapshot import Manifest, Version
from headgate.common.stores.opening import Stores
from headgate.common.table_diff import TableDiff
from headgate.operations.tables.differences import compare_images
from headgate.operations.tables.revisions import Image
from headgate.operations.wording import count_of
from headgate.translator.serving.manual_commits import ChangeRequest, NothingToDo

APPLIED_S = 10.0
"""Gateways apply a revision within milliseconds; one that has not after so long is named."""
_POLL_S = 0.05


class Done(NamedTuple):
    """What was done, or would be."""

    version: Version | None
    """The new revision; None for a dry run."""
    difference: TableDiff
    """Between what was served before and after."""
    before: str
    after: str
    notes: Sequence[str] = ()
    behind: Sequence[str] = ()
    """Gateway workers that have not applied it in time."""
    gateways: int = 0


Command = TypeVar("Command", bound=Callable[..., Any])


def wish_options(command: Command) -> Command:
    """Add the flags that say who wants it and why."""
    for option in (
        click.option("--by", default="", show_default=False, metavar="NAME", help="Who you are; default: USER@HOST."),
        click.option(
            "--reason", default="", show_default=False, metavar="TEXT", help="Why; shown by history and status."
        ),
    ):
        command = option(command)
    return command


def dry_run_option(command: Command) -> Command:
    """Add the flag to change nothing."""
    text = "Say what would be served differently and change nothing."
    return click.option("--dry-run", is_flag=True, help=text)(command)


@contextmanager
def told(what_not: str) -> Iterator[None]:
    """Say in a line why it was not done."""
    try:
        yield
    except NothingToDo as error:
        raise CommandError(str(error)) from error
    except (Conflict, NotFound, DecodeError) as error:
        raise CommandError(f"{what_not}: {error}") from error


async def greatest_served(stores: Stores, table: str) -> Version | None:
    """Return the greatest version that a gateway serves; has to be asked before anything of the store.

    A pointer that is read later is older than one of them only if the store went back.
    """
    served = [beat.version for beat in await stores.heartbeats.live() if beat.table == table and beat.version]
    return max(served, default=None)


def make_request(by: str, reason: str) -> ChangeRequest:
    """Return who wants it, now."""
    return ChangeRequest(by or current_user(), datetime.now(UTC), reason)


async def finish(stores: Stores, served: Image, manifest: Manifest, after: str, notes: Sequence[str]) -> Done:
    """Compare, and wait until the gateways have applied it."""
    now = Image(after, manifest.chunks, manifest)
    difference = await compare_images(stores.snapshots, served, now)
    beats = await _wait_for_gateways(stores, manifest)
    behind = [f"{beat.replica}/{beat.worker}" for beat in beats if not _has_applied(beat, manifest)]
    return Done(manifest.version, difference, served.label, after, notes, behind, len(beats))


async def _wait_for_gateways(stores: Stores, manifest: Manifest) -> list[Heartbeat]:
    end = asyncio.get_running_loop().time() + APPLIED_S
    while True:
        beats = [beat for beat in await stores.heartbeats.live() if beat.table == manifest.table]
        if all(_has_applied(beat, manifest) for beat in beats) or asyncio.get_running_loop().time() > end:
            return beats
        await asyncio.sleep(_POLL_S)


def _has_applied(beat: Heartbeat, manifest: Manifest) -> bool:
    return beat.version is not None and beat.version >= manifest.version


def report_done(done: Done, table: str, as_json: bool) -> int:
    """Say it; return the exit code."""
    if as_json:
        print_json(
            {
                "table": table,
                "revision": done.version and str(done.version),
                "notes": [*done.notes],
                "gateways": done.gateways,
                "behind": [*done.behind],
                "counts": done.difference.counts,
                "changes": [
                    change.model_dump(mode="json", exclude_defaults=True) for change in done.difference.changes
                ],
            }
        )
    elif done.version is None:
        print_diff(done.difference, f"table {table}: {done.before}", done.after)
    else:
        click.echo(f"table {table} serves {done.after}, as revision {done.version}: {summary(done.difference)}")
        for note in done.notes:
            click.echo(note)
        click.echo(_describe_gateways(done))
    return ExitCode.NEGATIVE if done.behind else ExitCode.OK


def _describe_gateways(done: Done) -> str:
    if not done.gateways:
        return "no gateway is running"
    if done.behind:
        return f"not applied within {APPLIED_S:g} s by {', '.join(done.behind)}; `headgate status` says more"
    return f"applied by {count_of(done.gateways, 'gateway worker')}"
