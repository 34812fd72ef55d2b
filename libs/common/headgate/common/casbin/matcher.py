"""The matcher of a model as a tree: comparisons, conditions and calls of known functions, and nothing else.

Precedence is that of pycasbin, where `!` is Python's `not`: `!r.sub == "root"` negates the comparison. Unlike there,
each operand of `&&`, `||` and `!` has to be a condition: a forgotten comparison is refused instead of true.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from headgate.common.casbin.errors import CasbinFault
from headgate.common.casbin.functions import FUNCTIONS, PATTERN_FUNCTIONS

MAX_NODES: Final = 200
"""Comparisons, conditions, calls, fields and literals of one matcher; that of role-based access with domains has 20."""
MAX_DEPTH: Final = 24
_ALLOWED: Final = (
    'a matcher has r.NAME, p.NAME, texts, numbers, true, false, ==, !=, in ("a", "b"), &&, ||, !, parentheses, and the '
    f"functions {', '.join(FUNCTIONS)} and those of [role_definition]"
)
_TOKEN: Final = re.compile(
    r"""[ \t]+ | \#.*
    | (?P<name>[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z0-9_]+)*)
    | (?P<number>-?[0-9]{1,15}(?:\.[0-9]{1,15})?(?![\w.]))
    | (?P<string>"(?:[^"\\]|\\.)*" | '(?:[^'\\]|\\.)*')
    | (?P<operator>==|!=|&&|\|\||[!(),](?!\*))""",
    re.VERBOSE,
)
_WORDS: Final = {"and": "&&", "or": "||", "not": "!"}
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"'}
_OTHER_ESCAPES: Final = frozenset("01234567abfuvxNU")
"""Escapes of Python that have no place in a policy."""
_ESCAPE: Final = re.compile(r"\\(.)")
_SHOWN: Final = 40

Value = str | float | bool


@dataclass(frozen=True, slots=True)
class Field:
    """A field of the request or of a policy line."""

    of_request: bool
    index: int


@dataclass(frozen=True, slots=True)
class Literal:
    """A text, a number, true or false."""

    value: Value


@dataclass(frozen=True, slots=True)
class Call:
    """A function with its arguments; `name` is one of `FUNCTIONS` or of the model's roles."""

    name: str
    arguments: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Equal:
    """Two values that have to be the same."""

    left: "Node"
    right: "Node"


@dataclass(frozen=True, slots=True)
class Within:
    """A value that has to be one of several."""

    item: "Node"
    members: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Not:
    """The opposite of a condition."""

    part: "Node"


@dataclass(frozen=True, slots=True)
class AllOf:
    """Conditions that all have to hold, judged from the left until one does not."""

    parts: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Conditions of which one has to hold, judged from the left until one does."""

    parts: tuple["Node", ...]


Node = Field | Literal | Call | Equal | Within | Not | AllOf | AnyOf


@dataclass(frozen=True, slots=True)
class Names:
    """What a matcher may name."""

    request: Sequence[str]
    policy: Sequence[str]
    roles: Mapping[str, int]
    """How many arguments each role function takes."""


@dataclass(frozen=True, slots=True)
class Matcher:
    """A matcher that was read, and how many nodes it has."""

    condition: Node
    size: int


def read_matcher(text: str, names: Names) -> Matcher:
    """Read a matcher. Raises CasbinFault."""
    reader = _Reader(_cut(text), names)
    condition = reader.read_condition()
    if reader.token != _END:
        raise _fault(f"{reader.token[1]!r} is not expected here")
    return Matcher(condition, reader.size)


_Token = tuple[str, str]
_END: Final = ("end", "the end")


def _cut(text: str) -> list[_Token]:
    tokens: list[_Token] = []
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise _fault(f"{text[at : at + _SHOWN]!r} is not followed")
        at, kind = found.end(), found.lastgroup
        if kind is not None:
            tokens.append((kind, found[0]) if found[0] not in _WORDS else ("operator", _WORDS[found[0]]))
    return tokens


def _fault(text: str) -> CasbinFault:
    return CasbinFault(f"matchers: {text}; {_ALLOWED}")


class _Reader:
    """Reads tokens by recursive descent."""

    def __init__(self, tokens: list[_Token], names: Names) -> None:
        self._tokens = tokens
        self._at = 0
        self._names = names
        self._depth = 0
        self.size = 0

    @property
    def token(self) -> _Token:
        return self._tokens[self._at] if self._at < len(self._tokens) else _END

    def _takes(self, operator: str) -> bool:
        if self.token != ("operator", operator):
            return False
        self._at += 1
        return True

    def _expect(self, operator: str) -> None:
        if not self._takes(operator):
            raise _fault(f"{operator!r} is expected instead of {self.token[1][:_SHOWN]!r}")

    def _count(self, node: Node) -> Node:
        self.size += 1
        if self.size > MAX_NODES:
            raise CasbinFault(f"matchers: must have at most {MAX_NODES} fields, literals, comparisons and calls")
        return node

    def read_condition(self) -> Node:
        """Read what `||` joins."""
        node = self._read_or()
        if not _is_condition(node):
            raise _fault("a matcher is a condition, not a value")
        return node

    def _read_or(self) -> Node:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise CasbinFault(f"matchers: must be nested at most {MAX_DEPTH} deep")
        parts = [self._read_and()]
        while self._takes("||"):
            parts.append(self._read_and())
        self._depth -= 1
        return self._joined(AnyOf, parts)

    def _read_and(self) -> Node:
        parts = [self._read_not()]
        while self._takes("&&"):
            parts.append(self._read_not())
        return self._joined(AllOf, parts)

    def _joined(self, kind: type[AllOf] | type[AnyOf], parts: list[Node]) -> Node:
        if len(parts) == 1:
            return parts[0]
        return self._count(kind(tuple(map(_condition, parts))))

    def _read_not(self) -> Node:
        count = 0
        while self._takes("!"):
            count += 1
        node = self._read_comparison()
        if count:
            _condition(node)
        return self._count(Not(node)) if count % 2 else node

    def _read_comparison(self) -> Node:
        left = self._read_operand()
        if self._takes("=="):
            return self._count(Equal(left, self._read_operand()))
        if self._takes("!="):
            return self._count(Not(Equal(left, self._read_operand())))
        if self.token == ("name", "in"):
            self._at += 1
            return self._count(Within(left, self._read_members()))
        return left

    def _read_members(self) -> tuple[Node, ...]:
        self._expect("(")
        members = self._read_list()
        if len(members) < 2:
            raise _fault("'in' takes two members or more: for one write ==")
        return members

    def _read_list(self) -> tuple[Node, ...]:
        members = [self._read_operand()]
        while self._takes(","):
            members.append(self._read_operand())
        self._expect(")")
        return tuple(members)

    def _read_operand(self) -> Node:
        kind, text = self.token
        if self._takes("("):
            node = self._read_or()
            self._expect(")")
            return node
        self._at += 1
        if kind == "string":
            return self._count(Literal(_unescaped(text)))
        if kind == "number":
            return self._count(Literal(float(text)))
        if kind == "name":
            return self._count(self._read_name(text))
        raise _fault(f"a value is expected instead of {text[:_SHOWN]!r}")

    def _read_name(self, name: str) -> Node:
        if self.token == ("operator", "("):
            return self._read_call(name)
        if name in ("true", "True", "false", "False"):
            return Literal(name in ("true", "True"))
        for beginning, fields in (("r.", self._names.request), ("p.", self._names.policy)):
            if name.startswith(beginning):
                field = name.removeprefix(beginning)
                if field not in fields:
                    known = ", ".join(beginning + each for each in fields)
                    raise CasbinFault(f"matchers: {name[:_SHOWN]!r} is not defined; there are {known}")
                return Field(beginning == "r.", fields.index(field))
        raise _fault(f"{name[:_SHOWN]!r} is not followed")

    def _read_call(self, name: str) -> Call:
        count = 2 if name in FUNCTIONS else self._names.roles.get(name)
        if count is None:
            raise _fault(f"there is no function {name[:_SHOWN]!r}")
        self._at += 1
        arguments = self._read_list()
        if len(arguments) != count:
            raise CasbinFault(f"matchers: {name} takes {count} arguments, not {len(arguments)}")
        for each in arguments:
            if not _is_text(each):
                raise CasbinFault(f"matchers: arguments of {name} must be fields or texts")
        pattern = arguments[-1]
        if name in PATTERN_FUNCTIONS and isinstance(pattern, Field) and pattern.of_request:
            raise CasbinFault(
                f"matchers: the second argument of {name} is a pattern, which must be a text or a field of the policy "
                "(p.NAME), not of the request"
            )
        return Call(name, arguments)


def _condition(node: Node) -> Node:
    if not _is_condition(node):
        raise _fault("operands of &&, || and ! must be conditions, not values: compare with ==")
    return node


def _is_condition(node: Node) -> bool:
    return not isinstance(node, Field | Literal) or (isinstance(node, Literal) and isinstance(node.value, bool))


def _is_text(node: Node) -> bool:
    return isinstance(node, Field) or (isinstance(node, Literal) and isinstance(node.value, str))


def _unescaped(text: str) -> str:
    def replaced(found: re.Match[str]) -> str:
        character = found[1]
        if character in _OTHER_ESCAPES:
            raise CasbinFault(f"matchers: the escape \\{character} is not followed; write \\\\{character} in a pattern")
        return _ESCAPES.get(character, found[0])

    return _ESCAPE.sub(replaced, text[1:-1])
