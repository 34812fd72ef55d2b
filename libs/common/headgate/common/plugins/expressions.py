"""Conditions in a plugin's configuration: the `vars` of Apache APISIX (lua-resty-expr).

    [["arg_name", "==", "jack"], ["http_x_age", "!", ">", 18]]             all of them
    ["OR", ["status", "==", 404], ["status", "in", [500, 502]]]            some of them; AND, !AND, !OR too

Operators: `==`, `~=`, `>`, `>=`, `<`, `<=`, `~~` (RE2, anywhere), `~*` (the same, ignoring case), `in`, `has` (member
of a comma-separated value), `ipmatch`; a `!` before one turns it round. Absent variables satisfy only `~=` and what is
turned round. `status` is the answer's.

`post_arg.order.items[0].sku` is a field of the request's body, `post_arg.items[*].sku` that of each item, of which one
has to satisfy the operator.
"""

import re
from collections.abc import Callable
from typing import Annotated, Final, NamedTuple

from pydantic import AfterValidator, JsonValue, PlainSerializer

from headgate.common.patterns import compile_pattern
from headgate.common.plugins.fields import check_network


class Comparison(NamedTuple):
    """One variable compared."""

    name: str
    operator: str
    value: str | float | tuple[str, ...]
    """As the operator takes it: a number for `<` and the like, texts for `in` and `ipmatch`."""
    is_turned: bool
    """The opposite is asked for."""


class Joined(NamedTuple):
    """Several expressions, of which all or some hold."""

    parts: tuple["Expression", ...]
    needs_all: bool
    is_turned: bool


Expression = Comparison | Joined

MAX_COMPARISONS: Final = 1_000
"""Of one list of conditions: a request may be compared with all of them."""
_MAX_DEPTH: Final = 32
_INDEX = re.compile(r"\[([0-9]+|\*)\]")
_OF_BODY = ("post_arg.", "post_arg_")
_JOINS = {"AND": (True, False), "OR": (False, False), "!AND": (True, True), "!OR": (False, True)}
"""Whether all parts are needed, and whether the opposite is asked for."""


def body_path(name: str) -> str:
    """Return a JSON path of Apache APISIX as fields of bodies are named: `items[*].sku` is `items.*.sku`.

    Raises:
        ValueError: it has more than names, indexes and `*`.
    """
    path = _INDEX.sub(r".\1", name.removeprefix("$."))
    if "[" in path or ".." in path or any("*" in step and step != "*" for step in path.split(".")):
        raise ValueError("must be a path of names and indexes such as order.items[0].sku or items[*].sku, no filters")
    return path


def body_field(variable: str) -> str | None:
    """Return the path of the body's field that a variable stands for; None: for none. Raises ValueError."""
    for prefix in _OF_BODY:
        if variable.startswith(prefix) and variable != prefix:
            return body_path(variable.removeprefix(prefix))
    return None


def looks_at_body(expressions: tuple[JsonValue, ...]) -> bool:
    """Tell whether conditions ask for fields of the request's body. Raises ValueError."""
    parsed = parse_expressions(expressions)
    return parsed is not None and _looks_at_body(parsed)


def compared_names(expressions: tuple[JsonValue, ...]) -> tuple[str, ...]:
    """Return the variables that conditions compare. Raises ValueError."""
    parsed = parse_expressions(expressions)
    return () if parsed is None else _names(parsed)


def _names(expression: Expression) -> tuple[str, ...]:
    if isinstance(expression, Comparison):
        return (expression.name,)
    return tuple(name for part in expression.parts for name in _names(part))


def _looks_at_body(expression: Expression) -> bool:
    if isinstance(expression, Comparison):
        return body_field(expression.name) is not None
    return any(_looks_at_body(part) for part in expression.parts)


def _text(value: JsonValue) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError("a condition compares with a text or a number")
    return str(value)


def _texts(value: JsonValue) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise ValueError("this operator takes a list")
    return tuple(_text(member) for member in value)


def _number(value: JsonValue) -> float:
    try:
        return float(_text(value))
    except ValueError:
        raise ValueError("this operator takes a number") from None


def _networks(value: JsonValue) -> tuple[str, ...]:
    return tuple(check_network(text) for text in _texts(value if isinstance(value, list) else [value]))


def _pattern(value: JsonValue) -> str:
    text = _text(value)
    compile_pattern(text)
    return text


_READ: dict[str, Callable[[JsonValue], str | float | tuple[str, ...]]] = {
    "==": _text,
    ">": _number,
    ">=": _number,
    "<": _number,
    "<=": _number,
    "~~": _pattern,
    "~*": _pattern,
    "in": _texts,
    "has": _text,
    "ipmatch": _networks,
}


def write_comparison(comparison: Comparison) -> JsonValue:
    """Return a comparison as a configuration has it."""
    value = list(comparison.value) if isinstance(comparison.value, tuple) else comparison.value
    return [comparison.name, *("!" if comparison.is_turned else ""), comparison.operator, value]


def parse_expressions(expressions: tuple[JsonValue, ...]) -> Expression | None:
    """Read what all have to hold; None if there is nothing. Raises ValueError."""
    parsed = _parse(list(expressions), _MAX_DEPTH) if expressions else None
    if parsed is not None and _size(parsed) > MAX_COMPARISONS:
        raise ValueError(f"must have at most {MAX_COMPARISONS} comparisons")
    return parsed


def _size(expression: Expression) -> int:
    """Count comparisons; of one with a list, each hundred members."""
    if isinstance(expression, Joined):
        return sum(map(_size, expression.parts))
    return len(expression.value) // 100 + 1 if isinstance(expression.value, tuple) else 1


def _parse(expression: JsonValue, depth: int) -> Expression:
    if depth == 0:
        raise ValueError(f"conditions must be nested at most {_MAX_DEPTH} deep")
    if not isinstance(expression, list | tuple) or not expression:
        raise ValueError('a condition is a list: ["arg_name", "==", "value"]')
    first = expression[0]
    if isinstance(first, str) and first in _JOINS:
        return Joined(tuple(_parse(part, depth - 1) for part in expression[1:]), *_JOINS[first])
    if isinstance(first, list | tuple):
        return Joined(tuple(_parse(part, depth - 1) for part in expression), needs_all=True, is_turned=False)
    return _parse_comparison(list(expression))


def _parse_comparison(expression: list[JsonValue]) -> Comparison:
    is_turned = len(expression) == 4 and expression[1] == "!"
    if is_turned:
        expression = [expression[0], *expression[2:]]
    if len(expression) != 3 or not isinstance(expression[0], str):
        raise ValueError('a comparison is ["name", "operator", value], with "!" before the operator to turn it round')
    name, operator, value = expression
    body_field(str(name))
    if operator == "~=":
        operator, is_turned = "==", not is_turned
    if not isinstance(operator, str) or operator not in _READ:
        raise ValueError(f"there is no operator {operator!r}; there are ~=, {', '.join(_READ)}")
    return Comparison(str(name), operator, _READ[operator](value), is_turned)


def _check(expressions: tuple[JsonValue, ...]) -> tuple[JsonValue, ...]:
    parse_expressions(expressions)
    return expressions


def _check_head(expressions: tuple[JsonValue, ...]) -> tuple[JsonValue, ...]:
    if looks_at_body(expressions):
        raise ValueError(
            "fields of the body (post_arg) are not looked at here; compare arg_NAME, http_NAME and the like"
        )
    return expressions


Expressions = Annotated[tuple[JsonValue, ...], AfterValidator(_check)]
"""Conditions that all have to hold."""
HeadExpressions = Annotated[tuple[JsonValue, ...], AfterValidator(_check_head)]
"""The same where no body is waited for."""


def _join(expressions: tuple[JsonValue, ...]) -> tuple[JsonValue, ...]:
    if expressions and not isinstance(expressions[0], str):
        expressions = ("OR", *expressions)
    return _check(expressions)


def _write_alternatives(expressions: tuple[JsonValue, ...]) -> list[JsonValue]:
    """Undo `_join`."""
    return list(expressions[1:] if expressions[:1] == ("OR",) else expressions)


AlternativeExpressions = Annotated[
    tuple[JsonValue, ...], AfterValidator(_join), PlainSerializer(_write_alternatives, when_used="json")
]
"""Conditions of which one has to hold."""
