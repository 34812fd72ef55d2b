"""Documentation that programs can check: links lead somewhere, and every flag of `up` is described."""

import re
from pathlib import Path

import pytest

from headgate.cli.__main__ import SECTIONS
from headgate.cli.up.command import up
from headgate.common.plugins.catalogue import CONFIGS

ROOT = Path(__file__).parents[3]
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")] + sorted(
    (ROOT / "docs").rglob("*.md")
)
TEST_LINK = re.compile(r"\[(test_\w+)\]\(([^)#]+)\)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text())
    local = [target for target in targets if "://" not in target]
    assert [target for target in local if not (page.parent / target).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_test_that_a_page_links_to_exists(page: Path) -> None:
    named = TEST_LINK.findall(page.read_text())
    assert [
        (test, path) for test, path in named if not re.search(rf"\bdef {test}\(", (page.parent / path).read_text())
    ] == []


def test_every_case_of_apisix_has_a_test_or_says_why_not() -> None:
    page = (ROOT / "docs" / "apisix-cases.md").read_text()
    tables = re.findall(r"^\| cases \| tests \|\n\|---\|---\|\n((?:\|.*\n)+)", page, re.MULTILINE)
    rows = [line.removeprefix("| ").removesuffix(" |").split(" | ") for table in tables for line in table.splitlines()]
    assert len(rows) > 150
    assert [cells for cells in rows if len(cells) != 2] == []
    excuse = re.compile("Not yet|Nothing to match: ")
    assert [cases for cases, tests in rows if not TEST_LINK.search(tests) and not excuse.match(tests)] == []


def test_every_conformance_test_of_gateway_api_has_a_test_or_says_why_not() -> None:
    page = (ROOT / "docs" / "gateway-api-cases.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", page, re.MULTILINE)
    assert len({name for name, _ in rows}) == len(rows) > 140
    assert [
        name for name, tests in rows if not (TEST_LINK.search(tests) or tests.startswith("Nothing to match: "))
    ] == []


def test_every_documented_example_of_apisix_has_a_test_or_says_why_not() -> None:
    page = (ROOT / "docs" / "apisix-examples.md").read_text()
    table = page.partition("| plugins | examples | tests |\n|---|---|---|\n")[2]
    rows = [line.removeprefix("| ").removesuffix(" |").split(" | ") for line in table.splitlines()]
    assert [cells for cells in rows if len(cells) != 3] == []
    assert sum(len(examples.split(" · ")) * len(plugins.split(", ")) for plugins, examples, _ in rows) > 138
    named = {name for plugins, _, _ in rows for name in re.findall("`(.*?)`", plugins)}
    assert named - set(CONFIGS) == {"mqtt-proxy"}
    excuse = re.compile("Not yet: |Nothing to match: ")
    assert [cells for cells in rows if not TEST_LINK.search(cells[2]) and not excuse.match(cells[2])] == []


def test_every_flag_of_up_is_described() -> None:
    page = (ROOT / "docs" / "cli.md").read_text()
    flags = {flag for parameter in up.params for flag in parameter.opts if flag.startswith("--")}
    assert {flag for flag in flags if f"`{flag}" not in page} == set()


def test_every_command_is_described() -> None:
    page = (ROOT / "docs" / "cli.md").read_text()
    assert [name for section in SECTIONS.values() for name in section if f"`{name}" not in page] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_test_that_a_page_names_exists(page: Path) -> None:
    named = re.findall(r"`(?:tests/)?((?:unit|integration|e2e|faults|fuzz|cluster)/[\w/]+\.py)`", page.read_text())
    assert named or page.name not in ("guarantees.md", "operations.md", "security.md")
    assert [path for path in named if not (ROOT / "tests" / path).exists()] == []
