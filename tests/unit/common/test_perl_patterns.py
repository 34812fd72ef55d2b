"""Patterns of nginx: RE2 where it can, PCRE2 with bounds where it cannot."""

import pytest

from headgate.common.perl_patterns import MAX_TEXT, PatternTooCostly, compile_perl_pattern


@pytest.mark.parametrize(
    ("pattern", "text", "groups"),
    [
        (r"^/a/(\d+)$", b"/a/12", (b"12",)),
        (r"^/(?!admin)(.*)$", b"/x", (b"x",)),
        (r"^/(?!admin)(.*)$", b"/admin", None),
        (r"(?<=/a)/b", b"/a/b", ()),
        (r"^/(.)\1", b"/xx", (b"x",)),
        (r"^/(.)\1", b"/xy", None),
        (r"(a)|(b)", b"b", (None, b"b")),
    ],
)
def test_both_engines_give_what_groups_caught(pattern: str, text: bytes, groups: tuple[bytes, ...] | None) -> None:
    found = compile_perl_pattern(pattern).search(text)
    assert (None if found is None else found.groups()) == groups


@pytest.mark.parametrize("pattern", [r"^/(?<first>a)(b)", r"^/(?<first>a)(?!x)(b)"])
def test_named_groups_are_those_of_perl(pattern: str) -> None:
    assert compile_perl_pattern(pattern).names == ("first", "")


def test_case_is_ignored_if_asked_for() -> None:
    assert compile_perl_pattern("^/A(?!x)", ignore_case=True).search(b"/a") is not None


def test_steps_are_bounded() -> None:
    with pytest.raises(PatternTooCostly, match="match limit"):
        compile_perl_pattern("(?!x)(a+)+$").search(b"a" * 200 + b"!")


def test_texts_of_bounded_patterns_have_a_longest_length() -> None:
    pattern = compile_perl_pattern("(?!x)a")
    assert pattern.search(b"a" * MAX_TEXT) is not None
    with pytest.raises(PatternTooCostly, match="2048 bytes"):
        pattern.search(b"a" * (MAX_TEXT + 1))


@pytest.mark.parametrize("pattern", ["(", "(?!x)(", "(*LIMIT_MATCH=9)a", "(?!x)" + "a" * 1024])
def test_what_neither_takes_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="pattern"):
        compile_perl_pattern(pattern)
