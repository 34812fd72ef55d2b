"""The conditions of a plugin's configuration (`common.plugins.expressions`), compiled."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from pydantic import JsonValue

from headgate.common.patterns import compile_pattern
from headgate.common.plugins.expressions import Comparison, Expression, body_field, parse_expressions
from headgate.gateway.model.addresses import NetworkSet
from headgate.gateway.plugins.interface.messages import Request, Response
from headgate.gateway.plugins.interface.variables import body_fields, body_type, variable
from headgate.gateway.proxy.errors import BodyTooLarge
from headgate.gateway.proxy.heads.body_fields import MAX_PARSED_BODY, has_fields

Takes = Callable[[Request, Response | None], bool]
R = TypeVar("R")
_Test = Callable[[str], bool]


def _numbers(compare: Callable[[float, float], bool], limit: float) -> _Test:
    def holds(value: str) -> bool:
        try:
            return compare(float(value), limit)
        except ValueError:
            return False

    return holds


def _networks(texts: tuple[str, ...]) -> _Test:
    networks = NetworkSet(texts)
    return lambda address: address in networks


def _matches(text: str, *, ignore_case: bool) -> _Test:
    pattern = compile_pattern(text, ignore_case=ignore_case)
    return lambda given: pattern.search(given.encode("latin-1")) is not None


def _is_in(texts: tuple[str, ...]) -> _Test:
    members = frozenset(texts)
    return lambda given: given in members


_TESTS: dict[str, Callable[[Any], _Test]] = {
    "==": lambda expected: lambda given: given == expected,
    ">": lambda limit: _numbers(lambda given, limit: given > limit, limit),
    ">=": lambda limit: _numbers(lambda given, limit: given >= limit, limit),
    "<": lambda limit: _numbers(lambda given, limit: given < limit, limit),
    "<=": lambda limit: _numbers(lambda given, limit: given <= limit, limit),
    "~~": lambda text: _matches(text, ignore_case=False),
    "~*": lambda text: _matches(text, ignore_case=True),
    "in": _is_in,
    "has": lambda member: lambda given: member in [part.strip() for part in given.split(",")],
    "ipmatch": _networks,
}


def compile_expressions(expressions: tuple[JsonValue, ...]) -> Takes | None:
    """Compile what all have to hold; None if there is nothing. Raises ValueError."""
    parsed = parse_expressions(expressions)
    return _compile(parsed) if parsed is not None else None


def _compile(expression: Expression) -> Takes:
    if isinstance(expression, Comparison):
        return _compile_comparison(expression)
    join, is_turned = all if expression.needs_all else any, expression.is_turned
    parts = [_compile(part) for part in expression.parts]
    return lambda request, response: join(part(request, response) for part in parts) is not is_turned


def _compile_comparison(comparison: Comparison) -> Takes:
    name, is_turned = comparison.name, comparison.is_turned
    test = _TESTS[comparison.operator](comparison.value)
    field = body_field(name)
    if field is not None:
        return lambda request, _: any(map(test, body_fields(request).all(field))) is not is_turned

    def takes(request: Request, response: Response | None) -> bool:
        given = str(response.status) if name == "status" and response is not None else variable(request, name)
        return (given is not None and test(given)) is not is_turned

    return takes


def with_body(request: Request, hook: Callable[[Request], R | Awaitable[R]], *, is_guard: bool) -> R | Awaitable[R]:
    """Call a hook whose conditions ask for fields of the body, once it is there; at once if it can have none.

    With `is_guard` the conditions may keep requests out: one with a body that is too long for them is refused with 413,
    as padding would bring it past them. Without this it has no fields.
    """
    if request.content_length == 0 or not has_fields(body_type(request)):
        return hook(request)
    return _call_with_body(request, hook, is_guard)


async def _call_with_body(request: Request, hook: Callable[[Request], R | Awaitable[R]], is_guard: bool) -> R:
    try:
        await request.read_body(MAX_PARSED_BODY)
    except BodyTooLarge:
        if is_guard:
            raise
    outcome = hook(request)
    return await outcome if isinstance(outcome, Awaitable) else outcome
