"""Conditions in a plugin's configuration: the `vars` of Apache APISIX (lua-resty-expr).

    [["arg_name", "==", "jack"], ["http_x_age", "!", ">", 18]]             all of them
    ["OR", ["status", "==", 404], ["status", "in", [500, 502]]]            some of them; AND, !AND, !OR too

Operators: `==`, `~=`, `>`, `>=`, `<`, `<=`, `~~` (RE2, anywhere), `~*` (the same, ignoring case), `in`, `has` (member
of a comma-separated value), `ipmatch`; a `!` before one turns it round. Absent variables satisfy only `~=` and what is
turned round. `status` is the answer's.
"""

from collections.abc import Callable
from typing import Annotated, Any

from pydantic import AfterValidator, JsonValue

from headgate.common.patterns import compile_pattern
from headgate.gateway.plugins.addresses import NetworkSet
from headgate.gateway.plugins.messages import Request, Response
from headgate.gateway.plugins.variables import variable

Takes = Callable[[Request, Response | None], bool]
_Test = Callable[[str], bool]

_JOINS: dict[str, tuple[Callable[[Any], bool], bool]] = {
    "AND": (all, True),
    "OR": (any, True),
    "!AND": (all, False),
    "!OR": (any, False),
}


def _numbers(compare: Callable[[float, float], bool], limit: float) -> _Test:
    def holds(value: str) -> bool:
        try:
            return compare(float(value), limit)
        except ValueError:
            return False

    return holds


def _text(value: JsonValue) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError("a condition compares with a text or a number")
    return str(value)


def _texts(value: JsonValue) -> list[str]:
    if not isinstance(value, list):
        raise ValueError("this operator takes a list")
    return [_text(member) for member in value]


def _number(value: JsonValue) -> float:
    try:
        return float(_text(value))
    except ValueError:
        raise ValueError("this operator takes a number") from None


def _networks(value: JsonValue) -> _Test:
    networks = NetworkSet(_texts(value if isinstance(value, list) else [value]))
    return lambda address: address in networks


def _equals(value: JsonValue) -> _Test:
    expected = _text(value)
    return lambda given: given == expected


def _matches(value: JsonValue, *, ignore_case: bool) -> _Test:
    pattern = compile_pattern(_text(value), ignore_case=ignore_case)
    return lambda given: pattern.search(given.encode("latin-1")) is not None


def _is_in(value: JsonValue) -> _Test:
    members = frozenset(_texts(value))
    return lambda given: given in members


def _has(value: JsonValue) -> _Test:
    member = _text(value)
    return lambda given: member in [part.strip() for part in given.split(",")]


_OPERATORS: dict[str, Callable[[JsonValue], _Test]] = {
    "==": _equals,
    ">": lambda value: _numbers(lambda given, limit: given > limit, _number(value)),
    ">=": lambda value: _numbers(lambda given, limit: given >= limit, _number(value)),
    "<": lambda value: _numbers(lambda given, limit: given < limit, _number(value)),
    "<=": lambda value: _numbers(lambda given, limit: given <= limit, _number(value)),
    "~~": lambda value: _matches(value, ignore_case=False),
    "~*": lambda value: _matches(value, ignore_case=True),
    "in": _is_in,
    "has": _has,
    "ipmatch": _networks,
}


def _compile(expression: JsonValue) -> Takes:
    if not isinstance(expression, list | tuple) or not expression:
        raise ValueError('a condition is a list: ["arg_name", "==", "value"]')
    first = expression[0]
    if isinstance(first, str) and first in _JOINS:
        join, wanted = _JOINS[first]
        parts = [_compile(part) for part in expression[1:]]
        return lambda request, response: join(part(request, response) for part in parts) is wanted
    if isinstance(first, list | tuple):
        parts = [_compile(part) for part in expression]
        return lambda request, response: all(part(request, response) for part in parts)
    return _compile_comparison(list(expression))


def _compile_comparison(expression: list[JsonValue]) -> Takes:
    turned = len(expression) == 4 and expression[1] == "!"
    if turned:
        expression = [expression[0], *expression[2:]]
    if len(expression) != 3 or not isinstance(expression[0], str):
        raise ValueError('a comparison is ["name", "operator", value], with "!" before the operator to turn it round')
    name, operator, value = expression
    if operator == "~=":
        operator, turned = "==", not turned
    if not isinstance(operator, str) or operator not in _OPERATORS:
        raise ValueError(f"there is no operator {operator!r}; there are ~=, {', '.join(_OPERATORS)}")
    test = _OPERATORS[operator](value)

    def takes(request: Request, response: Response | None) -> bool:
        given = str(response.status) if name == "status" and response is not None else variable(request, str(name))
        return (given is not None and test(given)) is not turned

    return takes


def compile_expressions(expressions: tuple[JsonValue, ...]) -> Takes | None:
    """Compile what all have to hold; None if there is nothing. Raises ValueError."""
    return _compile(list(expressions)) if expressions else None


def _check(expressions: tuple[JsonValue, ...]) -> tuple[JsonValue, ...]:
    compile_expressions(expressions)
    return expressions


Expressions = Annotated[tuple[JsonValue, ...], AfterValidator(_check)]
"""In a plugin's configuration: conditions that all have to hold."""
