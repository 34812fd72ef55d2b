"""What `deploy/manifests/rights.py` writes from the kinds that are read."""

import pytest
from deploy.manifests import rights

from headgate.common.resources import INGRESS, ResourceKind, StatusShape


def rule(kind: ResourceKind, where: str = rights.IN_NAMESPACES) -> list[rights.Rule]:
    return [one for one in rights.rules(rights.Kinds([kind])) if one.where == where]


def test_files_with_rights_are_as_the_kinds_have_it() -> None:
    assert rights.main(["--check"]) == 0


def test_a_kind_whose_status_is_written_may_be_fetched_and_its_status_patched() -> None:
    kind = ResourceKind("example.com", "widgets", "Widget", ("v1",), status=StatusShape.CONDITIONS)
    assert [(one.resources, one.verbs) for one in rule(kind)] == [
        (("widgets",), ("get", "list", "watch")),
        (("widgets/status",), ("patch",)),
    ]


def test_a_kind_that_is_only_looked_up_may_be_listed_and_watched() -> None:
    (only,) = rule(ResourceKind("example.com", "widgets", "Widget", ("v1",)))
    assert (only.resources, only.verbs) == (("widgets",), ("list", "watch"))


def test_a_kind_without_a_namespace_is_read_with_a_cluster_role() -> None:
    kind = ResourceKind("example.com", "widgets", "Widget", ("v1",), namespaced=False)
    assert rule(kind) == []
    assert [one.resources for one in rule(kind, rights.IN_CLUSTER)] == [("widgets",)]


def test_a_right_to_a_whole_group_is_no_right_outside_of_namespaces() -> None:
    kind = ResourceKind("example.com", "widgets", "Widget", ("v1",), namespaced=False, has_whole_group=True)
    assert [one.resources for one in rule(kind)] == [("*",)]
    assert [(one.resources, one.when) for one in rule(kind, rights.IN_CLUSTER)] == [(("widgets",), rights.CONFINED)]


def test_a_kind_that_stands_in_for_another_is_not_asked_for() -> None:
    assert [kind.group for kind in rights.ALL_KINDS if kind.stands_in_for is INGRESS] == ["extensions"]
    assert [one for one in rights.rules() if one.group == "extensions"] == []


def test_a_text_without_marks_is_refused() -> None:
    with pytest.raises(ValueError, match="the marks are missing"):
        rights.with_section("rules:\n", ["- a"])


def test_a_section_is_replaced_between_its_marks_and_nothing_else() -> None:
    before = f"a\n  {rights.BEGIN}\n  - old\n  {rights.END}\nb\n"
    assert rights.with_section(before, ["- new"]) == before.replace("old", "new")


def test_a_kind_of_which_single_objects_are_read_gives_no_right_to_others() -> None:
    kind = ResourceKind("example.com", "widgets", "Widget", ("v1",), namespaced=False, names=("one",))
    assert [(one.verbs, one.names) for one in rule(kind, rights.IN_CLUSTER)] == [(("list", "watch"), ("one",))]
