"""String literals as Go has them (The Go Programming Language Specification, "String literals")."""

import re
from typing import Final

_ESCAPE: Final = re.compile(rb"\\(?:([abfnrtv\\\"])|x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|([0-7]{3}))?")
_PLAIN: Final = {b"a": b"\a", b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v"}
_SURROGATES: Final = range(0xD800, 0xE000)


def unquote(literal: str) -> str:
    """Return the text that a literal in backquotes or double quotes stands for.

    Raises:
        ValueError: an escape is none of Go's, or the text is not UTF-8.
    """
    inner = literal[1:-1]
    if literal.startswith("`"):
        # Go drops carriage returns from raw strings.
        return inner.replace("\r", "")
    try:
        return _ESCAPE.sub(_meaning, inner.encode()).decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"{literal} has bytes that are not UTF-8") from error


def quote(text: str) -> str:
    """Return a literal for a text: in backquotes, if these can have it."""
    if "`" not in text and "\r" not in text:
        return f"`{text}`"
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    return f'"{escaped}"'


def _meaning(found: re.Match[bytes]) -> bytes:
    plain, byte, short, long, octal = found.groups()
    if plain is not None:
        return _PLAIN.get(plain, plain)
    if byte is not None:
        return bytes((int(byte, 16),))
    if octal is not None and int(octal, 8) < 256:
        return bytes((int(octal, 8),))
    code = int(short or long or b"110000", 16)
    if code > 0x10FFFF or code in _SURROGATES:
        raise ValueError(r"a backslash begins none of Go's escapes here: write \\ for itself, or use backquotes")
    return chr(code).encode()
