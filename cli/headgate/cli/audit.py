"""`headgate audit`: what a move costs, told before anything moves."""

from collections.abc import Sequence
from pathlib import Path

import click

from headgate.cli.auditing import Audited, Line, audit_paths, summarise, verdicts
from headgate.cli.errors import ExitCode
from headgate.cli.group import TeachingCommand
from headgate.cli.rendering import count_of, print_json, print_table
from headgate.translator.verdicts import Verdict

_NOTE_CHARACTERS = 90
_FIELD_CHARACTERS = 70


@click.command(
    cls=TeachingCommand,
    examples=[
        "kubectl get ingress -A -o yaml > ingresses.yaml; headgate audit ingresses.yaml",
        "headgate audit manifests/ --objects",
        "headgate audit manifests/ --json | jq -r '.summary[] | select(.verdict != \"honoured\") | .name'",
    ],
    read_more="docs/audit.md",
)
@click.argument("paths", nargs=-1, required=True, metavar="PATH...", type=click.Path(path_type=Path, exists=True))
@click.option("--objects", "by_object", is_flag=True, help="Say it of each object too, with file and line.")
@click.option("--all", "show_all", is_flag=True, help="With --objects: show also what is honoured.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for programs: the summary and every object, whole.")
def audit(paths: tuple[Path, ...], by_object: bool, show_all: bool, as_json: bool) -> int:
    """Say what becomes of every annotation and field of Ingresses and resources of Apache APISIX.

    honoured: as where it comes from. approximated: followed, but not in every case. ignored: served without it.
    refused: what it is about is not served until it is mended. A `!` marks what keeps requests out where it comes from
    and is ignored here: mend these first.

    Needs no server, and no IngressClasses, Services or Secrets: each object is looked at by itself, whatever its class.
    What is missing or in conflict is said by `headgate check`. Exit code 1 if anything is refused, else 0.
    """
    found, problems = audit_paths(paths)
    summary = summarise(found)
    is_refused = bool(problems) or any(line.verdict is Verdict.REFUSED for line in summary)
    if as_json:
        print_json(
            {
                "objects": len(found),
                "verdicts": verdicts(found),
                "lets_in": sum(line.lets_in for line in summary),
                "summary": [line._asdict() for line in summary],
                "audited": [one.as_json() for one in found],
                "unreadable": [problem.as_json() for problem in problems],
            }
        )
        return ExitCode.NEGATIVE if is_refused else ExitCode.OK
    for problem in problems:
        click.echo(str(problem))
    if by_object:
        _print_objects(found, show_all)
    _print_summary(found, summary)
    return ExitCode.NEGATIVE if is_refused else ExitCode.OK


def _print_objects(found: Sequence[Audited], show_all: bool) -> None:
    for one in found:
        rows = [
            (_mark(said.verdict, said.lets_in), _shortened(said.name, _FIELD_CHARACTERS), said.note)
            for said in one.said
            if show_all or said.verdict is not Verdict.HONOURED
        ]
        if rows:
            click.echo(f"{one.file}:{one.line}: {one.object}")
            print_table(("  VERDICT", "WHAT", "HOW OR WHY"), [(f"  {verdict}", *rest) for verdict, *rest in rows])
            click.echo()


def _print_summary(found: Sequence[Audited], summary: Sequence[Line]) -> None:
    if summary:
        rows = (
            (
                _mark(line.verdict, bool(line.lets_in)),
                line.objects,
                _shortened(line.name, _FIELD_CHARACTERS),
                _shortened(line.note, _NOTE_CHARACTERS),
            )
            for line in summary
        )
        print_table(("VERDICT", "OBJECTS", "WHAT", "HOW OR WHY"), rows)
    counts = ", ".join(f"{number} {verdict}" for verdict, number in verdicts(found).items())
    click.echo(f"{count_of(len(found), 'object')}: {counts}")
    open_objects = sum(any(said.lets_in for said in one.said) for one in found)
    if open_objects:
        click.echo(f"! {count_of(open_objects, 'object')} would let in requests that are kept out now")


def _mark(verdict: Verdict, lets_in: bool) -> str:
    return f"{verdict} !" if lets_in else str(verdict)


def _shortened(text: str, characters: int) -> str:
    return text if len(text) <= characters else f"{text[: characters - 1]}…"
