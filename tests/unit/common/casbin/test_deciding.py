"""Decisions. What pycasbin 1.43 answers to the same is recorded here, except where a test says that it differs."""

from collections.abc import Generator

import pytest

from headgate.common.casbin.deciding import MAX_WORK, STEP, Enforcer
from headgate.common.casbin.errors import CasbinFault, TooMuchWork
from headgate.common.casbin.model import Effect
from headgate.common.patterns import bounded_patterns
from unit.common.casbin.test_model import model

ALICE, BOB = ("alice", "/data1", "read"), ("bob", "/data1", "read")
BASIC = "m = r.sub == p.sub && r.obj == p.obj && r.act == p.act"
WITH_EFFECT = "p = sub, obj, act, eft"


def steps_of(steps: Generator[None, None, bool]) -> tuple[int, bool]:
    count = 1
    while True:
        try:
            next(steps)
        except StopIteration as decided:
            return count, decided.value
        count += 1


def decide(model: str, policy: str, *asked: str) -> bool:
    return steps_of(Enforcer(model, policy).decide(*asked))[1]


def matches(function: str, text: str, pattern: str) -> bool:
    return decide(model(p="p = obj", m=f"m = {function}(r.obj, p.obj)"), f"p, {pattern}", "alice", text, "GET")


@pytest.mark.parametrize(
    ("function", "text", "pattern", "expected"),
    [
        ("keyMatch", "/foo", "/foo*", True),
        ("keyMatch", "/foo/bar", "/foo", False),
        ("keyMatch", "/foo/bar", "/foo/*", True),
        ("keyMatch", "/foo", "/foo/*", False),
        ("keyMatch", "/anything", "*", True),
        ("keyMatch2", "/foobar", "/foo*", False),
        ("keyMatch2", "/foo/bar", "/foo/*", True),
        ("keyMatch2", "/resource1", "/:resource", True),
        ("keyMatch2", "/", "/:resource", False),
        ("keyMatch2", "/myid/using/myresid", "/:id/using/:resId", True),
        ("keyMatch2", "/proxy/myid/res/res2", "/proxy/:id/*", True),
        ("keyMatch2", "/proxy/", "/proxy/:id/*", False),
        ("keyMatch2", "/alice", "/:/:", False),
        ("keyMatch2", "/x/y", "*", True),
        ("keyMatch3", "/myid/using/myresid", "/{id}/using/{resId}", True),
        ("keyMatch3", "/foo/bar/baz", "/foo/{x}", False),
        ("keyMatch3", "/proxy/myid/res", "/proxy/{id}/*", True),
        ("keyMatch4", "/parent/123/child/123", "/parent/{id}/child/{id}", True),
        ("keyMatch4", "/parent/123/child/456", "/parent/{id}/child/{id}", False),
        ("keyMatch4", "/parent/123/child/456", "/parent/{id}/child/{other}", True),
        ("keyMatch4", "/parent/123/child/123/more", "/parent/{id}/child/{id}/*", True),
        ("keyMatch5", "/parent/child?status=1&type=2", "/parent/child", True),
        ("keyMatch5", "/parent/child1?status=1", "/parent/*", True),
        ("keyMatch5", "/parent/1/x", "/parent/{id}/y", False),
        ("regexMatch", "/topic/create/123", "/topic/create", True),
        ("regexMatch", "/topic/create/123", "^/topic/create$", False),
        ("regexMatch", "/topic/delete/123", "/topic/delete/[0-9]+", True),
        ("regexMatch", "/x/topic/delete", "/topic/delete", False),
        ("ipMatch", "192.168.2.123", "192.168.2.0/24", True),
        ("ipMatch", "192.168.2.123", "192.168.3.0/24", False),
        ("ipMatch", "192.168.2.123", "192.168.2.5/16", True),
        ("ipMatch", "2001:db8::1", "2001:db8::/32", True),
        ("ipMatch", "10.0.0.11", "10.0.0.11", True),
        # globMatch is path.Match of Go, as documented; pycasbin drops the character behind a star.
        ("globMatch", "/foo", "/foo*", True),
        ("globMatch", "/foo/bar", "/foo*", False),
        ("globMatch", "/foo/bar", "/foo/*", True),
        ("globMatch", "/foo/bar/baz", "/foo/*", False),
        ("globMatch", "/prefix/foo", "*/foo", False),
        ("globMatch", "/xb", "/*ab", False),
        ("globMatch", "/xab", "/*ab", True),
        ("globMatch", "/a", "/[a-c]", True),
        ("globMatch", "/d", "/[a-c]", False),
        ("globMatch", "/d", "/[^a-c]", True),
        ("globMatch", "/*", "/\\*", True),
        ("globMatch", "/.x", "/..", False),
    ],
)
def test_functions_match_as_casbin_documents(function: str, text: str, pattern: str, expected: bool) -> None:
    assert matches(function, text, pattern) is expected


@pytest.mark.parametrize(
    ("matcher", "expected"),
    [
        ("r.sub == 'alice' || r.sub == 'root'", True),
        ("r.sub == 'bob' || r.obj == '/data1' && r.act == 'write'", False),
        ("(r.sub == 'alice' || r.obj == '/x') && r.act == 'write'", False),
        ("r.sub != 'bob'", True),
        ("!(r.sub == 'bob')", True),
        ("!r.sub == 'bob'", True),
        ("!!(r.sub == 'alice')", True),
        ("not r.sub == 'bob' and true or false", True),
        ("r.act in ('read', 'write')", True),
        ("r.act in ('list', 'write')", False),
        ("r.sub == 1", False),
        ("1 == 1.0", True),
        ("-1 == 1", False),
        ("(r.sub == 'alice') == true", True),
        ("True && !False", True),
        (r"regexMatch(r.obj, '^/data\d$')", True),
        (r"r.sub == 'al\'ice'", False),
        ('r.sub == "alice"', True),
    ],
)
def test_conditions_hold_as_in_pycasbin(matcher: str, expected: bool) -> None:
    assert decide(model(m=f"m = {matcher}"), "p, x, y, z", *ALICE) is expected


@pytest.mark.parametrize(
    ("effect", "decisions"),
    [
        (Effect.ALLOW_OVERRIDE, [True, True, True, False, False]),
        (Effect.DENY_OVERRIDE, [True, False, False, False, True]),
        (Effect.ALLOW_AND_DENY, [True, False, False, False, False]),
        (Effect.PRIORITY, [True, True, False, False, False]),
    ],
)
def test_the_effect_decides_between_lines_that_match(effect: Effect, decisions: list[bool]) -> None:
    lines = {"allow": "p, alice, /data1, read, allow", "deny": "p, alice, /data1, read, deny"}
    maybe = "p, alice, /data1, read, maybe"
    policies = [
        f"{maybe}\n{lines['allow']}",
        f"{lines['allow']}\n{lines['deny']}",
        f"{lines['deny']}\n{lines['allow']}",
        lines["deny"],
        maybe,
    ]
    text = model(p=WITH_EFFECT, e=f"e = {effect.value}", m=BASIC)
    assert [decide(text, policy, *ALICE) for policy in policies] == decisions


def test_lines_with_a_priority_are_judged_by_it() -> None:
    text = model(p="p = priority, sub, obj, act, eft", e=f"e = {Effect.PRIORITY.value}", m=BASIC)
    policy = "p, 10, alice, /data1, read, allow\np, 2, alice, /data1, read, deny\np, -1, bob, /data1, read, allow"
    assert not decide(text, policy, *ALICE)
    assert decide(text, policy, *BOB)


def test_without_lines_the_matcher_alone_decides() -> None:
    text = model(m="m = r.sub == 'alice' || r.sub == p.sub")
    assert decide(text, "# no rules", *ALICE)
    assert not decide(text, "# no rules", *BOB)


ROLES = model(g="g = _, _", m="m = g(r.sub, p.sub) && keyMatch(r.obj, p.obj)")


def test_roles_are_had_through_others() -> None:
    policy = "p, admin, /data*, *\ng, alice, editor\ng, editor, admin\ng, admin, alice"
    assert decide(ROLES, policy, *ALICE)
    assert not decide(ROLES, policy, *BOB)
    assert decide(ROLES, policy, "admin", "/data2", "read")


@pytest.mark.parametrize(("links", "expected"), [(9, True), (10, False)])
def test_roles_are_looked_for_in_ten_levels_as_casbin_does(links: int, expected: bool) -> None:
    chain = "\n".join(f"g, role{number}, role{number + 1}" for number in range(links))
    assert decide(ROLES, f"p, role{links}, *, *\n{chain}", "role0", "/", "GET") is expected


def test_roles_hold_in_their_domain() -> None:
    text = model(g="g = _, _, _", p="p = sub, dom, obj", m="m = g(r.sub, p.sub, p.dom) && r.obj == p.obj")
    policy = "p, admin, one, /one\np, admin, two, /two\ng, alice, admin, one"
    assert decide(text, policy, "alice", "/one", "GET")
    assert not decide(text, policy, "alice", "/two", "GET")


def test_resources_have_roles_of_their_own() -> None:
    text = model(g="g = _, _\ng2 = _, _", m="m = g(r.sub, p.sub) && g2(r.obj, p.obj) && r.act == p.act")
    policy = "p, admin, data, read\ng, alice, admin\ng2, /data1, data"
    assert decide(text, policy, *ALICE)
    assert not decide(text, policy, "alice", "/data2", "read")


def test_commas_within_brackets_belong_to_a_value() -> None:
    assert matches("regexMatch", "/,", "^/[,a]$")


def test_an_encoded_line_feed_slips_past_no_rule_that_denies() -> None:
    # Differs: pycasbin's `.` and its `$` know line feeds.
    text = model(p=WITH_EFFECT, e=f"e = {Effect.DENY_OVERRIDE.value}", m="m = keyMatch2(r.obj, p.obj)")
    assert not decide(text, "p, x, /admin/*, y, deny", "alice", "/admin/a\nb", "GET")


def test_what_is_no_address_is_refused_whatever_the_effect() -> None:
    text = model(p=WITH_EFFECT, e=f"e = {Effect.DENY_OVERRIDE.value}", m="m = ipMatch(r.sub, p.sub)")
    assert not decide(text, "p, 10.0.0.0/8, x, y, deny", "anonymous", "/", "GET")
    assert decide(text, "p, 10.0.0.0/8, x, y, deny", "192.0.2.1", "/", "GET")


@pytest.mark.parametrize(
    ("function", "pattern", "words"),
    [
        ("regexMatch", "(", "bracket that is not closed"),
        ("regexMatch", "a**", "is no RE2 pattern"),
        ("regexMatch", "[a-z]{1000}", "is too large"),
        ("regexMatch", "a" * 2000, "must have at most 1024 characters"),
        ("keyMatch4", "/(a)/{b}", "must not have groups"),
        ("globMatch", "/\\", "is no glob"),
        ("ipMatch", "10.0.0.0/33", "is no IP address and no network"),
    ],
)
def test_a_pattern_that_is_none_is_refused(function: str, pattern: str, words: str) -> None:
    with pytest.raises(CasbinFault, match=words):
        matches(function, "/", pattern)


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        ("", "must not be empty"),
        ("q, a, b, c", "line 1 is no rule of Casbin"),
        ("p2, a, b, c", "line 1 is no rule of Casbin"),
        ("p", "line 1 is no rule of Casbin"),
        ("p, a, b", "line 1 has 2 values behind p, where the model has 3"),
        ("# x\n\np, a, b, c, d", "line 3 has 4 values behind p"),
        ("g, a, b", r"line 1: the model's \[role_definition\] defines no g"),
        ("p, a], b, c", "closing bracket too many"),
        ("p, a(, b, c", "bracket that is not closed"),
        ("p, a, b, c\n" * 5001, "must have at most 5000 lines, but has 5001"),
        ("#" * 140_000, "must have at most 131072 characters"),
    ],
)
def test_what_is_no_policy_is_refused(policy: str, words: str) -> None:
    with pytest.raises(CasbinFault, match=words):
        Enforcer(model(), policy)


def test_a_priority_that_is_no_number_is_refused() -> None:
    with pytest.raises(CasbinFault, match="the priority 'high' is no whole number"):
        Enforcer(model(p="p = priority, sub"), "p, high, alice")


def test_lines_times_matcher_are_bounded() -> None:
    long = "m = " + " || ".join(["r.sub == p.sub"] * 16)
    with pytest.raises(CasbinFault, match=r"are too much for one request: together at most 100000"):
        Enforcer(model(m=long), "p, a, b, c\n" * 3000)


def test_a_long_policy_is_judged_in_steps() -> None:
    count, is_allowed = steps_of(Enforcer(model(), "p, a, b, c\n" * 4000).decide(*ALICE))
    assert not is_allowed
    assert count >= 4000 * 3 // STEP


def test_work_of_one_decision_is_bounded_before_it_is_done() -> None:
    policy = "\n".join(f"p, x, (a|b|ab)*[a-z0-9]{{200}}{number}$, y" for number in range(30))
    enforcer = Enforcer(model(m="m = regexMatch(r.obj, p.obj)"), policy)
    with pytest.raises(TooMuchWork):
        steps_of(enforcer.decide("alice", "ab" * 8000, "GET"))
    assert MAX_WORK < 30 * 200 * 16_000 // 50


def test_nested_repetition_takes_time_linear_in_the_text() -> None:
    enforcer = Enforcer(model(m="m = regexMatch(r.obj, p.obj)"), "p, x, ^/re/(a+)+$, GET")
    assert steps_of(enforcer.decide("x", "/re/" + "a" * 8000 + "!", "GET")) == (1, False)


def test_patterns_of_all_lines_are_bounded_together() -> None:
    policy = "\n".join(f"p, x, /{number}/:id, GET" for number in range(2000))
    with pytest.raises(CasbinFault, match="is one pattern too many"), bounded_patterns():
        Enforcer(model(m="m = keyMatch2(r.obj, p.obj)"), policy)
