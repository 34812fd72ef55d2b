"""Patterns that users write."""

import pytest

from headgate.common.patterns import compile_pattern


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
