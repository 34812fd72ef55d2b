"""Patterns that users write."""

from collections.abc import Iterable

import pytest

from headgate.common.patterns import bounded_patterns, compile_pattern


@pytest.mark.parametrize("pattern", ["(", "(?=a)", "(a)\\1", "[z-a]"])
def test_a_pattern_that_re2_does_not_take_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="is no RE2 pattern: "):
        compile_pattern(pattern)


def test_a_pattern_whose_automaton_would_hold_up_the_loop_is_refused() -> None:
    with pytest.raises(ValueError, match=r"'\[a-z\]\{1000\}' is too large: \d+ instructions, at most 1000"):
        compile_pattern("[a-z]{1000}")


def test_any_byte_is_a_character() -> None:
    found = compile_pattern("^/.(.)/x", captures=True).search(b"/\xff\xfe/x")
    assert found is not None
    assert found.groups() == (b"\xfe",)


def test_a_character_beyond_ascii_is_its_bytes_in_utf_8() -> None:
    assert compile_pattern("^é$").search("é".encode()) is not None


def test_case_is_ignored_if_asked() -> None:
    assert compile_pattern("abc", ignore_case=True).match(b"ABC") is not None
    assert compile_pattern("abc").match(b"ABC") is None


def test_what_would_backtrack_elsewhere_takes_no_time_here() -> None:
    assert compile_pattern("^(a+)+$").search(b"a" * 50_000 + b"!") is None


def _compile(patterns: Iterable[str]) -> None:
    for pattern in patterns:
        compile_pattern(pattern)


def test_patterns_of_one_place_have_a_bound_together() -> None:
    with bounded_patterns():
        _compile(f"^/{number}/" for number in range(300))
        with pytest.raises(ValueError, match=r"is one pattern too many: all together have 40000 instructions at most"):
            _compile(f"^/{number}/" for number in range(300, 1000))
    assert compile_pattern("^/1/").match(b"/1/") is not None


def test_a_pattern_that_is_known_already_counts_all_the_same() -> None:
    compile_pattern("a")
    with bounded_patterns(), pytest.raises(ValueError, match="'a' is one pattern too many"):
        _compile("a" for _ in range(1000))


def test_places_are_counted_apart() -> None:
    for _ in range(3):
        with bounded_patterns():
            _compile("a" for _ in range(500))
