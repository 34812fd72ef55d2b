"""What a model may define."""

import pytest

from headgate.common.casbin.errors import CasbinFault
from headgate.common.casbin.model import MAX_MODEL, Effect, read_model

R, P, E, M = "r = sub, obj, act", "p = sub, obj, act", "e = some(where (p.eft == allow))", "m = r.sub == p.sub"


def model(r: str = R, p: str = P, e: str = E, m: str = M, g: str = "") -> str:
    roles = f"[role_definition]\n{g}\n" if g else ""
    return f"[request_definition]\n{r}\n[policy_definition]\n{p}\n{roles}[policy_effect]\n{e}\n[matchers]\n{m}\n"


def test_comments_and_continued_lines_are_read() -> None:
    read = read_model(model(m="# who\n; and\nm = r.sub == p.sub && \\\n  r.obj == p.obj # why"))
    assert read.matcher.size == 7


@pytest.mark.parametrize("effect", list(Effect))
def test_every_effect_of_casbin_is_read_whatever_its_blanks(effect: Effect) -> None:
    assert read_model(model(e=f"e = {effect.value.replace(' ', '  ')}")).effect is effect
    assert read_model(model(e=f"e = {effect.value.replace(' ', '')}")).effect is effect


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", r"has a section \[request_definition\]"),
        (model(r="r = sub, obj"), "r must have three fields for subject, path and method, not 2"),
        (model(r="r = sub, obj, a-b"), "r has a field 'a-b', which is no name"),
        (model(p="p = sub, sub"), "p has a field twice"),
        (model(p="p = sub, obj, act\np2 = sub, obj"), "defines 'p2', which is not followed; only p is"),
        (model(p="q = sub"), "defines 'q', which is not followed"),
        (model(p=""), r"has a section \[policy_definition\]"),
        (model(p="p ="), r"\[policy_definition\] must define p"),
        (model(e="e = some(where (p.eft == maybe))"), "is no effect that is followed; there are some"),
        (model(e="e = subjectPriority(p.eft) || deny"), "is no effect that is followed"),
        (model(m="m = r.sub"), "a matcher is a condition"),
        (model(m="m = true\nm = false"), "is no definition of its own"),
        (model(m="m"), "is no definition of its own"),
        (model(m="m = true \\"), "continues with"),
        (model(g="g = _"), "roles are g to g9"),
        (model(g="g = _, _, (_, _)"), "roles are g to g9"),
        (model(g="keyMatch = _, _"), "roles are g to g9"),
        ("r = sub, obj, act", "is no definition of its own within a section"),
        (model() + "[other]\n", r"there is no section \[other\]"),
        (model() + "#" * MAX_MODEL, f"at most {MAX_MODEL} characters"),
    ],
)
def test_what_is_no_model_is_refused(text: str, words: str) -> None:
    with pytest.raises(CasbinFault, match=words):
        read_model(text)
