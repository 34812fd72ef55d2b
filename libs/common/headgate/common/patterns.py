"""Patterns that users write: RE2 only, so that no pattern and no input stalls who compares.

Patterns work on bytes, as paths and header values are such: `.` takes any byte, so nothing that a client sends slips
past `.*` by not being UTF-8. A character beyond ASCII in a pattern stands for the bytes of its UTF-8.

RE2 takes time linear in its input. The factor is the size of the compiled pattern if its automaton must be built again
at every byte, so that size is bounded too: at `MAX_PROGRAM` the worst pattern with the worst 16 KiB of input takes some
100 ms, where ordinary ones take 2 µs.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from itertools import takewhile
from typing import Any, Final, Protocol, cast

import re2

from headgate.common.effort import spend

MAX_PROGRAM: Final = 1000
"""Instructions of one compiled pattern; `[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}` has 72."""
PATTERN_MEMORY: Final = 1024 * 1024
"""Bytes that one pattern's automaton may take; it is built as input asks for it."""
MAX_TOGETHER: Final = 40_000
"""Instructions of all patterns that somebody gives at one place, 800 short ones: they are compiled in one go, in
some 20 ms, and a request may be compared with all."""
_OF_EACH: Final = 40
"""Instructions that take about as long to compile as the shortest pattern."""
_SHOWN: Final = 80
_LONGEST_BEGINNING: Final = 256
_left: ContextVar[list[int] | None] = ContextVar("_left", default=None)
"""Instructions that may still be compiled; None: there is no bound."""


class Match(Protocol):
    """What a pattern found."""

    def start(self, group: int = 0) -> int:
        """Give where a group begins."""

    def end(self, group: int = 0) -> int:
        """Give where a group ends."""

    def groups(self) -> tuple[bytes | None, ...]:
        """Give what the groups caught."""

    def expand(self, template: bytes) -> bytes:
        r"""Give a text in which `\1` is what the first group caught."""


class Pattern(Protocol):
    """A compiled pattern."""

    @property
    def groups(self) -> int:
        """Count the groups that catch."""

    @property
    def programsize(self) -> int:
        """Count the instructions, which a byte of text may all take at worst."""

    def search(self, text: bytes, start: int = 0) -> Match | None:
        """Find the pattern anywhere in a text from a place on."""

    def match(self, text: bytes) -> Match | None:
        """Find the pattern at the beginning of a text."""

    def fullmatch(self, text: bytes) -> Match | None:
        """Find the pattern from the beginning of a text to its end."""

    def possiblematchrange(self, size: int) -> tuple[bytes, bytes]:
        """Give bounds of what the pattern matches, of so many bytes at most. Raises re2.error without bounds."""

    def subn(self, replacement: Any, text: bytes, count: int = 0) -> tuple[bytes, int]:
        """Replace what the pattern finds."""


@contextmanager
def bounded_patterns() -> Iterator[None]:
    """Let `compile_pattern` raise ValueError within once all patterns together have more than `MAX_TOGETHER`."""
    token = _left.set([MAX_TOGETHER])
    try:
        yield
    finally:
        _left.reset(token)


def compile_pattern(pattern: str, *, ignore_case: bool = False, captures: bool = False) -> Pattern:
    """Compile a pattern; without `captures` its groups catch nothing, which is faster.

    Raises:
        ValueError: it is no RE2 pattern, or too large.
    """
    left = _left.get()
    if left is None or left[0] > 0:
        spend(_OF_EACH)
        compiled, size = _compile(pattern, ignore_case, captures)
        spend(size // 4)
        if left is None:
            return compiled
        left[0] -= _OF_EACH + size
    if left[0] <= 0:
        raise ValueError(
            f"{pattern[:_SHOWN]!r} is one pattern too many: all together have {MAX_TOGETHER} instructions at most, "
            f"{_OF_EACH} for each counted in"
        )
    return compiled


@lru_cache(1024)
def _compile(pattern: str, ignore_case: bool, captures: bool) -> tuple[Pattern, int]:
    """Return a pattern and how many instructions it has. Raises ValueError."""
    try:
        compiled = re2.compile(pattern.encode(), pattern_options(ignore_case=ignore_case, captures=captures))
    except re2.error as error:
        reason = error.args[0] if error.args else ""
        told = reason.decode(errors="replace") if isinstance(reason, bytes) else reason
        raise ValueError(f"{pattern[:_SHOWN]!r} is no RE2 pattern: {told}") from error
    if compiled.programsize > MAX_PROGRAM:
        size = f"{compiled.programsize} instructions, at most {MAX_PROGRAM}"
        raise ValueError(f"{pattern[:_SHOWN]!r} is too large: {size}")
    return cast(Pattern, compiled), compiled.programsize


def match_beginning(pattern: str) -> str:
    """Return an ASCII text that everything begins with which a pattern matches from its beginning; empty if unknown.

    With `ignore_case` it holds in any case of letters.
    """
    try:
        compiled, _ = _compile(f"^(?:{pattern})", False, False)
        low, high = compiled.possiblematchrange(_LONGEST_BEGINNING)
    except (ValueError, re2.error):
        return ""
    # All matches lie between the two. If `high` is what comes next after all texts that begin with `low`, it alone
    # does not.
    is_next = bool(low) and high == low[:-1] + bytes([min(low[-1] + 1, 255)])
    is_common = is_next and compiled.fullmatch(high) is None
    pairs = zip(low, low if is_common else high, strict=False)
    same = takewhile(lambda pair: pair[0] == pair[1] and 0x20 <= pair[0] < 0x7F, pairs)
    return bytes(one for one, _ in same).decode()


def pattern_options(*, ignore_case: bool = False, captures: bool = False, memory: int = PATTERN_MEMORY) -> Any:
    """Return the options of RE2 that all patterns have."""
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.case_sensitive = not ignore_case
    options.log_errors = False
    options.never_capture = not captures
    options.max_mem = memory
    return options
