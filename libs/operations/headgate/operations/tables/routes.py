"""What a table serves, one line for each route and backend."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from headgate.common.table import Route, TableEntry, Upstream, VirtualHost


class RouteLine(NamedTuple):
    """One backend of one route."""

    host: str
    path: str
    type: str
    backend: str
    weight: int
    ready: int
    """Endpoints that are ready."""
    endpoints: int
    unavailable: str
    """Why the backend answers 503; empty if it does not."""
    source: str
    listeners: tuple[str, ...] = ()
    """Of the host; none: the gateway's own two."""


def lines_of(entries: Iterable[TableEntry]) -> list[RouteLine]:
    """Return the lines of a table, sorted by host, each host's routes in the order in which they win."""
    entries = list(entries)
    upstreams = {entry.key: entry for entry in entries if isinstance(entry, Upstream)}
    hosts = sorted((entry for entry in entries if isinstance(entry, VirtualHost)), key=lambda each: each.key)
    return [line for host in hosts for route in host.routes for line in _lines(host, route, upstreams)]


def _lines(host: VirtualHost, route: Route, upstreams: Mapping[str, Upstream]) -> Iterator[RouteLine]:
    for backend in route.backends:
        upstream = upstreams.get(backend.upstream)
        endpoints = upstream.endpoints if upstream else ()
        yield RouteLine(
            host=host.host,
            path=route.path.value,
            type=route.path.type.value,
            backend=backend.upstream,
            weight=backend.weight,
            ready=sum(endpoint.ready for endpoint in endpoints),
            endpoints=len(endpoints),
            unavailable=(upstream.unavailable or "") if upstream else "not in the table",
            source=str(route.provenance),
            listeners=host.listeners,
        )
