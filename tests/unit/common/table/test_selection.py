"""What a table is made of."""

import pytest

from headgate.common.resources import ObjectRef
from headgate.common.selection import EVERYTHING, Selection, check_patterns, check_table_name


def test_what_is_empty_selects_all() -> None:
    assert EVERYTHING.selects(ObjectRef("paris", "", "services", "shop", "web"))


@pytest.mark.parametrize(
    ("cluster", "namespace", "is_selected"),
    [
        ("paris", "team-a", True),
        ("eu-west", "team-a", True),
        ("eu-west", "team-", True),
        ("eu", "team-a", False),
        ("paris-2", "team-a", False),
        ("paris", "teams", False),
        ("paris", "", True),
    ],
)
def test_names_are_exact_or_have_a_star_for_any_characters(cluster: str, namespace: str, is_selected: bool) -> None:
    selection = Selection(clusters=("paris", "eu-*"), namespaces=("team-*",))
    assert selection.selects(ObjectRef(cluster, "", "services", namespace, "web")) is is_selected


def test_a_dot_in_a_pattern_stands_for_nothing_else() -> None:
    assert not Selection(clusters=("a.c",)).has_cluster("abc")


@pytest.mark.parametrize("value", ["", "Team", "a b", "-a", "a-", "a.b", "x" * 64, "[a]"])
def test_what_can_be_no_name_is_refused_with_what_would_be_right(value: str) -> None:
    with pytest.raises(ValueError, match="is no name; give names such as shop or team-"):
        check_patterns(["shop", value])


@pytest.mark.parametrize("value", ["", "a.b", "A", "a*", "-a", "a" * 64])
def test_a_table_has_a_name_that_can_stand_in_subjects_and_keys(value: str) -> None:
    with pytest.raises(ValueError, match="such as tenant-a"):
        check_table_name(value)
