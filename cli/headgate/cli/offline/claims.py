"""The hosts and paths that an object asks for, read from its text: also of one of which nothing is served.

Patterns of an Ingress count as what they begin with, and paths that cannot be read as every path: an object is
rather named once too often than passed over.
"""

import re
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

from headgate.common.problems import Problem, Severity

ALL = "*"
"""Stands for all hosts."""
_LITERAL = re.compile(r"[^\\.^$*+?()\[\]{}|]*")
"""What a pattern begins with before its first sign with a meaning."""


class Reach(StrEnum):
    """Which paths a claim takes."""

    ALL = "all"
    EXACT = "exact"
    ELEMENTS = "elements"
    """It, and all below it."""
    TEXT = "text"
    """All that begin with it, or with what it has before a `*`."""
    PATTERN = "pattern"
    """All that begin with the text before its first sign with a meaning."""


class Claim(NamedTuple):
    """A host and paths that a part of an object asks for."""

    host: str
    path: str
    """As it is written; empty for certificates, which are of all paths."""
    reach: Reach
    rule: str
    """The part of the object: `spec.rules[0]`."""
    field: str
    """The path in it: `spec.rules[0].http.paths[1]`; the part, where it has none."""
    takes_below: bool = False
    """Whether a host `*.example.com` takes names of several more labels, as in Apache APISIX."""

    def __str__(self) -> str:
        return f"{'every host' if self.host == ALL else self.host}{self.path}"

    @property
    def is_route(self) -> bool:
        """Whether it asks for requests; if not, for a certificate or plugins."""
        return self.field.startswith(_ROUTES)

    def takes(self, host: str, path: str) -> bool:
        """Whether a request asks for what is claimed."""
        return self._takes_host(host) and self._takes_path(path)

    def is_concerned_by(self, problem: Problem) -> bool:
        """Whether a problem is about this part, about all of the object, or about something that is used by parts."""
        if not any(_is_within(problem.field, part) for part in _PARTS):
            return True
        if problem.field.startswith(f"{self.field.rpartition('[')[0]}["):  # one of the paths
            return _is_within(problem.field, self.field)
        return _is_within(problem.field, self.rule) or _is_within(self.rule, problem.field)

    def _takes_host(self, host: str) -> bool:
        if not self.host.startswith("*."):
            return self.host in (host, ALL)
        name, _, parent = host.partition(".")
        return bool(name) and (host.endswith(self.host[1:]) if self.takes_below else parent == self.host[2:])

    def _takes_path(self, path: str) -> bool:
        beginning = self.path.rstrip("/")
        match self.reach:
            case Reach.ALL:
                return True
            case Reach.EXACT:
                return path == self.path
            case Reach.TEXT:
                return path.startswith(self.path.partition("*")[0])
            case Reach.PATTERN:
                return path.startswith(_beginning(self.path))
            case Reach.ELEMENTS:
                return path == beginning or path.startswith(f"{beginning}/")


_ROUTES = ("spec.rules", "spec.http", "spec.defaultBackend", "spec.backend")
_PARTS = (*_ROUTES, "spec.tls", "spec.stream", "spec.hosts")
"""Fields that claim something. A problem elsewhere, such as at an annotation, is one of all claims."""


def find_claims(manifest: Any, host: str, path: str) -> tuple[Claim, ...]:
    """Return the parts of an Ingress, ApisixRoute, ApisixTls or ApisixGlobalRule that ask for a host and a path.

    Malformed parts are passed over.
    """
    return tuple(claim for claim in _claims(_mapping(manifest)) if claim.takes(host, path))


def concerned(claims: Sequence[Claim], problem: Problem) -> Claim | None:
    """Return the first claim that a problem is about; None: it is about other parts, or nothing is wrong."""
    if problem.severity is Severity.INFO:
        return None
    return next((claim for claim in claims if claim.is_concerned_by(problem)), None)


def _claims(manifest: dict[str, Any]) -> Iterator[Claim]:
    spec = _mapping(manifest.get("spec"))
    if manifest.get("kind") == "ApisixGlobalRule":
        yield Claim(ALL, "", Reach.ALL, "spec", "spec")
    takes_patterns = _has_patterns(manifest)
    for field, rule in _parts(spec, "spec.rules"):
        yield from _of_ingress_rule(rule, field, takes_patterns)
    for name in ("defaultBackend", "backend"):
        if spec.get(name):
            yield Claim(ALL, "/", Reach.ELEMENTS, f"spec.{name}", f"spec.{name}")
    for field, rule in _parts(spec, "spec.http"):
        yield from _of_apisix_rule(_mapping(_mapping(rule).get("match")), field)
    for field, tls in _parts(spec, "spec.tls"):
        for host in _hosts(_mapping(tls).get("hosts")):
            yield Claim(host, "", Reach.ALL, field, field)
    for host in _hosts(spec.get("hosts")):
        yield Claim(host, "", Reach.ALL, "spec", "spec", takes_below=True)


def _of_ingress_rule(rule: Any, field: str, takes_patterns: bool) -> Iterator[Claim]:
    host = _host(rule.get("host") or ALL) if isinstance(rule, dict) else None
    if host is None:
        return
    paths = _parts(_mapping(rule.get("http")), f"{field}.http.paths")
    for part, path in paths or [(field, {})]:
        written, kind = _mapping(path).get("path"), _mapping(path).get("pathType")
        if not isinstance(written, str) or not written.startswith("/"):
            yield Claim(host, "", Reach.ALL, field, part)
        elif kind == "Exact":
            yield Claim(host, written, Reach.EXACT, field, part)
        elif takes_patterns:
            yield Claim(host, written, Reach.PATTERN, field, part)
        else:
            yield Claim(host, written, Reach.ELEMENTS, field, part)


def _of_apisix_rule(match: dict[str, Any], field: str) -> Iterator[Claim]:
    for host in _hosts(match.get("hosts")) or [ALL]:
        for part, path in _parts(match, f"{field}.match.paths") or [(field, None)]:
            if not isinstance(path, str) or not path.startswith("/"):
                yield Claim(host, "", Reach.ALL, field, part, takes_below=True)
            else:
                yield Claim(host, path, Reach.TEXT if "*" in path else Reach.EXACT, field, part, takes_below=True)


def _has_patterns(manifest: dict[str, Any]) -> bool:
    """Whether paths of an Ingress may be patterns."""
    annotations = _mapping(_mapping(manifest.get("metadata")).get("annotations"))
    return any(key.endswith(("/path-type", "/use-regex")) for key in annotations if isinstance(key, str))


def _beginning(pattern: str) -> str:
    literal = _LITERAL.match(pattern)
    assert literal is not None
    found = literal[0]
    return found[:-1] if pattern[len(found) : len(found) + 1] in ("*", "?", "{") else found


def _parts(spec: dict[str, Any], field: str) -> list[tuple[str, Any]]:
    """Return the items of the list that a field path ends with, each with its own field path."""
    return [(f"{field}[{index}]", item) for index, item in enumerate(_list(spec.get(field.rpartition(".")[2])))]


def _hosts(value: Any) -> list[str]:
    return [found for host in _list(value) if (found := _host(host))]


def _host(value: Any) -> str | None:
    return value.lower().removesuffix(".") if isinstance(value, str) else None


def _is_within(field: str, other: str) -> bool:
    return field == other or (field.startswith(other) and field[len(other)] in ".[")


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
