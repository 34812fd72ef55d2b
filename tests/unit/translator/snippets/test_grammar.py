"""nginx's grammar: what is a word, what is a directive, and what is refused where."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.translator.snippets.errors import SnippetError
from headgate.translator.snippets.grammar import MAX_DEPTH, MAX_DIRECTIVES, MAX_TEXT, MAX_WORD, Directive, parse


def words(text: str) -> tuple[str, ...]:
    (directive,) = parse(text)
    return (directive.name, *directive.args)


def test_empty_text_and_comments_are_no_directives() -> None:
    assert parse(" \n# nothing; here {\n\t# and no line end") == ()


def test_directive_ends_at_a_semicolon_and_words_at_space() -> None:
    assert words("rewrite ^/a\n\t/b  last ;") == ("rewrite", "^/a", "/b", "last")


def test_place_is_that_of_the_name() -> None:
    first, second = parse("# one\n  set $a b;\n\n  set $c d;")
    assert (first.line, first.column, second.line) == (2, 3, 4)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ('r "a b";', "a b"),
        ("r 'a \"b\"';", 'a "b"'),
        ('r "";', ""),
        ('r "a\nb";', "a\nb"),
        (r'r "a\"b";', 'a"b'),
        (r"r a\ b;", r"a\ b"),
        (r"r a\;b;", r"a\;b"),
        (r'r "a\\b";', r"a\b"),
        (r"r ^/(\d+)\.php$;", r"^/(\d+)\.php$"),
        (r'r "a\tb\r\nc";', "a\tb\r\nc"),
        ('r a"b"c;', 'a"b"c'),
        ("r a#b;", "a#b"),
        ("r a}b;", "a}b"),
        ("r ${host}b;", "${host}b"),
        ('r "{;}";', "{;}"),
    ],
)
def test_words_are_split_and_unescaped_as_nginx_does(text: str, word: str) -> None:
    assert words(text) == ("r", word)


def test_parenthesis_may_follow_a_quoted_word() -> None:
    assert words('if ($a = "b c") {}') == ("if", "($a", "=", "b c", ")")


def test_block_holds_directives_and_nests() -> None:
    (outer,) = parse("location /a { if ($b) { return 403; } }")
    assert outer.block == (Directive("if", ("($b)",), 1, 15, (Directive("return", ("403",), 1, 25),)),)


def test_brace_ends_a_word_that_is_not_quoted() -> None:
    (directive,) = parse("location /a{}")
    assert (directive.args, directive.block) == (("/a",), ())


def test_last_header_needs_no_semicolon() -> None:
    assert parse("a b;\nmore_set_headers 'a: b' ")[1] == Directive("more_set_headers", ("a: b",), 2, 1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("more_set_headers 'a: b'\nreturn 200", "line 2, column 11: unexpected end of the snippet"),
        ("if ($a) { more_set_headers 'a: b' }", 'unexpected "}"'),
        ("return 200", "line 1, column 11: unexpected end of the snippet"),
        ("a;\n}", 'line 2, column 1: unexpected "}"'),
        ("if ($a) {\nreturn 1;", 'line 2, column 10: unexpected end of the snippet, expecting "}"'),
        ("location / { return 403 }", 'line 1, column 25: unexpected "}"'),
        (";", 'line 1, column 1: unexpected ";"'),
        ("{}", 'line 1, column 1: unexpected "{"'),
        ('a "b"c;', 'line 1, column 6: unexpected "c" behind a quoted text'),
        ('a;\nb "c;', 'line 2, column 3: a " is not closed'),
        ("a " + "x" * MAX_WORD + ";", f"line 1, column 3: a word has fewer than {MAX_WORD} characters"),
        ("a;" * (MAX_DIRECTIVES + 1), f"a snippet has at most {MAX_DIRECTIVES} directives"),
        ("a {" * (MAX_DEPTH + 1), f"blocks are nested at most {MAX_DEPTH} deep"),
        (" " * (MAX_TEXT + 1), f"a snippet has at most {MAX_TEXT} characters"),
        ("\naccess_by_lua_block { x = 1 }", "line 2, column 1: access_by_lua_block: Lua is not interpreted"),
    ],
)
def test_what_nginx_refuses_is_refused_with_its_place(text: str, message: str) -> None:
    with pytest.raises(SnippetError) as caught:
        parse(text)
    assert message in str(caught.value)


_WORDS = st.text(st.sampled_from("ab1 \t\n;{}#\"'\\$()/.*^é"), max_size=12)
_NAMES = st.text(st.sampled_from("abc_"), min_size=1, max_size=6)
_DIRECTIVES = st.recursive(
    st.tuples(_NAMES, st.lists(_WORDS, max_size=3), st.none()),
    lambda inner: st.tuples(_NAMES, st.lists(_WORDS, max_size=3), st.lists(inner, max_size=3)),
    max_leaves=8,
)


def render(directive: tuple[str, list[str], list | None]) -> str:  # type: ignore[type-arg]
    name, args, block = directive
    escapes = {"\\": "\\\\", '"': '\\"', "\t": "\\t", "\n": "\\n"}
    quoted = ['"' + "".join(escapes.get(char, char) for char in word) + '"' for word in args]
    end = ";" if block is None else "{" + "\n".join(map(render, block)) + "}"
    return " ".join([name, *quoted]) + end


def plain(directive: Directive) -> tuple[str, list[str], list | None]:  # type: ignore[type-arg]
    block = directive.block
    return directive.name, list(directive.args), None if block is None else [plain(each) for each in block]


@given(st.lists(_DIRECTIVES, max_size=4))
def test_what_is_written_with_quotes_reads_back(directives: list[tuple[str, list[str], list | None]]) -> None:  # type: ignore[type-arg]
    assert [plain(each) for each in parse("\n".join(map(render, directives)))] == directives


@given(st.text(st.sampled_from("ab ;{}#\"'\\$\n"), max_size=40))
def test_any_text_is_read_or_refused_on_one_line(text: str) -> None:
    assert "\n" not in reason(text)


def reason(text: str) -> str:
    try:
        parse(text)
    except SnippetError as error:
        return str(error)
    return ""
