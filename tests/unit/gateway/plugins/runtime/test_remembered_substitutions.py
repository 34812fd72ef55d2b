"""What becomes of a path is remembered where it depends on the path alone."""

from typing import Any

import pytest

from headgate.common.patterns import Match, Pattern, compile_pattern
from headgate.gateway.plugins.kit import patterns
from headgate.gateway.plugins.kit.patterns import Substitution, Template
from unit.gateway.plugins.running import request

ASKED = request("/")


class WatchedPattern:
    """A pattern that notes which texts it was asked about."""

    def __init__(self, pattern: Pattern, asked: list[str]) -> None:
        self._pattern = pattern
        self._asked = asked
        self.groups = pattern.groups

    def search(self, text: bytes) -> Match | None:
        self._asked.append(text.decode())
        return self._pattern.search(text)


@pytest.fixture
def searched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that patterns were asked about."""
    asked: list[str] = []

    def watched(pattern: str, **more: Any) -> WatchedPattern:
        return WatchedPattern(compile_pattern(pattern, **more), asked)

    monkeypatch.setattr(patterns, "compile_pattern", watched)
    return asked


def test_a_text_is_searched_once_and_long_ones_each_time(searched: list[str]) -> None:
    first, second = Substitution("^/a/(.*)", "/b/$1"), Substitution("^/a/(.*)", "/c/$1")
    for _ in range(3):
        assert first.apply("/a/x", ASKED) == ("/b/x", ("x",))
        assert second.apply("/a/x", ASKED) == ("/c/x", ("x",))
        assert first.apply("/other", ASKED) is None
    assert searched == ["/a/x", "/a/x", "/other"]
    long = "/a/" + "x" * 300
    assert first.apply(long, ASKED) == first.apply(long, ASKED)
    assert searched.count(long) == 2


@pytest.mark.parametrize(("pattern", "replacement"), [("^/(.*)", "$1" * 9), ("^/" + "(x?)" * 9 + "(.*)", "/$1")])
def test_what_may_become_long_is_not_remembered(searched: list[str], pattern: str, replacement: str) -> None:
    substitution = Substitution(pattern, replacement)
    assert substitution.apply("/a", ASKED) == substitution.apply("/a", ASKED)
    assert searched == ["/a", "/a"]


@pytest.mark.parametrize(("text", "is_of_groups"), [("/b/$1", True), ("/b", True), ("/b/$uri", False)])
def test_a_template_with_variables_is_rendered_for_each_request(text: str, is_of_groups: bool) -> None:
    assert Template(text).refers_to_groups_alone is is_of_groups


def test_groups_that_are_not_there_are_nothing() -> None:
    assert Template("/$1/$2/$3").render_groups(("a", "b")) == "/a/b/"
