"""`docs/comparison.md`: whoever claims something names a test that exists, and speaks of peers in fixed words."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "comparison.md"
COLUMNS = 8
WORDS = r"yes|partly|module|paid|no|not checked"
PEER = re.compile(rf"({WORDS})( \([^)]+\))?(; ingress-nginx (yes|partly|no))?")
OURS = re.compile(r"(yes|partly|no)( \([^)]+\))?(: .+)?")
LINK = re.compile(r"\[(test_\w+)\]\(\.\./(tests/[^)]+)\)")


def rows() -> list[list[str]]:
    """Cells of each row of each table of behaviours, without the heads."""
    tables = re.findall(r"^\| behaviour \|.*\n\|[-|]+\n((?:\|.*\n)+)", PAGE.read_text(), re.MULTILINE)
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for table in tables for line in table.splitlines()]


def test_every_row_has_all_columns() -> None:
    found = rows()
    assert len(found) > 50
    assert [cells[0] for cells in found if len(cells) != COLUMNS] == []


def test_what_headgate_does_is_shown_by_a_test() -> None:
    claims = [cells for cells in rows() if not cells[1].startswith("no")]
    assert claims
    assert [cells[0] for cells in claims if not LINK.search(cells[2])] == []


def test_gateways_are_spoken_of_in_fixed_words() -> None:
    assert [cells[0] for cells in rows() if not OURS.fullmatch(cells[1])] == []
    assert [(cells[0], peer) for cells in rows() for peer in cells[3:] if not PEER.fullmatch(peer)] == []
