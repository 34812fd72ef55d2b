"""The table that is served, in the form in which people ask about it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from headgate.common.snapshot import Manifest
from headgate.common.table import BackendGroup, Certificate, Route, TableEntry, Upstream, VirtualHost
from headgate.common.table.backend_group import upstreams_within


class RouteRow(NamedTuple):
    """A route of a host."""

    name: str
    """As gateways call it when they tell of traffic: `host|route`."""
    host: VirtualHost
    route: Route
    upstreams: tuple[str, ...]
    """Keys of all that its requests may go to."""
    ready: int
    """Endpoints that are ready."""
    endpoints: int
    unavailable: str
    """Why its backends answer 503; empty if one of them does not."""

    @property
    def source(self) -> str:
        """The object that it comes from: `Ingress paris/shop/web`."""
        return str(self.route.provenance)


class ServedTable(NamedTuple):
    """A revision."""

    manifest: Manifest
    routes: tuple[RouteRow, ...]
    """Sorted by host; of each host in the order of the table."""
    by_name: Mapping[str, RouteRow]
    upstreams: Mapping[str, Upstream]
    groups: Mapping[str, BackendGroup]
    certificates: tuple[Certificate, ...]

    @property
    def version(self) -> str:
        """Name of the revision: `1767225600.57`."""
        return str(self.manifest.version)


def read_table(manifest: Manifest, entries: Iterable[TableEntry]) -> ServedTable:
    """Bring the entries of a revision into order."""
    kept = list(entries)
    upstreams = {one.key: one for one in kept if isinstance(one, Upstream)}
    groups = {one.key: one for one in kept if isinstance(one, BackendGroup)}
    hosts = sorted((one for one in kept if isinstance(one, VirtualHost)), key=lambda one: one.key)
    routes = tuple(row for host in hosts for row in _rows(host, upstreams, groups))
    return ServedTable(
        manifest=manifest,
        routes=routes,
        by_name={row.name: row for row in routes},
        upstreams=upstreams,
        groups=groups,
        certificates=tuple(one for one in kept if isinstance(one, Certificate)),
    )


def _rows(
    host: VirtualHost, upstreams: Mapping[str, Upstream], groups: Mapping[str, BackendGroup]
) -> Iterator[RouteRow]:
    for route in host.routes:
        keys = tuple(dict.fromkeys(_keys(route, groups)))
        found = [upstream for key in keys if (upstream := upstreams.get(key)) is not None]
        endpoints = [endpoint for upstream in found for endpoint in upstream.endpoints]
        yield RouteRow(
            name=f"{host.key}|{route.name}",
            host=host,
            route=route,
            upstreams=keys,
            ready=sum(endpoint.ready for endpoint in endpoints),
            endpoints=len(endpoints),
            unavailable=_why_unavailable(keys, found),
        )


def _keys(route: Route, groups: Mapping[str, BackendGroup]) -> Iterator[str]:
    for backend in route.backends:
        if backend.group:
            yield from upstreams_within(backend.group, groups.get)
        else:
            yield backend.upstream
    for canary in route.canaries:
        yield canary.upstream


def _why_unavailable(keys: Sequence[str], found: Sequence[Upstream]) -> str:
    if not keys:
        return ""
    reasons = [upstream.unavailable or "" for upstream in found]
    if not found:
        return "not in the table"
    return "; ".join(dict.fromkeys(reasons)) if all(reasons) else ""
