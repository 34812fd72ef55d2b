"""The rules of an IngressRoute, read: of each route of the object what it takes."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from headgate.common.problems import Problem
from headgate.translator.dialects.traefik.models.route import RouteRule
from headgate.translator.dialects.traefik.rules import Alternative, Rule, RuleError, parse_rule
from headgate.translator.dialects.traefik.rules.request_tests import RequestTest
from headgate.translator.fragments.route_cost import MAX_COST, TOO_COSTLY, route_cost
from headgate.translator.manifests.specs import Part, refuse, warn
from headgate.translator.world.graph import Lookups

MAX_ROUTES: Final = 10_000
"""Routes of the table that one object may make."""
_DIGEST: Final = 10
FindPlaces = Callable[[Rule[RequestTest]], tuple[Alternative, ...]]
"""Returns what a rule takes; raises RuleError."""


class Matched(NamedTuple):
    """A route of the object whose rule could be read."""

    rule: RouteRule
    field: str
    name: str
    """Unique within the object."""
    places: tuple[Alternative, ...]
    priority: int


def read_rules(
    rules: Sequence[Part[RouteRule]], find_places: FindPlaces, lookups: Lookups, problems: list[Problem]
) -> list[Matched]:
    """Return the routes whose rules can be read, as many as an object may have, and tell of the others.

    Of several with one rule each has a name of its own.
    """
    return list(_within_bounds(_matched(rules, find_places, lookups, problems), problems))


def _matched(
    rules: Sequence[Part[RouteRule]], find_places: FindPlaces, lookups: Lookups, problems: list[Problem]
) -> Iterator[Matched]:
    seen: dict[str, list[str]] = {}
    for rule, field in rules:
        try:
            if rule.syntax not in ("", "v2", "v3"):
                raise ValueError(f"the syntax must be v2 or v3, but is {rule.syntax[:40]!r}")
            syntax = rule.syntax or lookups.settings.traefik.default_rule_syntax
            parsed = parse_rule(rule.match, "v2" if syntax == "v2" else "v3")
            places, priority = find_places(parsed), parsed.priority(rule.priority)
        except (RuleError, ValueError) as error:
            problems.append(refuse("InvalidRule", f"{field}.match", str(error), rule.match))
            continue
        alike = seen.setdefault(rule.match, [])
        if alike:
            message = f"{alike[0]} has the same rule: the one of higher priority is served, else the first"
            problems.append(warn("ShadowedRoute", f"{field}.match", message, rule.match))
        alike.append(field)
        if not places:
            problems.append(warn("InvalidRule", f"{field}.match", "no request satisfies this rule", rule.match))
        digest = hashlib.sha256(rule.match.encode()).hexdigest()[:_DIGEST]
        yield Matched(rule, field, digest if len(alike) == 1 else f"{digest}-{len(alike)}", places, priority)


def _within_bounds(matched: Iterator[Matched], problems: list[Problem]) -> Iterator[Matched]:
    """Yield the routes that an object may have, and tell of the others."""
    left, cost_left = MAX_ROUTES, MAX_COST
    for one in matched:
        cost = sum(route_cost(place.when, ()) for place in one.places)
        if len(one.places) > left or cost > cost_left:
            message = f"asks for {len(one.places)} combinations of hosts and paths, which {TOO_COSTLY}"
            problems.append(refuse("TooMuchWork", f"{one.field}.match", message))
            continue
        left, cost_left = left - len(one.places), cost_left - cost
        yield one
