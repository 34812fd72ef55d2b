"""Patterns as nginx takes them: RE2 wherever it can say them, PCRE2 with bounds for look-around and back-references.

RE2 is asked first, as it takes time linear in its input. A pattern that it does not know is compiled by PCRE2, whose
matching may take exponential time; so it gets a limit of steps and of memory, and texts have a longest length
(decision 0037 has the figures). A match that comes to a bound fails as an error, as in nginx, never as "no match": it
may guard something.

The groups that RE2 writes `(?P<name>...)` and Perl `(?<name>...)` are the same here.
"""

import re
from functools import lru_cache
from typing import Any, Final, Protocol

from headgate.common.effort import spend
from headgate.common.patterns import Match, compile_pattern

MAX_STEPS: Final = 5_000
"""Calls of PCRE2's matcher from one place of a text, where nginx has 10,000,000."""
MAX_TEXT: Final = 2_048
"""Bytes of a text that PCRE2 looks at: it begins at each of them in turn."""
MAX_HEAP_KIB: Final = 1_000
_MAX_PATTERN: Final = 1_024
_COST: Final = 200
"""Microseconds that a pattern of PCRE2 is counted for."""
_NAMED: Final = re.compile(r"(?<!\\)((?:\\\\)*)\(\?<([A-Za-z_]\w*)>")
_POSITION: Final = re.compile(r"position (\d+)")
_SETTINGS: Final = re.compile(r"\(\*[A-Z_]")


class PatternTooCostly(Exception):
    """A match was given up, as it came to a bound; the text says to which."""


class PerlPattern(Protocol):
    """A compiled pattern."""

    @property
    def names(self) -> tuple[str, ...]:
        """Name the groups that catch, from the first; empty for one without a name."""

    def search(self, text: bytes) -> Match | None:
        """Find the pattern anywhere in a text. Raises PatternTooCostly."""


@lru_cache(1024)
def compile_perl_pattern(pattern: str, *, ignore_case: bool = False) -> PerlPattern:
    """Compile a pattern whose groups catch.

    Raises:
        ValueError: neither RE2 nor PCRE2 takes it.
    """
    if _SETTINGS.match(pattern):
        raise ValueError("a pattern does not begin with a setting of PCRE2 such as (*LIMIT_MATCH=1)")
    try:
        return _Linear(pattern, ignore_case=ignore_case)
    except ValueError as error:
        try:
            return _Bounded(pattern, ignore_case=ignore_case)
        except ValueError as other:
            raise other from error


def is_linear(pattern: str) -> bool:
    """Whether RE2 takes a pattern, so that no bound is needed."""
    try:
        compile_pattern(pattern)
    except ValueError:
        return False
    return True


class _Linear:
    """A pattern of RE2."""

    __slots__ = ("names", "search")

    def __init__(self, pattern: str, *, ignore_case: bool) -> None:
        compiled = compile_pattern(_NAMED.sub(r"\1(?P<\2>", pattern), ignore_case=ignore_case, captures=True)
        self.names = _names(compiled.groups, getattr(compiled, "groupindex", {}))
        self.search = compiled.search


class _Bounded:
    """A pattern of PCRE2."""

    __slots__ = ("_compiled", "_failure", "names")

    def __init__(self, pattern: str, *, ignore_case: bool) -> None:
        import pcre2

        if len(pattern) > _MAX_PATTERN:
            raise ValueError(f"a pattern with look-around or back-references has at most {_MAX_PATTERN} characters")
        spend(_COST)
        bounds = f"(*LIMIT_MATCH={MAX_STEPS})(*LIMIT_HEAP={MAX_HEAP_KIB})"
        flags = pcre2.IGNORECASE if ignore_case else pcre2.NOFLAG
        self._failure: type[Exception] = pcre2.LibraryError
        try:
            self._compiled: Any = pcre2.compile(bounds.encode() + pattern.encode(), flags=flags)
        except (pcre2.LibraryError, pcre2.PatternError) as error:
            reason = _POSITION.sub(lambda found: f"position {int(found[1]) - len(bounds)}", str(error))
            raise ValueError(f"{pattern[:80]!r} is no pattern of PCRE2: {reason[:160]}") from error
        self.names = _names(self._compiled.groups, self._compiled.groupindex)

    def search(self, text: bytes) -> Match | None:
        """Find the pattern anywhere in a text. Raises PatternTooCostly."""
        if len(text) > MAX_TEXT:
            raise PatternTooCostly(f"a pattern with look-around or back-references takes {MAX_TEXT} bytes at most")
        try:
            found: Match | None = self._compiled.search(text)
        except self._failure as error:
            raise PatternTooCostly(f"a pattern came to its bound: {error}") from error
        return found


def _names(groups: int, index: Any) -> tuple[str, ...]:
    by_number = {number: name.decode() if isinstance(name, bytes) else str(name) for name, number in index.items()}
    return tuple(by_number.get(number, "") for number in range(1, groups + 1))
