"""Rendering a template of lua-resty-template (`headgate.common.templates`) with the fields of a body.

Values are those of JSON: texts, numbers, booleans, None for nil, lists and dictionaries; there is nothing else that an
expression could get hold of. They behave as in Lua: a number is a double, lists begin with 1, only nil and false are
false. What is looked at, gone through and written is counted, so that no template works for ever.
"""

import json
import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from headgate.common.templates import nodes

_MAX_STEPS: Final = 50_000
"""Some 50 ms."""
_CHARACTERS_A_STEP: Final = 64
_MAX_TEXT: Final = 8 << 20
"""Characters that go out, and of any text on the way."""
_DECIMAL: Final = re.compile(
    r"[ \t\r\n]*[-+]?(?:[0-9]{1,400}\.?[0-9]{0,400}|\.[0-9]{1,400})(?:[eE][-+]?[0-9]{1,4})?[ \t\r\n]*"
)
_HEX: Final = re.compile(r"[ \t\r\n]*[-+]?0[xX][0-9a-fA-F]{1,64}[ \t\r\n]*")
_HTML: Final = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;", "/": "&#47;"},
)
_XML: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&apos;"})


class RenderFault(Exception):
    """A template does not fit what it was given; the text says why, in the words of Lua, without any value."""


class Rendering:
    """One rendering of a template.

    Args:
        fields: of the body; a list or a dictionary.
        body: the body as text.
        variable: gives a variable of the request by its name; None: there is none.
    """

    def __init__(self, fields: Any, body: str, variable: Callable[[str], str | None]) -> None:
        self._fields = fields
        self._body = body
        self._variable = variable
        self._names: dict[str, Any] = {}
        self._out: list[str] = []
        self._left = _MAX_STEPS
        self._room = _MAX_TEXT

    def render(self, template: nodes.Template) -> str:
        """Return what goes out. Raises RenderFault."""
        try:
            self._run(template.block)
        except RecursionError:
            raise RenderFault("a table is nested too deep") from None
        return "".join(self._out)

    def _work(self, steps: int = 1) -> None:
        self._left -= steps
        if self._left < 0:
            raise RenderFault("it takes too long")

    def _checked(self, text: str) -> str:
        self._work(len(text) // _CHARACTERS_A_STEP)
        if len(text) > _MAX_TEXT:
            raise RenderFault("a text gets too long")
        return text

    # Statements

    def _run(self, block: nodes.Block) -> None:
        hidden: list[tuple[str, bool, Any]] = []
        for statement in block:
            self._work()
            match statement:
                case nodes.Text(text):
                    self._put(text)
                case nodes.Output(expression, is_escaped):
                    value = self.value(expression)
                    text = "" if value is None else self._shown(value)
                    self._put(text.translate(_HTML) if is_escaped and isinstance(value, str) else text)
                case nodes.Assignment(name, expression, is_local):
                    value = self.value(expression)
                    if is_local:
                        hidden.append((name, name in self._names, self._names.get(name)))
                    self._names[name] = value
                case nodes.Choice():
                    self._run(self._chosen(statement))
                case nodes.Count():
                    self._count(statement)
                case nodes.Each():
                    self._go_through(statement)
        for name, was_there, before in reversed(hidden):
            if was_there:
                self._names[name] = before
            else:
                del self._names[name]

    def _put(self, text: str) -> None:
        self._room -= len(text)
        if self._room < 0:
            raise RenderFault("it gets too long")
        self._out.append(text)

    def _chosen(self, choice: nodes.Choice) -> nodes.Block:
        return next((block for condition, block in choice.branches if _holds(self.value(condition))), choice.otherwise)

    def _count(self, loop: nodes.Count) -> None:
        number, last, step = (_number(self.value(each)) for each in (loop.first, loop.last, loop.step))
        if number is None or last is None or not step:
            raise RenderFault("a 'for' counts with numbers, and not by 0")
        while number <= last if step > 0 else number >= last:
            self._run((nodes.Assignment(loop.name, nodes.Literal(number), is_local=True), *loop.block))
            number += step

    def _go_through(self, loop: nodes.Each) -> None:
        table = self.value(loop.table)
        if not isinstance(table, list | dict):
            raise RenderFault(f"a 'for' goes through a table, not through {_kind(table)}")
        names = (loop.key, loop.value)
        before = [(name, name in self._names, self._names.get(name)) for name in names]
        for key, value in _members(table, in_order=loop.in_order):
            self._work()
            self._names[loop.key] = key
            self._names[loop.value] = value
            self._run(loop.block)
        for name, was_there, value in before:
            self._names[name] = value
            if not was_there:
                del self._names[name]

    # Expressions

    def value(self, expression: nodes.Expression) -> Any:
        """Evaluate. Raises RenderFault."""
        self._work()
        match expression:
            case nodes.Literal(value):
                return value
            case nodes.Name(name):
                return self._names[name] if name in self._names else _member(self._fields, name)
            case nodes.Index(base, key):
                return _member(self.value(base), self.value(key))
            case nodes.Root():
                return self._fields
            case nodes.Body():
                return self._body
            case nodes.Variable(name):
                return self._variable(name)
            case nodes.Unary(sign, operand):
                return self._unary(sign, self.value(operand))
            case nodes.Call(function, arguments):
                return self._call(function, [self.value(each) for each in arguments])
            case nodes.Binary(sign, left, right):
                return self._binary(sign, left, right)

    def _unary(self, sign: str, value: Any) -> Any:
        if sign == "not":
            return not _holds(value)
        if sign == "#":
            if isinstance(value, dict):
                return float(len(list(_members(value, in_order=True))))
            if not isinstance(value, str | list):
                raise RenderFault(f"attempt to get length of {_kind(value)}")
            return float(len(value))
        return -_operand(value)

    def _binary(self, sign: str, left: nodes.Expression, right: nodes.Expression) -> Any:
        first = self.value(left)
        if sign in ("and", "or"):
            return self.value(right) if _holds(first) is (sign == "and") else first
        second = self.value(right)
        if sign == "..":
            return self._checked(_part(first) + _part(second))
        if sign in ("==", "~="):
            return _equal(first, second) is (sign == "==")
        if sign in _COMPARISONS:
            return _compared(sign, first, second)
        return _ARITHMETIC[sign](_operand(first), _operand(second))

    def _call(self, function: str, arguments: list[Any]) -> Any:
        known = _FUNCTIONS.get(function)
        if known is not None:
            result = known(*arguments)
            return self._checked(result) if isinstance(result, str) else result
        if function == "_escape_json":
            return self._checked(_json(arguments[0]))
        if function == "string.gsub":
            text, old, new = (_text(each) for each in arguments)
            if text.count(old) * len(new) > _MAX_TEXT:
                raise RenderFault("a text gets too long")
            return self._checked(text.replace(old, new))
        return self._checked(self._concat(*arguments))

    def _concat(self, table: Any, between: Any = "") -> str:
        if not isinstance(table, list):
            raise RenderFault(f"table.concat takes a list, not {_kind(table)}")
        self._work(len(table))
        if len(table) * len(_text(between)) > _MAX_TEXT:
            raise RenderFault("a text gets too long")
        return _text(between).join(map(_part, table))

    def _shown(self, value: Any) -> str:
        if isinstance(value, list | dict):
            raise RenderFault("a table goes out as _escape_json(table)")
        return self._checked(_tostring(value))


def _holds(value: Any) -> bool:
    return value is not None and value is not False


def _kind(value: Any) -> str:
    return f"a {_type(value)} value"


def _type(value: Any) -> str:
    if value is None:
        return "nil"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    return "string" if isinstance(value, str) else "table"


def _member(table: Any, key: Any) -> Any:
    """Return what a table has under a key; texts and numbers have nothing."""
    if isinstance(table, dict):
        if isinstance(key, float) and key.is_integer():
            key = int(key)
        return table.get(key) if isinstance(key, str | int) and not isinstance(key, bool) else None
    if isinstance(table, list):
        is_place = isinstance(key, int | float) and not isinstance(key, bool) and 1 <= key <= len(table)
        return table[int(key) - 1] if is_place and key == int(key) else None
    if isinstance(table, str):
        return None
    raise RenderFault(f"attempt to index {_kind(table)}")


def _members(table: Any, *, in_order: bool) -> Iterator[tuple[Any, Any]]:
    """Go through a table, without what is nil; in order: from 1 to the first that is not there."""
    if isinstance(table, list):
        for place, value in enumerate(table, 1):
            if value is not None:
                yield float(place), value
            elif in_order:
                return
    elif in_order:
        place = 1
        while (value := table.get(place)) is not None:
            yield float(place), value
            place += 1
    else:
        yield from ((key, value) for key, value in table.items() if value is not None)


def _number(value: Any) -> float | None:
    """Return what Lua counts with: of a number or of a text that is one."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        try:
            return (
                float(value) if _DECIMAL.fullmatch(value) else float(int(value, 16)) if _HEX.fullmatch(value) else None
            )
        except OverflowError:
            return math.inf
    try:
        return float(value) if isinstance(value, int | float) else None
    except OverflowError:
        return math.inf


def _operand(value: Any) -> float:
    number = _number(value)
    if number is None:
        raise RenderFault(f"attempt to perform arithmetic on {_kind(value)}")
    return number


def _tostring(value: Any) -> str:
    if value is None:
        return "nil"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:.14g}"
    return "table" if isinstance(value, list | dict) else str(value)


def _text(value: Any) -> str:
    if isinstance(value, str) or (isinstance(value, int | float) and not isinstance(value, bool)):
        return _tostring(value)
    raise RenderFault(f"a string is expected, not {_kind(value)}")


def _part(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise RenderFault(f"attempt to concatenate {_kind(value)}")
    return _tostring(value)


def _equal(left: Any, right: Any) -> bool:
    if isinstance(left, list | dict):
        return left is right
    return _type(left) == _type(right) and bool(left == right)


def _compared(sign: str, left: Any, right: Any) -> bool:
    if _type(left) != _type(right) or _type(left) not in ("number", "string"):
        raise RenderFault(f"attempt to compare {_kind(left)} with {_kind(right)}")
    return bool(_COMPARISONS[sign](left, right))


def _divided(left: float, right: float) -> float:
    if right:
        return left / right
    return math.nan if not left or math.isnan(left) else math.copysign(math.inf, left) * math.copysign(1, right)


def _remainder(left: float, right: float) -> float:
    return math.nan if not right or math.isinf(left) else left % right


def _json(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except (ValueError, TypeError):
        raise RenderFault("_escape_json takes what JSON knows") from None


def _sub(text: Any, first: Any, last: Any = -1.0) -> str:
    """Cut a text as string.sub: places begin with 1, negative ones count from the end."""
    whole = _text(text)
    places = [min(max(_operand(place), -1e9), 1e9) for place in (first, last)]
    start, end = (int(place) if place >= 0 else len(whole) + int(place) + 1 for place in places)
    return whole[max(start, 1) - 1 : max(end, 0)]


_COMPARISONS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_ARITHMETIC: Final[Mapping[str, Callable[[float, float], float]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _divided,
    "%": _remainder,
}
_FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "_escape_xml": lambda text: _text(text).translate(_XML),
    "string.len": lambda text: float(len(_text(text))),
    "string.lower": lambda text: _text(text).lower(),
    "string.sub": _sub,
    "string.upper": lambda text: _text(text).upper(),
    "tonumber": _number,
    "tostring": _tostring,
    "type": _type,
}
