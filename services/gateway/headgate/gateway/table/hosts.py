"""Finding what takes a host: virtual hosts of a listener, listeners of a port.

The order is that of `headgate.common.table.hosts`. Exact hosts and wildcards cost a look-up each; RE2 patterns, which
are asked only if none of these takes the host, are looked for by sets of them.
"""

import logging
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Generic, Protocol, TypeVar

from headgate.common.table.hosts import MAX_HOST_PATTERNS, HostKey, host_name, is_pattern, pattern_order
from headgate.gateway.errors import BadMatch
from headgate.gateway.model.patterns import PatternSet, compile_pattern
from headgate.gateway.model.persistent_map import PersistentMap
from headgate.gateway.model.steps import Steps
from headgate.gateway.table.match import PATTERNS_AT_ONCE

_log = logging.getLogger(__name__)

T = TypeVar("T")
C_co = TypeVar("C_co", covariant=True)


class ByName(Protocol[C_co]):
    """Where hosts are looked up by `host_name`."""

    def get(self, key: bytes, /) -> C_co | None:
        """Return what has a name; None if nothing does."""

    def __getitem__(self, key: bytes, /) -> C_co:
        """Return what has a name. Raises KeyError."""


class HostPatterns:
    """RE2 patterns for hosts; immutable."""

    __slots__ = ("_groups", "names")

    def __init__(self, names: Iterable[bytes], groups: Sequence[tuple[PatternSet, Sequence[bytes]]]) -> None:
        self.names = frozenset(names)
        """All that were asked for, those that cannot be served too."""
        self._groups = groups

    def match(self, host: bytes) -> Iterator[bytes]:
        """Yield the names of those that take a host, best first."""
        for patterns, names in self._groups:
            for index in patterns.match(host):
                yield names[index]


NO_PATTERNS = HostPatterns((), ())


def compile_host_patterns(names: Iterable[bytes]) -> Steps[HostPatterns]:
    """Compile the patterns of one listener in steps. Those that cannot be had are left out and logged."""
    asked = frozenset(names)
    patterns = sorted((HostKey.read(name.decode()).host for name in asked), key=pattern_order)
    good: list[str] = []
    for pattern in patterns:
        fault = fault_of_pattern(pattern, len(good))
        if fault:
            _log.error("a host pattern is not served", extra={"host": pattern, "problem": fault})
        else:
            good.append(pattern)
    groups = []
    for start in range(0, len(good), PATTERNS_AT_ONCE):
        group = good[start : start + PATTERNS_AT_ONCE]
        found = PatternSet([(pattern[1:], False) for pattern in group], anywhere=True)
        groups.append((found, [host_name(pattern).encode() for pattern in group]))
        yield
    return HostPatterns(asked, groups)


def fault_of_pattern(pattern: str, before: int = 0) -> str:
    """Say why a pattern cannot be served behind so many others of its listener; empty if it can."""
    if before >= MAX_HOST_PATTERNS:
        return f"a listener has at most {MAX_HOST_PATTERNS} host patterns, the longest; {pattern!r} is one too many"
    try:
        compile_pattern(pattern[1:], "host")
    except BadMatch as bad:
        return str(bad)
    return ""


def find_host(
    hosts: ByName[T], host: bytes, *, any_depth: bool = True, patterns: HostPatterns = NO_PATTERNS
) -> T | None:
    """Return what takes a host best; `any_depth`: there may be some like `**.foo.com`.

    The first look-up is inlined by callers that count nanoseconds.
    """
    found = hosts.get(host)
    if found is None:
        dot = host.find(b".")
        if dot > 0:
            found = hosts.get(b"*" + host[dot:])
            while found is None and any_depth and dot >= 0:
                found = hosts.get(b"**" + host[dot:])
                dot = host.find(b".", dot + 1)
        if found is None and patterns is not NO_PATTERNS:
            name = next(patterns.match(host), None)
            found = hosts[name] if name is not None else None
        if found is None:
            found = hosts.get(b"*")
    return found


def host_candidates(host: str, patterns: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the hosts that would take one, best first; `patterns` are those of them that do, in their order."""
    names = [host]
    label, dot, suffix = host.partition(".")
    if label and dot:
        names.append(f"*.{suffix}")
        while suffix:
            names.append(f"**.{suffix}")
            suffix = suffix.partition(".")[2]
    return (*names, *patterns, "*")


def patterns_taking(host: str, names: Iterable[str]) -> list[str]:
    """Return those of some hosts that are patterns and take a host, best first."""
    patterns = [name for name in sorted(filter(is_pattern, set(names)), key=pattern_order)]
    good = [pattern for pattern in patterns if not fault_of_pattern(pattern)][:MAX_HOST_PATTERNS]
    return [pattern for pattern in good if compile_pattern(pattern[1:], "host").search(host.encode()) is not None]


class HostIndex(Generic[T]):
    """What takes hosts, by host pattern; immutable."""

    __slots__ = ("any_depth", "by_name", "deep", "patterns")

    def __init__(self, by_name: PersistentMap[bytes, T], deep: int = 0, patterns: HostPatterns = NO_PATTERNS) -> None:
        self.by_name = by_name
        """By `host_name`."""
        self.deep = deep
        """How many are like `**.foo.com`."""
        self.any_depth = deep > 0
        self.patterns = patterns

    def find(self, host: bytes) -> T | None:
        """Return what takes a host best."""
        return find_host(self.by_name, host, any_depth=self.any_depth, patterns=self.patterns)

    def candidates(self, host: bytes) -> Iterator[T]:
        """Yield all that take a host, best first."""
        found = (name.decode() for name in self.patterns.match(host)) if self.patterns is not NO_PATTERNS else ()
        for name in host_candidates(host.decode("latin-1"), found):
            taken = self.by_name.get(name.encode("latin-1"))
            if taken is not None:
                yield taken


def index_hosts(
    before: HostIndex[T], by_name: PersistentMap[bytes, T], touched: Collection[bytes]
) -> Steps[HostIndex[T]]:
    """Return the index of these in steps; only the `touched` names are in or out of it that were not so before.

    It looks at the touched names only. Of them it has to be given wildcards of any depth and patterns; others may be
    left out.
    """
    deep = before.deep
    for name in {name for name in touched if name.startswith(b"**.")}:
        deep += (name in by_name) - (name in before.by_name)
    patterns = before.patterns
    changed = {name for name in touched if name.startswith(b"~")}
    if changed:
        names = (patterns.names - changed) | {name for name in changed if name in by_name}
        if names != patterns.names:
            patterns = (yield from compile_host_patterns(names)) if names else NO_PATTERNS
    return HostIndex(by_name, deep, patterns)
