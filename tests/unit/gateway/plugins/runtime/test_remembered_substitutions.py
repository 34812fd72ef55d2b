"""What becomes of a path is remembered where it depends on the path alone."""

from typing import Any

import pytest

from headgate.gateway.plugins.kit.patterns import Substitution, Template

NO_REQUEST: Any = None


def test_a_text_is_searched_once_and_long_ones_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[str] = []
    whole = Substitution.apply_to
    monkeypatch.setattr(Substitution, "apply_to", lambda self, text: (searched.append(text), whole(self, text))[1])
    first, second = Substitution("^/a/(.*)", "/b/$1"), Substitution("^/a/(.*)", "/c/$1")
    for _ in range(3):
        assert first.apply("/a/x", NO_REQUEST) == ("/b/x", ("x",))
        assert second.apply("/a/x", NO_REQUEST) == ("/c/x", ("x",))
        assert first.apply("/other", NO_REQUEST) is None
    assert searched == ["/a/x", "/a/x", "/other"]
    long = "/a/" + "x" * 300
    assert first.apply(long, NO_REQUEST) == first.apply(long, NO_REQUEST)
    assert searched.count(long) == 2


@pytest.mark.parametrize(("pattern", "replacement"), [("^/(.*)", "$1" * 9), ("^/" + "(x?)" * 9 + "(.*)", "/$1")])
def test_what_may_become_long_is_not_remembered(
    monkeypatch: pytest.MonkeyPatch, pattern: str, replacement: str
) -> None:
    searched: list[str] = []
    whole = Substitution.apply_to
    monkeypatch.setattr(Substitution, "apply_to", lambda self, text: (searched.append(text), whole(self, text))[1])
    substitution = Substitution(pattern, replacement)
    assert substitution.apply("/a", NO_REQUEST) == substitution.apply("/a", NO_REQUEST)
    assert searched == ["/a", "/a"]


@pytest.mark.parametrize(("text", "is_of_groups"), [("/b/$1", True), ("/b", True), ("/b/$uri", False)])
def test_a_template_with_variables_is_rendered_for_each_request(text: str, is_of_groups: bool) -> None:
    assert Template(text).refers_to_groups_alone is is_of_groups


def test_groups_that_are_not_there_are_nothing() -> None:
    assert Template("/$1/$2/$3").render_groups(("a", "b")) == "/a/b/"
