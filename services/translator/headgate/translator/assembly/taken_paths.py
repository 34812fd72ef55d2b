"""Which paths of a host are taken, for routes that must not take requests from them.

Such a route may add a longer path below a prefix. It must not win over a taken route for any other request: not by an
equal path, not by a pattern, not by a priority. Conditions do not count: a path is taken whichever part of its requests
its route takes.

A pattern counts as the plain text that all of its matches begin with, in any case of letters; an exact path is also
compared with the pattern itself. All answers come from dictionaries and sorted lists, so merging a host takes time in
proportion to its routes. An answer that would take longer is replaced by the careful one.
"""

import bisect
import re
from collections.abc import Iterator
from functools import lru_cache

from headgate.common.patterns import compile_pattern, match_beginning
from headgate.common.table import PathMatch, PathType, Route

MAX_PATTERNS = 32
"""Patterns of one beginning that an exact path is compared with; if there are more, they count as taking it."""
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
_NOT_SAME_DECODED = re.compile(r"[^A-Za-z0-9._~/-]")
"""Characters that may come as escapes."""
_UNRESERVED = re.compile(r"[A-Za-z0-9._~-]")
_ELEMENTS = re.compile(r"\^?((?:/[A-Za-z0-9_~-]+)+)\(/\|\$\)(?:\(\.\*\)|\.\*)?\$?")
"""How users of ingress-nginx write a path by elements: `/api(/|$)(.*)`."""


class TakenPaths:
    """The routes that others must leave alone. A question is answered with the route that a path would compete with."""

    def __init__(self) -> None:
        self._exact: dict[str, Route] = {}
        self._segments: dict[str, Route] = {}
        """Prefixes by elements, without a trailing slash."""
        self._texts: dict[str, Route] = {}
        """Prefixes by text, as they are."""
        self._prefixes: dict[str, Route] = {}
        """Both, without a trailing slash."""
        self._folded: dict[str, Route] = {}
        """The same in lower case."""
        self._patterns: dict[str, list[Route]] = {}
        """By their beginnings."""
        self._all, self._inexact = _Beginnings(), _Beginnings()
        self._lowest_priority: int | None = None

    def add(self, route: Route) -> None:
        """Take the path of a route."""
        path, value = route.path, plain_escapes(route.path.value)
        lowest = self._lowest_priority
        self._lowest_priority = route.rank.priority if lowest is None else min(lowest, route.rank.priority)
        beginning = value.lower()
        if path.type is PathType.EXACT:
            self._exact.setdefault(value, route)
        elif path.type is PathType.REGEX:
            beginning = beginning_of(path)
            self._patterns.setdefault(beginning, []).append(route)
        else:
            whole = value.removesuffix("/")
            is_text = path.type is PathType.STRING_PREFIX
            (self._texts if is_text else self._segments).setdefault(value if is_text else whole, route)
            self._prefixes.setdefault(whole, route)
            self._folded.setdefault(whole.lower(), route)
        self._all.add(beginning, route)
        if path.type is not PathType.EXACT:
            self._inexact.add(beginning, route)

    def rival(self, route: Route) -> Route | None:
        """Return a route from which another one would take requests by more than a longer path; None without one."""
        if self._lowest_priority is None:
            return None
        path, goes_first = route.path, route.rank.priority > self._lowest_priority
        match path.type:
            case PathType.REGEX:
                return self._rival_of_pattern(beginning_of(path), goes_first)
            case PathType.EXACT:
                return self._rival_of_exact(plain_escapes(path.value))
            case _:
                return self._rival_of_prefix(plain_escapes(path.value).removesuffix("/"), goes_first)

    def _rival_of_exact(self, value: str) -> Route | None:
        whole = value.removesuffix("/")
        found = self._exact.get(value) or self._segments.get(whole) or self._texts.get(value) or self._texts.get(whole)
        if found is not None or not self._patterns:
            return found
        return next((route for group in self._above(f"{value.lower()}/") if (route := _taking(group, value))), None)

    def _rival_of_prefix(self, whole: str, goes_first: bool) -> Route | None:
        found = self._prefixes.get(whole)
        if found is not None or not goes_first:
            return found
        return self._all.first_from(whole.lower()) or self._pattern_above(f"{whole.lower()}/")

    def _rival_of_pattern(self, beginning: str, goes_first: bool) -> Route | None:
        whole = beginning.removesuffix("/")
        found = self._folded.get(whole) or self._inexact.first_from(beginning) or self._pattern_above(beginning)
        return self._all.first_from(whole) if found is None and goes_first else found

    def _pattern_above(self, beginning: str) -> Route | None:
        return next((group[0] for group in self._above(beginning)), None)

    def _above(self, beginning: str) -> Iterator[list[Route]]:
        """Yield the patterns whose matches may begin with a text, by how they begin themselves."""
        for length in range(len(beginning) + 1 if self._patterns else 0):
            group = self._patterns.get(beginning[:length])
            if group is not None:
                yield group


class _Beginnings:
    """Routes by what their paths begin with, sorted."""

    def __init__(self) -> None:
        self._sorted: list[str] = []
        self._routes: dict[str, Route] = {}

    def add(self, beginning: str, route: Route) -> None:
        if self._routes.setdefault(beginning, route) is route:
            bisect.insort(self._sorted, beginning)

    def first_from(self, beginning: str) -> Route | None:
        """Return some route whose path begins so."""
        place = bisect.bisect_left(self._sorted, beginning)
        found = self._sorted[place] if place < len(self._sorted) else ""
        return self._routes[found] if found.startswith(beginning) and place < len(self._sorted) else None


def _taking(group: list[Route], value: str) -> Route | None:
    if len(group) > MAX_PATTERNS:
        return group[0]
    return next((route for route in group if _takes(route.path, value)), None)


def _takes(path: PathMatch, value: str) -> bool:
    if path.decoded and "%" in value:
        return True  # the careful answer
    try:
        return compile_pattern(path.value, ignore_case=path.ignore_case).match(value.encode()) is not None
    except ValueError:
        return False  # gateways ask such a route after all others


@lru_cache(maxsize=65_536)
def _beginning_of(pattern: str) -> str:
    elements = _ELEMENTS.fullmatch(pattern)
    return f"{elements[1]}/".lower() if elements is not None else match_beginning(pattern).lower()


def beginning_of(path: PathMatch) -> str:
    """Return what all paths that a pattern takes begin with, in lower case, a slash at the end of a path added."""
    beginning = _beginning_of(path.value)
    return _NOT_SAME_DECODED.split(beginning, maxsplit=1)[0] if path.decoded else beginning


def plain_escapes(path: str) -> str:
    """Return a path as gateways compare it: escapes of unreserved characters decoded, others in upper case."""
    return _ESCAPE.sub(_meaning, path) if "%" in path else path


def _meaning(escape: re.Match[str]) -> str:
    character = chr(int(escape[1], 16))
    return character if _UNRESERVED.fullmatch(character) else escape[0].upper()
