"""What a rule takes as a whole, by its routes in a table."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.common.table import Condition, Provenance, Route
from headgate.gateway.proxy.heads.facts import RequestFacts
from headgate.gateway.table.conditions import compile_condition
from headgate.gateway.table.hosts import host_candidates, patterns_taking
from headgate.gateway.table.match import compile_rule
from headgate.translator.dialects.traefik.rules import Alternative, RuleError, alternatives, parse_rule
from headgate.translator.dialects.traefik.rules.tree import Argument, Call, Every, Expression, Negated, Some

ORIGIN = Provenance(cluster="local", kind="IngressRoute", namespace="default", name="shop")
HOSTS = ("a.com", "b.com", "x.a.com")
PATHS = ("/", "/x", "/xy", "/x/y", "/z")


def places(rule: str) -> list[tuple[str, str]]:
    return [(one.host, one.path.value) for one in alternatives(parse_rule(rule))]


def test_alternatives_are_combined_into_one_route_for_each_host_and_path() -> None:
    rule = "(Host(`a`) || Host(`b`)) && (PathPrefix(`/x`) || Path(`/y`))"
    assert places(rule) == [("a", "/x"), ("a", "/y"), ("b", "/x"), ("b", "/y")]
    assert not any(one.when for one in alternatives(parse_rule(rule)))


def test_of_several_hosts_and_paths_the_most_specific_ones_place_the_route() -> None:
    rule = r"PathPrefix(`/x`) && HostRegexp(`^a`) && Path(`/x/y`) && Host(`*`) && Host(`a`) && PathRegexp(`^/longer.*`)"
    assert places(rule) == [("a", "/x/y")]


def test_alternatives_for_one_host_and_path_are_one_route() -> None:
    (one,) = alternatives(parse_rule("Host(`a`) && Method(`GET`) || Host(`a`) && Header(`X`, `1`)"))
    assert one.when == _condition("Method(`GET`) || Header(`X`, `1`)")
    (one,) = alternatives(parse_rule("Host(`a`) && Method(`GET`) || Host(`a`)"))
    assert one.when is None


def test_alternatives_without_hosts_and_paths_stay_one_condition() -> None:
    assert len(alternatives(parse_rule(" || ".join(f"Header(`X`, `{number}`)" for number in range(300))))) == 1


def test_a_rule_with_too_many_combinations_is_refused_where_they_come_from() -> None:
    hosts = " || ".join(f"Host(`{number}.com`)" for number in range(20))
    paths = " || ".join(f"Path(`/{number}`)" for number in range(20))
    with pytest.raises(RuleError, match=r"^column 15: this asks for more than 256 combinations of hosts and paths"):
        alternatives(parse_rule(f"Host(`a`) || (({hosts}) && ({paths}))"))


def test_conditions_that_are_nested_too_deep_are_refused() -> None:
    rule = "Method(`A`)"
    for _ in range(20):
        rule = f"Method(`B`) || Method(`C`) && ({rule})"
    with pytest.raises(RuleError, match="the rule's conditions are more than 24 levels deep"):
        alternatives(parse_rule(rule))


def _condition(rule: str) -> Condition | None:
    ((_, _, when),) = alternatives(parse_rule(rule))
    return when


_MATCHERS = {
    "Host": (*HOSTS, "*", "*.a.com"),
    "HostRegexp": (r"^[a-z]\.com$", r"^x\.a\.com$", "a"),
    "Path": PATHS,
    "PathPrefix": PATHS,
    "PathRegexp": ("^/x", "y$", "^/z|y"),
    "Method": ("GET", "POST"),
}
_calls = st.one_of(
    st.builds(Call, st.just(name), st.sampled_from(values).map(lambda value: (Argument(value),)))
    for name, values in _MATCHERS.items()
)
_rules = st.recursive(
    _calls,
    lambda parts: st.one_of(
        st.builds(Negated, parts),
        st.builds(Every, st.lists(parts, min_size=2, max_size=3).map(tuple)),
        st.builds(Some, st.lists(parts, min_size=2, max_size=3).map(tuple)),
    ),
    max_leaves=7,
)


@given(_rules, st.sampled_from(HOSTS), st.sampled_from(PATHS), st.sampled_from(("GET", "POST")))
def test_the_routes_of_a_rule_take_what_the_rule_takes(rule: Expression, host: str, path: str, method: str) -> None:
    found = alternatives(parse_rule(str(rule)))
    assert any(_takes(one, host, path, method) for one in found) is _holds(rule, host, path, method)
    assert len({(one.host, one.path) for one in found}) == len(found)


def _takes(one: Alternative, host: str, path: str, method: str) -> bool:
    route = Route(name="r", path=one.path, provenance=ORIGIN)
    facts = RequestFacts(method.encode(), b"http", host.encode(), path.encode(), b"", b"10.0.0.1")
    return (
        one.host in host_candidates(host, patterns_taking(host, (one.host,)))
        and compile_rule(route).takes(path.encode())
        and (one.when is None or compile_condition(one.when).takes(facts))
    )


def _holds(rule: Expression, host: str, path: str, method: str) -> bool:
    match rule:
        case Negated():
            return not _holds(rule.part, host, path, method)
        case Every():
            return all(_holds(part, host, path, method) for part in rule.parts)
        case Some():
            return any(_holds(part, host, path, method) for part in rule.parts)
    value = rule.arguments[0].value
    match rule.name:
        case "Host":
            return value in ("*", host) or (value.startswith("*.") and host.partition(".")[2] == value[2:])
        case "HostRegexp":
            return re.search(value, host) is not None
        case "Path":
            return path == value
        case "PathPrefix":
            return path.startswith(value)
        case "PathRegexp":
            return re.search(value, path) is not None
        case _:
            return method == value
