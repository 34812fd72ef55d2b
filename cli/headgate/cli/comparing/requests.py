"""Which requests are sent: some for each route of a table, or those of a record."""

import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from headgate.cli.terminal.errors import UsageMistake
from headgate.common.patterns import compile_pattern
from headgate.common.table import ANY_HOST, PathMatch, PathType, Provenance, Route, TableEntry, VirtualHost
from headgate.common.table.hosts import is_pattern

_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_COMBINED: Final = re.compile(r'"(?P<method>[A-Z]+) (?P<target>\S+) HTTP/[\d.]+"')
_PLAIN: Final = re.compile(r"(?P<method>[A-Z]+) (?P<url>https?://\S+)")
_META: Final = re.compile(r"[\\^$.|?*+()\[\]{}]")
_ENDINGS: Final = ("", "/", "/x", "x", "1", "/1", "/x/y", "/index.html")


class ProbeRequest(NamedTuple):
    """A request without a body that changes nothing."""

    method: str
    host: str
    target: str
    source: Provenance | None = None
    """The object whose route it is for; None for one of a record."""

    def __str__(self) -> str:
        return f"{self.method} {self.host}{self.target}"


def requests_for(entries: Iterable[TableEntry]) -> tuple[list[ProbeRequest], list[str]]:
    """Return requests for the routes of a table, and the names of routes for which none could be made.

    A route for an exact path gets one, a route for a prefix a second one below it, and a route for a pattern the
    shortest that was found to match.
    """
    found: dict[ProbeRequest, None] = {}
    missing: list[str] = []
    for entry in entries:
        if not isinstance(entry, VirtualHost) or is_pattern(entry.host):
            continue
        for route in entry.routes:
            targets = list(_targets(route))
            found.update(dict.fromkeys(ProbeRequest("GET", _host(entry.host), *each) for each in targets))
            if not targets:
                missing.append(route.name)
    return list(found), missing


def _host(host: str) -> str:
    if host == ANY_HOST:
        return "compare.invalid"
    return f"compare.{host.lstrip('*.')}" if host.startswith("*") else host


def _targets(route: Route) -> Iterator[tuple[str, Provenance]]:
    if route.path.type is PathType.REGEX:
        paths = [found] if (found := example(route.path)) else []
    else:
        below = [] if route.path.type is PathType.EXACT else [f"{route.path.value.rstrip('/')}/compare"]
        paths = [route.path.value, *below]
    yield from ((path, route.provenance) for path in paths)


def example(match: PathMatch) -> str | None:
    """Return a path that a pattern matches; None if none was found by its literal beginning."""
    pattern = compile_pattern(match.value, ignore_case=match.ignore_case)
    literal = _META.split(match.value, maxsplit=1)[0]
    stems = (literal, literal[:-1], _META.sub("", match.value))
    paths = (f"{stem}{ending}" for stem in stems for ending in _ENDINGS if stem.startswith("/"))
    return next((path for path in paths if path.isascii() and pattern.match(path.encode()) is not None), None)


def recorded(lines: Iterable[str], host: str) -> list[ProbeRequest]:
    """Read requests: lines `GET http://host/path`, or an access log in combined format, whose host is not in it.

    Requests that could change something are left out.

    Raises:
        UsageMistake: a line of a log, and no host.
    """
    found: dict[ProbeRequest, None] = {}
    for line in lines:
        if (plain := _PLAIN.match(line.strip())) is not None:
            url = urlsplit(plain["url"])
            target = f"{url.path or '/'}{f'?{url.query}' if url.query else ''}"
            made = ProbeRequest(plain["method"], url.netloc, target)
        elif (logged := _COMBINED.search(line)) is not None:
            if not host:
                raise UsageMistake("an access log does not say which host was asked: give --host NAME")
            made = ProbeRequest(logged["method"], host, logged["target"])
        else:
            continue
        if made.method in _SAFE:
            found[made] = None
    return list(found)
