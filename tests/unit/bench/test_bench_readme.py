"""The README's block of figures."""

from pathlib import Path

import pytest
from bench.errors import BenchError
from bench.parts.comparison import ComparisonResult, Row
from bench.reporting.figures import Spread
from bench.reporting.readme import update_readme

from unit.bench.test_bench_report import report

ROW = Row("Headgate", Spread(30_000, 1, 1), 1, 1, 1, Spread(1, 1, 1), 1, 0.7, None, 0)
MEASURED = ComparisonResult("Throughput", rows={"1 KB": [ROW]}, targets={"1 KB": {"nginx": 0.6}})


def test_the_block_is_replaced_and_the_rest_stays(tmp_path: Path):
    readme = tmp_path / "README.md"
    readme.write_text("before\n<!-- bench:begin -->\nold\n<!-- bench:end -->\nafter\n")
    update_readme(readme, report(parts={"throughput": MEASURED}), tmp_path / "results" / "today.md")
    text = readme.read_text()
    assert text.startswith("before\n<!-- bench:begin -->\n")
    assert text.endswith("<!-- bench:end -->\nafter\n")
    assert "old" not in text
    assert "[the whole report](results/today.md)" in text
    assert "30,000" in text
    assert "at least 0.6" in text


def test_a_failed_run_is_not_quoted(tmp_path: Path):
    with pytest.raises(BenchError, match="stays as it is"):
        update_readme(tmp_path / "README.md", report(errors=["interrupted"]), tmp_path / "today.md")


def test_a_readme_without_marks_is_left_alone(tmp_path: Path):
    readme = tmp_path / "README.md"
    readme.write_text("nothing")
    with pytest.raises(BenchError, match="lacks"):
        update_readme(readme, report(), tmp_path / "today.md")
    assert readme.read_text() == "nothing"
