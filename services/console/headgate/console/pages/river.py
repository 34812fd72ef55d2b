"""The way of a change, from the clusters to the gateways, and where it stands."""

from collections.abc import Iterator
from typing import NamedTuple

from headgate.common.problems import Severity
from headgate.console.live.view import LiveView
from headgate.console.pages.wording import ago
from headgate.operations.status.report import Report
from headgate.operations.wording import count_of


class Station(NamedTuple):
    """One part of the way."""

    name: str
    state: str
    page: str
    trouble: str = ""
    """What stops changes here; empty if nothing does."""


def stations(view: LiveView) -> list[Station]:
    """Return the parts of the way, as far as they are known."""
    report = view.report
    if report is None:
        return [Station("Headgate", "not read yet", "/", view.trouble)]
    return [*_sources(report), *_table(view, report), _gateways(view, report)]


def _sources(report: Report) -> Iterator[Station]:
    names = [one.cluster for one in report.watchers]
    told = {what: str(problem) for what, problem in report.problems if problem.severity is Severity.ERROR}
    trouble = next((f"{name}: {told[f'cluster {name}']}" for name in names if f"cluster {name}" in told), "")
    yield Station("Clusters", ", ".join(names[:3]) or "none yet", "/clusters")
    yield Station("Watchers", count_of(len(names), "watcher"), "/clusters", trouble)


def _table(view: LiveView, report: Report) -> Iterator[Station]:
    total = sum((report.manifest.inputs if report.manifest else {}).values())
    yield Station("Log", f"up to {total:,}" if total else "empty", "/objects")
    late = next((str(one) for what, one in report.problems if what.startswith("translator of")), "")
    broken = sum(problem.severity is Severity.ERROR for update in report.updates for problem in update.problems)
    yield Station("Translator", f"{count_of(broken, 'error')} in objects" if broken else "no errors", "/objects", late)
    served = view.served
    when = f"{served.version.partition('.')[2]}, {ago(served.manifest.created_at)} ago" if served else "no revision yet"
    held = next((str(one) for what, one in report.problems if what.startswith("table ")), "")
    yield Station("Table", f"revision {when}" if served else when, "/changes", held)


def _gateways(view: LiveView, report: Report) -> Station:
    beats = report.heartbeats
    replicas = {beat.replica for beat in beats}
    behind = [beat for beat in beats if report.manifest and beat.version != report.manifest.version]
    trouble = f"{count_of(len(behind), 'worker')} behind" if behind else "" if beats else "none serves the table"
    return Station(
        "Gateways", f"{count_of(len(replicas), 'replica')}, {count_of(len(beats), 'worker')}", "/fleet", trouble
    )
