"""nginx's configuration grammar: a text becomes directives, each with its place.

The rules are those by which nginx splits a file into tokens: words end at white space, `;` and `{`; a quote counts at
the beginning of a word only, and has to be followed by white space, `;`, `{` or `)`; `${` does not open a block; a
backslash keeps the next character from ending a word, and is dropped before quotes and itself. `}` within a word is a
character as any other.

The parser of the package `crossplane` was the alternative: it reads files only, gives no columns, takes texts that
nginx refuses, and has had no release since 2022 (docs/decisions/0036).
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from headgate.translator.snippets.errors import SnippetError

MAX_TEXT: Final = 64 << 10
"""Characters of a snippet."""
MAX_WORD: Final = 4096
"""Characters of one word, as in nginx."""
MAX_DEPTH: Final = 8
"""Blocks within each other."""
MAX_DIRECTIVES: Final = 1000
"""Of a snippet, those in blocks included."""
_OPEN_ENDED: Final = frozenset(("more_set_headers", "more_clear_headers", "more_set_input_headers"))
"""Directives that take any number of words. At the end of a snippet one with a single header needs no semicolon: nginx
goes on to the next one in the file, which is ingress-nginx' own."""
_SPACE: Final = " \t\r\n"
_AFTER_QUOTE: Final = frozenset(_SPACE + ";{)")
_ESCAPE: Final = re.compile(r"\\([\"'\\trn])")
_ESCAPED: Final = {"t": "\t", "r": "\r", "n": "\n"}


@dataclass(frozen=True, slots=True)
class Directive:
    """One directive."""

    name: str
    args: tuple[str, ...]
    """Without quotes and escapes."""
    line: int
    """Of its name, counted from 1."""
    column: int
    block: "tuple[Directive, ...] | None" = None
    """What is within its braces; None if a semicolon ends it."""

    def error(self, message: str) -> SnippetError:
        """Return the error about it."""
        return SnippetError(f"{self.name}: {message}", self.line, self.column)


@lru_cache(256)
def parse(text: str) -> tuple[Directive, ...]:
    """Return the directives of a snippet.

    Raises:
        SnippetError: nginx would not read it, or it is larger than bounds allow.
    """
    if len(text) > MAX_TEXT:
        raise SnippetError(f"a snippet has at most {MAX_TEXT} characters, this one has {len(text)}", 1)
    return _Parser(text).read_block(0)


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._line = 1
        self._line_begin = 0
        self._count = 0

    def read_block(self, depth: int) -> tuple[Directive, ...]:
        """Return the directives up to the end of the text, or of the block that was opened before."""
        directives: list[Directive] = []
        while (char := self._skip_space()) not in ("", "}"):
            if char in ";{":
                raise self._error(f'unexpected "{char}"')
            directives.append(self._read_directive(depth))
        if not char and depth:
            raise self._error('unexpected end of the snippet, expecting "}"')
        if char and not depth:
            raise self._error('unexpected "}"')
        self._at += len(char)
        return tuple(directives)

    def _read_directive(self, depth: int) -> Directive:
        self._count += 1
        if self._count > MAX_DIRECTIVES:
            raise self._error(f"a snippet has at most {MAX_DIRECTIVES} directives")
        line, column = self._line, self._at - self._line_begin + 1
        words = [self._read_word()]
        if words[0].endswith("_by_lua_block"):
            raise SnippetError(f"{words[0]}: Lua is not interpreted", line, column)
        while (char := self._skip_space()) not in ("", ";", "{", "}"):
            words.append(self._read_word())
        if not char and not depth and len(words) == 2 and words[0] in _OPEN_ENDED:
            return Directive(words[0], tuple(words[1:]), line, column)
        if char in ("", "}"):
            found = f'"{char}"' if char else "end of the snippet"
            raise self._error(f'unexpected {found}, expecting ";" or "{{"')
        self._at += 1
        if char == ";":
            return Directive(words[0], tuple(words[1:]), line, column)
        if depth == MAX_DEPTH:
            raise SnippetError(f"blocks are nested at most {MAX_DEPTH} deep", line, column)
        return Directive(words[0], tuple(words[1:]), line, column, self.read_block(depth + 1))

    def _skip_space(self) -> str:
        """Go to the next word; return its first character, empty at the end."""
        text = self._text
        while self._at < len(text):
            char = text[self._at]
            if char == "#":
                end = text.find("\n", self._at)
                self._at = end if end >= 0 else len(text)
            elif char in _SPACE:
                self._step()
            else:
                return char
        return ""

    def _step(self) -> None:
        if self._text[self._at] == "\n":
            self._line += 1
            self._line_begin = self._at + 1
        self._at += 1

    def _read_word(self) -> str:
        error = self._error("")
        quote = self._text[self._at]
        if quote in "\"'":
            self._at += 1
            word = self._read_until(quote)
            if self._at == len(self._text):
                raise SnippetError(f"a {quote} is not closed", error.line, error.column)
            self._at += 1
            after = self._text[self._at : self._at + 1]
            if after and after not in _AFTER_QUOTE:
                raise self._error(f'unexpected "{after}" behind a quoted text')
        else:
            word = self._read_until(_SPACE + ";{")
        if len(word) >= MAX_WORD:
            raise SnippetError(f"a word has fewer than {MAX_WORD} characters", error.line, error.column)
        return _ESCAPE.sub(lambda found: _ESCAPED.get(found[1], found[1]), word)

    def _read_until(self, ends: str) -> str:
        """Return the characters before one that ends a word, escapes as they stand."""
        begin, is_variable = self._at, False
        text = self._text
        while self._at < len(text):
            char = text[self._at]
            if char == "\\":
                self._step()
                if self._at < len(text):
                    self._step()
                is_variable = False
                continue
            if char in ends and not (char == "{" and is_variable):
                break
            is_variable = char == "$"
            self._step()
        return text[begin : self._at]

    def _error(self, message: str) -> SnippetError:
        return SnippetError(message, self._line, self._at - self._line_begin + 1)
