"""Label selectors: what kubectl's `-l` selects."""

import pytest

from headgate.watcher.admission.selector import parse_selector

LABELS = {"team": "web", "tier": "3", "example.com/zone": "a"}


@pytest.mark.parametrize(
    "selector",
    [
        "",
        " ",
        "team",
        "team=web",
        "team==web",
        "team = web",
        "team!=shop",
        "absent!=shop",
        "!absent",
        "! absent",
        "team in (web, shop)",
        "team in (web)",
        "team notin (shop,blog)",
        "absent notin (shop)",
        "tier>2",
        "tier > 2",
        "tier<4",
        "example.com/zone=a",
        "team in (web,shop),!absent,tier>2",
    ],
)
def test_it_selects(selector: str) -> None:
    assert parse_selector(selector)(LABELS)


@pytest.mark.parametrize(
    "selector",
    [
        "absent",
        "team=shop",
        "team!=web",
        "!team",
        "team in (shop)",
        "absent in (shop)",
        "team notin (web,shop)",
        "tier>3",
        "tier<3",
        "absent<3",
        "team>1",
        "team=web,absent",
        "team=",
    ],
)
def test_it_does_not_select(selector: str) -> None:
    assert not parse_selector(selector)(LABELS)


def test_an_empty_value_is_a_value() -> None:
    assert parse_selector("team=")({"team": ""})
