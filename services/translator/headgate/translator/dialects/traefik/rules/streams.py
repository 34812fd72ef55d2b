"""A rule for TCP as server names, protocols and networks of a stream's route.

Streams are told apart by their server names and the protocols that clients offer, and a route says which networks may
connect. So a rule is a list of alternatives, each of server names that all may come from the same networks; what asks
for more has no place.
"""

from typing import NamedTuple

from headgate.common.table.hosts import PATTERN_MARK
from headgate.translator.dialects.traefik.rules.connections import ANY_NAME, Asks, ConnectionTest
from headgate.translator.dialects.traefik.rules.errors import RuleError
from headgate.translator.dialects.traefik.rules.rule import Rule
from headgate.translator.dialects.traefik.rules.tree import Call, Every, Expression, Negated, Some


class StreamAlternative(NamedTuple):
    """Connections of a rule that one route for streams can take."""

    server_names: tuple[str, ...]
    """As `StreamRoute` has them, patterns too; none: all connections that no other route takes, without TLS too."""
    networks: tuple[str, ...]
    """From which clients may connect; none: from everywhere."""
    alpn: tuple[str, ...] = ()
    """Of which clients offer one; none: whatever they offer."""


def stream_alternatives(rule: Rule[ConnectionTest]) -> tuple[StreamAlternative, ...]:
    """Return what a rule for TCP takes.

    Raises:
        RuleError: it asks for what has no place: a negation, or an alternative without a server name.
    """
    expression = rule.expression
    branches = expression.parts if isinstance(expression, Some) else (expression,)
    names: dict[tuple[tuple[str, ...], tuple[str, ...]], dict[str, None]] = {}
    for branch in branches:
        one = _branch(rule, branch)
        names.setdefault((one.networks, one.alpn), {}).update(dict.fromkeys(one.server_names))
    return tuple(
        StreamAlternative(() if ANY_NAME in found else tuple(found), networks, alpn)
        for (networks, alpn), found in names.items()
    )


def _branch(rule: Rule[ConnectionTest], branch: Expression) -> StreamAlternative:
    """Return what has to hold together; the names may have `*` among them."""
    found: dict[Asks, tuple[str, ...]] = {}
    for part in branch.parts if isinstance(branch, Every) else (branch,):
        asks, values = _values(rule, part)
        if asks in found:
            raise RuleError(rule.text, part.offset, f"a second {asks} that has to hold as well has no place in a route")
        found[asks] = values
    if "server name" not in found:
        raise RuleError(rule.text, branch.offset, "a route needs a server name: add HostSNI(`*`) with &&")
    return StreamAlternative(found["server name"], found.get("network", ()), found.get("application protocol", ()))


def _values(rule: Rule[ConnectionTest], part: Expression) -> tuple[Asks, tuple[str, ...]]:
    """Return alternatives for one server name, protocol or network."""
    if isinstance(part, Negated):
        raise RuleError(rule.text, part.offset, "a route for streams cannot ask that something is not so")
    if isinstance(part, Call):
        tests = rule.tests[part.offset]
        match tests[0].asks:
            case "server name pattern":
                return "server name", tuple(f"{PATTERN_MARK}{test.value}" for test in tests)
            case asks:
                return asks, tuple(test.value for test in tests)
    if isinstance(part, Every):
        raise RuleError(rule.text, part.offset, "&& within an alternative has no place in a route for streams")
    kinds = [_values(rule, each) for each in part.parts]
    if len({asks for asks, _ in kinds}) > 1:
        raise RuleError(
            rule.text, part.offset, "server names, protocols and networks are no alternatives of each other in a route"
        )
    return kinds[0][0], tuple(value for _, values in kinds for value in values)
