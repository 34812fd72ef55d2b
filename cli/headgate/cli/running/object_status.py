"""`headgate status KIND/NAMESPACE/NAME`: how one object stands, in every cluster that has it and every table it is in.

What was written about it is on the status board; which replicas serve it is asked now.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import click

from headgate.cli.terminal.errors import UsageMistake
from headgate.cli.terminal.rendering import age, print_table
from headgate.common.heartbeats import Heartbeat
from headgate.common.problems import Problem, Severity
from headgate.common.resources import ALL_KINDS, Kinds, StatusShape
from headgate.common.snapshot import Version
from headgate.common.status import EventNote, StatusCondition, StatusUpdate
from headgate.common.table import DEFAULT_TABLE


@dataclass(frozen=True)
class ObjectName:
    """An object as somebody at a terminal names it."""

    kind: str
    """In lower case: `ingress`."""
    namespace: str
    name: str
    kinds: Kinds = field(default=ALL_KINDS, compare=False)

    def is_meant(self, update: StatusUpdate) -> bool:
        """Whether a status is this object's, in whatever cluster."""
        ref = update.ref
        kind = self.kinds.find(ref.group, ref.resource)
        is_of_kind = kind is not None and kind.kind.lower() == self.kind
        return is_of_kind and (ref.namespace, ref.name) == (self.namespace, self.name)

    def __str__(self) -> str:
        return f"{self.kind}/{self.namespace}/{self.name}"


def parse_object(text: str, kinds: Kinds = ALL_KINDS) -> ObjectName:
    """Read `ingress/NAMESPACE/NAME`, or `ingress/NAME` in the namespace `default`.

    Raises:
        UsageMistake: says what would be right.
    """
    called, *rest = text.split("/")
    known = [kind for kind in kinds if kind.status is not StatusShape.NONE]
    kind = next((kind.kind.lower() for kind in known if kind.is_called(called)), None)
    if kind is None or len(rest) not in (1, 2) or not all(rest):
        raise UsageMistake(
            f"{text!r} names no object: write KIND/NAMESPACE/NAME, such as ingress/default/web; "
            f"KIND is one of {', '.join(sorted({kind.kind.lower() for kind in known}))}"
        )
    namespace, name = rest if len(rest) == 2 else ("default", rest[0])
    return ObjectName(kind, namespace, name, kinds)


@dataclass(frozen=True)
class Served:
    """Which live replicas serve what is in the table of an object."""

    by: tuple[str, ...]
    not_by: tuple[str, ...]

    @classmethod
    def of(cls, revision: Version | None, heartbeats: Iterable[Heartbeat]) -> "Served":
        """Compare the object's revision with the one whose routes each worker serves."""
        versions: dict[str, list[Version | None]] = {}
        for beat in heartbeats:
            versions.setdefault(beat.replica, []).append(beat.served)
        has = {
            name: revision is not None and all(version is not None and version >= revision for version in found)
            for name, found in sorted(versions.items())
        }
        return cls(
            tuple(name for name, is_served in has.items() if is_served),
            tuple(name for name, is_served in has.items() if not is_served),
        )


def present_only(updates: Iterable[StatusUpdate]) -> list[StatusUpdate]:
    """Leave out tables that have let an object go, unless all have; in order of cluster and table."""
    ordered = sorted(updates, key=lambda update: (update.ref, update.table != DEFAULT_TABLE, update.table))
    speaking = {update.ref for update in ordered if update.conditions}
    return [update for update in ordered if update.conditions or update.ref not in speaking]


def _served(update: StatusUpdate, heartbeats: Iterable[Heartbeat]) -> Served:
    return Served.of(update.revision, (beat for beat in heartbeats if beat.table == update.table))


def is_well(updates: Iterable[StatusUpdate], heartbeats: Sequence[Heartbeat]) -> bool:
    """Whether an object is served as it is written, everywhere."""
    return all(
        not _served(update, heartbeats).not_by
        and not any(problem.severity is Severity.ERROR for problem in update.problems)
        and update.is_accepted
        for update in updates
    )


def as_document(updates: Iterable[StatusUpdate], heartbeats: Sequence[Heartbeat]) -> list[dict[str, Any]]:
    """Return how an object stands as JSON data, an element for each cluster and table."""
    documents = []
    for update in updates:
        served = _served(update, heartbeats)
        known = update.model_dump(mode="json", exclude={"traceparent", "content"})
        documents.append(known | {"served_by": list(served.by), "not_served_by": list(served.not_by)})
    return documents


def print_object(updates: Iterable[StatusUpdate], heartbeats: Sequence[Heartbeat]) -> None:
    """Print how an object stands, cluster by cluster and table by table."""
    for number, update in enumerate(updates):
        if number:
            click.echo()
        _print_one(update, _served(update, heartbeats))


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
    if condition.ancestor is None:
        return condition.type
    section = f":{condition.ancestor.section}" if condition.ancestor.section else ""
    return f"{condition.type} of {condition.ancestor.kind} {condition.ancestor.name}{section}"


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
        return f"{update.revision}; no gateway is heard of"
    lacking = f"; not by {', '.join(served.not_by)}" if served.not_by else ""
    return f"{update.revision}, served by {len(served.by)} of {count} replicas{lacking}"


def _last_error(note: EventNote, problems: Iterable[Problem]) -> str:
    is_present = any(str(problem).startswith(note.note.removesuffix("…")) for problem in problems)
    return f"{age(note.at)} ago{'' if is_present else ', not any more'}: {note.note}"


def _problem_row(problem: Problem) -> tuple[object, ...]:
    return problem.severity, problem.reason, problem


def _event_row(note: EventNote) -> tuple[object, ...]:
    return f"{age(note.at)} ago", note.type, note.reason, note.note
