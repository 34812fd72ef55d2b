"""Objects with routes as HTTPRoutes, and Plugins for what no standard filter says."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from headgate.cli.converting.documents import GATEWAY_API, Document, NoEqual, manifest
from headgate.cli.converting.gateways import Gateways, ListenerName, hostname_of, is_hostname, places_by_listeners
from headgate.cli.converting.matching import MAX_MATCHES
from headgate.cli.converting.rules import Rule, answers_404, merged, rules_of
from headgate.cli.converting.sources import ObjectName, Place, PlacedRoute, Source, Table
from headgate.common.resources import HTTP_ROUTE, JsonObject
from headgate.common.table import Route
from headgate.common.table.hosts import ANY_HOST

MAX_RULES: Final = 16
"""Of one HTTPRoute, as its definition has it."""
MAX_HOSTNAMES: Final = 16
MAX_ALL_MATCHES: Final = 128
"""Of all rules of one HTTPRoute."""
RuleName = tuple[str, str, int, int]
"""Namespace and name of an HTTPRoute, and the indexes of a rule and a match."""


@dataclass
class HttpRoutes:
    """Writes HTTPRoutes."""

    table: Table
    gateways: Gateways
    origins: dict[RuleName, Rule] = field(default_factory=dict)
    """What each match of each rule is made of."""
    written: dict[ObjectName, list[Document]] = field(default_factory=dict)
    """The HTTPRoutes of each object."""
    _names: set[tuple[str, str]] = field(default_factory=set)
    _attached: list[tuple[Document, list[ListenerName]]] = field(default_factory=list)

    def convert(self, source: Source) -> Iterator[Document]:
        """Yield what an object becomes: HTTPRoutes, each behind the Plugins that it names."""
        routes: list[Document] = []
        self.written[source.object] = routes
        remarks: list[str] = []
        plugins = _Plugins(source.object)
        for (listeners, hosts), placed in self._groups(source, remarks).items():
            rules = list(self._rules(placed, remarks))
            for hostnames in _batches(sorted(hosts), MAX_HOSTNAMES):
                for part in _parts(merged(rules, MAX_MATCHES)):
                    routes.append(self._route(source.object, hostnames, listeners, part, plugins))
        if routes:
            routes[0].remarks[:0] = [f"from {source.object}", *dict.fromkeys(remarks)]
        elif remarks:
            # Without a route there is a Gateway at least to say it at.
            self.gateways.remarks += [f"{source.object}: {text}" for text in dict.fromkeys(remarks)]
        yield from plugins.documents
        yield from routes

    def _groups(
        self, source: Source, remarks: list[str]
    ) -> dict[tuple[tuple[str, ...], tuple[str, ...]], list[PlacedRoute]]:
        """Return the routes of an object by listeners and hosts: an HTTPRoute has one set of each."""
        found: dict[tuple[tuple[str, ...], tuple[str, ...]], list[PlacedRoute]] = {}
        for placed in source.routes:
            kept = [place for place in placed.places if self._is_servable(place, remarks)]
            for listeners, hosts in places_by_listeners(kept).items():
                if ANY_HOST in hosts and len(hosts) > 1:
                    found.setdefault((listeners, (ANY_HOST,)), []).append(placed)
                    hosts = [host for host in hosts if host != ANY_HOST]
                found.setdefault((listeners, tuple(hosts)), []).append(placed)
        return found

    def _is_servable(self, place: Place, remarks: list[str]) -> bool:
        if not is_hostname(place.host):
            remarks.append(f"not written for the host {place.host}: hostnames are no patterns")
            return False
        policies = (one.tls for there, one in self.table.hosts.items() if there.host == place.host)
        if any(policy is not None and policy.client_auth is not None for policy in policies):
            remarks.append(
                f"not written for the host {place.host}: certificates of clients are asked for by spec.tls.frontend of "
                "a Gateway, for all hosts of a port"
            )
            return False
        if place.host.startswith("*.") and not place.host.startswith("**."):
            remarks.append(f"the hostname {place.host} takes names of several labels too")
        return True

    def _rules(self, placed: Iterable[PlacedRoute], remarks: list[str]) -> Iterator[Rule]:
        for route, _ in placed:
            if answers_404(route):
                continue
            try:
                yield from rules_of(route, self.table, remarks)
            except NoEqual as what:
                remarks.append(f"not written: {route.path.type} {route.path.value}, which has {what}")

    def _route(
        self,
        source: ObjectName,
        hosts: Sequence[str],
        listeners: tuple[str, ...],
        groups: Sequence[Sequence[Rule]],
        plugins: "_Plugins",
    ) -> Document:
        name = self._name_for(source)
        rules = [self._rule(source.namespace, name, index, group, plugins) for index, group in enumerate(groups)]
        spec: JsonObject = {"parentRefs": []}
        if hostnames := [hostname_of(host) for host in hosts if host != ANY_HOST]:
            spec["hostnames"] = hostnames
        document = Document(manifest(GATEWAY_API, HTTP_ROUTE.kind, source.namespace, name, {**spec, "rules": rules}))
        self._attached.append((document, self.gateways.need(hosts, listeners)))
        return document

    def _rule(self, namespace: str, name: str, index: int, group: Sequence[Rule], plugins: "_Plugins") -> JsonObject:
        first = group[0]
        said = first.written([plugins.name_of(each) for each in first.plugins])
        said["matches"] = [match for rule in group for match in rule.matches]
        for number, origin in enumerate(rule for rule in group for _ in rule.matches):
            self.origins[namespace, name, index, number] = origin
        for reference in _references(said):
            self.gateways.grant(
                "Service", reference.get("namespace", namespace), reference["name"], HTTP_ROUTE.kind, namespace
            )
        return said

    @property
    def rules(self) -> Iterable[Rule]:
        """All rules that were written."""
        return {id(rule): rule for rule in self.origins.values()}.values()

    def documents_of(self, route: Route) -> list[Document]:
        """Return the HTTPRoutes of the object that a route of the table comes from."""
        source = route.provenance
        return self.written.get(ObjectName(source.namespace, source.kind, source.name), [])

    def attach(self) -> None:
        """Name the Gateways in all HTTPRoutes, once all listeners are known."""
        for document, listeners in self._attached:
            namespace = document.manifest["metadata"]["namespace"]
            document.manifest["spec"]["parentRefs"] = self.gateways.parents(listeners, namespace)

    def _name_for(self, source: ObjectName) -> str:
        """Return a name that no other HTTPRoute has: the object's, if it is free."""
        for name in _names_like(source):
            if (source.namespace, name) not in self._names:
                self._names.add((source.namespace, name))
                return name
        raise AssertionError("names never end")


class _Plugins:
    """The Plugins that are made of one object."""

    def __init__(self, source: ObjectName) -> None:
        self._source = source
        self._names: dict[str, str] = {}
        self.documents: list[Document] = []

    def name_of(self, plugins: Sequence[JsonObject]) -> str:
        """Return the name of the Plugin that names these, written at its first use."""
        key = json.dumps(plugins, sort_keys=True)
        if key not in self._names:
            base = f"{self._source.kind.lower()}-{self._source.name}"
            name = self._names[key] = base if not self._names else f"{base}-{len(self._names) + 1}"
            spec = {"plugins": list(plugins)}
            self.documents.append(Document(manifest("headgate.dev/v1", "Plugin", self._source.namespace, name, spec)))
        return self._names[key]


def _names_like(source: ObjectName) -> Iterator[str]:
    yield source.name
    number = 2
    while True:
        yield f"{source.name}-{number}"
        number += 1


def _references(rule: JsonObject) -> Iterator[JsonObject]:
    """Yield all references to Services of a rule."""
    for backend in rule.get("backendRefs", ()):
        yield backend
        yield from _mirrored(backend.get("filters", ()))
    yield from _mirrored(rule.get("filters", ()))


def _mirrored(filters: Iterable[JsonObject]) -> Iterator[JsonObject]:
    for each in filters:
        if "requestMirror" in each:
            yield each["requestMirror"]["backendRef"]


def _parts(groups: Sequence[list[Rule]]) -> Iterator[list[list[Rule]]]:
    """Yield rules in parts that an HTTPRoute has room for."""
    part: list[list[Rule]] = []
    matches = 0
    for group in groups:
        count = sum(len(rule.matches) for rule in group)
        if part and (len(part) == MAX_RULES or matches + count > MAX_ALL_MATCHES):
            yield part
            part, matches = [], 0
        part.append(group)
        matches += count
    if part:
        yield part


def _batches(values: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    for start in range(0, len(values), size):
        yield values[start : start + size]
