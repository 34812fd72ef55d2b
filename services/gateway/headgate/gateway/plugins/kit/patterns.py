"""Texts with `$` in them, and what replaces what a pattern finds.

In a template `$1` or `${1}` is what the first group of the pattern caught, `$name` or `${name}` a variable of the
request (`variables`), `${name ?? text}` the text where there is no such variable, `$post_arg.a.b` or
`${post_arg.a[0]}` a field of its body, which is there by then (`registry`). What is absent becomes
nothing, and a `$` before anything else is itself.
"""

import math
import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final
from urllib.parse import quote

from headgate.common.patterns import Match, compile_pattern
from headgate.common.plugins.variables import REFERENCE
from headgate.gateway.plugins.interface.messages import Request
from headgate.gateway.plugins.interface.variables import variable

MAX_SEARCH_S: Final = 0.1
_SHORT: Final = 512
"""Characters for which no patterns take so long."""
MAX_RENDERED: Final = 1 << 20
"""Characters that one template may become: each reference may stand for a whole head."""


class Template:
    """A text with references; made once, rendered for each request."""

    __slots__ = ("_parts", "constant")

    def __init__(self, text: str) -> None:
        """Take a text whose characters beyond ASCII stand for their UTF-8 bytes."""
        parts: list[str | int | tuple[str, str]] = []
        text = text.encode("utf-8").decode("latin-1")
        position = 0
        for found in REFERENCE.finditer(text):
            parts.append(text[position : found.start()])
            digit, name = found[1] or found[3], found[2] or found[4]
            parts.append(int(digit) if digit else (name, found[5] or ""))
            position = found.end()
        parts.append(text[position:])
        self._parts = tuple(part for part in parts if part != "")
        self.constant: str | None = None if any(not isinstance(part, str) for part in self._parts) else text
        """The text itself if nothing refers."""

    def render(self, request: Request, caught: Sequence[str] = ()) -> str:
        """Fill in the references; `caught` is what a pattern's groups hold, from the first."""
        if self.constant is not None:
            return self.constant
        texts: list[str] = []
        left = MAX_RENDERED
        for part in self._parts:
            text = self._render_part(part, request, caught)
            left -= len(text)
            if left < 0:
                raise ValueError(f"a template becomes longer than {MAX_RENDERED} characters")
            texts.append(text)
        return "".join(texts)

    @property
    def refers_to_groups_alone(self) -> bool:
        """Whether nothing of the request goes into it but what a pattern's groups caught."""
        return not any(isinstance(part, tuple) for part in self._parts)

    def longest(self, group: int) -> int:
        """Return the most characters that it may become where no group catches more than that many."""
        return sum(len(part) if isinstance(part, str) else group for part in self._parts)

    def render_groups(self, caught: Sequence[str]) -> str:
        """Fill in what groups caught, of a template that refers to them alone."""
        texts = [part if isinstance(part, str) else _group(part, caught) for part in self._parts]
        if sum(map(len, texts)) > MAX_RENDERED:
            raise ValueError(f"a template becomes longer than {MAX_RENDERED} characters")
        return "".join(texts)

    def render_known(self, request: Request) -> str | None:
        """Fill in the references; None if there are some and the request has nothing of any."""
        names = [part[0] for part in self._parts if isinstance(part, tuple)]
        if names and not any(variable(request, name) for name in names):
            return None
        return self.render(request)

    @staticmethod
    def _render_part(part: str | int | tuple[str, str], request: Request, caught: Sequence[str]) -> str:
        if isinstance(part, str):
            return part
        if isinstance(part, int):
            return _group(part, caught)
        return variable(request, part[0]) or part[1]


def _group(number: object, caught: Sequence[str]) -> str:
    return caught[number - 1] if isinstance(number, int) and 0 < number <= len(caught) else ""


def texts_caught(found: Match) -> tuple[str, ...]:
    """Return what a match's groups caught, as text."""
    return tuple("" if group is None else group.decode("latin-1") for group in found.groups())


class Substitution:
    """A pattern and what its first match in a text, or all of them, are replaced by."""

    __slots__ = ("_is_of_all", "_is_of_text", "_is_remembered", "_pattern", "_template")

    def __init__(self, pattern: str, replacement: str, *, ignore_case: bool = False, is_of_all: bool = False) -> None:
        self._is_of_all = is_of_all
        self._pattern = compile_pattern(pattern, ignore_case=ignore_case, captures=True)
        self._template = Template(replacement)
        self._is_of_text = self._template.refers_to_groups_alone
        longest = self._template.longest(_REMEMBERED_LENGTH)
        is_short = longest <= _REMEMBERED_RESULT and not is_of_all
        self._is_remembered = is_short and self._pattern.groups <= _REMEMBERED_GROUPS

    def apply(self, text: str, request: Request) -> "Substituted | None":
        """Return the text with what is replaced in it, and what the first match's groups caught; None without one."""
        if self._is_of_text:
            is_short = self._is_remembered and len(text) <= _REMEMBERED_LENGTH
            return _remembered(self, text) if is_short else self.apply_to(text)
        return self._apply(text, lambda caught: self._template.render(request, caught))

    def apply_to(self, text: str) -> "Substituted | None":
        """Do the same where the replacement refers to groups alone."""
        return self._apply(text, self._template.render_groups)

    def _apply(self, text: str, render: Callable[[Sequence[str]], str]) -> "Substituted | None":
        raw = text.encode("latin-1")
        found = self._pattern.search(raw)
        if found is None:
            return None
        caught = texts_caught(found)
        if self._is_of_all:
            return self._replace_all(raw, found, render), caught
        before, after = raw[: found.start()].decode("latin-1"), raw[found.end() :].decode("latin-1")
        return before + render(caught) + after, caught

    def _replace_all(self, raw: bytes, first: Match, render: Callable[[Sequence[str]], str]) -> str:
        """Replace as Go's `ReplaceAllString`: an empty match right behind another one does not count."""
        parts: list[str] = []
        found: Match | None = first
        end = size = 0
        while found is not None:
            parts.append(raw[end : found.start()].decode("latin-1"))
            if found.end() > end or found.start() == 0:
                parts.append(render(texts_caught(found)))
            end = found.end()
            after = end if end > found.start() else end + 1
            size += len(parts[-1])
            if size > MAX_RENDERED:
                raise ValueError(f"a replacement becomes longer than {MAX_RENDERED} characters")
            found = self._pattern.search(raw, after) if after <= len(raw) else None
        return "".join(parts) + raw[end:].decode("latin-1")


Substituted = tuple[str, tuple[str, ...]]
"""A text with what is replaced in it, and what the first match's groups caught."""
_REMEMBERED_LENGTH: Final = 256
_REMEMBERED_RESULT: Final = 2048
_REMEMBERED_GROUPS: Final = 8
"""So that what is remembered takes 8 MB at most, whatever authors of routes write."""


@lru_cache(maxsize=1024)
def _remembered(substitution: Substitution, text: str) -> Substituted | None:
    """Keep what became of short texts: clients ask for the same paths again, and a search takes some 40 us."""
    return substitution.apply_to(text)


class SearchTooLong(Exception):
    """The patterns of one use of a plugin took too much time of the processor for one request."""


class SearchTime:
    """What the patterns of one use may take for one request, looked at between two of them.

    RE2 is linear in a text, but the worst pattern takes 100 ms for the longest path, and there may be 40 of these.
    """

    __slots__ = ("_clock", "_ends")

    def __init__(self, text: str, clock: Callable[[], float] = time.thread_time) -> None:
        self._clock = clock
        self._ends = clock() + MAX_SEARCH_S if len(text) > _SHORT else math.inf

    def check(self) -> None:
        """Raise SearchTooLong if it is used up."""
        if self._ends != math.inf and self._clock() > self._ends:
            raise SearchTooLong(f"patterns took more than {MAX_SEARCH_S:g} s for one request")


_SENDABLE: Final = "!\"$%&'()*+,-./:;<=>?@[\\]^_`{|}~"


def sendable(target: str) -> str:
    """Percent-encode what must not stand in a request line or a Location as it is; `%` itself stays."""
    if target.isascii() and target.isprintable() and " " not in target and "#" not in target:
        return target
    return quote(target.encode("latin-1"), safe=_SENDABLE)
