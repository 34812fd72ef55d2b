"""Templates of the syntax v2, as the package `gorilla/mux` for Go has them: `{name}` and `{name:pattern}` in a text."""

import re
from typing import Final

from headgate.common.patterns import compile_pattern

HOST_PART: Final = "[^.]+"
PATH_PART: Final = "[^/]+"
QUERY_PART: Final = ".*"
"""What `{name}` stands for in each place."""


def has_template(text: str) -> bool:
    """Tell whether a text has places for patterns, or a brace that is one too many."""
    return "{" in text or "}" in text


def expand_template(text: str, part: str) -> str:
    """Return the pattern, without anchors, that a template stands for.

    Args:
        text: with its braces.
        part: what a place without a pattern takes.

    Raises:
        ValueError: braces do not match, a place has no name or an empty pattern, or one of its own that is no RE2.
    """
    pattern, end = "", 0
    for start, stop in _places(text):
        pattern += quote(text[end:start])
        end = stop
        name, colon, own = text[start + 1 : stop - 1].partition(":")
        if not name or (colon and not own):
            raise ValueError(f"{text[start:stop]!r} lacks a name or a pattern: write {{name}} or {{name:pattern}}")
        if colon:
            compile_pattern(own)
        pattern += f"(?:{own or part})"
    return pattern + quote(text[end:])


def _places(text: str) -> list[tuple[int, int]]:
    """Return where outermost braces begin and end."""
    places, level, start = [], 0, 0
    for index, character in enumerate(text):
        if character == "{":
            level += 1
            start = index if level == 1 else start
        elif character == "}":
            level -= 1
            if level == 0:
                places.append((start, index + 1))
        if level < 0:
            break
    if level:
        raise ValueError(f"{text!r} has braces that do not match")
    return places


def quote(text: str) -> str:
    """Return the pattern that takes nothing but a text."""
    return re.escape(text)
