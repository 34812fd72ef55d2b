"""`headgate check`: mistakes in manifests, found before anything serves them."""

from pathlib import Path

import click

from headgate.cli.errors import ExitCode
from headgate.cli.group import TeachingCommand
from headgate.cli.rendering import count_of, print_json


@click.command(
    cls=TeachingCommand,
    examples=[
        "headgate check examples/quickstart",
        "headgate check manifests/ --adopt-controller k8s.io/ingress-nginx",
        "headgate check web.yaml --json | jq -r '.findings[].reason'",
    ],
    read_more="docs/cli.md",
)
@click.argument("paths", nargs=-1, required=True, metavar="PATH...", type=click.Path(path_type=Path, exists=True))
@click.option(
    *("--adopt-controller", "adopted"),
    multiple=True,
    metavar="NAME",
    help="Take classes of this controller for ours, such as k8s.io/ingress-nginx; repeatable.",
)
@click.option("--watch-without-class", is_flag=True, help="Take every Ingress without a class for ours.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
def check(paths: tuple[Path, ...], adopted: tuple[str, ...], watch_without_class: bool, as_json: bool) -> int:
    """Read manifests from files and folders and say what is wrong: file, line, object, field and reason.

    Needs no server. Exit code 0 if nothing is wrong or there are only warnings, 1 if there are errors.
    """
    from headgate.cli.offline import translate_paths
    from headgate.translator.dialects.ingress import ClassSettings

    classes = ClassSettings(controller_names=frozenset(adopted), watch_without_class=watch_without_class)
    table = translate_paths(paths, classes)
    errors = sum(finding.is_error for finding in table.findings)
    warnings = len(table.findings) - errors
    if as_json:
        findings = [finding.as_json() for finding in table.findings]
        print_json({"errors": errors, "warnings": warnings, "objects": table.object_count, "findings": findings})
    else:
        for finding in table.findings:
            click.echo(str(finding))
        found = f"{count_of(errors, 'error')}, {count_of(warnings, 'warning')}"
        click.echo(f"{count_of(table.object_count, 'object')} in {count_of(table.files, 'file')}: {found}")
    return ExitCode.NEGATIVE if errors else ExitCode.OK
