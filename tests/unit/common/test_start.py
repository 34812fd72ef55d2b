"""What the installed commands do before anything of Headgate is imported, and what each distribution says of itself."""

import subprocess
import sys
import tomllib
from importlib.metadata import distribution
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PROJECTS = sorted(path for path in ROOT.glob("[!.]*/pyproject.toml")) + sorted(ROOT.glob("[ls]*/*/pyproject.toml"))


def run(folder: Path, name: str = "headgate") -> subprocess.CompletedProcess[str]:
    code = f"import sys; from headgate_start import {name}; sys.exit({name}())"
    return subprocess.run(
        [sys.executable, "-c", code, "--version"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={"PYTHONPATH": str(folder)},
    )


@pytest.mark.parametrize("name", ["headgate", "watcher", "translator", "gateway"])
def test_a_foreign_package_that_takes_our_name_is_refused_in_one_line(tmp_path: Path, name: str) -> None:
    (tmp_path / "headgate").mkdir()
    (tmp_path / "headgate" / "__init__.py").write_text("raise SystemExit('foreign code ran')\n")
    done = run(tmp_path, name)
    assert done.returncode == 2
    assert "pip uninstall headgate" in done.stderr
    assert done.stderr.count("\n") == 1
    assert "foreign code ran" not in done.stderr


def test_without_one_the_command_runs(tmp_path: Path) -> None:
    assert run(tmp_path).stdout.startswith("headgate 0.")


@pytest.mark.parametrize("path", PROJECTS, ids=lambda path: path.parent.name)
def test_every_distribution_has_a_name_of_ours_and_says_what_it_is(path: Path) -> None:
    project = tomllib.loads(path.read_text())["project"]
    assert project["name"] == "headgate-ingress" or project["name"].startswith("headgate-ingress-")
    assert (path.parent / project["readme"]).read_text().startswith(f"# {project['name']}\n")
    assert (path.parent / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
    assert project["urls"].keys() == {"Homepage", "Documentation"}
    assert "Typing :: Typed" in project["classifiers"]
    assert list(path.parent.glob("headgate/*/py.typed"))
    assert all(each.startswith("headgate-ingress-") for each in project["dependencies"] if each.startswith("headgate"))


def test_there_are_seven_of_them() -> None:
    assert len(PROJECTS) == 7
    assert distribution("headgate-ingress").version == distribution("headgate-ingress-common").version
