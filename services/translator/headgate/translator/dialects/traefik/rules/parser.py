"""From tokens to a tree.

    expression := conjunction { "||" conjunction }
    conjunction := unary { "&&" unary }
    unary := "!" unary | "(" expression ")" | name "(" [ string { "," string } [ "," ] ] ")"

Python's own grammar is near, but takes much that Traefik refuses, and says of an error neither what was expected nor
which matchers there are. So the grammar is written out.
"""

from collections.abc import Callable, Collection, Mapping
from difflib import get_close_matches
from functools import lru_cache
from typing import Final

from headgate.translator.dialects.traefik.rules.errors import RuleError
from headgate.translator.dialects.traefik.rules.lexer import Kind, Token, read_tokens
from headgate.translator.dialects.traefik.rules.tree import Argument, Call, Every, Expression, Negated, Some

MAX_RULE: Final = 64 << 10
"""Characters of a rule."""
MAX_DEPTH: Final = 64
"""Parentheses and negations within each other."""


def parse(rule: str, matchers: Collection[str], others: Mapping[str, str]) -> Expression:
    """Return the tree of a rule.

    Args:
        rule: as written.
        matchers: names that may be called, each as Traefik declares it.
        others: names of other syntaxes, with the syntax.

    Raises:
        RuleError: it does not follow the grammar, or calls another name.
    """
    if len(rule) > MAX_RULE:
        raise RuleError(rule, MAX_RULE, f"a rule has at most {MAX_RULE} characters, this one {len(rule)}")
    return _Parser(rule, matchers, others).parse()


class _Parser:
    def __init__(self, rule: str, matchers: Collection[str], others: Mapping[str, str]) -> None:
        self._rule = rule
        self._names = _by_spelling(tuple(matchers))
        self._matchers = matchers
        self._others = others
        self._tokens = read_tokens(rule)
        self._next: Token = next(self._tokens)
        self._depth = 0

    def parse(self) -> Expression:
        expression = self._expression()
        if self._next.kind is not Kind.END:
            raise self._unexpected("&&, || or the end of the rule")
        return expression

    def _expression(self) -> Expression:
        return self._joined(Kind.OR, Some, lambda: self._joined(Kind.AND, Every, self._unary))

    def _joined(self, sign: Kind, join: type[Every] | type[Some], read: Callable[[], Expression]) -> Expression:
        offset = self._next.offset
        parts = [read()]
        while self._next.kind is sign:
            self._take()
            parts.append(read())
        return parts[0] if len(parts) == 1 else join(tuple(parts), offset)

    def _unary(self) -> Expression:
        token = self._next
        if token.kind is Kind.NAME:
            return self._call()
        if token.kind not in (Kind.NOT, Kind.OPEN):
            raise self._unexpected("a matcher such as Host(`example.com`), ! or (")
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise RuleError(self._rule, token.offset, f"a rule is at most {MAX_DEPTH} levels deep")
        self._take()
        if token.kind is Kind.NOT:
            expression: Expression = Negated(self._unary(), token.offset)
        else:
            expression = self._expression()
            self._expect(Kind.CLOSE, "&&, || or )")
        self._depth -= 1
        return expression

    def _call(self) -> Call:
        token = self._take()
        name = self._names.get(token.text)
        if name is None:
            raise RuleError(self._rule, token.offset, self._no_matcher(token.text))
        self._expect(Kind.OPEN, f"( behind {token.text}")
        arguments: list[Argument] = []
        while not self._is_at(Kind.CLOSE):
            if not self._is_at(Kind.STRING):
                raise self._unexpected("a string in backquotes or double quotes, or )")
            found = self._take()
            arguments.append(Argument(found.text, found.offset))
            if not self._is_at(Kind.COMMA):
                break
            self._take()
        self._expect(Kind.CLOSE, ", or )")
        return Call(name, tuple(arguments), token.offset)

    def _take(self) -> Token:
        token = self._next
        if token.kind is not Kind.END:
            self._next = next(self._tokens)
        return token

    def _is_at(self, kind: Kind) -> bool:
        return self._next.kind is kind

    def _expect(self, kind: Kind, expected: str) -> None:
        if not self._is_at(kind):
            raise self._unexpected(expected)
        self._take()

    def _unexpected(self, expected: str) -> RuleError:
        reason = f"found {self._next}, expected {expected}"
        if self._next.kind is Kind.LINE_BREAK:
            reason += "; a rule goes on behind a line break only after &&, ||, !, ( or a comma"
        return RuleError(self._rule, self._next.offset, reason)

    def _no_matcher(self, name: str) -> str:
        there_are = f"there are {', '.join(sorted(self._matchers))}"
        for other, syntax in self._others.items():
            if name in _spellings(other):
                return f"{other} is a matcher of the syntax {syntax}; {there_are}"
        spellings = {matcher.lower(): matcher for matcher in self._matchers}
        near = get_close_matches(name.lower(), spellings, 1)
        perhaps = f"perhaps {spellings[near[0]]}; " if near else ""
        return f"{name[:40]!r} is no matcher; {perhaps}{there_are}"


@lru_cache(16)
def _by_spelling(names: tuple[str, ...]) -> Mapping[str, str]:
    """Return the matchers of a syntax by how they may be spelled; there are few syntaxes and many rules."""
    return {spelling: name for name in names for spelling in _spellings(name)}


def _spellings(name: str) -> tuple[str, ...]:
    """Return how a matcher may be spelled; other mixtures of cases are refused, as by Traefik."""
    return name, name.lower(), name.upper(), name.capitalize()
