"""Paths with patterns that RE2 does not take."""

import pytest

from headgate.common.perl_patterns import PatternTooCostly, compile_perl_pattern
from headgate.common.table import PathMatch, PathType
from headgate.gateway.model.patterns import PatternSet


def test_patterns_of_both_engines_are_asked_in_one_order() -> None:
    checks = {1: compile_perl_pattern("^(?:/(?!a))")}
    found = PatternSet([("/a", False), ("", False), ("/b", False)], checks=checks)
    assert found.match(b"/a") == [0]
    assert found.match(b"/b") == [1, 2]
    assert found.match(b"/c") == [1]


def test_time_for_patterns_of_one_request_is_bounded() -> None:
    found = PatternSet([("", False)], checks={0: compile_perl_pattern("^(?!a)")})
    with pytest.raises(PatternTooCostly, match="took more than"):
        found.match(b"/a", ends=0.0)


def test_perl_is_said_of_patterns_only() -> None:
    with pytest.raises(ValueError, match="regex paths only"):
        PathMatch(type=PathType.EXACT, value="/a", perl=True)
