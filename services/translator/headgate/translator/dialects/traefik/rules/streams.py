"""A rule for TCP as server names, protocols and conditions of streams' routes.

Routes of streams are found by their server names. So a rule is a list of alternatives, each with server names or
without; what else it asks is a condition.
"""

from typing import Final, NamedTuple

from headgate.common.table import AllOf, AnyOf, Compare, Condition, Not, Operator, Subject
from headgate.common.table.hosts import PATTERN_MARK
from headgate.translator.dialects.traefik.rules.connections import ANY_NAME, Asks, ConnectionTest
from headgate.translator.dialects.traefik.rules.rule import Rule
from headgate.translator.dialects.traefik.rules.templates import quote
from headgate.translator.dialects.traefik.rules.tree import Call, Every, Expression, Negated, Some

_COMPARED: Final[dict[Asks, tuple[Subject, Operator]]] = {
    "server name": (Subject.HOST, Operator.EQUALS),
    "server name pattern": (Subject.HOST, Operator.REGEX),
    "network": (Subject.PEER, Operator.NETWORK),
    "application protocol": (Subject.ALPN, Operator.EQUALS),
}


class StreamAlternative(NamedTuple):
    """Connections of a rule that one route for streams can take."""

    server_names: tuple[str, ...]
    """As `StreamRoute` has them, patterns too; none: all connections that no other route takes, without TLS too."""
    alpn: tuple[str, ...] = ()
    """Of which clients offer one; none: whatever they offer."""
    when: Condition | None = None
    """What a connection has to satisfy besides."""


def asks_for_tls(rule: Rule[ConnectionTest]) -> bool:
    """Tell whether a rule asks for what is known of TLS connections alone."""
    return any(test.asks != "network" and test.value != ANY_NAME for tests in rule.tests.values() for test in tests)


def stream_alternatives(rule: Rule[ConnectionTest]) -> tuple[StreamAlternative, ...]:
    """Return what a rule for TCP takes: the connections of all alternatives together."""
    expression = rule.expression
    found: dict[tuple[tuple[str, ...], Condition | None], dict[str, None]] = {}
    for branch in expression.parts if isinstance(expression, Some) else (expression,):
        one = _branch(rule, branch)
        found.setdefault((one.alpn, one.when), {}).update(dict.fromkeys(one.server_names or (ANY_NAME,)))
    return tuple(
        StreamAlternative(() if ANY_NAME in names else tuple(names), alpn, when)
        for (alpn, when), names in found.items()
    )


def _branch(rule: Rule[ConnectionTest], branch: Expression) -> StreamAlternative:
    """Return what has to hold together; of several parts about server names, or protocols, the first has the place."""
    names: tuple[str, ...] | None = None
    protocols: tuple[str, ...] | None = None
    others: list[Condition] = []
    for part in branch.parts if isinstance(branch, Every) else (branch,):
        tests = _tests(rule, part)
        asked = {test.asks for test in tests}
        if names is None and asked and asked <= {"server name", "server name pattern"}:
            names = tuple(PATTERN_MARK + test.value if "pattern" in test.asks else test.value for test in tests)
        elif protocols is None and asked == {"application protocol"}:
            protocols = tuple(test.value for test in tests)
        else:
            others.append(_any_of(tests) if tests else _condition(rule, part))
    when = _joined(others) if others else None
    return StreamAlternative(() if names is None or ANY_NAME in names else names, protocols or (), when)


def _joined(parts: list[Condition]) -> Condition:
    return parts[0] if len(parts) == 1 else AllOf(all_of=tuple(parts))


def _tests(rule: Rule[ConnectionTest], part: Expression) -> tuple[ConnectionTest, ...]:
    """Return the tests of a matcher, or of alternatives that are matchers, one of which has to hold; else none."""
    if isinstance(part, Call):
        return rule.tests[part.offset]
    if isinstance(part, Some) and all(isinstance(each, Call) for each in part.parts):
        return tuple(test for each in part.parts for test in rule.tests[each.offset])
    return ()


def _condition(rule: Rule[ConnectionTest], part: Expression) -> Condition:
    match part:
        case Negated():
            return Not(negated=_condition(rule, part.part))
        case Every():
            return AllOf(all_of=tuple(_condition(rule, each) for each in part.parts))
        case Some():
            return AnyOf(any_of=tuple(_condition(rule, each) for each in part.parts))
        case Call():
            return _any_of(rule.tests[part.offset])


def _any_of(tests: tuple[ConnectionTest, ...]) -> Condition:
    """Return that one of several tests has to hold; those that ask for the same are one comparison."""
    values: dict[tuple[Subject, Operator], list[str]] = {}
    for test in tests:
        if test.asks == "server name" and test.value == ANY_NAME:
            return AllOf(all_of=())
        if test.asks == "server name" and test.value.startswith("*."):
            values.setdefault((Subject.HOST, Operator.REGEX), []).append(f"^[^.]+{quote(test.value[1:])}$")
        else:
            values.setdefault(_COMPARED[test.asks], []).append(test.value)
    parts = tuple(
        Compare(subject=subject, operator=operator, values=tuple(found))
        for (subject, operator), found in values.items()
    )
    return parts[0] if len(parts) == 1 else AnyOf(any_of=parts)
