"""What a table says of each object that its routes come from."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from headgate.common.resources import JsonObject
from headgate.common.table import (
    AllOf,
    BackendGroup,
    Certificate,
    Compare,
    Condition,
    Listener,
    Route,
    StreamRoute,
    Subject,
    TableEntry,
    Upstream,
)
from headgate.common.table.listener import HTTP_LISTENER, HTTPS_LISTENER
from headgate.common.table.route import VirtualHost


class Place(NamedTuple):
    """Where requests come in."""

    host: str
    """A host pattern."""
    listeners: tuple[str, ...]
    """Keys; none: the gateways' own HTTP and HTTPS ports."""


class PlacedRoute(NamedTuple):
    """A route of an object, and all places that it is at."""

    route: Route
    places: tuple[Place, ...]


class ObjectName(NamedTuple):
    """An object with routes."""

    namespace: str
    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


@dataclass
class Source:
    """An object, and what it says."""

    object: ObjectName
    routes: list[PlacedRoute] = field(default_factory=list)
    streams: list[StreamRoute] = field(default_factory=list)


class Table(NamedTuple):
    """The table that is converted, by what its entries are."""

    sources: tuple[Source, ...]
    """Sorted by namespace, kind and name."""
    hosts: Mapping[Place, VirtualHost]
    upstreams: Mapping[str, Upstream]
    groups: Mapping[str, BackendGroup]
    listeners: Mapping[str, Listener]
    certificates: tuple[Certificate, ...]
    services: Mapping[tuple[str, str], JsonObject]
    """Manifests of Services by namespace and name."""


def read_table(entries: Iterable[TableEntry], manifests: Iterable[JsonObject]) -> Table:
    """Return a table as its objects have made it.

    Args:
        entries: of the table.
        manifests: of all objects, of which Services are looked at.
    """
    kept = list(entries)
    hosts = {Place(one.host, one.listeners): one for one in kept if isinstance(one, VirtualHost)}
    sources: dict[ObjectName, Source] = {}
    for name, placed in _placed(hosts).items():
        sources.setdefault(name, Source(name)).routes.extend(placed)
    for stream in (one for one in kept if isinstance(one, StreamRoute)):
        name = _object_of(stream)
        sources.setdefault(name, Source(name)).streams.append(stream)
    services = (one for one in manifests if one.get("kind") == "Service")
    return Table(
        sources=tuple(sources[name] for name in sorted(sources)),
        hosts=hosts,
        upstreams={one.key: one for one in kept if isinstance(one, Upstream)},
        groups={one.key: one for one in kept if isinstance(one, BackendGroup)},
        listeners={one.key: one for one in kept if isinstance(one, Listener)},
        certificates=tuple(one for one in kept if isinstance(one, Certificate)),
        services={(one["metadata"].get("namespace", "default"), one["metadata"]["name"]): one for one in services},
    )


def _placed(hosts: Mapping[Place, VirtualHost]) -> dict[ObjectName, list[PlacedRoute]]:
    """Return the routes of each object, those that are the same in several places once."""
    found: dict[tuple[ObjectName, str, str], tuple[Route, list[Place]]] = {}
    for place, host in hosts.items():
        for route in host.routes:
            there, asked = _by_transport(place, route.when)
            wanted = route if there is place else route.model_copy(update={"when": asked})
            said = wanted.model_copy(update={"name": ""}).model_dump_json()
            _, places = found.setdefault((_object_of(route), route.provenance.rule, said), (wanted, []))
            places.append(there)
    by_object: dict[ObjectName, list[PlacedRoute]] = {}
    for (name, _, _), (route, places) in found.items():
        by_object.setdefault(name, []).append(PlacedRoute(route, tuple(places)))
    return by_object


def _by_transport(place: Place, when: Condition | None) -> tuple[Place, Condition | None]:
    """Return the one listener that a condition on the transport stands for, and the rest of the condition."""
    if place.listeners:
        return place, when
    parts = when.all_of if isinstance(when, AllOf) else (when,)
    for part in parts:
        if isinstance(part, Compare) and part.subject is Subject.TRANSPORT and part.values in (("http",), ("https",)):
            rest = tuple(each for each in parts if each is not part and each is not None)
            listeners = (HTTPS_LISTENER if part.values == ("https",) else HTTP_LISTENER,)
            return Place(place.host, listeners), AllOf(all_of=rest) if rest else None
    return place, when


def _object_of(entry: Route | StreamRoute) -> ObjectName:
    source = entry.provenance
    return ObjectName(source.namespace, source.kind, source.name)
