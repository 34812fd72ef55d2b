"""Conditions in which functions are compared with values: `NetworkErrorRatio() > 0.3 || Attempts() < 3`.

    condition  := conjunction { "||" conjunction }
    conjunction := part { "&&" part }
    part       := "(" condition ")" | call [ operator value ]
    call       := name "(" [ number { "," number } ] ")"

They are a part of Go's expressions, for Traefik's `circuitBreaker` and `buffering`. A call that stands alone has to be
one of a function that is true or false.
"""

import operator
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

Value = bool | float | str
Ask = Callable[["Call"], Value]
"""Returns what a function gives now."""

_OPERATORS: Final[Mapping[str, Callable[[Value, Value], bool]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_TOKEN: Final = re.compile(
    r"""\s*(?:(?P<number>[0-9]+(?:\.[0-9]*)?|\.[0-9]+)
    |(?P<name>[A-Za-z_]\w*)
    |"(?P<text>[^"\\\n]*)"|`(?P<raw>[^`]*)`
    |(?P<sign>&&|\|\||[<>=!]=|[<>(),])
    |(?P<end>$))""",
    re.VERBOSE,
)
MAX_LENGTH: Final = 4096
_MAX_DEPTH: Final = 32


class BadComparison(ValueError):
    """A condition that cannot be read; the text says where and why."""


class Function(NamedTuple):
    """A function that conditions may call."""

    arguments: int
    gives: type[bool] | type[float] | type[int] | type[str]
    """`int` is compared with whole numbers only, and `str` for equality only."""


class Call(NamedTuple):
    """A function with its arguments."""

    name: str
    arguments: tuple[float, ...]


class Comparison(NamedTuple):
    """What a function gives, compared with a value."""

    call: Call
    sign: str
    value: Value

    def holds(self, ask: Ask) -> bool:
        """Say whether it holds now."""
        return _OPERATORS[self.sign](ask(self.call), self.value)

    def comparisons(self) -> "Iterator[Comparison]":
        """Yield itself."""
        yield self


class Joined(NamedTuple):
    """Several conditions, of which all hold, or one."""

    parts: "tuple[Condition, ...]"
    is_any: bool

    def holds(self, ask: Ask) -> bool:
        """Say whether it holds now."""
        found = (part.holds(ask) for part in self.parts)
        return any(found) if self.is_any else all(found)

    def comparisons(self) -> Iterator[Comparison]:
        """Yield all comparisons."""
        for part in self.parts:
            yield from part.comparisons()


Condition = Comparison | Joined


def read_condition(text: str, functions: Mapping[str, Function]) -> Condition:
    """Return the tree of a condition.

    Raises:
        BadComparison: it does not follow the grammar, or calls something else.
    """
    if len(text) > MAX_LENGTH:
        raise BadComparison(f"has {len(text)} characters, more than {MAX_LENGTH}")
    return _Reader(text, functions).read()


class _Reader:
    def __init__(self, text: str, functions: Mapping[str, Function]) -> None:
        self._text = text
        self._functions = functions
        self._depth = 0
        self._take()

    def read(self) -> Condition:
        found = self._joined("||", lambda: self._joined("&&", self._part))
        if self._kind != "end":
            raise self._wrong("expected &&, || or the end")
        return found

    def _joined(self, sign: str, read: Callable[[], Condition]) -> Condition:
        parts = [read()]
        while self._is(sign):
            self._take()
            parts.append(read())
        return parts[0] if len(parts) == 1 else Joined(tuple(parts), sign == "||")

    def _part(self) -> Condition:
        if not self._is("("):
            return self._comparison()
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise self._wrong(f"has more than {_MAX_DEPTH} parentheses within each other")
        self._take()
        found = self._joined("||", lambda: self._joined("&&", self._part))
        self._expect(")")
        self._depth -= 1
        return found

    def _comparison(self) -> Comparison:
        call = self._call()
        gives = self._functions[call.name].gives
        sign = self._found if self._kind == "sign" and self._found in _OPERATORS else ""
        if not sign:
            if gives is not bool:
                raise self._wrong(f"expected a comparison behind {call.name}()")
            return Comparison(call, "==", True)
        if gives is bool:
            raise self._wrong(f"{call.name}() is true or false, and not compared")
        if gives is str and sign not in ("==", "!="):
            raise self._wrong(f"{call.name}() is compared by == and != only")
        self._take()
        value = self._value(call.name, gives)
        self._take()
        return Comparison(call, sign, value)

    def _value(self, name: str, gives: type) -> Value:
        if gives is str:
            if self._kind not in ("text", "raw"):
                raise self._wrong(f"{name}() is compared with a text")
            return self._found
        if self._kind != "number":
            raise self._wrong(f"{name}() is compared with a number")
        if gives is int and "." in self._found:
            raise self._wrong(f"{name}() is compared with a whole number")
        if gives is float and "." not in self._found:
            raise self._wrong(f"{name}() is compared with a number that has a point, such as {self._found}.0")
        return float(self._found)

    def _call(self) -> Call:
        name = self._found
        function = self._functions.get(name) if self._kind == "name" else None
        if function is None:
            raise self._wrong(f"expected one of {', '.join(f'{known}()' for known in sorted(self._functions))}")
        self._take()
        self._expect("(")
        arguments: list[float] = []
        while self._kind == "number":
            arguments.append(float(self._found))
            self._take()
            if not self._is(","):
                break
            self._take()
        self._expect(")")
        if len(arguments) != function.arguments:
            raise self._wrong(f"{name}() takes {function.arguments} numbers, not {len(arguments)}")
        return Call(name, tuple(arguments))

    def _is(self, sign: str) -> bool:
        return self._kind == "sign" and self._found == sign

    def _expect(self, sign: str) -> None:
        if not self._is(sign):
            raise self._wrong(f"expected {sign}")
        self._take()

    _at = _end = 0

    def _take(self) -> None:
        self._at = self._end
        found = _TOKEN.match(self._text, self._end)
        if found is None:
            raise self._wrong("found something that has no meaning here")
        self._kind = found.lastgroup or ""
        self._found = found[self._kind] or ""
        self._end = found.end()

    def _wrong(self, reason: str) -> BadComparison:
        return BadComparison(f"{reason}, at column {self._at + 1} of {self._text[:200]!r}")
