"""What an unquoted scalar of YAML is, by the rules of the parser that kubectl uses (YAML 1.1 without base 60)."""

import math
import re
from typing import Any

MERGE = object()
"""The key `<<`."""
_NO_WORD = object()
_WORDS: dict[str, Any] = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF", "-.inf", "-.Inf", "-.INF"), math.inf),
    "<<": MERGE,
}
_NUMBER_START = frozenset("0123456789+-.")
_INTEGER = re.compile(r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))")
_LONGEST_INTEGER = 200
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")


def plain(text: str) -> Any:
    """Resolve an unquoted scalar."""
    word = _WORDS.get(text, _NO_WORD)
    if word is not _NO_WORD:
        return word
    return number(text) if text[0] in _NUMBER_START else text


def number(text: str) -> int | float | str:
    """Resolve what begins like a number; the text itself if it is none, or one too great for a 64-bit float."""
    if text.count(".") > 1:  # an address, mostly
        return text
    digits = text.replace("_", "")
    if (found := _INTEGER.fullmatch(digits)) and len(digits) <= _LONGEST_INTEGER:
        sign, hexadecimal, binary, octal, decimal = found.groups()
        magnitude = next(
            int(group, base)
            for group, base in ((decimal, 10), (hexadecimal, 16), (binary, 2), (octal, 8))
            if group is not None
        )
        value = -magnitude if sign == "-" else magnitude
        return value if -(2**63) <= value < 2**64 else float(value)
    return _whole(float(digits), text) if _FLOAT.fullmatch(digits) else text


def _whole(value: float, text: str) -> int | float | str:
    """Write 80.0 as 80, as Go's JSON encoder does before the API server reads it."""
    if not math.isfinite(value):
        return text
    return int(value) if value.is_integer() and abs(value) < 2**53 else value
