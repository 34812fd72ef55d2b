"""The grammar of rules: what is read, what is refused, and where the error is said to be."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.translator.dialects.traefik.rules.errors import RuleError
from headgate.translator.dialects.traefik.rules.parser import MAX_DEPTH, MAX_RULE, parse
from headgate.translator.dialects.traefik.rules.tree import Argument, Call, Every, Expression, Negated, Some

MATCHERS = ("Host", "PathPrefix", "ClientIP")
A, B, C = (Call("Host", (Argument(name),)) for name in "abc")


def read(rule: str) -> Expression:
    return parse(rule, MATCHERS, {"Headers": "v2"})


@pytest.mark.parametrize(
    ("rule", "tree"),
    [
        ("Host(`a`)", A),
        (" ( Host ( `a` ) ) ", A),
        ('Host("a",)', A),
        ("Host(`a`) && Host(`b`) && Host(`c`)", Every((A, B, C))),
        ("Host(`a`) || Host(`b`) && Host(`c`)", Some((A, Every((B, C))))),
        ("(Host(`a`)||Host(`b`))&&Host(`c`)", Every((Some((A, B)), C))),
        ("!Host(`a`) && !(Host(`b`) || !!Host(`c`))", Every((Negated(A), Negated(Some((B, Negated(Negated(C)))))))),
        ("Host(`a`) &&\n  Host(`b`)\n", Every((A, B))),
        ("/* one\n two */ Host(`a`) // the rest", A),
        ("Host(`a`) /* and */ && Host(`b`)", Every((A, B))),
        ("HOST(`a`)", A),
        ("host(`a`)", A),
        ("Host()", Call("Host", ())),
        ("Clientip(`::1`)", Call("ClientIP", (Argument("::1"),))),
    ],
)
def test_a_rule_is_read_as_go_reads_it(rule: str, tree: Expression) -> None:
    assert read(rule) == tree


@pytest.mark.parametrize(
    ("literal", "text"),
    [
        (r"`^\d+$`", r"^\d+$"),
        ("`two\r\nlines`", "two\nlines"),
        (r'"a\"b\\c"', 'a"b\\c'),
        (r'"\a\b\f\n\r\t\v"', "\a\b\f\n\r\t\v"),
        (r'"\x41\101\u00e9\U0001F600"', "AAé😀"),
        (r'"\xc3\xa9"', "é"),
    ],
)
def test_literals_are_go_s(literal: str, text: str) -> None:
    assert read(f"Host({literal})") == Call("Host", (Argument(text),))


@pytest.mark.parametrize(
    ("rule", "error"),
    [
        ("", "column 1: found the end of the rule, expected a matcher such as Host(`example.com`), ! or ("),
        ("Host(`a`) &&", "column 13: found the end of the rule, expected a matcher"),
        ("&& Host(`a`)", "column 1: found &&, expected a matcher"),
        ("Host(`a`) Host(`b`)", "column 11: found a name 'Host', expected &&, || or the end of the rule"),
        ("Host(`a`) and Host(`b`)", "column 11: found a name 'and', expected &&, || or the end of the rule"),
        (
            "Host(`a`)\n&& Host(`b`)",
            "column 10: found a line break, expected &&, || or the end of the rule; a rule goes",
        ),
        ("Host(`a`) /*\n*/ && Host(`b`)", "column 11: found a line break"),
        ("Host(\n`a`\n)", "line 2, column 4: found a line break, expected , or )"),
        ("Host(`a`) &&\n  Hots(`b`)", "line 2, column 3: 'Hots' is no matcher; perhaps Host; there are ClientIP, Host"),
        ("hOST(`a`)", "column 1: 'hOST' is no matcher; perhaps Host"),
        ("Headers(`a`, `b`)", "column 1: Headers is a matcher of the syntax v2; there are ClientIP, Host, PathPrefix"),
        ("Host", "column 5: found the end of the rule, expected ( behind Host"),
        ("Host(`a`", "column 9: found the end of the rule, expected , or )"),
        ("Host(`a`))", "column 10: found ), expected &&, || or the end of the rule"),
        ("(Host(`a`)", "column 11: found the end of the rule, expected &&, || or )"),
        ("Host(,)", "column 6: found ,, expected a string in backquotes or double quotes, or )"),
        ("Host(a)", "column 6: found a name 'a', expected a string in backquotes or double quotes, or )"),
        ("Host(`a`,,`b`)", "column 10: found ,, expected a string"),
        ("Host('a')", "column 6: single quotes make no string in rules"),
        ("Host(`a)", "column 6: the string is not closed: a backquote is missing"),
        ('Host("a)\n', "column 6: the string is not closed: a double quote is missing on its line"),
        ("Host(`a`) & Host(`b`)", "column 11: expected &&"),
        ("Host(`a`) | Host(`b`)", "column 11: expected ||"),
        ("Host(`a`) == Host(`b`)", "column 11: '=' has no meaning in rules"),
        ("Host(1)", "column 6: '1' has no meaning in rules"),
        (r'Host("\.")', r"column 6: a backslash begins none of Go's escapes here: write \\ for itself"),
        (r'Host("\'")', "column 6: a backslash begins none of Go's escapes here"),
        (r'Host("\ud800")', "column 6: a backslash begins none of Go's escapes here"),
        (r'Host("\400")', "column 6: a backslash begins none of Go's escapes here"),
        (r'Host("\xff")', "has bytes that are not UTF-8"),
        ("!" * (MAX_DEPTH + 1) + "Host(`a`)", f"column {MAX_DEPTH + 1}: a rule is at most {MAX_DEPTH} levels deep"),
        ("(" * 100_000, f"a rule has at most {MAX_RULE} characters"),
    ],
)
def test_an_error_says_its_column_what_was_found_and_what_is_expected(rule: str, error: str) -> None:
    with pytest.raises(RuleError) as raised:
        read(rule)
    assert error in str(raised.value)


calls = st.builds(
    Call,
    st.sampled_from(MATCHERS),
    st.lists(st.builds(Argument, st.text(st.characters(codec="utf-8"), max_size=5)), max_size=3).map(tuple),
)
trees = st.recursive(
    calls,
    lambda parts: st.one_of(
        st.builds(Negated, parts),
        st.builds(Every, st.lists(parts, min_size=2, max_size=3).map(tuple)),
        st.builds(Some, st.lists(parts, min_size=2, max_size=3).map(tuple)),
    ),
    max_leaves=8,
)


@given(trees)
def test_what_is_written_reads_back(tree: Expression) -> None:
    assert read(str(tree)) == tree


@given(st.text(st.sampled_from('Host()`"!&|,a \n\\/*x1'), max_size=30))
def test_any_text_is_read_or_refused_at_a_place_in_it(rule: str) -> None:
    errors = []
    try:
        read(rule)
    except RuleError as error:
        errors.append(error)
    lines = rule.split("\n")
    assert all(1 <= error.line <= len(lines) for error in errors)
    assert all(1 <= error.column <= len(lines[error.line - 1]) + 1 for error in errors)
