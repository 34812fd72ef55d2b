"""Conditions of plugins by which what snippets say is bounded."""

import re

from pydantic import JsonValue

from headgate.common.plugins.traffic.nginx_rewrite import BRANCH


def is_branch(number: int) -> JsonValue:
    """Return the condition that an `if` block was the last to hold."""
    return [BRANCH, "==", str(number)]


def is_type(variable: str, types: tuple[str, ...]) -> JsonValue:
    """Return the condition that a variable is one of some content types."""
    alternatives = "|".join(map(re.escape, types))
    return [variable, "~*", f"^(?:{alternatives})[ \t]*(?:;|$)"]
