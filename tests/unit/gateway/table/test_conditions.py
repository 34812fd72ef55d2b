"""Conditions, each subject and operator by itself and in combination."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.gateway.requests import request_facts
from headgate.common.table import AllOf, AnyOf, Compare, Condition, Not, Operator, Subject
from headgate.gateway.errors import BadMatch
from headgate.gateway.table.condition_text import describe, why_not
from headgate.gateway.table.conditions import MAX_DEPTH, compile_condition


def compare(subject: str, operator: str, *values: str, fold: bool = False) -> Compare:
    """`header:x-a` is a subject with a name."""
    kind, _, name = subject.partition(":")
    return Compare(subject=Subject(kind), name=name, operator=Operator(operator), values=values, ignore_case=fold)


REQUEST = request_facts(
    "/shop/item?q=red+shoes&size=42&empty=&flag&q=blue",
    method="POST",
    scheme="https",
    host="shop.foo.com",
    headers=(
        ("X-User", "alice"),
        ("Accept", "text/html"),
        ("accept", "text/plain"),
        ("X-Level", "-1.50"),
        ("Cookie", 'a=1; b="two"; a=3'),
        ("X-Real-IP", "10.1.2.3"),
        ("Content-Type", "application/json; charset=utf-8"),
    ),
    client="192.0.2.77",
    body=b'{"order": {"items": [{"sku": "A1"}], "total": 12.50, "gift": false}}',
)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (compare("method", "equals", "GET", "POST"), True),
        (compare("method", "equals", "post"), False),
        (compare("scheme", "equals", "HTTPS"), True),
        (compare("host", "equals", "Shop.Foo.com"), True),
        (compare("host", "suffix", ".foo.com"), True),
        (compare("path", "prefix", "/shop/"), True),
        (compare("path", "equals", "/shop/item?q=red+shoes"), False),
        (compare("header:X-USER", "equals", "alice"), True),
        (compare("header:x-user", "equals", "bob", "alice"), True),
        (compare("header:x-user", "equals", "Alice"), False),
        (compare("header:x-user", "equals", "ALICE", fold=True), True),
        (compare("header:x-user", "present"), True),
        (compare("header:x-use", "present"), False),
        (compare("header:host", "equals", "shop.foo.com"), True),
        (compare("header:accept", "equals", "text/html, text/plain"), True),
        (compare("header:accept", "contains", "json", "plain"), True),
        (compare("header:x-user", "regex", "^al"), True),
        (compare("header:x-user", "regex", "^x", "ce$"), True),
        (compare("header:x-user", "regex", "ALICE"), False),
        (compare("header:x-user", "regex", "ALICE", fold=True), True),
        (compare("header:x-level", "less", "-1.4"), True),
        (compare("header:x-level", "less", "-1.5"), False),
        (compare("header:x-level", "greater", "100", "-2"), True),
        (compare("header:x-user", "less", "5"), False),
        (compare("header:x-level", "at-most", "-1.5"), True),
        (compare("header:x-level", "at-most", "-1.6"), False),
        (compare("header:x-level", "at-least", "-1.50"), True),
        (compare("header:x-level", "at-least", "-1.4"), False),
        (compare("header:x-user", "at-least", "-5"), False),
        (compare("header:x-user", "greater", "5"), False),
        (compare("query:q", "equals", "red shoes"), True),
        (compare("query:size", "greater", "41.9"), True),
        (compare("query:empty", "present"), True),
        (compare("query:flag", "equals", ""), True),
        (compare("query:none", "equals", ""), False),
        (compare("cookie:a", "equals", "1"), True),
        (compare("cookie:b", "equals", '"two"'), True),
        (compare("cookie:A", "present"), False),
        (compare("client", "network", "198.51.100.0/24", "192.0.2.0/24"), True),
        (compare("client", "network", "192.0.2.77"), True),
        (compare("client", "network", "192.0.2.64/29", "::/0"), False),
        (compare("header:x-real-ip", "network", "10.0.0.0/8"), True),
        (compare("header:x-user", "network", "0.0.0.0/0"), False),
        (compare("body:order.items.0.sku", "equals", "A1"), True),
        (compare("body:order.total", "equals", "12.50"), True),
        (compare("body:order.total", "greater", "12.4"), True),
        (compare("body:order.gift", "equals", "false"), True),
        (compare("body:order.items.1.sku", "present"), False),
    ],
)
def test_a_comparison_takes_a_request_or_not(condition: Compare, expected: bool) -> None:
    assert compile_condition(condition).takes(REQUEST) is expected
    assert compile_condition(Not(negated=condition)).takes(REQUEST) is not expected
    assert bool(why_not(condition, REQUEST)) is not expected


@pytest.mark.parametrize(
    ("subject", "operator", "value", "expected"),
    [
        ("header:accept", "equals", "text/html", True),
        ("header:Accept", "equals", "text/plain", True),
        ("header:accept", "equals", "text/html, text/plain", False),
        ("header:accept", "regex", "^text/plain$", True),
        ("header:cookie", "contains", "a=3", True),
        ("header:host", "equals", "shop.foo.com", True),
        ("header:x-none", "equals", "", False),
        ("query:q", "equals", "blue", True),
        ("query:q", "equals", "red shoes", True),
        ("query:flag", "equals", "", True),
        ("query:none", "equals", "", False),
    ],
)
def test_one_of_several_values_satisfies_a_comparison(subject: str, operator: str, value: str, expected: bool) -> None:
    condition = compare(subject, operator, value).model_copy(update={"any_value": True})
    assert compile_condition(condition).takes(REQUEST) is expected
    assert bool(why_not(condition, REQUEST)) is not expected


def test_only_headers_and_query_parameters_have_several_values() -> None:
    with pytest.raises(ValueError, match="any_value is for headers and query parameters only"):
        Compare(subject=Subject.PATH, values=("/",), any_value=True)


def test_who_is_connected_may_be_another_than_the_client() -> None:
    facts = request_facts("/", client="192.0.2.77")
    assert compile_condition(compare("peer", "equals", "192.0.2.77")).takes(facts)
    facts.peer = b"10.0.0.1"
    assert compile_condition(compare("peer", "network", "10.0.0.0/8")).takes(facts)
    assert not compile_condition(compare("client", "network", "10.0.0.0/8")).takes(facts)


def test_a_path_is_compared_with_its_escapes_decoded() -> None:
    facts = request_facts("/a%20b%2Fc?d")
    assert compile_condition(compare("decoded-path", "equals", "/a b%2Fc")).takes(facts)
    assert compile_condition(compare("path", "equals", "/a%20b%2Fc")).takes(facts)


@pytest.mark.parametrize(
    ("client", "network", "expected"),
    [
        ("2001:db8::1", "2001:db8::/32", True),
        ("2001:db9::1", "2001:db8::/32", False),
        ("::ffff:10.0.0.1", "10.0.0.0/8", True),
        ("fe80::1%eth0", "fe80::/10", True),
        ("10.0.0.1", "::/0", False),
        ("10.0.0.1", "0.0.0.0/0", True),
        ("unix", "0.0.0.0/0", False),
        ("", "0.0.0.0/0", False),
        ("010.0.0.1", "0.0.0.0/0", False),
    ],
)
def test_a_client_is_within_a_network(client: str, network: str, expected: bool) -> None:
    condition = compile_condition(compare("client", "network", network))
    assert condition.takes(request_facts(client=client)) is expected


@pytest.mark.parametrize("text", ["nan", "inf", "1e3", "1_0", "1 2", "0x1", "٣", "", "1.2.3", "9" * 65, "--1"])
def test_what_is_no_plain_number_is_neither_less_nor_greater(text: str) -> None:
    facts = request_facts("/", headers={"x": text})
    either = [compare("header:x", "less", "99999"), compare("header:x", "greater", "-99999")]
    assert not any(compile_condition(condition).takes(facts) for condition in either)


@pytest.mark.parametrize(
    ("condition", "field", "fault"),
    [
        (compare("path", "regex", "ok", "a(?=b)"), "when.values[1]", "'a(?=b)' is no RE2 pattern: "),
        (compare("query:n", "less", "1", "many"), "when.values[1]", "expected a decimal number"),
        (compare("client", "network", "10.0.0.0/33"), "when.values[0]", "'10.0.0.0/33' is no network"),
        (
            AllOf(all_of=(compare("path", "present"), Not(negated=AnyOf(any_of=(compare("path", "regex", "("),))))),
            "when.all_of[1].negated.any_of[0].values[0]",
            "'(' is no RE2 pattern: ",
        ),
    ],
)
def test_what_cannot_be_compiled_names_its_place(condition: Condition, field: str, fault: str) -> None:
    with pytest.raises(BadMatch) as caught:
        compile_condition(condition)
    assert caught.value.field == field
    assert caught.value.fault.startswith(fault)


def test_a_condition_nested_too_deep_is_refused() -> None:
    condition: Condition = compare("path", "present")
    for _ in range(MAX_DEPTH - 1):
        condition = Not(negated=condition)
    compile_condition(condition)
    with pytest.raises(BadMatch, match="levels deep"):
        compile_condition(Not(negated=condition))


def test_all_of_nothing_is_true_and_any_of_nothing_false() -> None:
    assert compile_condition(AllOf(all_of=())).takes(REQUEST)
    assert not compile_condition(AnyOf(any_of=())).takes(REQUEST)


KNOWN = {True: compare("method", "equals", "GET"), False: compare("method", "equals", "PUT")}
UNKNOWN = compare("body:x", "present")
TREES = st.recursive(
    st.sampled_from([KNOWN[True], KNOWN[False], UNKNOWN]),
    lambda inner: st.one_of(
        inner.map(lambda part: Not(negated=part)),
        st.lists(inner, max_size=3).map(lambda parts: AllOf(all_of=tuple(parts))),
        st.lists(inner, max_size=3).map(lambda parts: AnyOf(any_of=tuple(parts))),
    ),
    max_leaves=12,
)


def naive(condition: Condition, body: bool) -> bool:
    match condition:
        case Compare():
            return body if condition is UNKNOWN else condition is KNOWN[True]
        case Not():
            return not naive(condition.negated, body)
        case AllOf():
            return all(naive(part, body) for part in condition.all_of)
        case AnyOf():
            return any(naive(part, body) for part in condition.any_of)


@given(TREES)
def test_a_tree_agrees_with_logic_and_says_unknown_only_where_a_body_is_missing(tree: Condition) -> None:
    compiled = compile_condition(tree)
    form = {"content-type": "application/x-www-form-urlencoded"}
    for body in (b"x=1", b"y=1"):
        facts = request_facts(headers=form, body=body)
        assert compiled.decide(facts) is naive(tree, body == b"x=1")
        assert bool(why_not(tree, facts)) is not compiled.decide(facts)
    blind = compiled.decide(request_facts(headers=form))
    assert blind is None or blind is naive(tree, True) is naive(tree, False)
    assert blind is not None or compiled.needs_body


def test_only_conditions_on_the_body_need_it() -> None:
    assert not compile_condition(AllOf(all_of=(KNOWN[True], KNOWN[False]))).needs_body
    assert compile_condition(Not(negated=AnyOf(any_of=(KNOWN[True], UNKNOWN)))).needs_body


def test_conditions_are_told_in_words() -> None:
    condition = AllOf(
        all_of=(
            compare("method", "equals", "GET", "HEAD"),
            AnyOf(
                any_of=(compare("header:x-a", "prefix", "b", fold=True), Not(negated=compare("cookie:c", "present")))
            ),
        )
    )
    told = "method is 'GET' or 'HEAD' and (header x-a begins with 'b' in any case or not (cookie c is present))"
    assert describe(condition) == told
    assert (describe(AllOf(all_of=())), describe(AnyOf(any_of=()))) == ("always", "never")


@pytest.mark.parametrize(
    ("condition", "told"),
    [
        (compare("method", "equals", "GET"), "method is 'POST', asked for is one that is 'GET'"),
        (compare("cookie:c", "equals", "1"), "the request has no cookie c"),
        (Not(negated=compare("query:size", "equals", "42")), "it must not be that query parameter size is '42'"),
        (
            AllOf(all_of=(KNOWN[True], compare("cookie:c", "present"))),
            "method is 'POST', asked for is one that is 'GET'",
        ),
        (
            AnyOf(any_of=(KNOWN[True], KNOWN[True])),
            "; and ".join(["method is 'POST', asked for is one that is 'GET'"] * 2),
        ),
        (AnyOf(any_of=()), "it is never satisfied"),
    ],
)
def test_the_part_that_failed_is_named(condition: Condition, told: str) -> None:
    assert why_not(condition, REQUEST) == told
