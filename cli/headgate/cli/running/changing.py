"""Flags and answers of the commands that change what a table serves."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, TypeVar

import click

from headgate.cli.terminal.diff_text import print_diff, summary
from headgate.cli.terminal.errors import ExitCode
from headgate.cli.terminal.people import current_user
from headgate.cli.terminal.rendering import print_json
from headgate.operations.changing import outcome
from headgate.operations.changing.outcome import Done
from headgate.operations.committing.manual import ChangeRequest
from headgate.operations.wording import count_of

Command = TypeVar("Command", bound=Callable[..., Any])


def request_options(command: Command) -> Command:
    """Add the flags for the name of the person and the reason."""
    for option in (
        click.option("--by", default="", show_default=False, metavar="NAME", help="Your name; by default USER@HOST."),
        click.option(
            "--reason", default="", show_default=False, metavar="TEXT", help="Reason, which history and status show."
        ),
    ):
        command = option(command)
    return command


def dry_run_option(command: Command) -> Command:
    """Add the flag to change nothing."""
    text = "Print what would be served differently, and change nothing."
    return click.option("--dry-run", is_flag=True, help=text)(command)


def make_request(by: str, reason: str) -> ChangeRequest:
    """Return a request of the person at the terminal, now."""
    return ChangeRequest(by or current_user(), datetime.now(UTC), reason)


def report_done(done: Done, table: str, as_json: bool) -> int:
    """Print what was done; return the exit code."""
    if as_json:
        print_json(done.as_document(table))
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
        return f"not applied within {outcome.APPLIED_S:g} s by {', '.join(done.behind)}; `headgate status` says more"
    return f"applied by {count_of(done.gateways, 'gateway worker')}"
