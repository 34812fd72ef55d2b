"""The table of Traefik's cases names for each a test that exists, or a reason."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[4]
PAGE = TESTS.parent / "docs" / "traefik-cases.md"
SERVED = TESTS / "integration/gateway/served/traefik"
_TEST = re.compile(r"`([\w/]+\.py)::(\w+)`")


def _rows() -> list[tuple[str, str]]:
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("| ") and not line.startswith("| Case")]
    return [(cells[1].strip(), cells[2].strip()) for cells in (re.split(r"(?<!\\)\|", line) for line in lines)]


def _path(file: str) -> Path:
    return (TESTS if "/" in file else SERVED) / file


@cache
def _functions(path: Path) -> frozenset[str]:
    if not path.exists():
        return frozenset()
    tree = ast.parse(path.read_text())
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


ROWS = _rows()


def test_every_row_has_a_test_or_a_reason() -> None:
    assert ROWS
    assert [case for case, answer in ROWS if not answer] == []


@pytest.mark.parametrize("file", sorted({file for _, answer in ROWS for file, _ in _TEST.findall(answer)}))
def test_the_tests_of_a_file_exist(file: str) -> None:
    named = {function for _, answer in ROWS for each, function in _TEST.findall(answer) if each == file}
    assert sorted(named - _functions(_path(file))) == []
