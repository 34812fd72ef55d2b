"""`vars` of an HTTPRoutePolicy, in the language of lua-resty-expr, as conditions of the table."""

import re
from ipaddress import ip_network
from math import isfinite
from typing import Any

from headgate.common.patterns import bounded_patterns
from headgate.common.plugins.expressions import Comparison, Expression, parse_expressions
from headgate.common.problems import Problem
from headgate.common.table import AllOf, AnyOf, Compare, Condition, Not, Operator
from headgate.translator.dialects.apisix.routes.exprs import read_variable
from headgate.translator.manifests.specs import refuse
from headgate.translator.manifests.texts import regex

_OPERATORS = {
    "==": Operator.EQUALS,
    "in": Operator.EQUALS,
    ">": Operator.GREATER,
    ">=": Operator.AT_LEAST,
    "<": Operator.LESS,
    "<=": Operator.AT_MOST,
    "~~": Operator.REGEX,
    "~*": Operator.REGEX,
    "has": Operator.REGEX,
    "ipmatch": Operator.NETWORK,
}


@bounded_patterns()
def read_vars(written: tuple[Any, ...], field: str, problems: list[Problem]) -> list[Condition]:
    """Return what requests have to satisfy, all of it; mistakes go to `problems`."""
    if written and isinstance(written[0], str):
        written, fields = (list(written),), [field]
    else:
        fields = [f"{field}[{index}]" for index in range(len(written))]
    found = []
    for one, at in zip(written, fields, strict=True):
        try:
            expression = parse_expressions((one,))
            found += [_condition(expression)] if expression is not None else []
        except ValueError as error:
            problems.append(refuse("InvalidValue", at, str(error), one))
    return found


def _condition(expression: Expression) -> Condition:
    """Return an expression as a condition. Raises ValueError."""
    if isinstance(expression, Comparison):
        return _turned(_compare(expression), expression.is_turned)
    parts = tuple(map(_condition, expression.parts))
    if len(parts) == 1:
        return _turned(parts[0], expression.is_turned)
    joined = AllOf(all_of=parts) if expression.needs_all else AnyOf(any_of=parts)
    return _turned(joined, expression.is_turned)


def _turned(condition: Condition, is_turned: bool) -> Condition:
    return Not(negated=condition) if is_turned else condition


def _compare(comparison: Comparison) -> Condition:
    subject, name = read_variable(comparison.name)
    values = _values(comparison)
    if not values:
        return AnyOf(any_of=())  # a member of nothing
    operator, ignore_case = _OPERATORS[comparison.operator], comparison.operator == "~*"
    return Compare(subject=subject, name=name, operator=operator, values=values, ignore_case=ignore_case)


def _values(comparison: Comparison) -> tuple[str, ...]:
    value = comparison.value
    if isinstance(value, tuple):
        is_network = comparison.operator == "ipmatch"
        return tuple(str(ip_network(one, strict=False)) for one in value) if is_network else value
    if isinstance(value, float):
        if not isfinite(value):
            raise ValueError("this operator takes a number")
        return (f"{value:f}".rstrip("0").rstrip("."),)
    if comparison.operator in ("~~", "~*"):
        return (regex(value),)
    if comparison.operator == "has":
        return (rf"(?:^|,)\s*{re.escape(value)}\s*(?:,|$)",)
    return (value,)
