"""The lock files are resolved on one Python, and must be whole on all that a release names, and on the next."""

import re
import tomllib
from importlib.metadata import distributions
from itertools import chain
from pathlib import Path

import pytest
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[3]
PROJECTS = sorted(
    (*ROOT.glob("libs/*/pyproject.toml"), *ROOT.glob("services/*/pyproject.toml"), ROOT / "cli/pyproject.toml")
)
LOCKS = ("requirements.lock", "requirements-dev.lock")
_LOCKED = re.compile(r"^([A-Za-z0-9._-]+)==([^ ;]+)", re.MULTILINE)
_VERSIONS = re.compile(r"Programming Language :: Python :: (3\.\d+)")
FIRST_OF_DEBIAN_12 = "3.11.2"
NEXT = "3.14.0"
"""Not among the classifiers until its tests were run; installing must not be what stops it."""


def classified(project: Path) -> list[str]:
    """Versions of Python that a distribution says that it runs on."""
    classifiers = tomllib.loads(project.read_text())["project"]["classifiers"]
    return _VERSIONS.findall("\n".join(classifiers))


def versions() -> list[str]:
    return [FIRST_OF_DEBIAN_12, *(f"{each}.0" for each in classified(PROJECTS[0])), NEXT]


@pytest.fixture(scope="module")
def locked() -> dict[str, str]:
    """Names in both lock files, with their versions."""
    found = chain.from_iterable(_LOCKED.findall((ROOT / name).read_text()) for name in LOCKS)
    return {canonicalize_name(name): version for name, version in found}


def test_all_distributions_name_the_same_versions_of_python() -> None:
    assert len(PROJECTS) == 7
    assert {tuple(classified(project)) for project in PROJECTS} == {tuple(classified(PROJECTS[0]))}
    assert classified(PROJECTS[0])[0] == "3.11"


@pytest.mark.parametrize("version", versions())
def test_what_is_locked_needs_nothing_that_is_not(version: str, locked: dict[str, str]) -> None:
    """`pip-compile` leaves out what only another Python needs, and `pip install --no-deps` then lacks it."""
    there = {
        **default_environment(),
        "python_version": ".".join(version.split(".")[:2]),
        "python_full_version": version,
        "implementation_version": version,
        "extra": "",
    }
    known = [each for each in distributions() if canonicalize_name(each.metadata["Name"]) in locked]
    assert len(known) > 100
    needs = [(each.metadata["Name"], Requirement(line)) for each in known for line in each.requires or ()]
    lacking = [
        f"{name} needs {needed}"
        for name, needed in needs
        if needed.marker is None or needed.marker.evaluate(there)
        if not needed.specifier.contains(locked.get(canonicalize_name(needed.name), "0"), prereleases=True)
    ]
    assert lacking == []
