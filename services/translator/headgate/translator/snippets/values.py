"""Values of nginx's directives: times, sizes, switches."""

import re
from typing import Final

from headgate.translator.snippets.grammar import Directive

_TIME: Final = re.compile(r"(\d+)(ms|[smhdwMy]?)", re.ASCII)
_SECONDS: Final = {
    "ms": 0.001, "": 1, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800, "M": 2592000, "y": 31536000,
}  # fmt: skip
_SIZE: Final = re.compile(r"(\d+)([kKmMgG]?)", re.ASCII)
_BYTES: Final = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_MAX_DIGITS: Final = 12


def read_seconds(directive: Directive, text: str) -> float:
    """Return a time as `90`, `90s` or `1m30s`. Raises SnippetError."""
    parts = _TIME.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text or len(text) > _MAX_DIGITS:
        raise directive.error(f"{text[:40]!r} is not a time as 90s or 1m30s")
    return float(sum(int(number) * _SECONDS[unit] for number, unit in parts))


def read_size(directive: Directive, text: str) -> int:
    """Return a size as `512`, `8k` or `10m`. Raises SnippetError."""
    found = _SIZE.fullmatch(text)
    if found is None or len(text) > _MAX_DIGITS:
        raise directive.error(f"{text[:40]!r} is not a size as 8k or 10m")
    return int(found[1]) * _BYTES[found[2].lower()]


def read_switch(directive: Directive, text: str) -> bool:
    """Return `on` or `off`. Raises SnippetError."""
    if text not in ("on", "off"):
        raise directive.error(f"must be on or off, but is {text[:40]!r}")
    return text == "on"
