"""`headgate check`: mistakes in manifests, found before anything serves them."""

from pathlib import Path

import click

from headgate.cli.offline.class_options import class_options
from headgate.cli.terminal.errors import CommandError, ExitCode
from headgate.cli.terminal.group import TeachingCommand
from headgate.cli.terminal.rendering import print_json
from headgate.common.problems import LETS_IN, Severity
from headgate.operations.wording import count_of


@click.command(
    cls=TeachingCommand,
    examples=[
        "headgate check examples/quickstart",
        "headgate check manifests/ --controller-names k8s.io/ingress-nginx   # with their IngressClass",
        "headgate check manifests/ --class-names apisix                      # without one",
        "headgate check web.yaml --json | jq -r '.findings[].reason'",
    ],
    read_more="docs/cli.md",
)
@click.argument("paths", nargs=-1, required=True, metavar="PATH...", type=click.Path(path_type=Path, exists=True))
@class_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
def check(paths: tuple[Path, ...], class_flags: list[str], as_json: bool) -> int:
    """Read manifests from files and folders and say what is wrong: file, line, object, field and reason.

    Where a name or a value is near to one that would be right, the line is printed with it, too.

    It needs no server. These flags, HEADGATE_* variables and the TOML file in HEADGATE_CONFIG decide which objects are
    ours, as for the translator. Objects of other classes are listed with the reason why they are not ours. The exit
    code is 0 if there are no errors (warnings do not count). It is 1 if there are, or if there is nothing to check.
    """
    from headgate.cli.offline.correcting import place
    from headgate.cli.offline.tables import translate_paths

    table = translate_paths(paths, class_flags)
    if not table.object_count and not table.findings:
        names = ", ".join(map(str, paths))
        raise CommandError(f"{names}: no object of a kind that Headgate reads; are the paths right?")
    placed = sorted(place(table.findings), key=lambda one: (one.file, one.field_line or one.line))
    errors = sum(finding.is_error for finding in table.findings)
    warnings = sum(finding.problem.severity is Severity.WARNING for finding in table.findings)
    lets_in = sum(finding.problem.reason == LETS_IN for finding in table.findings)
    if as_json:
        findings = [finding.as_json() for finding in placed]
        print_json(
            {
                "errors": errors,
                "warnings": warnings,
                "lets_in": lets_in,
                "objects": table.object_count,
                "findings": findings,
                "notes": [note._asdict() for note in table.notes],
            }
        )
    else:
        for finding in placed:
            click.echo(str(finding))
        for note in table.notes:
            click.echo(str(note))
        found = f"{count_of(errors, 'error')}, {count_of(warnings, 'warning')}"
        opened = f", {count_of(lets_in, 'ignored plugin')} that may keep requests out" if lets_in else ""
        foreign = f", {count_of(len(table.notes), 'object')} of other classes" if table.notes else ""
        click.echo(
            f"{count_of(table.object_count, 'object')} in {count_of(table.files, 'file')}: {found}{opened}{foreign}"
        )
    return ExitCode.NEGATIVE if errors else ExitCode.OK
