"""What a table serves, one line for each route and backend."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from headgate.common.table import BackendGroup, Route, TableEntry, Upstream, VirtualHost
from headgate.common.table.backend_group import upstreams_within


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
    groups = {entry.key: entry for entry in entries if isinstance(entry, BackendGroup)}
    hosts = sorted((entry for entry in entries if isinstance(entry, VirtualHost)), key=lambda each: each.key)
    return [line for host in hosts for route in host.routes for line in _lines(host, route, upstreams, groups)]


def _lines(
    host: VirtualHost, route: Route, upstreams: Mapping[str, Upstream], groups: Mapping[str, BackendGroup]
) -> Iterator[RouteLine]:
    for backend in route.backends:
        keys = upstreams_within(backend.group, groups.get) if backend.group else (backend.upstream,)
        found = [upstream for key in keys if (upstream := upstreams.get(key)) is not None]
        endpoints = [endpoint for upstream in found for endpoint in upstream.endpoints]
        is_there = backend.group in groups if backend.group else bool(found)
        yield RouteLine(
            host=host.host,
            path=route.path.value,
            type=route.path.type.value,
            backend=f"group {backend.group}" if backend.group else backend.upstream,
            weight=backend.weight,
            ready=sum(endpoint.ready for endpoint in endpoints),
            endpoints=len(endpoints),
            unavailable=_why_unavailable(found) if is_there else "not in the table",
            source=str(route.provenance),
            listeners=host.listeners,
        )


def _why_unavailable(upstreams: Sequence[Upstream]) -> str:
    """Return why none of several upstreams is there; empty if one is."""
    reasons = [upstream.unavailable or "" for upstream in upstreams]
    return "; ".join(reasons) if all(reasons) else ""
