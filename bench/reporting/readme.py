"""The block of figures in the README, written from a report between two marks.

The README gets the throughput of every proxy and all promises; the rest is in the report that it links to.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from bench.errors import BenchError
from bench.parts.comparison import ComparisonResult
from bench.reporting.report import Report, all_promises, promise_table
from bench.reporting.tables import table

BEGIN, END = "<!-- bench:begin -->", "<!-- bench:end -->"


def update_readme(readme: Path, report: Report, written: Path) -> None:
    """Replace the block by that of a report, which is `written` to a file.

    Raises:
        BenchError: the README lacks the marks, or the run failed and is not to be quoted.
    """
    if report.failures:
        raise BenchError(f"the run failed, {readme.name} stays as it is")
    before, begin, rest = readme.read_text().partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise BenchError(f"{readme.name} lacks {BEGIN} and {END}")
    link = os.path.relpath(written.resolve(), readme.parent.resolve())
    readme.write_text(f"{before}{BEGIN}\n\n{block(report, link)}\n\n{END}{after}")


def block(report: Report, link: str) -> str:
    """What stands between the marks."""
    machine = report.machine
    versions = {name: version for part in report.parts.values() for name, version in part.versions.items()}
    named = "".join(f", {name} {version}" for name, version in versions.items())
    head = (
        f"{report.started:%Y-%m-%d}, {machine.cores} cores of an {machine.processor}, Linux {machine.kernel}, Python "
        f"{machine.python}{named};\n`{report.command}`, one run of {report.took_s / 60:.0f} minutes;\n"
        f"[the whole report]({link})."
    )
    parts = [head, *_rates(report)]
    if kept := all_promises(report):
        parts.append("What is promised, and what this run measured:\n\n" + promise_table(kept))
    return "\n\n".join(parts)


def _rates(report: Report) -> Iterator[str]:
    """A row for each proxy, a column for each scenario."""
    found = {title: rows for part in report.parts.values() if isinstance(part, ComparisonResult)
             for title, rows in part.rows.items()}  # fmt: skip
    proxies = dict.fromkeys(row.proxy for rows in found.values() for row in rows)
    if not found:
        return
    rates = {(title, row.proxy): f"{row.requests_per_s.median:,.0f}" for title, rows in found.items() for row in rows}
    rows = [[title, *(rates.get((title, proxy), "") for proxy in proxies)] for title in found]
    yield "A second, with everything on (access log, metrics, forwarded headers), one core for the proxy:\n\n" + table(
        ("", *proxies), rows
    )
