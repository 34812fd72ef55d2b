"""The report of a run: Markdown for people, JSON for comparison over time."""

import dataclasses
import datetime
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.parts.propagation import PropagationResult
from bench.parts.scale import ScaleResult
from bench.recording.stages import STAGES
from bench.reporting.figures import Distribution
from bench.reporting.machine import Machine
from bench.reporting.promise import PartResult, Promise
from bench.reporting.promises import promises
from bench.reporting.tables import table


@dataclass
class Report:
    """Everything that one run found."""

    started: datetime.datetime
    command: str
    machine: Machine
    load_before: float
    """Runnable processes in the minute before the run."""
    stolen: float = 0.0
    """Share of processor time that the hypervisor gave to others during the run."""
    took_s: float = 0.0
    parts: dict[str, PartResult] = field(default_factory=dict)
    """By name, those that tell their own story."""
    propagation: list[PropagationResult] = field(default_factory=list)
    scale: list[ScaleResult] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    """Parts that could not be measured."""

    @property
    def failures(self) -> list[str]:
        """All that went wrong; a run with any is not to be quoted."""
        found = [failure for part in self.parts.values() for failure in part.failures]
        found += [failure for part in self.propagation for failure in part.failures]
        found += [failure for part in self.scale for failure in part.failures]
        return found + self.errors


def write_report(report: Report, folder: Path, suffix: str) -> tuple[Path, Path]:
    """Write `<date>-<machine><suffix>.md` and `.json`, replacing those of the same day; return both paths."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"{report.started:%Y-%m-%d}-{report.machine.slug}{suffix}"
    text, data = folder / f"{stem}.md", folder / f"{stem}.json"
    text.write_text(markdown(report))
    kept = [dataclasses.asdict(each) for each in all_promises(report)]
    found = {**dataclasses.asdict(report), "failures": report.failures, "promises": kept}
    data.write_text(json.dumps(found, indent=1, default=str) + "\n")
    return text, data


def markdown(report: Report) -> str:
    """The whole report as Markdown."""
    parts = [_head(report)]
    if report.failures:
        parts.append("**This run failed; do not quote it.**\n\n" + "\n".join(f"- {each}" for each in report.failures))
    if kept := all_promises(report):
        parts.append("## Promises\n\n" + promise_table(kept))
    parts += [part.markdown() for part in report.parts.values()]
    if report.propagation:
        parts.append(_propagation(report.propagation))
    if report.scale:
        parts.append(_scale(report.scale))
    return "\n\n".join(parts) + "\n"


def all_promises(report: Report) -> list[Promise]:
    """Every promise that this run measured."""
    return promises(report.parts.values(), report.propagation, report.scale)


def promise_table(kept: Sequence[Promise]) -> str:
    """Promises beside what was measured."""
    return table(("", "promised", "measured", ""), [each.cells() for each in kept])


def _head(report: Report) -> str:
    machine = report.machine
    versions = {name: version for part in report.parts.values() for name, version in part.versions.items()}
    lines = [
        f"# Measured on {report.started:%Y-%m-%d %H:%M} UTC",
        "",
        f"- machine: {machine.processor}, {machine.cores} cores, {machine.memory_gb:g} GB, Linux {machine.kernel}",
        f"- Python {machine.python}" + "".join(f", {name} {version}" for name, version in versions.items()),
        f"- commit {machine.commit}; command `{report.command}`; took {report.took_s / 60:.1f} minutes",
        f"- load average before: {report.load_before:.2f}; stolen by the hypervisor: {report.stolen:.1%}",
        "",
        "How each figure comes about: docs/bench.md.",
    ]
    return "\n".join(lines)


def _times(values: Distribution) -> list[str]:
    return [f"{values.p50:.1f}", f"{values.p99:.1f}", f"{values.max:.1f}"]


def _propagation(results: Sequence[PropagationResult]) -> str:
    heads = ("", "changes", "p50", "p99", "max", "failed requests", "stale answers", "client p99 before", "during")
    rows = [
        [
            *(each.title, str(each.took.count), *_times(each.took)),
            *(f"{each.failed} of {each.steady.count:,}", str(each.stale)),
            *(f"{each.quiet.p99:.2f}", f"{each.steady.p99:.2f}"),
        ]
        for each in results
    ]
    stages = {each.title: each.stages for each in results}
    parts = ["## Endpoint change on disk to the first request on it, ms", table(heads, rows), *_stages(stages)]
    return "\n\n".join(parts)


def _stages(found: Mapping[str, Mapping[str, Distribution]]) -> list[str]:
    heads = ("p50 / p99", *STAGES)
    rows = [
        [title, *(f"{stages[stage].p50:.1f} / {stages[stage].p99:.1f}" for stage in STAGES)]
        for title, stages in found.items()
        if stages
    ]
    return ["Where the time goes:\n\n" + table(heads, rows)] if rows else []


def _scale(results: Sequence[ScaleResult]) -> str:
    parts = ["## Scale", _starts(results), _stalls(results)]
    changes = [
        [f"{each.title}, {kind}", str(took.count), *_times(took)]
        for each in results
        for kind, took in each.traffic.took.items()
    ]
    parts.append("One change, file to traffic, ms:\n\n" + table(("", "changes", "p50", "p99", "max"), changes))
    parts += _stages(
        {f"{each.title}, {kind}": stages for each in results for kind, stages in each.traffic.stages.items()}
    )
    services = list(dict.fromkeys(name for each in results for name in each.memory_mb))
    memory = [
        [each.title, *(f"{each.memory_mb.get(name, 0):.0f} ({each.peak_mb.get(name, 0):.0f})" for name in services)]
        for each in results
    ]
    parts.append("Memory in MB, in brackets the most of the main process:\n\n" + table(("", *services), memory))
    return "\n\n".join(parts)


def _starts(results: Sequence[ScaleResult]) -> str:
    steps = list(dict.fromkeys(step for each in results for step in each.cold_steps_s))
    rows = [
        [
            *(each.title, f"{each.cold_start_s:.1f}"),
            *(f"{each.cold_steps_s[step]:.1f}" if step in each.cold_steps_s else "" for step in steps),
            f"{each.warm_start_s:.1f}",
        ]
        for each in results
    ]
    return table(("start, seconds", "cold", *(f"its {step}" for step in steps), "warm"), rows)


def _stalls(results: Sequence[ScaleResult]) -> str:
    heads = ("steady client, ms", "longest, changes", "without", "p99, changes", "without", "failed")
    rows = [
        [
            *(each.title, f"{each.traffic.changing.max:.1f}", f"{each.traffic.quiet.max:.1f}"),
            *(f"{each.traffic.changing.p99:.2f}", f"{each.traffic.quiet.p99:.2f}"),
            f"{each.traffic.failed} of {each.traffic.changing.count + each.traffic.quiet.count:,}",
        ]
        for each in results
    ]
    return table(heads, rows)
