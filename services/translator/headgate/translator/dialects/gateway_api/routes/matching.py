"""Which requests a match of a rule takes, and which of several goes first.

The order is Gateway API's: exact paths, then the longest prefix, then a method, more headers, more query parameters.
Where Gateway API leaves a pattern's reach open it has to take the whole path, or the whole value, as with Envoy.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from headgate.common.patterns import compile_pattern
from headgate.common.problems import Problem
from headgate.common.table import Compare, Condition, Operator, PathMatch, PathType, Rank, Subject
from headgate.translator.dialects.gateway_api.models.route import PathMatcher, RouteMatch, RouteRule, ValueMatcher
from headgate.translator.manifests.patches import all_of
from headgate.translator.manifests.specs import Part, refuse

_PATH_TYPES: Final = {"Exact": PathType.EXACT, "PathPrefix": PathType.PREFIX, "RegularExpression": PathType.REGEX}
_METHOD: Final = re.compile("[A-Z]+")
_EVERY_REQUEST: Final = RouteMatch()


class MatchedRequests(NamedTuple):
    """The requests of one match, as a route of the table says it."""

    path: PathMatch
    when: Condition | None
    rank: Rank
    name: str
    """Unique within the rule."""
    field: str

    @property
    def prefix(self) -> str | None:
        """The prefix that filters may replace; None if the match is none of a prefix."""
        return self.path.value if self.path.type is PathType.PREFIX else None


class Unmatched(ValueError):
    """A match cannot be followed; `field` is the one to mend, below the match."""

    def __init__(self, field: str, message: str, value: str) -> None:
        super().__init__(message)
        self.field, self.value = field, value


def read_matches(rule: Part[RouteRule], problems: list[Problem]) -> Iterator[MatchedRequests]:
    """Yield the requests of a rule; a match that cannot be followed takes none, and `problems` get why."""
    for index, match in enumerate(rule.value.matches or (_EVERY_REQUEST,)):
        field = f"{rule.field}.matches[{index}]" if rule.value.matches else rule.field
        try:
            yield _read(match, str(index), field)
        except Unmatched as wrong:
            problems.append(refuse("UnsupportedValue", f"{field}.{wrong.field}", str(wrong), wrong.value))


def _read(match: RouteMatch, name: str, field: str) -> MatchedRequests:
    headers = compare_headers(match.headers)
    parameters = _first_of_each([(each.name, each) for each in match.query_params])
    conditions = [
        *_method(match.method),
        *headers,
        *(_compare(Subject.QUERY, each, f"queryParams[{index}]") for index, each in parameters),
    ]
    rank = Rank(has_method=bool(match.method), headers=len(headers), query_parameters=len(parameters))
    return MatchedRequests(_path(match.path), all_of(conditions), rank, name, field)


def compare_headers(written: Sequence[ValueMatcher]) -> list[Compare]:
    """Return what is asked of headers; of several matchers of one name the first counts. Raises Unmatched."""
    first = _first_of_each([(each.name.lower(), each) for each in written])
    return [_compare(Subject.HEADER, each, f"headers[{index}]") for index, each in first]


def _first_of_each(named: Sequence[tuple[str, ValueMatcher]]) -> list[tuple[int, ValueMatcher]]:
    """Return the first of each name with its place: the others do not count, as Gateway API has it."""
    first: dict[str, tuple[int, ValueMatcher]] = {}
    for index, (name, each) in enumerate(named):
        first.setdefault(name, (index, each))
    return list(first.values())


def _path(written: PathMatcher) -> PathMatch:
    kind, value = _PATH_TYPES[written.type], written.value
    if kind is PathType.REGEX:
        return PathMatch(type=kind, value=whole(value, "path.value"))
    if not value.startswith("/"):
        raise Unmatched("path.value", "must begin with a slash", value)
    return PathMatch(type=kind, value=value)


def _method(method: str) -> Iterator[Compare]:
    if method and not _METHOD.fullmatch(method):
        raise Unmatched("method", "must be a method in upper case, such as GET", method)
    if method:
        yield Compare(subject=Subject.METHOD, values=(method,))


def _compare(subject: Subject, written: ValueMatcher, field: str) -> Compare:
    if written.type == "Exact":
        return Compare(subject=subject, name=written.name, values=(written.value,))
    pattern = whole(written.value, f"{field}.value")
    return Compare(subject=subject, name=written.name, operator=Operator.REGEX, values=(pattern,))


def whole(pattern: str, field: str) -> str:
    """Return a pattern that has to take a whole text."""
    try:
        compile_pattern(pattern)
    except ValueError as error:
        raise Unmatched(field, str(error), pattern) from error
    return f"^(?:{pattern})$"
