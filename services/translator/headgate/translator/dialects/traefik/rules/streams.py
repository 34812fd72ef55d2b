"""A rule for TCP as server names, protocols and conditions of streams' routes.

Routes of streams are found by their server names. So a rule is a list of alternatives, each with server names or
without; what else it asks is a condition.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from headgate.common.patterns import compile_pattern
from headgate.common.table import AllOf, AnyOf, Compare, Condition, Not, Operator, Subject
from headgate.common.table.hosts import PATTERN_MARK
from headgate.translator.dialects.traefik.rules.connections import ANY_NAME, Asks, ConnectionTest
from headgate.translator.dialects.traefik.rules.errors import RuleError
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


def plain_alternatives(rule: Rule[ConnectionTest]) -> tuple[StreamAlternative, ...]:
    """Return what a rule takes of connections that are not TLS. These have no server name, and offer no protocol.

    None: there is no such connection.

    Raises:
        RuleError: it asks for a server name, which Traefik refuses where there is no TLS.
    """
    named = next((call for call in _affirmed(rule.expression) if call.name == "HostSNI"), None)
    if named is not None and named.arguments[0].value != ANY_NAME:
        message = "server names are known of TLS connections alone: add tls, or ask for HostSNI(`*`)"
        raise RuleError(rule.text, named.offset, message)
    expression = rule.expression
    branches = expression.parts if isinstance(expression, Some) else (expression,)
    found = dict.fromkeys(_of_plain(rule, branch) for branch in branches)
    if True in found:
        return (StreamAlternative(()),)
    return tuple(StreamAlternative((), when=when) for when in found if not isinstance(when, bool))


def _affirmed(expression: Expression, *, is_negated: bool = False) -> Iterator[Call]:
    """Yield the matchers that are not negated."""
    match expression:
        case Call():
            if not is_negated:
                yield expression
        case Negated():
            yield from _affirmed(expression.part, is_negated=not is_negated)
        case _:
            for part in expression.parts:
                yield from _affirmed(part, is_negated=is_negated)


def _of_plain(rule: Rule[ConnectionTest], part: Expression) -> Condition | bool:
    """Return what is left of a part where there is no server name and no protocol; whether it holds if nothing is."""
    match part:
        case Negated():
            inner = _of_plain(rule, part.part)
            return not inner if isinstance(inner, bool) else Not(negated=inner)
        case Call():
            tests = rule.tests[part.offset]
            networks = tuple(test for test in tests if test.asks == "network")
            return any(map(_holds_without_tls, tests)) or (_any_of(networks) if networks else False)
    decides = isinstance(part, Some)
    found = [_of_plain(rule, each) for each in part.parts]
    if decides in [each for each in found if isinstance(each, bool)]:
        return decides
    left = tuple(each for each in found if not isinstance(each, bool))
    if len(left) < 2:
        return left[0] if left else not decides
    return AnyOf(any_of=left) if decides else AllOf(all_of=left)


def _holds_without_tls(test: ConnectionTest) -> bool:
    if test.asks == "server name pattern":
        return compile_pattern(test.value).search(b"") is not None
    return test.asks == "server name" and test.value == ANY_NAME


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
