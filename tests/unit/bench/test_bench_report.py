"""The report's text, and the list of the profile."""

import datetime
import json
from pathlib import Path

from bench.parts.comparison import Row
from bench.parts.throughput import ThroughputResult
from bench.profile import top_list
from bench.reporting.figures import Spread
from bench.reporting.machine import Machine
from bench.reporting.report import Report, markdown, write_report
from bench.reporting.tables import table

MACHINE = Machine("Intel(R) Xeon(R) Processor", 2, 24.1, "6.1", "3.11.7", "abc1234")


def report(**parts: object) -> Report:
    started = datetime.datetime(2026, 3, 4, 5, 6, tzinfo=datetime.UTC)
    return Report(started, "python -m bench", MACHINE, load_before=0.1, **parts)  # type: ignore[arg-type]


def row(proxy: str, busy: float) -> Row:
    return Row(proxy, Spread(30_000, 29_000, 31_000), 30_000 / busy, busy, 1.0, Spread(2, 2, 2), 36, 0.5, 2.0, 0)


def test_columns_are_aligned():
    assert table(("", "b"), [["one", "2"], ["three", "40"]]).splitlines() == [
        "|       |  b |",
        "|-------|---:|",
        "| one   |  2 |",
        "| three | 40 |",
    ]


def test_files_are_named_by_date_and_machine(tmp_path: Path):
    text, data = write_report(report(), tmp_path, "-scale")
    assert text.name == "2026-03-04-intel-xeon-processor-2-core-scale.md"
    assert json.loads(data.read_text())["machine"]["commit"] == "abc1234"


def test_a_failed_run_says_so_first():
    failed = report(parts={"throughput": ThroughputResult(failures=["Envoy, round 1: {'status': 3}"])})
    assert "do not quote" in markdown(failed)
    assert "Envoy, round 1" in markdown(failed)


def test_an_idle_proxy_is_said_to_be_bounded_by_the_load():
    rows = {"1 KB": [row("nginx", 0.7), row("Headgate", 0.99)]}
    text = markdown(report(parts={"throughput": ThroughputResult(rows=rows)}))
    assert "bottleneck of: nginx (1 KB: 70% busy)" in text


def test_busy_proxies_are_said_to_be_measured_themselves():
    text = markdown(report(parts={"throughput": ThroughputResult(rows={"1 KB": [row("nginx", 0.99)]})}))
    assert "Every proxy used its whole core" in text


def test_the_profile_counts_a_function_once_for_all_its_lines():
    listed = top_list(["run (loop.py:1);read (wire.py:10) 3", "run (loop.py:1);read (wire.py:12) 1"]).splitlines()
    assert listed[1].split() == ["100.0%", "100.0%", "read", "(wire.py)"]


def test_a_profile_without_samples_says_so():
    assert top_list([]) == "no samples\n"
