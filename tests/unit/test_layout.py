"""Bounds that keep the sources readable: lengths of files, modules of a folder, circles of imports, private names."""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import pytest

from fakes.import_graph import circles, import_graph

ROOT = Path(__file__).parents[2]
PARTS = ("services", "libs", "cli", "bench", "deploy", "tests")
MAX_LINES = 450
MAX_MODULES = 25
"""In one folder, without those of the folders in it."""


def sources() -> Iterator[Path]:
    for part in PARTS:
        # A bench that ran here has left environments of its own.
        yield from (path for path in (ROOT / part).rglob("*.py") if ".work" not in path.parts)


@pytest.fixture(scope="module")
def lengths() -> dict[str, int]:
    """Lines of each module; those that only make folders packages are left out."""
    modules = [path for path in sources() if path.name != "__init__.py"]
    assert len(modules) > 1000
    return {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in modules}


def test_no_file_is_too_long_to_be_read_at_once(lengths: dict[str, int]) -> None:
    assert {name: length for name, length in lengths.items() if length > MAX_LINES} == {}


def test_most_files_are_neither_scraps_nor_long(lengths: dict[str, int]) -> None:
    assert 100 <= median(lengths.values()) <= 250


def test_no_folder_has_too_many_modules() -> None:
    modules = Counter(path.parent.relative_to(ROOT) for path in sources() if path.name != "__init__.py")
    assert {str(folder): count for folder, count in modules.items() if count > MAX_MODULES} == {}


def test_no_test_replaces_what_is_private() -> None:
    """Ruff refuses private names in expressions (`SLF001`), and sees no names in texts."""
    replaces = re.compile(r"""setattr\([^)\n]*["'.]_[A-Za-z]""")
    found = [path for path in (ROOT / "tests").rglob("*.py") if replaces.search(path.read_text())]
    assert [str(path.relative_to(ROOT)) for path in found] == []


@pytest.mark.parametrize(
    ("folder", "package"),
    [
        ("libs/common", "headgate.common"),
        ("libs/operations", "headgate.operations"),
        ("services/watcher", "headgate.watcher"),
        ("services/translator", "headgate.translator"),
        ("services/gateway", "headgate.gateway"),
        ("services/console", "headgate.console"),
        ("cli", "headgate.cli"),
        (".", "bench"),
        (".", "deploy"),
        ("tests", "fakes"),
    ],
)
def test_no_circle_of_imports_is_larger_than_two_files(folder: str, package: str) -> None:
    graph = import_graph(ROOT / folder, package)
    assert len(graph) > 5
    assert [sorted(circle) for circle in circles(graph) if len(circle) > 2] == []


def test_a_circle_over_an_import_for_type_checkers_is_seen(tmp_path: Path) -> None:
    folder = tmp_path / "some" / "package"
    folder.mkdir(parents=True)
    (folder / "one.py").write_text("from some.package import two\n")
    (folder / "two.py").write_text("def call():\n    from some.package.three import run\n")
    (folder / "three.py").write_text("if TYPE_CHECKING:\n    import some.package.one\n")
    (folder / "four.py").write_text("import some.package.one\n")
    assert circles(import_graph(tmp_path, "some.package")) == [
        {f"some.package.{name}" for name in ("one", "two", "three")}
    ]
