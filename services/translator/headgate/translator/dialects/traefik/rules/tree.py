"""Rules as trees. Trees are equal if they mean the same parts in the same order, wherever these stand in a text."""

from dataclasses import dataclass, field

from headgate.translator.dialects.traefik.rules.literals import quote


@dataclass(frozen=True, slots=True)
class Argument:
    """What a matcher is given."""

    value: str
    offset: int = field(default=0, compare=False)
    """Where it stands in the rule, in characters from 0."""


@dataclass(frozen=True, slots=True)
class Call:
    """A matcher with its arguments."""

    name: str
    """As Traefik declares it, whatever the case in the rule."""
    arguments: tuple[Argument, ...]
    offset: int = field(default=0, compare=False)

    def __str__(self) -> str:
        """Return it as rules have it."""
        return f"{self.name}({', '.join(quote(argument.value) for argument in self.arguments)})"


@dataclass(frozen=True, slots=True)
class Every:
    """True if all parts are."""

    parts: "tuple[Expression, ...]"
    offset: int = field(default=0, compare=False)

    def __str__(self) -> str:
        """Return it as rules have it."""
        return " && ".join(f"({part})" if isinstance(part, Every | Some) else str(part) for part in self.parts)


@dataclass(frozen=True, slots=True)
class Some:
    """True if one of the parts is."""

    parts: "tuple[Expression, ...]"
    offset: int = field(default=0, compare=False)

    def __str__(self) -> str:
        """Return it as rules have it."""
        return " || ".join(f"({part})" if isinstance(part, Some) else str(part) for part in self.parts)


@dataclass(frozen=True, slots=True)
class Negated:
    """True if the part is not."""

    part: "Expression"
    offset: int = field(default=0, compare=False)

    def __str__(self) -> str:
        """Return it as rules have it."""
        return f"!({self.part})" if isinstance(self.part, Every | Some) else f"!{self.part}"


Expression = Call | Every | Some | Negated


def calls(expression: Expression) -> "tuple[Call, ...]":
    """Return the matchers of a rule as they stand in it."""
    match expression:
        case Call():
            return (expression,)
        case Negated():
            return calls(expression.part)
        case _:
            return tuple(call for part in expression.parts for call in calls(part))
