"""What a matcher may say."""

import pytest

from headgate.common.casbin.errors import CasbinFault
from headgate.common.casbin.matcher import MAX_DEPTH, Equal, Field, Names, Not, read_matcher

NAMES = Names(("sub", "obj", "act"), ("sub", "obj", "act"), {"g": 2, "g2": 3})


@pytest.mark.parametrize(
    ("matcher", "words"),
    [
        ("9**3999999 > 1 && r.sub == p.sub", r"'\*\*3999999 > 1 && r.sub == p.sub' is not followed"),
        ("9*9 == 81", "is not followed"),
        ("r.obj.ljust(3000000000) == p.obj", "there is no function 'r.obj.ljust'"),
        ("r.sub.__class__ == p.sub", r"'r.sub.__class__' is not defined; there are r.sub, r.obj, r.act"),
        ("__import__('os') == p.sub", "there is no function '__import__'"),
        ("eval(p.sub)", "there is no function 'eval'"),
        ("[x for x in r.sub]", "is not followed"),
        ("{} == r.sub", "is not followed"),
        ("f'{r.sub}' == p.sub", "'f' is not followed"),
        ("r.sub + p.sub == 'ab'", "is not followed"),
        ("lambda == r.sub", "'lambda' is not followed"),
        ("true if true else p.sub", "'if' is not expected here"),
        ("r.sub == p.sub == p.obj", "'==' is not expected here"),
        ("r.who == p.sub", "'r.who' is not defined"),
        ("r.sub && p.sub", "must be conditions, not values"),
        ("!r.sub", "must be conditions, not values"),
        ("r.sub", "a matcher is a condition, not a value"),
        ("1", "a matcher is a condition, not a value"),
        ("", "a value is expected instead of 'the end'"),
        ("(r.sub == p.sub", r"'\)' is expected instead of 'the end'"),
        ("r.sub == ", "a value is expected instead of 'the end'"),
        ("r.sub in p.sub", r"'\(' is expected instead of 'p.sub'"),
        ("r.sub in ('a')", "takes two members or more"),
        ("g(r.sub)", "g takes 2 arguments, not 1"),
        ("g2(r.sub, p.sub)", "g2 takes 3 arguments, not 2"),
        ("g3(r.sub, p.sub)", "there is no function 'g3'"),
        ("timeMatch('_', '_')", "there is no function 'timeMatch'"),
        ("keyMatch(r.sub)", "keyMatch takes 2 arguments, not 1"),
        ("keyMatch((r.sub == p.sub), p.obj)", "arguments of keyMatch must be fields or texts"),
        ("keyMatch(keyMatch(r.sub, p.sub), p.obj)", "arguments of keyMatch must be fields or texts"),
        ("keyMatch(1, p.obj)", "arguments of keyMatch must be fields or texts"),
        ("regexMatch(p.obj, r.obj)", "the second argument of regexMatch is a pattern"),
        (r"r.sub == '\x41'", r"the escape \\x is not followed"),
        ("r.sub == 'a", "is not followed"),
        ("r.sub == 1.2.3", "is not followed"),
        ("r.sub == p.sub || " * 70 + "true", "must have at most 200"),
        ("(" * 50 + "true" + ")" * 50, f"must be nested at most {MAX_DEPTH} deep"),
    ],
)
def test_what_is_not_of_the_grammar_is_refused(matcher: str, words: str) -> None:
    with pytest.raises(CasbinFault, match=words):
        read_matcher(matcher, NAMES)


def test_a_refusal_names_what_is_allowed() -> None:
    with pytest.raises(CasbinFault, match=r"a matcher has r\.NAME, p\.NAME, .*==, !=, in .* keyMatch, keyMatch2, "):
        read_matcher("9**9 == 1", NAMES)


def test_an_exclamation_mark_negates_the_comparison_behind_it() -> None:
    assert read_matcher("!r.sub == p.obj", NAMES).condition == Not(Equal(Field(True, 0), Field(False, 1)))


def test_negations_do_not_nest() -> None:
    assert read_matcher("!" * 1001 + "true", NAMES).size == 2
