"""Rules, read and checked."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Generic, Literal, TypeVar

from headgate.translator.dialects.traefik.rules.connections import ANY_NAME, CONNECTION_MATCHERS, ConnectionTest
from headgate.translator.dialects.traefik.rules.errors import RuleError
from headgate.translator.dialects.traefik.rules.matchers import MATCHERS, BadArgument, Matcher
from headgate.translator.dialects.traefik.rules.parser import parse
from headgate.translator.dialects.traefik.rules.request_tests import RequestTest
from headgate.translator.dialects.traefik.rules.tree import Call, Expression, calls

Syntax = Literal["v2", "v3"]
MAX_PRIORITY: Final = 2**63 - 1 - 1000
"""That users may give. Traefik keeps those above for itself."""
MIN_PRIORITY: Final = -(2**63)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Rule(Generic[T]):
    """A rule of a router, checked; `T` is what its matchers ask."""

    text: str
    """As written."""
    syntax: Syntax
    expression: Expression
    tests: Mapping[int, tuple[T, ...]]
    """What each matcher asks, by its offset in the text; one of the tests has to hold."""

    def __str__(self) -> str:
        """Return the rule in one way of writing it, which reads back as an equal tree."""
        return str(self.expression)

    def priority(self, given: int = 0) -> int:
        """Return what decides between routers: the priority that is given, or else the length of the text in bytes.

        `HostSNI(`*`)` alone takes what no other rule does.

        Raises:
            ValueError: Traefik keeps the priority for itself, or it is no number of 64 bits.
        """
        if not MIN_PRIORITY <= given <= MAX_PRIORITY:
            raise ValueError(f"the priority is {MIN_PRIORITY} at least and {MAX_PRIORITY} at most, not {given}")
        return given or (-1 if self._takes_the_rest else len(self.text.encode()))

    @property
    def _takes_the_rest(self) -> bool:
        call = self.expression
        return isinstance(call, Call) and call.name == "HostSNI" and [a.value for a in call.arguments] == [ANY_NAME]


@lru_cache(1024)
def parse_rule(text: str, syntax: Syntax = "v3") -> Rule[RequestTest]:
    """Read a rule for HTTP.

    Raises:
        RuleError: it does not follow the grammar, or a matcher has wrong arguments.
    """
    return _read(text, syntax, MATCHERS)


@lru_cache(1024)
def parse_tcp_rule(text: str, syntax: Syntax = "v3") -> Rule[ConnectionTest]:
    """Read a rule for TCP.

    Raises:
        RuleError: it does not follow the grammar, or a matcher has wrong arguments.
    """
    return _read(text, syntax, CONNECTION_MATCHERS)


def _read(text: str, syntax: Syntax, matchers: Mapping[str, Mapping[str, Matcher[T]]]) -> Rule[T]:
    others = {name: other for other, table in matchers.items() if other != syntax for name in table}
    expression = parse(text, matchers[syntax], others)
    tests = {call.offset: _tests(text, call, matchers[syntax][call.name]) for call in calls(expression)}
    return Rule(text, syntax, expression, tests)


def _tests(text: str, call: Call, matcher: Matcher[T]) -> tuple[T, ...]:
    count = len(call.arguments)
    empty = next((argument for argument in call.arguments if not argument.value), None)
    if empty is not None:
        raise RuleError(text, empty.offset, f"{call.name} has an empty argument, expected {matcher.usage}")
    if count < matcher.least or (matcher.most is not None and count > matcher.most):
        raise RuleError(text, call.offset, f"{call.name} has {count} arguments, {_arity(matcher)}: {matcher.usage}")
    try:
        return _read_arguments(matcher, tuple(argument.value for argument in call.arguments))
    except BadArgument as bad:
        raise RuleError(text, call.arguments[bad.index].offset, f"{call.name}: {bad}") from bad
    except ValueError as error:
        raise RuleError(text, call.offset, f"{call.name}: {error}") from error


@lru_cache(1024)
def _read_arguments(matcher: Matcher[T], values: tuple[str, ...]) -> tuple[T, ...]:
    """Return the one value for all rules that ask the same: they differ in their hosts, and less in the rest."""
    return matcher.read(values)


def _arity(matcher: Matcher[T]) -> str:
    if matcher.most is None:
        return f"expected {matcher.least} at least"
    return f"expected {matcher.least}" + (f" or {matcher.most}" if matcher.most > matcher.least else "")
