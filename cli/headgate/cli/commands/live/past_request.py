"""One request of the past: what a console has heard of it."""

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from headgate.cli.running.console import find_console
from headgate.cli.terminal.errors import CommandError, UsageMistake


def find_request(request_id: str, server: str, nats_url: str, data_dir: Path, table: str) -> dict[str, Any]:
    """Return a request that failed or was refused, as the API's `/failed` says it.

    Raises:
        UsageMistake: there is no console to ask.
        CommandError: the console does not know the request.
    """
    console = find_console(server, nats_url, data_dir, table)
    if console is None:
        raise UsageMistake("--request-id needs a console, which hears of failed requests: --server URL")
    for found in console.items("/failed", request_id=request_id):
        return dict(found)
    raise CommandError(
        f"the console at {console.url} knows no request {request_id!r}: it keeps some thousands that failed or were "
        f"refused since it runs; for others: headgate tail --request-id {request_id}"
    )


def print_request(request: Mapping[str, Any]) -> None:
    """Print what became of a request."""
    at = datetime.fromtimestamp(request["at"]).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    click.echo(f"{request['method']} {request['host']}{request['path']}   ({request['request_id']}, {at})")
    click.echo(f"from {request['client']} to {request['route'] or 'no route'}")
    for number, attempt in enumerate(request["attempts"], 1):
        whom, outcome = attempt["endpoint"] or "no endpoint", attempt["outcome"]
        click.echo(f"  attempt {number}: {whom} {_OUTCOMES.get(outcome, f'answered {outcome}')}, {_after(attempt)}")
    whose = f"from {request['endpoint']}" if request["endpoint"] and not request["reason"] else "from the gateway"
    click.echo(click.style(f"{request['status'] or 'no answer'} {whose}, after {request['seconds']:.3f} s", bold=True))
    if request["reason"]:
        click.echo(f"because {request['reason']}")
    click.echo("\nAs it would be now, by method, host and path:")


_OUTCOMES = {
    "connect": "did not take the connection",
    "closed": "closed the connection",
    "invalid": "answered with what is not HTTP",
    "timeout": "did not answer in time",
}


def _after(attempt: Mapping[str, Any]) -> str:
    return f"{attempt['after_s'] * 1000:.1f} ms after the request came"
