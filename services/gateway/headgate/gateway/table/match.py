"""Finding the route of a request: by host, then by path, in one dictionary look-up each for most tables.

The host is decided first and for good: exact, then wildcard by one label, then `*` (networking/v1 Ingress,
`IngressRule.host`). Paths are compared as raw bytes: decoding before matching is how two servers come to disagree
about what was asked for.

Prefixes match element-wise on `/` and ignore a trailing slash on both sides, so `/foo` and `/foo/` take the same
requests and only one of two such prefixes can ever win. What wins is decided when the index is built; a request costs
one look-up by exact path and one for each distinct prefix length, longest first.
"""

from collections.abc import Iterable, Mapping
from typing import Generic, NamedTuple, TypeVar

from headgate.common.table import PathType

T = TypeVar("T")
SLASH = ord("/")


class PathRule(NamedTuple):
    """How one route matches; rules of a host are compared by `precedence`."""

    type: PathType
    value: bytes
    position: int
    """Of the route within its host."""

    @property
    def precedence(self) -> tuple[bool, int, int]:
        """Sort key, winner first: exact before prefix, longer path, position.

        Kubernetes says longest first, then exact before prefix. As an exact path is the whole request's, that is the
        same but for exact `/foo` and prefix `/foo/`, where the slash is ignored by the prefix's own rule.
        """
        return self.type is not PathType.EXACT, -len(self.value), self.position

    def takes(self, path: bytes) -> bool:
        """Tell whether the rule takes a path, looked at alone. The index must agree with this."""
        if self.type is PathType.EXACT:
            return path == self.value
        prefix = prefix_key(self.value)
        return path == prefix or not prefix or path.startswith(prefix + b"/")


def prefix_key(value: bytes) -> bytes:
    """Return a prefix without its trailing slash; the root is empty."""
    return value.removesuffix(b"/")


class PathIndex(Generic[T]):
    """The routes of one host by path; immutable."""

    __slots__ = ("_exact", "_lengths", "_prefixes")

    def __init__(self, rules: Iterable[tuple[PathRule, T]]) -> None:
        exact: dict[bytes, tuple[PathRule, T]] = {}
        prefixes: dict[bytes, tuple[PathRule, T]] = {}
        for rule, target in sorted(rules, key=_precedence):
            if rule.type is PathType.EXACT:
                exact.setdefault(rule.value, (rule, target))
            else:
                prefixes.setdefault(prefix_key(rule.value), (rule, target))
        self._exact: Mapping[bytes, T] = {path: target for path, (_, target) in exact.items()}
        self._prefixes: Mapping[bytes, T] = {key: target for key, (_, target) in prefixes.items()}
        self._lengths = tuple(sorted({len(key) for key in prefixes}, reverse=True))

    def match(self, path: bytes) -> T | None:
        """Return the winning route of a path."""
        found = self._exact.get(path)
        if found is not None:
            return found
        size = len(path)
        for length in self._lengths:
            if length > size or (0 < length < size and path[length] != SLASH):
                continue
            found = self._prefixes.get(path[:length])
            if found is not None:
                return found
        return None


def _precedence(item: tuple[PathRule, object]) -> tuple[bool, int, int]:
    return item[0].precedence


def host_candidates(host: str) -> tuple[str, ...]:
    """Return the names of virtual hosts that would take a host, best first."""
    label, dot, suffix = host.partition(".")
    wildcard = (f"*.{suffix}",) if label and dot else ()
    return (host, *wildcard, "*")


def find_host(hosts: Mapping[bytes, T], host: bytes) -> T | None:
    """Return the virtual host of a request. The first look-up inlined by callers that count nanoseconds."""
    found = hosts.get(host)
    if found is None:
        dot = host.find(b".")
        if dot > 0:
            found = hosts.get(b"*" + host[dot:])
        if found is None:
            found = hosts.get(b"*")
    return found
