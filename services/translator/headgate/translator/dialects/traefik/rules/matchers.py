"""The matchers of both syntaxes for HTTP: how many arguments each takes, and what it asks of a request.

A matcher is read into tests, one of which has to hold. The source is Traefik's documentation of rules, for v3.7 and for
v2.11.
"""

from collections.abc import Callable, Mapping
from typing import Final, Generic, NamedTuple, TypeVar

from headgate.common.patterns import compile_pattern
from headgate.common.table import AllOf, Compare, Condition, Operator, PathType, Subject
from headgate.translator.dialects.traefik.rules.clients import read_network
from headgate.translator.dialects.traefik.rules.hosts import check_ascii, host_pattern_test, host_test
from headgate.translator.dialects.traefik.rules.paths import path_pattern_test, path_template_test, path_test
from headgate.translator.dialects.traefik.rules.request_tests import NEVER, RequestTest
from headgate.translator.dialects.traefik.rules.templates import HOST_PART, QUERY_PART, expand_template

Values = tuple[str, ...]
T = TypeVar("T")
R = TypeVar("R")


class BadArgument(ValueError):
    """One of the arguments is wrong: the one with this index."""

    def __init__(self, reason: str, index: int) -> None:
        super().__init__(reason)
        self.index = index


class Matcher(NamedTuple, Generic[T]):
    """How a matcher is read."""

    least: int
    """Arguments."""
    most: int | None
    """None: any number."""
    usage: str
    """An example."""
    read: Callable[[Values], tuple[T, ...]]
    """Returns the tests. Raises ValueError: the arguments are wrong; BadArgument: one of them is."""


def checked(read: Callable[[str], R], value: str, index: int) -> R:
    """Read the argument at an index. Raises BadArgument."""
    try:
        return read(value)
    except ValueError as error:
        raise BadArgument(str(error), index) from error


def each(read: Callable[[str], T]) -> Callable[[Values], tuple[T, ...]]:
    """Return what reads arguments that are alternatives."""
    return lambda values: tuple(checked(read, value, index) for index, value in enumerate(values))


def _condition(read: Callable[[Values], Condition]) -> Callable[[Values], tuple[RequestTest, ...]]:
    return lambda values: (RequestTest(read(values)),)


def _methods(values: Values) -> Condition:
    return Compare(subject=Subject.METHOD, values=tuple(value.upper() for value in values))


_networks = each(read_network)


def _clients(values: Values) -> Condition:
    return Compare(subject=Subject.PEER, operator=Operator.NETWORK, values=_networks(values))


def _named(subject: Subject, name: str, operator: Operator, value: str, index: int = 1) -> Condition:
    if operator is Operator.REGEX:
        checked(compile_pattern, value, index)
    if subject is Subject.HEADER and name.lower() == "host":
        return NEVER  # Traefik takes Host out of the headers before it looks at rules
    semicolons = subject is Subject.QUERY
    return Compare(
        subject=subject, name=name, operator=operator, values=(value,), any_value=True, semicolons=semicolons
    )


def _header(operator: Operator) -> Callable[[Values], Condition]:
    return lambda values: _named(Subject.HEADER, values[0], operator, values[1])


def _query(operator: Operator) -> Callable[[Values], Condition]:
    def read(values: Values) -> Condition:
        if len(values) == 1:
            return _named(Subject.QUERY, values[0], Operator.EQUALS, "")
        return _named(Subject.QUERY, values[0], operator, values[1])

    return read


V3: Final[Mapping[str, Matcher[RequestTest]]] = {
    "ClientIP": Matcher(1, 1, "ClientIP(`10.0.0.0/8`)", _condition(_clients)),
    "Header": Matcher(2, 2, "Header(`X-Kind`, `fast`)", _condition(_header(Operator.EQUALS))),
    "HeaderRegexp": Matcher(2, 2, "HeaderRegexp(`X-Kind`, `^fa`)", _condition(_header(Operator.REGEX))),
    "Host": Matcher(1, 1, "Host(`example.com`)", each(host_test)),
    "HostRegexp": Matcher(1, 1, r"HostRegexp(`^[a-z]+\.example\.com$`)", each(host_pattern_test)),
    "Method": Matcher(1, 1, "Method(`GET`)", _condition(_methods)),
    "Path": Matcher(1, 1, "Path(`/cart`)", each(lambda value: path_test(value, PathType.EXACT))),
    "PathPrefix": Matcher(1, 1, "PathPrefix(`/api`)", each(lambda value: path_test(value, PathType.STRING_PREFIX))),
    "PathRegexp": Matcher(1, 1, "PathRegexp(`^/v[0-9]+/`)", each(path_pattern_test)),
    "Query": Matcher(1, 2, "Query(`mode`, `full`)", _condition(_query(Operator.EQUALS))),
    "QueryRegexp": Matcher(1, 2, "QueryRegexp(`mode`, `^fu`)", _condition(_query(Operator.REGEX))),
}


def _headers(operator: Operator) -> Callable[[Values], Condition]:
    def read(values: Values) -> Condition:
        if len(values) % 2:
            raise BadArgument(f"{values[-1]!r} has no value: names and values stand in turn", len(values) - 1)
        # Of several values for one name the last counts.
        last = {name: index for index, name in enumerate(values) if index % 2 == 0}
        parts = tuple(
            _named(Subject.HEADER, name, operator, values[index + 1], index + 1) for name, index in last.items()
        )
        return parts[0] if len(parts) == 1 else AllOf(all_of=parts)

    return read


def _parameters(values: Values) -> Condition:
    """Read `name=value` elements; an element without `=` is a name whose value is the next one, as in Traefik."""
    parts = tuple(part for value in values for part in value.split("=", 1))
    if len(parts) % 2:
        raise BadArgument(f"{values[-1]!r} has no value: write name=value", len(values) - 1)
    found = tuple(_parameter(name, value) for name, value in zip(parts[::2], parts[1::2], strict=True))
    return found[0] if len(found) == 1 else AllOf(all_of=found)


def _parameter(name: str, value: str) -> Condition:
    if "{" in name or "}" in name:
        raise ValueError(f"{name!r} has braces, which are for the value of a parameter, not for its name")
    if not name:
        raise ValueError("a parameter without a name has no place in a route")
    if not value:
        return Compare(subject=Subject.QUERY, name=name, operator=Operator.PRESENT, semicolons=True)
    pattern = f"^{expand_template(value, QUERY_PART)}$"
    compile_pattern(pattern)
    return Compare(subject=Subject.QUERY, name=name, operator=Operator.REGEX, values=(pattern,), semicolons=True)


def _host_v2(value: str) -> RequestTest:
    return host_test(value, wildcards=False)


def _host_template(value: str) -> RequestTest:
    check_ascii(value)
    return host_pattern_test(f"(?i)^{expand_template(value, HOST_PART)}$")


V2: Final[Mapping[str, Matcher[RequestTest]]] = {
    "ClientIP": Matcher(1, None, "ClientIP(`10.0.0.0/8`, `::1`)", _condition(_clients)),
    "Headers": Matcher(2, None, "Headers(`X-Kind`, `fast`)", _condition(_headers(Operator.EQUALS))),
    "HeadersRegexp": Matcher(2, None, "HeadersRegexp(`X-Kind`, `^fa`)", _condition(_headers(Operator.REGEX))),
    "Host": Matcher(1, None, "Host(`example.com`, `example.org`)", each(_host_v2)),
    "HostHeader": Matcher(1, None, "HostHeader(`example.com`)", each(_host_v2)),
    "HostRegexp": Matcher(1, None, "HostRegexp(`{name:[a-z]+}.example.com`)", each(_host_template)),
    "Method": Matcher(1, None, "Method(`GET`, `POST`)", _condition(_methods)),
    "Path": Matcher(1, None, "Path(`/cart/{id}`)", each(lambda value: path_template_test(value, PathType.EXACT))),
    "PathPrefix": Matcher(
        1, None, "PathPrefix(`/api`)", each(lambda value: path_template_test(value, PathType.STRING_PREFIX))
    ),
    "Query": Matcher(1, None, "Query(`mode=full`)", _condition(_parameters)),
}
MATCHERS: Final = {"v2": V2, "v3": V3}
