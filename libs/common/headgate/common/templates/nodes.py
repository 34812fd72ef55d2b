"""A template that was read. Expressions give values; statements put text out, or change what names mean."""

from dataclasses import dataclass

Value = str | float | bool | None


@dataclass(frozen=True, slots=True)
class Literal:
    """A value that stands in the template."""

    value: Value


@dataclass(frozen=True, slots=True)
class Name:
    """A local variable, or else a field of the body."""

    name: str


@dataclass(frozen=True, slots=True)
class Root:
    """`context`: all fields of the body."""


@dataclass(frozen=True, slots=True)
class Body:
    """`_body`: the body as text."""


@dataclass(frozen=True, slots=True)
class Variable:
    """`_ctx.var.name`: a variable of the request, or of the answer."""

    name: str


@dataclass(frozen=True, slots=True)
class Index:
    """`base.key` or `base[key]`."""

    base: "Expression"
    key: "Expression"


@dataclass(frozen=True, slots=True)
class Unary:
    """`not`, `-` or `#` before an expression."""

    operator: str
    operand: "Expression"


@dataclass(frozen=True, slots=True)
class Binary:
    """Two expressions with an operator between them; `and` and `or` look at the second only if need be."""

    operator: str
    left: "Expression"
    right: "Expression"


@dataclass(frozen=True, slots=True)
class Call:
    """One of the functions that are known."""

    function: str
    arguments: tuple["Expression", ...]


Expression = Literal | Name | Root | Body | Variable | Index | Unary | Binary | Call


@dataclass(frozen=True, slots=True)
class Text:
    """Goes out as it stands."""

    text: str


@dataclass(frozen=True, slots=True)
class Output:
    """`{{ }}`, escaped for HTML, or `{* *}`."""

    expression: Expression
    is_escaped: bool


@dataclass(frozen=True, slots=True)
class Assignment:
    """Gives a name a value, to the end of the block or of the template."""

    name: str
    expression: Expression
    is_local: bool


@dataclass(frozen=True, slots=True)
class Choice:
    """`if`, `elseif`, `else`: the first block whose condition holds."""

    branches: tuple[tuple[Expression, "Block"], ...]
    otherwise: "Block"


@dataclass(frozen=True, slots=True)
class Count:
    """`for name = first, last, step do`."""

    name: str
    first: Expression
    last: Expression
    step: Expression
    block: "Block"


@dataclass(frozen=True, slots=True)
class Each:
    """`for key, value in pairs(table) do`."""

    key: str
    value: str
    table: Expression
    in_order: bool
    """`ipairs`: the members of a list, to the first that is not there."""
    block: "Block"


Statement = Text | Output | Assignment | Choice | Count | Each
Block = tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class Template:
    """A whole template."""

    block: Block
    is_quick: bool
    """It is short, and nothing in it is done again and again."""
