"""From the text of a rule to tokens, by the rules of Go: rules are Go expressions.

Go ends a statement at a line break behind a name, a string or a closing parenthesis. So an operator that joins two
lines stands at the end of the first one. Comments are white space.
"""

import re
from collections.abc import Iterator
from enum import StrEnum
from typing import Final, NamedTuple

from headgate.translator.dialects.traefik.rules.errors import RuleError
from headgate.translator.dialects.traefik.rules.literals import unquote


class Kind(StrEnum):
    """Kinds of tokens; values are as messages name them."""

    NAME = "a name"
    STRING = "a string"
    OPEN = "("
    CLOSE = ")"
    COMMA = ","
    NOT = "!"
    AND = "&&"
    OR = "||"
    LINE_BREAK = "a line break"
    END = "the end of the rule"


class Token(NamedTuple):
    """One token."""

    kind: Kind
    text: str
    """Of a string what it stands for."""
    offset: int

    def __str__(self) -> str:
        """Return it as messages name it."""
        return f"{self.kind} {self.text[:40]!r}" if self.kind in (Kind.NAME, Kind.STRING) else self.kind


_TOKEN: Final = re.compile(
    r"""(?P<blank>[ \t\r]+|/\*[^\n]*?\*/)
    |(?P<line_break>\n|//[^\n]*|/\*.*?\*/)
    |(?P<name>[^\W\d]\w*)
    |(?P<string>`[^`]*`|"(?:[^"\\\n]|\\[^\n])*")
    |(?P<sign>&&|\|\||[!(),])""",
    re.VERBOSE | re.DOTALL,
)
_SIGNS: Final = {kind.value: kind for kind in (Kind.OPEN, Kind.CLOSE, Kind.COMMA, Kind.NOT, Kind.AND, Kind.OR)}
_ENDS_LINE: Final = (Kind.NAME, Kind.STRING, Kind.CLOSE)
_HINTS: Final = {
    "'": "single quotes make no string in rules: use backquotes or double quotes",
    "`": "the string is not closed: a backquote is missing",
    '"': "the string is not closed: a double quote is missing on its line",
    "&": "expected &&",
    "|": "expected ||",
}


def read_tokens(rule: str) -> Iterator[Token]:
    """Yield the tokens of a rule, `END` last.

    Raises:
        RuleError: there is a character that begins no token.
    """
    offset, line_break = 0, None
    before = Kind.END
    for found in _TOKEN.finditer(rule):
        start, group = found.start(), found.lastgroup
        if start != offset:
            break
        offset = found.end()
        if group == "line_break":
            line_break = line_break or (Token(Kind.LINE_BREAK, "", start) if before in _ENDS_LINE else None)
        elif group != "blank":
            if line_break is not None:
                yield line_break
                line_break = None
            token = _token(rule, start, group, found[0])
            before = token.kind
            yield token
    if offset < len(rule):
        raise RuleError(rule, offset, _HINTS.get(rule[offset], f"{rule[offset]!r} has no meaning in rules"))
    yield Token(Kind.END, "", offset)


def _token(rule: str, start: int, group: str | None, text: str) -> Token:
    if group == "name":
        return Token(Kind.NAME, text, start)
    if group == "sign":
        return Token(_SIGNS[text], text, start)
    try:
        return Token(Kind.STRING, unquote(text), start)
    except ValueError as error:
        raise RuleError(rule, start, str(error)) from error
