"""Which of two routes goes first, before and after."""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Final

from headgate.cli.converting.gateways import hostname_of
from headgate.cli.converting.rules import Rule
from headgate.cli.converting.sources import Place, Table
from headgate.common.resources import HTTP_ROUTE
from headgate.common.table import AllOf, Compare, Condition, Operator, PathMatch, PathType, Route

MAX_ROUTES: Final = 300
"""Of one host whose order is compared: all pairs are looked at."""
_LITERAL: Final = re.compile(r"(?:\\[^A-Za-z0-9]|[^\\.+*?()|\[\]{}^$])*")
_FLAGS: Final = re.compile(r"^\^?(?:\(\?[a-z]+\))?")
Key = tuple[object, ...]


def reordered(
    before: Table, after: Table, origins: Mapping[tuple[str, str, int, int], Rule]
) -> Iterator[tuple[Route, Route, str]]:
    """Yield pairs of routes of a host that may take the same requests, and of which the other one goes first now.

    The host is yielded too, and the route that went first before it. Hosts with more than `MAX_ROUTES` are passed over.
    """
    now = {place: _origins(host.routes, origins) for place, host in after.hosts.items()}
    for place, host in before.hosts.items():
        if len(host.routes) > MAX_ROUTES:
            continue
        positions = {route.name: index for index, route in enumerate(sorted(host.routes, key=_rank))}
        for routes in (routes for there, routes in now.items() if _is_same(place, there)):
            known = [route for route in routes if route.name in positions]
            for first, second in combinations(known, 2):
                if positions[second.name] < positions[first.name] and may_overlap(first, second):
                    yield second, first, place.host


def _is_same(old: Place, new: Place) -> bool:
    return hostname_of(old.host) == hostname_of(new.host)


def _origins(routes: Sequence[Route], origins: Mapping[tuple[str, str, int, int], Rule]) -> list[Route]:
    """Return what routes are made of, in the order in which they are asked; each once."""
    found: dict[str, Route] = {}
    for route in sorted(routes, key=_rank):
        if (name := rule_name(route)) in origins:
            origin = origins[name].route
            found.setdefault(origin.name, origin)
    return list(found.values())


def rule_name(route: Route) -> tuple[str, str, int, int]:
    """Return the namespace and name of an HTTPRoute, and the indexes of the rule and the match that made a route."""
    source = route.provenance
    rule, _, match = route.name.rpartition(" ")[2].partition("/")
    if source.kind != HTTP_ROUTE.kind or not rule.startswith("#"):
        return "", "", -1, -1
    return source.namespace, source.name, int(rule[1:]), int(match)


def _rank(route: Route) -> Key:
    return (*route.rank.before_path(route.path.type, len(route.path.value)), *route.rank.within_path)


def may_overlap(one: Route, other: Route) -> bool:
    """Whether some request may satisfy both; True where that is not plain."""
    return _paths_overlap(one.path, other.path) and not _exclude(one.when, other.when)


def _paths_overlap(one: PathMatch, other: PathMatch) -> bool:
    if one.type is other.type is PathType.EXACT:
        return one.value == other.value
    first, second = _beginning(one), _beginning(other)
    if one.type is PathType.EXACT and other.type is not PathType.REGEX:
        return first.startswith(second)
    if other.type is PathType.EXACT and one.type is not PathType.REGEX:
        return second.startswith(first)
    return first.startswith(second) or second.startswith(first)


def _beginning(path: PathMatch) -> str:
    """Return what all paths begin with that a match takes, in lower case."""
    if path.type is not PathType.REGEX:
        return path.value.rstrip("/").lower() if path.type is PathType.PREFIX else path.value.lower()
    pattern = _FLAGS.sub("", path.value)
    found = _LITERAL.match(pattern)
    literal = found[0] if found is not None and "|" not in pattern else ""
    if found is not None and pattern[found.end() : found.end() + 1] in ("*", "?", "{"):
        literal = literal[:-1]
    return literal.replace("\\", "").lower()


def _exclude(one: Condition | None, other: Condition | None) -> bool:
    """Whether two conditions ask for different values of the same thing."""
    asked = {(each.subject, each.name.lower()): each for each in _compares(one)}
    for each in _compares(other):
        present = asked.get((each.subject, each.name.lower()))
        if present is not None and not set(present.values) & set(each.values):
            return True
    return False


def _compares(condition: Condition | None) -> Iterator[Compare]:
    if isinstance(condition, AllOf):
        for part in condition.all_of:
            yield from _compares(part)
    elif isinstance(condition, Compare) and condition.operator is Operator.EQUALS and not condition.ignore_case:
        yield condition
