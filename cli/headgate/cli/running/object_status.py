"""How one object stands, as text for `headgate status KIND/NAMESPACE/NAME`."""

from collections.abc import Iterable, Sequence

import click

from headgate.cli.terminal.rendering import print_table
from headgate.common.heartbeats import Heartbeat
from headgate.common.problems import Problem
from headgate.common.status import EventNote, ListenerRef, StatusCondition, StatusUpdate
from headgate.common.table import DEFAULT_TABLE
from headgate.operations.status.objects import Served, served_of
from headgate.operations.wording import age


def print_object(updates: Iterable[StatusUpdate], heartbeats: Sequence[Heartbeat]) -> None:
    """Print how an object stands, cluster by cluster and table by table."""
    for number, update in enumerate(updates):
        if number:
            click.echo()
        _print_one(update, served_of(update, heartbeats))


def _print_one(update: StatusUpdate, served: Served) -> None:
    ref = update.ref
    table = "" if update.table == DEFAULT_TABLE else f", table {update.table}"
    click.echo(click.style(f"{update.kind} {ref.namespace}/{ref.name} in cluster {ref.cluster}{table}", bold=True))
    for label, text in _lines(update, served):
        click.echo(f"  {label + ':':<12}{text}")
    if update.conditions:
        click.echo()
        print_table(
            ("CONDITION", "STATUS", "REASON", "FOR", "MESSAGE"),
            (
                (_condition(one), one.status, one.reason, age(one.since), one.message or "-")
                for one in update.conditions
            ),
        )
    if update.problems:
        click.echo()
        print_table(("SEVERITY", "REASON", "PROBLEM"), map(_problem_row, update.problems))
    if update.events:
        click.echo()
        print_table(("SAID", "TYPE", "REASON", "NOTE"), map(_event_row, reversed(update.events)))


def _condition(condition: StatusCondition) -> str:
    match condition.part:
        case None:
            return condition.type
        case ListenerRef(name):
            return f"{condition.type} of listener {name}"
        case part:
            section = f":{part.section}" if part.section else ""
            return f"{condition.type} of {part.kind} {part.name}{section}"


def _lines(update: StatusUpdate, served: Served) -> Iterable[tuple[str, str]]:
    if update.generation:
        yield "generation", str(update.generation)
    if update.stand_in is not None:
        counted = f"generation {update.stand_in.generation}, " if update.stand_in.generation else ""
        yield "served", f"as of {counted}resourceVersion {update.stand_in.resource_version}, which was last good"
    if not update.conditions:
        yield "served", "no: it is gone, or not one of ours"
    yield "revision", _revision(update, served)
    if update.addresses:
        yield "addresses", ", ".join(str(address.ip or address.hostname) for address in update.addresses)
    if update.last_error is not None:
        yield "last error", _last_error(update.last_error, update.problems)
    yield "told", f"{age(update.at)} ago"


def _revision(update: StatusUpdate, served: Served) -> str:
    if update.revision is None:
        return "none: nothing of it is in the table"
    count = len(served.by) + len(served.not_by)
    if not count:
        return f"{update.revision}; no gateway announces itself"
    lacking = f"; not by {', '.join(served.not_by)}" if served.not_by else ""
    missing = f"; no gateway serves shard {', '.join(served.missing)}" if served.missing else ""
    return f"{update.revision}, served by {len(served.by)} of {count} replicas{lacking}{missing}"


def _last_error(note: EventNote, problems: Iterable[Problem]) -> str:
    is_present = any(str(problem).startswith(note.note.removesuffix("…")) for problem in problems)
    return f"{age(note.at)} ago{'' if is_present else ', not any more'}: {note.note}"


def _problem_row(problem: Problem) -> tuple[object, ...]:
    return problem.severity, problem.reason, problem


def _event_row(note: EventNote) -> tuple[object, ...]:
    return f"{age(note.at)} ago", note.type, note.reason, note.note
