"""The functions that a matcher may call, as Casbin's documentation has them; their patterns are RE2.

Patterns of `keyMatch2` to `keyMatch5` are regular expressions apart from their own signs, as in Casbin. `.` takes any
byte, a line feed too, so that no encoded one slips past a rule that denies. `globMatch` is Go's `path.Match`.
"""

import ipaddress
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, Protocol

from headgate.common.casbin.errors import CasbinFault, NoAddress
from headgate.common.patterns import compile_pattern

MAX_PATTERN: Final = 1024
"""Characters of one pattern."""
_ANY_SEGMENT: Final = "[^/]+"


class TextPattern(Protocol):
    """A pattern that was read once, for many texts."""

    size: int
    """Instructions that a byte of text may take at worst; 1: the text is compared at once."""

    def matches(self, text: str) -> bool:
        """Say whether a text is as the pattern says. Raises NoAddress."""


class _Expression:
    """A regular expression at the beginning of a text."""

    def __init__(self, pattern: str) -> None:
        self._pattern = compile_pattern(f"(?s){pattern}")
        self.size = self._pattern.programsize

    def matches(self, text: str) -> bool:
        """Compare."""
        return self._pattern.match(text.encode("utf-8", "surrogateescape")) is not None


class _Path(_Expression):
    """A pattern of a path without its query."""

    def matches(self, text: str) -> bool:
        """Compare what stands before `?`."""
        return super().matches(text.partition("?")[0])


class _NamedPath:
    """A pattern of a path in which equal names stand for equal segments."""

    def __init__(self, pattern: str) -> None:
        self._names: list[str] = re.findall(r"\{([^/]+)\}", pattern)
        found = re.sub(r"\{[^/]+\}", f"({_ANY_SEGMENT})", pattern)
        self._pattern = compile_pattern(f"(?s)^(?:{found})$", captures=True)
        if self._pattern.groups != len(self._names):
            raise CasbinFault("a pattern of keyMatch4 must not have groups; write (?: )")
        self.size = self._pattern.programsize

    def matches(self, text: str) -> bool:
        """Compare, and compare what names stand for."""
        found = self._pattern.match(text.encode("utf-8", "surrogateescape"))
        if found is None:
            return False
        caught: dict[str, bytes | None] = {}
        return all(
            caught.setdefault(name, value) == value for name, value in zip(self._names, found.groups(), strict=True)
        )


class _Network:
    """Addresses of one network, or a single address."""

    size = 1

    def __init__(self, pattern: str) -> None:
        try:
            self._network = ipaddress.ip_network(pattern, strict=False)
        except ValueError as error:
            raise CasbinFault("is no IP address and no network: 10.0.0.0/8") from error

    def matches(self, text: str) -> bool:
        """Look for an address."""
        try:
            return ipaddress.ip_address(text) in self._network
        except ValueError as error:
            raise NoAddress(f"{text[:80]!r} is no IP address") from error


class _Beginning:
    """A text, or with `*` its beginning."""

    size = 1

    def __init__(self, pattern: str) -> None:
        self._beginning, self._star, _ = pattern.partition("*")

    def matches(self, text: str) -> bool:
        """Compare up to the star."""
        return text.startswith(self._beginning) if self._star else text == self._beginning


def _key_match2(pattern: str) -> TextPattern:
    found = re.sub(r":[^/]+", _ANY_SEGMENT, _with_stars(pattern))
    return _Expression(f"^(?:{'.*' if found == '*' else found})$")


def _key_match3(pattern: str) -> TextPattern:
    return _Expression(f"^(?:{re.sub(r'{[^/]+?}', _ANY_SEGMENT, _with_stars(pattern))})$")


def _key_match4(pattern: str) -> TextPattern:
    return _NamedPath(_with_stars(pattern))


def _key_match5(pattern: str) -> TextPattern:
    return _Path(f"^(?:{re.sub(r'{[^/]+}', _ANY_SEGMENT, _with_stars(pattern))})$")


def _with_stars(pattern: str) -> str:
    return pattern.replace("/*", "/.*")


def _glob(pattern: str) -> TextPattern:
    return _Expression(f"^{''.join(_glob_parts(pattern))}$")


_GLOB: Final = re.compile(r"\*+|\?|\[\^?(?:\\.|[^\]\\])+\]|\\.|[^*?\[\\]", re.DOTALL)


def _glob_parts(pattern: str) -> list[str]:
    parts = []
    at = 0
    while at < len(pattern):
        found = _GLOB.match(pattern, at)
        if found is None:
            raise CasbinFault(r"is no glob: a [ is not closed, or a \ is the last character")
        part, at = found[0], found.end()
        if part.startswith("*"):
            parts.append("[^/]*")
        elif part == "?":
            parts.append("[^/]")
        elif part.startswith("["):
            parts.append(part)
        else:
            parts.append(re.escape(part[-1]))
    return parts


PATTERN_FUNCTIONS: Final[Mapping[str, Callable[[str], TextPattern]]] = MappingProxyType(
    {
        "keyMatch2": _key_match2,
        "keyMatch3": _key_match3,
        "keyMatch4": _key_match4,
        "keyMatch5": _key_match5,
        "regexMatch": _Expression,
        "globMatch": _glob,
        "ipMatch": _Network,
    }
)
"""Those whose second argument is read beforehand."""
FUNCTIONS: Final = ("keyMatch", *PATTERN_FUNCTIONS)


def read_pattern(function: str, pattern: str) -> TextPattern:
    """Read a pattern of a function. Raises CasbinFault."""
    if len(pattern) > MAX_PATTERN:
        raise CasbinFault(f"must have at most {MAX_PATTERN} characters, but has {len(pattern)}")
    return _READERS[function](pattern)


_READERS: Final[Mapping[str, Callable[[str], TextPattern]]] = {"keyMatch": _Beginning, **PATTERN_FUNCTIONS}
