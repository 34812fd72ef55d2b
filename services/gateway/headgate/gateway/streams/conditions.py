"""Conditions of stream routes, compiled to functions of what is known of a connection before it is served.

Requests have far more to look at (`headgate.gateway.table.conditions`); here are three subjects.
"""

from collections.abc import Callable, Collection
from typing import NamedTuple

from headgate.common.table import AllOf, AnyOf, Compare, Condition, Not, Operator, Subject
from headgate.gateway.errors import BadMatch
from headgate.gateway.model.networks import is_within, parse_networks
from headgate.gateway.model.patterns import compile_pattern


class Asked(NamedTuple):
    """What a client asks for."""

    address: str
    server_name: str = ""
    """In lower case; empty without TLS, and if the client sent none."""
    alpn: Collection[str] = ()
    """Protocols that it offers."""


Decide = Callable[[Asked], bool]
_FIELD = "when"


def compile_condition(condition: Condition) -> Decide:
    """Compile the condition of a stream route.

    Raises:
        BadMatch: it asks for what is not known of connections, or a pattern or network cannot be read.
    """
    match condition:
        case Not():
            decide = compile_condition(condition.negated)
            return lambda asked: not decide(asked)
        case AllOf():
            every = tuple(map(compile_condition, condition.all_of))
            return lambda asked: all(part(asked) for part in every)
        case AnyOf():
            some = tuple(map(compile_condition, condition.any_of))
            return lambda asked: any(part(asked) for part in some)
        case Compare():
            return _compile_compare(condition)


def _compile_compare(compare: Compare) -> Decide:
    values = frozenset(compare.values)
    match compare.subject, compare.operator:
        case Subject.HOST, Operator.EQUALS:
            return lambda asked: asked.server_name in values
        case Subject.HOST, Operator.REGEX:
            patterns = tuple(compile_pattern(value, _FIELD) for value in compare.values)
            return lambda asked: any(each.search(asked.server_name.encode()) is not None for each in patterns)
        case Subject.ALPN, Operator.EQUALS:
            return lambda asked: not values.isdisjoint(asked.alpn)
        case Subject.PEER, Operator.NETWORK:
            return _within(compare.values)
    raise BadMatch(_FIELD, f"{compare.subject} {compare.operator} is not for stream routes")


def _within(texts: Collection[str]) -> Decide:
    try:
        networks = parse_networks(texts)
    except ValueError as error:
        raise BadMatch(_FIELD, str(error)) from error
    return lambda asked: is_within(asked.address, networks)
