"""What an answer of a model costs, by an expression over the numbers that its provider gives.

Followed is arithmetic as Lua writes it: numbers, names, `+ - * / %`, parentheses, and the functions `abs`, `ceil`,
`floor`, `max` and `min`, with `math.` in front of them or without. Names that are not given are 0.
"""

import ast
import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

MAX_LENGTH: Final = 1024
_Cost = Callable[[Mapping[str, float]], float]
_FUNCTIONS: Final[Mapping[str, Callable[..., float]]] = MappingProxyType(
    {"abs": abs, "ceil": math.ceil, "floor": math.floor, "max": max, "min": min}
)
_OPERATORS: Final[Mapping[type[ast.operator], Callable[[float, float], float]]] = MappingProxyType(
    {
        ast.Add: lambda left, right: left + right,
        ast.Sub: lambda left, right: left - right,
        ast.Mult: lambda left, right: left * right,
        ast.Div: lambda left, right: left / right,
        ast.Mod: lambda left, right: left % right,
    }
)
_FOLLOWED: Final = "only numbers, names, + - * / % and abs, ceil, floor, max and min are followed"


class CostExpression:
    """An expression. Raises ValueError for one that is not followed."""

    def __init__(self, text: str) -> None:
        if len(text) > MAX_LENGTH:
            raise ValueError(f"has at most {MAX_LENGTH} characters")
        try:
            self._cost = _compiled(ast.parse(text.strip(), mode="eval").body)
        except (SyntaxError, RecursionError, MemoryError):
            raise ValueError(f"is no expression: {_FOLLOWED}") from None

    def cost(self, numbers: Mapping[str, float]) -> int | None:
        """Return the cost, at least 0; None: there is none, as by a division by zero."""
        try:
            value = self._cost(numbers)
            return math.floor(max(value, 0) + 0.5)
        except (ArithmeticError, ValueError, TypeError):
            return None


def _compiled(node: ast.expr) -> _Cost:
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            constant = float(number)
            return lambda numbers: constant
        case ast.Name(id=name):
            return lambda numbers: float(numbers.get(name, 0))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            negated = _compiled(operand)
            return lambda numbers: -negated(numbers)
        case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _OPERATORS:
            apply, first, second = _OPERATORS[type(operator)], _compiled(left), _compiled(right)
            return lambda numbers: apply(first(numbers), second(numbers))
        case ast.Call(func=function, args=[_, *_] as arguments, keywords=[]):
            return _called(function, arguments)
    raise ValueError(f"has something else than arithmetic: {_FOLLOWED}")


def _called(function: ast.expr, arguments: list[ast.expr]) -> _Cost:
    match function:
        case ast.Name(id=name) | ast.Attribute(value=ast.Name(id="math"), attr=name) if name in _FUNCTIONS:
            call, given = _FUNCTIONS[name], [_compiled(argument) for argument in arguments]
            if len(given) > 1 and name not in ("max", "min"):
                raise ValueError(f"gives {name} more than one number")
            if len(given) == 1 and name in ("max", "min"):
                return given[0]
            return lambda numbers: call(*(argument(numbers) for argument in given))
    raise ValueError(f"calls something else: {_FOLLOWED}")
