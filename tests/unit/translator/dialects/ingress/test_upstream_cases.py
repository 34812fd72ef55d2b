"""The table of ingress-nginx's end-to-end cases names every case, and for each a test that exists or a reason."""

import ast
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

TESTS = Path(__file__).parents[4]
PAGE = TESTS.parent / "docs" / "ingress-nginx-cases.md"
SERVED = TESTS / "integration/gateway/served/nginx"
_TEST = re.compile(r"`([\w/]+\.py)::(\w+)`")


class Case(NamedTuple):
    """A row of the page: the file of the case, its name, and the tests or the reason beside it."""

    file: str
    name: str
    answer: str

    @property
    def tests(self) -> list[tuple[Path, str]]:
        """The files and the functions that the row names."""
        return [(_path(file), function) for file, function in _TEST.findall(self.answer)]


@cache
def _path(file: str) -> Path:
    return TESTS / file if "/" in file else next(SERVED.rglob(file), SERVED / file)


def _cases() -> list[Case]:
    cases, file = [], ""
    for line in PAGE.read_text().splitlines():
        if line.startswith("## "):
            file = line[3:]
        elif file and line.startswith("| ") and not line.startswith("| Case "):
            _, name, answer, _ = re.split(r"(?<!\\)\|", line)
            cases.append(Case(file, name.strip(), answer.strip()))
    return cases


@cache
def _functions(path: Path) -> frozenset[str]:
    if not path.exists():
        return frozenset()
    tree = ast.parse(path.read_text())
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


CASES = _cases()


def test_every_case_is_listed() -> None:
    assert len(CASES) == 439


def test_nearly_all_cases_have_tests_and_the_others_reasons() -> None:
    assert sum(bool(case.tests) for case in CASES) >= 400
    assert [case.name for case in CASES if not case.answer] == []


@pytest.mark.parametrize("file", sorted({case.file for case in CASES}))
def test_the_tests_of_a_file_exist(file: str) -> None:
    named = [test for case in CASES if case.file == file for test in case.tests]
    missing = [f"{path}::{function}" for path, function in named if function not in _functions(path)]
    assert not missing
