"""`headgate events`: the delta log, as it says what happened to which object."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click

from headgate.cli.commands.history import shown_author
from headgate.cli.running.store import ask_stores
from headgate.cli.terminal.errors import UsageMistake
from headgate.cli.terminal.group import TeachingCommand
from headgate.common.resources import ALL_KINDS
from headgate.common.stores import DeltaSelection, LoggedDelta
from headgate.common.stores.opening import Stores
from headgate.operations.errors import InvalidRequest
from headgate.operations.events import EventQuery, as_document, kind_name, read_events
from headgate.operations.moments import FORMS, parse_moment

SHOWN, SHOWN_BEFORE_NEWS = 50, 10
AROUND = timedelta(minutes=1)


@click.command(
    cls=TeachingCommand,
    examples=[
        "headgate events",
        "headgate events -f --kind Ingress --namespace shop",
        "headgate events --at 14:03              # within a minute of it",
        "headgate events --since 15m --json | jq -r '.by' | sort | uniq -c",
        "headgate events --kind Ingress --name web --json --with-objects    # its last versions",
    ],
    read_more="docs/history.md",
)
@click.option("--follow", "-f", is_flag=True, help="Print new events too, until Ctrl-C.")
@click.option(
    "--limit",
    type=click.IntRange(0),
    metavar="N",
    help=f"Greatest number of past events: {SHOWN} by default, {SHOWN_BEFORE_NEWS} with -f, all with --since.",
)
@click.option(
    "--since", default="", show_default=False, metavar="WHEN", help="Only from a time on: 90s, 2h, 14:03, 2026-01-31."
)
@click.option("--until", default="", show_default=False, metavar="WHEN", help="Only up to a time.")
@click.option("--at", default="", show_default=False, metavar="WHEN", help="Only within a minute of a time.")
@click.option("--cluster", default="", show_default=False, metavar="NAME", help="Only objects of this cluster.")
@click.option(
    "--kind", "kinds", multiple=True, metavar="KIND", help="Only objects of this kind, such as Ingress; repeatable."
)
@click.option(
    "--namespace", "-n", default="", show_default=False, metavar="NAME", help="Only objects in this namespace."
)
@click.option("--name", default="", show_default=False, metavar="NAME", help="Only objects of this name.")
@click.option("--with-objects", is_flag=True, help="With --json, print the objects too, as the log has them.")
@click.option(
    "--nats-url",
    default="",
    show_default=False,
    metavar="URL",
    help="NATS server to ask; by default that of `up`, or HEADGATE_NATS_URL.",
)
@click.option(
    *("--data-dir",),
    type=click.Path(path_type=Path),
    default=".headgate",
    metavar="DIR",
    help="Data directory of the `headgate up` to ask.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
def events(
    follow: bool,
    limit: int | None,
    since: str,
    until: str,
    at: str,
    cluster: str,
    kinds: tuple[str, ...],
    namespace: str,
    name: str,
    with_objects: bool,
    nats_url: str,
    data_dir: Path,
    as_json: bool,
) -> None:
    """List what happened to objects, as the watchers saw it: when, what, and who did it as far as is known.

    The log keeps the last few changes of each object, however old, and forgets objects some days after their deletion.
    With --json each change is one line.
    """
    if with_objects and not as_json:
        raise UsageMistake("--with-objects is for --json")
    if (at and (since or until)) or (follow and (at or until)):
        raise UsageMistake("--at and --since or --until exclude each other, and --follow has no end")
    moment = _parse_moment("--at", at)
    begin = moment - AROUND if moment else _parse_moment("--since", since)
    end = moment + AROUND if moment else _parse_moment("--until", until)
    asked = EventQuery(DeltaSelection(cluster, _parse_kinds(kinds), namespace, name), begin, end, limit, with_objects)
    if limit is None and not begin:
        asked = asked._replace(limit=SHOWN_BEFORE_NEWS if follow else SHOWN)

    async def ask(stores: Stores) -> None:
        async for event in read_events(stores.log_reader, asked, follow=follow):
            click.echo(json.dumps(as_document(event)) if as_json else describe(event))

    ask_stores(nats_url, data_dir, ask, answer_s=None)


def _parse_kinds(names: Sequence[str]) -> tuple[tuple[str, str], ...]:
    found: dict[tuple[str, str], None] = {}
    for name in names:
        matches = [(kind.group, kind.resource) for kind in ALL_KINDS if kind.is_called(name)]
        if not matches:
            known = ", ".join(sorted({kind.kind for kind in ALL_KINDS}))
            raise UsageMistake(f"--kind {name!r} is not read by Headgate: give one of {known}")
        found.update(dict.fromkeys(matches))
    return tuple(found)


def _parse_moment(flag: str, text: str) -> datetime | None:
    if not text:
        return None
    try:
        return parse_moment(text, datetime.now(UTC))
    except InvalidRequest:
        raise UsageMistake(f"{flag} {text!r}: give {FORMS}") from None


def describe(event: LoggedDelta) -> str:
    """Say in a line what happened."""
    delta, ref = event.delta, event.delta.ref
    name = "/".join(part for part in (ref.cluster, ref.namespace, ref.name) if part)
    by = f"  by {shown_author(delta.author.name)}" if delta.author else ""
    logged = f"{event.logged_at.astimezone():%Y-%m-%d %H:%M:%S}"
    return f"{logged}  {delta.operation.value:<6}  {kind_name(delta):<13}  {name}{by}"
