"""`headgate audit`: what a move costs, told before anything moves."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import click

from headgate.cli.offline.audit_page import write_audit_page
from headgate.cli.offline.auditing import Audited, AuditReport, Line, audit_cluster, audit_paths, summarise, verdicts
from headgate.cli.terminal.errors import ExitCode, UsageMistake
from headgate.cli.terminal.group import TeachingCommand
from headgate.cli.terminal.rendering import print_json, print_table
from headgate.common.deltas import SyncState
from headgate.common.resources import JsonObject
from headgate.operations.wording import count_of
from headgate.translator.manifests.verdicts import Verdict

_NOTE_CHARACTERS = 90
_FIELD_CHARACTERS = 70


@click.command(
    cls=TeachingCommand,
    examples=[
        "headgate audit --kubeconfig ~/.kube/config --context production",
        "headgate audit --live --namespace shop      # the cluster that kubectl would ask",
        "headgate audit manifests/ --objects",
        "headgate audit manifests/ --compare http://10.0.0.1 --with http://10.0.0.2",
        "headgate audit manifests/ --html audit.html   # a page to be sorted and searched",
        "kubectl get ingress -A -o yaml > ingresses.yaml; headgate audit ingresses.yaml",
        "headgate audit manifests/ --json | jq -r '.summary[] | select(.verdict != \"honoured\") | .name'",
    ],
    read_more="docs/audit.md",
)
@click.argument("paths", nargs=-1, metavar="[PATH]...", type=click.Path(path_type=Path, exists=True))
@click.option(
    *("--kubeconfig",),
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="List the objects of this kubeconfig's cluster instead of reading files.",
)
@click.option("--context", metavar="NAME", help="Context of the kubeconfig; by default its current one.")
@click.option(
    "--live",
    is_flag=True,
    help="Ask the cluster that kubectl would ask: by KUBECONFIG, a pod's service account, or ~/.kube/config.",
)
@click.option(
    *("--namespace", "-n", "namespaces"),
    multiple=True,
    metavar="NAME",
    help="Read this namespace of the cluster only, for which a Role is enough; repeatable.",
)
@click.option("--objects", "by_object", is_flag=True, help="Print each object too, with file and line.")
@click.option("--all", "show_all", is_flag=True, help="With --objects, print honoured fields too.")
@click.option(
    "--allow-ignored-guards",
    is_flag=True,
    help="Exit with 0 although a guard is ignored, for example because another part guards it.",
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print JSON for programs: the summary, and every object with all its fields.",
)
@click.option(
    "--compare",
    "old",
    metavar="URL",
    help="Send requests for each route to this gateway, and to the one that --with names; print how answers differ.",
)
@click.option("--with", "new", metavar="URL", help="The other gateway: http://10.0.0.2.")
@click.option(
    "--requests",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="With --compare: send these instead, lines `GET http://host/path` or an access log in combined format.",
)
@click.option("--host", default="", metavar="NAME", help="With --requests: the host of the requests of an access log.")
@click.option(
    "--html",
    "page",
    type=click.Path(path_type=Path, dir_okay=False, writable=True),
    metavar="FILE",
    help="Write a page for browsers too, which needs nothing besides itself.",
)
def audit(
    paths: tuple[Path, ...],
    kubeconfig: Path | None,
    context: str | None,
    live: bool,
    namespaces: tuple[str, ...],
    by_object: bool,
    show_all: bool,
    allow_ignored_guards: bool,
    as_json: bool,
    page: Path | None,
    old: str | None,
    new: str | None,
    requests: Path | None,
    host: str,
) -> int:
    """Say what becomes of every annotation and field of Ingresses and resources of Apache APISIX.

    It reads manifests, or the objects of a cluster. It changes nothing, and needs the right to list objects only.

    honoured: it works as in the other controller. approximated: it is followed, but not in every case. ignored: the
    object is served without it. refused: the part with it is not served until it is corrected. A `!` marks a guard,
    which keeps requests out in the other controller, and is ignored here: correct these first.

    Each object is judged by itself, whatever its class; IngressClasses, Services and Secrets may be missing.
    `headgate check` reports missing objects and conflicts. The exit code is 1 if anything is refused, cannot be read,
    or would let requests in that are kept out now; else it is 0.
    """
    if old is not None or new is not None:
        return _compare(paths, old, new, requests, host, as_json=as_json)
    asks_cluster = live or kubeconfig is not None or context is not None
    _check_source(paths, namespaces, asks_cluster=asks_cluster)
    report = audit_cluster(kubeconfig, context, namespaces) if asks_cluster else audit_paths(paths)
    summary = summarise(report.found)
    if page is not None:
        page.write_text(write_audit_page(report, summary, datetime.now(UTC)))
    if as_json:
        print_json(_as_document(report, summary))
    else:
        _print_unread(report)
        if by_object:
            _print_objects(report.found, show_all)
        _print_summary(report, summary)
    is_open = any(line.lets_in for line in summary) and not allow_ignored_guards
    is_refused = any(line.verdict is Verdict.REFUSED for line in summary)
    return ExitCode.NEGATIVE if is_open or is_refused or not report.is_complete else ExitCode.OK


def _compare(
    paths: tuple[Path, ...], old: str | None, new: str | None, requests: Path | None, host: str, *, as_json: bool
) -> int:
    from headgate.cli.comparing.comparison import compare_gateways  # its client takes time that others need not wait

    if not old or not new:
        raise UsageMistake("--compare URL and --with URL belong together: one gateway each")
    found = compare_gateways(paths, old, new, requests, host)
    if as_json:
        print_json({"sent": found.sent, "left_out": found.left_out, "differences": [d._asdict() for d in found.found]})
        return ExitCode.NEGATIVE if found.found else ExitCode.OK
    if found.found:
        rows = [
            (one.request, one.what, one.old, one.new, one.object, ", ".join(map(_name_alone, one.why)))
            for one in found.found
        ]
        print_table(("REQUEST", "WHAT", "OLD", "NEW", "OBJECT", "PROBABLY BY"), rows)
    for name in found.left_out:
        click.echo(f"not asked: no path was found that the pattern of route {name} matches")
    differing = len({one.request for one in found.found})
    click.echo(f"{count_of(found.sent, 'request')} to both: {differing} answered differently")
    return ExitCode.NEGATIVE if found.found else ExitCode.OK


def _name_alone(annotation: str) -> str:
    return annotation.rpartition("/")[2]


def _check_source(paths: Sequence[Path], namespaces: Sequence[str], *, asks_cluster: bool) -> None:
    if paths and asks_cluster:
        raise UsageMistake("PATH and --kubeconfig, --context or --live exclude each other: one audit has one source")
    if not paths and not asks_cluster:
        raise UsageMistake("nothing to audit: give files or folders of manifests, --kubeconfig FILE or --live")
    if paths and namespaces:
        raise UsageMistake("--namespace narrows what is listed of a cluster: of files give those that are wanted")


def _as_document(report: AuditReport, summary: Sequence[Line]) -> JsonObject:
    return {
        "objects": len(report.found),
        "verdicts": verdicts(report.found),
        "lets_in": sum(line.lets_in for line in summary),
        "summary": [line._asdict() for line in summary],
        "audited": [one.as_json() for one in report.found],
        "unreadable": [problem.as_json() for problem in report.unreadable],
        "server": report.server,
        "unavailable": [
            {"kind": str(one.kind), "state": one.state, "message": one.message} for one in report.unavailable
        ],
    }


def _print_unread(report: AuditReport) -> None:
    for problem in report.unreadable:
        click.echo(str(problem))
    if report.server:
        click.echo(f"cluster {report.server}")
    for forbidden in report.forbidden:
        click.echo(f"not read: {forbidden.kind}: {forbidden.message}")
    absent = [str(one.kind) for one in report.unavailable if one.state is SyncState.ABSENT]
    if absent:
        click.echo(f"not in this cluster: {', '.join(absent)}")
    if report.unavailable:
        click.echo()


def _print_objects(found: Sequence[Audited], show_all: bool) -> None:
    for one in found:
        rows = [
            (_mark(said.verdict, said.lets_in), _shortened(said.name, _FIELD_CHARACTERS), said.note)
            for said in one.said
            if show_all or said.verdict is not Verdict.HONOURED
        ]
        if rows:
            click.echo(f"{one.file}:{one.line}: {one.object}" if one.file else one.object)
            print_table(("  VERDICT", "WHAT", "HOW OR WHY"), [(f"  {verdict}", *rest) for verdict, *rest in rows])
            click.echo()


def _print_summary(report: AuditReport, summary: Sequence[Line]) -> None:
    found = report.found
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
    if report.forbidden:
        kinds = ", ".join(dict.fromkeys(str(one.kind) for one in report.forbidden))
        click.echo(f"! incomplete: {kinds} may not be listed")


def _mark(verdict: Verdict, lets_in: bool) -> str:
    return f"{verdict} !" if lets_in else str(verdict)


def _shortened(text: str, characters: int) -> str:
    return text if len(text) <= characters else f"{text[: characters - 1]}…"
