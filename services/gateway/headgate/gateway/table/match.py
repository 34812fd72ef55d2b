"""Finding the route of a request among those of one host by its path, in one dictionary look-up for most tables.

Paths are compared as bytes, in the one form that `proxy.heads.paths` gives them; of escapes that a route's path has,
the same form is taken.

Segment prefixes ignore a trailing slash on both sides, so `/foo` and `/foo/` take the same requests and only one of two
such prefixes can ever win. A host whose routes have neither conditions nor priorities nor patterns has a `PathIndex`:
what wins is decided when it is built, and a request costs one look-up by exact path and one for each distinct prefix
length, longest first; `StartIndex` is the same for a host all of whose prefixes are plain text. All others have a
`RankedIndex`, which collects the routes that take the path and asks them in their order.
"""

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from headgate.common.perl_patterns import PerlPattern
from headgate.common.table import PathType, Rank, Route
from headgate.common.table.rank import BeforePath, WithinPath
from headgate.gateway.errors import BadMatch
from headgate.gateway.model.patterns import MAX_CHECKS_S, PatternSet, compile_pattern, compile_perl, literal_beginning
from headgate.gateway.model.steps import Steps
from headgate.gateway.proxy.heads.paths import decode_path, plain_escapes
from headgate.gateway.proxy.seam import NEEDS_BODY, NeedsBody
from headgate.gateway.table.conditions import CompiledCondition, Decide, compile_condition
from headgate.gateway.table.path_index import SLASH, PathIndex, StartIndex, longest_first

if TYPE_CHECKING:
    from headgate.gateway.proxy.request_source import RequestSource

T = TypeVar("T")
PATTERNS_AT_ONCE = 32
"""Patterns compiled to one automaton, in some 3 ms; a request of a host with more pays for each."""

_REMEMBERED_PATHS = 32
"""Of one host; with their candidates some 10 KB."""
_REMEMBERED_LENGTH = 256
_NO_RANK = Rank()


Strength = tuple[bool, BeforePath, WithinPath | tuple[()]]
Precedence = tuple[Strength, int]


class PathRule(NamedTuple):
    """How one route matches; rules of a host are compared by `precedence`."""

    type: PathType
    value: bytes
    position: int = 0
    """Of the route within its host."""
    rank: Rank = _NO_RANK
    ignore_case: bool = False
    perl: PerlPattern | None = None
    """In the place of RE2, for patterns that it does not take."""
    decoded: bool = False
    """A pattern for `decode_path` of paths."""
    condition: CompiledCondition | None = None
    fault: str = ""
    """Why the route cannot be matched as it says: it then comes after all others, and answers what no other takes."""

    @property
    def strength(self) -> Strength:
        """Sort key, winner first, among routes of any hosts."""
        # Of one length and type only patterns can differ and take the same path; between them their position decides.
        within_path = () if self.type is PathType.REGEX else self.rank.within_path
        return bool(self.fault), self.rank.before_path(self.type, len(self.value)), within_path

    @property
    def precedence(self) -> Precedence:
        """Sort key, winner first, among the routes of its host, as `Route` documents it."""
        return self.strength, self.position

    @property
    def is_plain(self) -> bool:
        """Whether type, length and, of equal paths, rank and position alone decide about the rule."""
        return self.type is not PathType.REGEX and not self.rank.priority and self.condition is None and not self.fault

    def takes(self, path: bytes) -> bool:
        """Tell whether the rule takes a path, looked at alone. The index must agree with this."""
        match self.type:
            case PathType.EXACT:
                return path == self.value
            case PathType.STRING_PREFIX:
                return path.startswith(self.value)
            case PathType.REGEX:
                return self._pattern_takes(decode_path(path) if self.decoded else path)
        prefix = prefix_key(self.value)
        return path == prefix or not prefix or path.startswith(prefix + b"/")

    def _pattern_takes(self, path: bytes) -> bool:
        if self.perl is not None:
            return self.perl.search(path) is not None
        pattern = compile_pattern(self.value.decode(), "path.value", ignore_case=self.ignore_case)
        return pattern.match(path) is not None


def compile_rule(route: Route, position: int = 0) -> PathRule:
    """Return how a route matches.

    One whose pattern or condition cannot be compiled keeps what is certain of its path: requests that no other route
    takes are answered by it with an error that says what is wrong, and those of other routes are theirs.
    """
    path, value, perl = route.path, route.path.value, None
    try:
        if path.perl:
            perl = compile_perl(value, "path.value", ignore_case=path.ignore_case)
        elif path.type is PathType.REGEX:
            compile_pattern(value, "path.value", ignore_case=path.ignore_case)
    except BadMatch as bad:
        beginning = "" if path.ignore_case or path.decoded else literal_beginning(value)
        return PathRule(PathType.STRING_PREFIX, beginning.encode(), position, route.rank, fault=str(bad))
    raw = value.encode()
    literal = raw if path.type is PathType.REGEX else plain_escapes(raw)
    rule = PathRule(path.type, literal, position, route.rank, path.ignore_case, perl, path.decoded)
    if route.when is None:
        return rule
    try:
        return rule._replace(condition=compile_condition(route.when))
    except BadMatch as bad:
        return rule._replace(fault=str(bad))


def literal_rule(type_: PathType, value: str, position: int) -> PathRule:
    """Return how a route matches that says nothing but a path, which is no pattern."""
    return PathRule(type_, plain_escapes(value.encode()), position)


def prefix_key(value: bytes) -> bytes:
    """Return a prefix without its trailing slash; the root is empty."""
    return value.removesuffix(b"/")


class Ranked(NamedTuple, Generic[T]):
    """A route as one of several that take a path; sorts by rank, which no two have in common."""

    rank: int
    decide: Decide | None
    """None: every request."""
    target: T


class _PatternGroup(NamedTuple, Generic[T]):
    patterns: PatternSet
    decoded: bool
    """They are looked for in `decode_path` of paths."""
    routes: Sequence[Ranked[T]]
    """Of the patterns, in the order of their ranks."""


class RankedIndex(Generic[T]):
    """The routes of one host by path, each with a rank and perhaps a condition; immutable."""

    __slots__ = ("_certain", "_exact", "_groups", "_has_checks", "_lengths", "_prefixes", "_remembered", "_starts")

    def __init__(self, rules: Iterable[tuple[PathRule, Ranked[T]]], groups: Sequence[_PatternGroup[T]]) -> None:
        """Index rules that are no patterns, in the order of their ranks, beside patterns."""
        exact: dict[bytes, list[Ranked[T]]] = {}
        prefixes: dict[bytes, list[Ranked[T]]] = {}
        starts: dict[bytes, list[Ranked[T]]] = {}
        for rule, ranked in rules:
            if rule.type is PathType.EXACT:
                routes = exact.setdefault(rule.value, [])
            elif rule.type is PathType.PREFIX:
                routes = prefixes.setdefault(prefix_key(rule.value), [])
            else:
                routes = starts.setdefault(rule.value, [])
            # Behind a route without a condition another of the same path can never win.
            if not routes or routes[-1].decide is not None:
                routes.append(ranked)
        others = [
            routes[0].rank for routes in (*prefixes.values(), *starts.values(), *(group.routes for group in groups))
        ]
        best_other = min(others, default=math.inf)
        self._certain: Mapping[bytes, Sequence[Ranked[T]]] = {
            path: routes for path, routes in exact.items() if routes[-1].decide is None and routes[-1].rank < best_other
        }
        """Exact paths of which no other route is asked."""
        self._exact: Mapping[bytes, Sequence[Ranked[T]]] = exact
        self._prefixes: Mapping[bytes, Sequence[Ranked[T]]] = prefixes
        self._starts: Mapping[bytes, Sequence[Ranked[T]]] = starts
        self._lengths = longest_first(prefixes), longest_first(starts)
        self._groups = tuple(groups)
        self._has_checks = any(group.patterns.has_checks for group in groups)
        self._remembered: dict[bytes, Sequence[Ranked[T]]] = {}
        """What takes some paths that came before: clients ask for the same again, and patterns take 15 us."""

    def match(self, path: bytes, source: "RequestSource") -> T | NeedsBody | None:
        """Return the best route that takes a path and whose condition takes the request."""
        found = self._certain.get(path) or self._remembered.get(path) or self._candidates(path)
        facts = None
        for _, decide, target in found:
            if decide is None:
                return target
            if facts is None:
                facts = source.facts()
            verdict = decide(facts)
            if verdict:
                return target
            if verdict is None:
                return NEEDS_BODY
        return None

    def undecided(self, path: bytes, source: "RequestSource") -> T:
        """Return the route because of which `match` has just said `NEEDS_BODY`."""
        facts = source.facts()
        decided = (target for _, decide, target in self._candidates(path) if decide and decide(facts) is None)
        return next(decided)

    def _candidates(self, path: bytes) -> Sequence[Ranked[T]]:
        """Collect the routes that take a path, the best first."""
        found = list(self._exact.get(path, ()))
        size = len(path)
        segments, starts = self._lengths
        for length in segments:
            if length <= size and not (0 < length < size and path[length] != SLASH):
                found += self._prefixes.get(path[:length], ())
        for length in starts:
            if length <= size:
                found += self._starts.get(path[:length], ())
        if self._groups:
            self._add_patterns(path, found)
        if len(found) > 1:
            found.sort()
        if self._groups and not self._has_checks and size <= _REMEMBERED_LENGTH:
            if len(self._remembered) >= _REMEMBERED_PATHS:
                self._remembered.clear()
            self._remembered[path] = found
        return found

    def _add_patterns(self, path: bytes, found: list[Ranked[T]]) -> None:
        """Add the routes whose patterns take the path, as long as they can win."""
        ends = time.thread_time() + MAX_CHECKS_S if self._has_checks else math.inf
        bound = min((ranked.rank for ranked in found if ranked.decide is None), default=None)
        for patterns, decoded, routes in self._groups:
            if bound is not None and routes[0].rank > bound:
                continue
            for index in patterns.match(decode_path(path) if decoded else path, ends):
                route = routes[index]
                found.append(route)
                if route.decide is None:
                    bound = route.rank if bound is None else min(bound, route.rank)
                    break


def _by_path(
    rules: Iterable[tuple[PathRule, T]], key: Callable[[bytes], bytes]
) -> tuple[dict[bytes, T], dict[bytes, T]]:
    """Return what wins for each exact path, and for each key of a prefix."""
    exact: dict[bytes, T] = {}
    prefixes: dict[bytes, T] = {}
    for rule, target in sorted(rules, key=_precedence):
        if rule.type is PathType.EXACT:
            exact.setdefault(rule.value, target)
        else:
            prefixes.setdefault(key(rule.value), target)
    return exact, prefixes


def _precedence(item: tuple[PathRule, object]) -> Precedence:
    return item[0].precedence


def _index_path(rule: PathRule, target: T) -> "PathIndex[T] | StartIndex[T]":
    """Build the index of a host with one route, as most have."""
    if rule.type is PathType.EXACT:
        return PathIndex({rule.value: target}, {})
    if rule.type is PathType.PREFIX:
        return PathIndex({}, {prefix_key(rule.value): target})
    return StartIndex({}, {rule.value: target})


Index = PathIndex[T] | StartIndex[T] | RankedIndex[T]
MatchPath = Callable[[bytes, "RequestSource"], T | NeedsBody | None]


def index_paths(rules: Sequence[tuple[PathRule, T]]) -> Steps[Index[T]]:
    """Build the index that suits a host's rules, in steps of some milliseconds."""
    if len(rules) == 1 and rules[0][0].is_plain:
        return _index_path(*rules[0])
    if all(rule.is_plain for rule, _ in rules):
        if not any(rule.type is PathType.STRING_PREFIX for rule, _ in rules):
            return PathIndex(*_by_path(rules, prefix_key))
        if not any(rule.type is PathType.PREFIX and rule.value != b"/" for rule, _ in rules):
            return StartIndex(*_by_path(rules, bytes))
    ranked = [
        (rule, Ranked(rank, None if rule.condition is None else rule.condition.decide, target))
        for rank, (rule, target) in enumerate(sorted(rules, key=_precedence))
    ]
    groups: list[_PatternGroup[T]] = []
    for decoded in (False, True):
        patterns = [item for item in ranked if item[0].type is PathType.REGEX and item[0].decoded is decoded]
        for start in range(0, len(patterns), PATTERNS_AT_ONCE):
            group = patterns[start : start + PATTERNS_AT_ONCE]
            sources = [("" if rule.perl else rule.value.decode(), rule.ignore_case) for rule, _ in group]
            checks = {index: rule.perl for index, (rule, _) in enumerate(group) if rule.perl is not None}
            groups.append(_PatternGroup(PatternSet(sources, checks=checks), decoded, [route for _, route in group]))
            yield
    return RankedIndex((item for item in ranked if item[0].type is not PathType.REGEX), groups)
