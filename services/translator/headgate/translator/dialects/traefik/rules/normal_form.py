"""A rule as alternatives, each of which one route can say: a host, a path, and conditions for the rest."""

from collections.abc import Iterable
from itertools import product
from typing import Final, NamedTuple

from headgate.common.table import ANY_HOST, AllOf, AnyOf, Condition, Not, PathMatch, PathType
from headgate.common.table.hosts import PATTERN_MARK
from headgate.translator.dialects.traefik.rules.errors import RuleError
from headgate.translator.dialects.traefik.rules.request_tests import ALWAYS, NEVER, RequestTest
from headgate.translator.dialects.traefik.rules.rule import Rule
from headgate.translator.dialects.traefik.rules.tree import Call, Every, Expression, Negated, Some

MAX_ALTERNATIVES: Final = 256
"""Of one rule, each a route of the table."""
MAX_CONDITION_DEPTH: Final = 24
"""Levels of conditions; gateways read 32."""
ANY_PATH: Final = PathMatch(type=PathType.STRING_PREFIX, value="/")
_PATH_ORDER: Final = (PathType.EXACT, PathType.STRING_PREFIX, PathType.REGEX)

Conjunction = tuple[RequestTest, ...]
"""Tests that all have to hold."""


class Alternative(NamedTuple):
    """Requests of a rule that one route of the table can take."""

    host: str
    """A host pattern of the table, `*` if the rule says nothing of hosts."""
    path: PathMatch
    when: Condition | None
    """What a request has to satisfy besides."""


def alternatives(rule: Rule[RequestTest]) -> tuple[Alternative, ...]:
    """Return what a rule for HTTP takes: the requests of all alternatives together. No two have one host and path.

    None: no request satisfies the rule, as with `Host` of v2 and a wildcard.

    Raises:
        RuleError: there are too many, or the conditions are nested too deep.
    """
    found: dict[tuple[str, PathMatch], list[Condition]] = {}
    for conjunction in _Expansion(rule).expand(rule.expression, is_negated=False):
        host, path, condition = _placed(conjunction)
        found.setdefault((host, path), []).append(condition)
    routes = []
    for (host, path), conditions in found.items():
        when = some(conditions)
        _check_depth(rule, when)
        if when != NEVER:
            routes.append(Alternative(host, path, None if when == ALWAYS else when))
    return tuple(routes)


def whole(rule: Rule[RequestTest]) -> tuple[Alternative, ...]:
    """Return what a rule takes as one alternative for any host and path, that asks for both by its condition.

    None: no request satisfies the rule.

    Raises:
        RuleError: the conditions are nested too deep.
    """
    when = _whole(rule, rule.expression)
    _check_depth(rule, when)
    return () if when == NEVER else (Alternative(ANY_HOST, ANY_PATH, None if when == ALWAYS else when),)


def _whole(rule: Rule[RequestTest], expression: Expression) -> Condition:
    match expression:
        case Negated():
            return Not(negated=_whole(rule, expression.part))
        case Every():
            return every(_whole(rule, part) for part in expression.parts)
        case Some():
            return some(_whole(rule, part) for part in expression.parts)
        case Call():
            return some(test.condition for test in rule.tests[expression.offset])


class _Expansion:
    """Takes hosts and paths out of a rule. Parts that ask for neither stay whole, as one condition."""

    def __init__(self, rule: Rule[RequestTest]) -> None:
        self._rule = rule

    def expand(self, expression: Expression, *, is_negated: bool) -> tuple[Conjunction, ...]:
        match expression:
            case Negated():
                return self.expand(expression.part, is_negated=not is_negated)
            case Call():
                tests = self._rule.tests[expression.offset]
                if is_negated:
                    return ((RequestTest(Not(negated=some(test.condition for test in tests))),),)
                return tuple((test,) for test in tests)
        parts = [self.expand(part, is_negated=is_negated) for part in expression.parts]
        if isinstance(expression, Some) is is_negated:
            return self._conjunction(expression, parts)
        return self._bounded(expression, _disjunction(conjunction for part in parts for conjunction in part))

    def _conjunction(self, expression: Every | Some, parts: list[tuple[Conjunction, ...]]) -> tuple[Conjunction, ...]:
        found: tuple[Conjunction, ...] = ((),)
        for part in parts:
            combined = product(found, part)
            found = self._bounded(expression, tuple((*first, *second) for first, second in combined))
        return found

    def _bounded(self, expression: Every | Some, found: tuple[Conjunction, ...]) -> tuple[Conjunction, ...]:
        if len(found) <= MAX_ALTERNATIVES:
            return found
        raise RuleError(
            self._rule.text,
            expression.offset,
            f"this asks for more than {MAX_ALTERNATIVES} combinations of hosts and paths: make several routes of it, "
            "or one pattern of several hosts or paths",
        )


def _disjunction(conjunctions: Iterable[Conjunction]) -> tuple[Conjunction, ...]:
    """Return alternatives, those that ask for neither host nor path as one."""
    placed: list[Conjunction] = []
    plain: list[Condition] = []
    for conjunction in conjunctions:
        if any(test.has_place for test in conjunction):
            placed.append(conjunction)
        else:
            plain.append(every(test.condition for test in conjunction))
    return (*placed, (RequestTest(some(plain)),)) if plain else tuple(placed)


def _placed(conjunction: Conjunction) -> tuple[str, PathMatch, Condition]:
    """Return the host and path of the table for tests that all have to hold, and a condition for the rest."""
    hosts = sorted((test for test in conjunction if test.host), key=_host_order)
    paths = sorted((test for test in conjunction if test.path is not None), key=_path_order)
    host, path = next(iter(hosts), None), next(iter(paths), None)
    said = [path] if host is None or not host.is_whole_host else [host, path]
    rest = (test.condition for test in conjunction if not any(test is one for one in said))
    place = ANY_PATH if path is None or path.path is None else path.path
    return ANY_HOST if host is None else host.host, place, every(rest)


def _host_order(test: RequestTest) -> tuple[int, int]:
    """Sort key, best first: exact hosts, wildcards, patterns, any host."""
    kinds = {PATTERN_MARK: 2, "*": 1}
    return (3 if test.host == ANY_HOST else kinds.get(test.host[0], 0)), -len(test.host)


def _path_order(test: RequestTest) -> tuple[int, int]:
    """Sort key, best first: exact paths, prefixes, patterns; longer ones first."""
    assert test.path is not None, "only tests with a path are sorted"
    return _PATH_ORDER.index(test.path.type), -len(test.path.value)


def every(conditions: Iterable[Condition]) -> Condition:
    """Return the condition that all of some hold, without levels that say nothing."""
    parts: dict[Condition, None] = {}
    for condition in conditions:
        parts |= dict.fromkeys(condition.all_of if isinstance(condition, AllOf) else (condition,))
    if NEVER in parts:
        return NEVER
    return next(iter(parts)) if len(parts) == 1 else AllOf(all_of=tuple(parts))


def some(conditions: Iterable[Condition]) -> Condition:
    """Return the condition that one of some holds, without levels that say nothing."""
    parts: dict[Condition, None] = {}
    for condition in conditions:
        parts |= dict.fromkeys(condition.any_of if isinstance(condition, AnyOf) else (condition,))
    if ALWAYS in parts:
        return ALWAYS
    return next(iter(parts)) if len(parts) == 1 else AnyOf(any_of=tuple(parts))


def _check_depth(rule: Rule[RequestTest], condition: Condition) -> None:
    if _depth(condition) > MAX_CONDITION_DEPTH:
        raise RuleError(rule.text, 0, f"the rule's conditions are more than {MAX_CONDITION_DEPTH} levels deep")


def _depth(condition: Condition) -> int:
    match condition:
        case AllOf():
            return 1 + max(map(_depth, condition.all_of), default=0)
        case AnyOf():
            return 1 + max(map(_depth, condition.any_of), default=0)
        case Not():
            return 1 + _depth(condition.negated)
        case _:
            return 1
