"""EndpointSlices and Endpoints in stored form, and the addresses behind one port of a Service.

Rules from https://kubernetes.io/docs/concepts/services-networking/endpoint-slices/ and the API's own field comments:
an endpoint may be in two slices while the controller moves it; a slice's ports belong to the Service's ports by name.
Kubernetes itself writes one address for an endpoint, and says nothing of others: each is a server of its own here, as
with ingress-nginx and Traefik.
"""

import sys
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from headgate.common.resources import ENDPOINT_SLICE, ENDPOINTS, JsonObject
from headgate.translator.manifests.reading import as_list, as_object, as_text, metadata
from headgate.translator.sources.services import ServicePort, is_port
from headgate.translator.world.world import Index, StoredKind

SERVICE_NAME_LABEL = "kubernetes.io/service-name"
IMPORT_NAME_LABEL = "multicluster.kubernetes.io/service-name"
SOURCE_CLUSTER_LABEL = "multicluster.kubernetes.io/source-cluster"
ZONE_LABEL = "topology.kubernetes.io/zone"


class Address(NamedTuple):
    """One address, without a port."""

    address: str
    zone: str
    is_ready: bool
    is_serving: bool
    is_terminating: bool
    pod: str = ""
    """Name of the Pod that has it; empty if it is none, or not said."""


class SlicePort(NamedTuple):
    """A port that every address of the slice has."""

    name: str
    port: int | None
    """None: every port, so the one that the Service targets."""
    protocol: str = "TCP"


class Slice(NamedTuple):
    """An EndpointSlice, or one subset of an Endpoints object."""

    service: str | None
    family: str
    """`IPv4`, `IPv6` or `FQDN`; empty if not said."""
    ports: tuple[SlicePort, ...]
    addresses: tuple[Address, ...]
    """Sorted."""
    imported: str | None = None
    """Name of the ServiceImport whose endpoints a controller of the Multi-Cluster Services API put here."""
    source: str = ""
    """Cluster that these are in, as such a controller names it."""

    def only(self, selects: Callable[[Address], bool]) -> "Slice":
        """Return the slice with some of its addresses."""
        return self._replace(addresses=tuple(filter(selects, self.addresses)))


def read_slice(manifest: JsonObject) -> Slice:
    """Strip an EndpointSlice; malformed parts are left out."""
    labels = as_object(metadata(manifest).get("labels"))
    addresses: list[Address] = []
    for endpoint in as_list(manifest.get("endpoints")):
        _read_endpoint(as_object(endpoint), addresses)
    addresses.sort()
    return Slice(
        service=as_text(labels.get(SERVICE_NAME_LABEL)) or None,
        family=sys.intern(as_text(manifest.get("addressType"))),
        ports=_read_ports(manifest.get("ports")),
        addresses=tuple(addresses),
        imported=as_text(labels.get(IMPORT_NAME_LABEL)) or None,
        source=as_text(labels.get(SOURCE_CLUSTER_LABEL)),
    )


def _read_ports(ports: object) -> tuple[SlicePort, ...]:
    return _the_same(
        tuple(
            [
                SlicePort(
                    as_text(port.get("name")),
                    port["port"] if is_port(port.get("port")) else None,
                    as_text(port.get("protocol")) or "TCP",
                )
                for port in map(as_object, as_list(ports))
                if port.get("protocol") in (None, "TCP", "UDP")
            ]
        )
    )


@lru_cache(maxsize=1024)
def _the_same(ports: tuple[SlicePort, ...]) -> tuple[SlicePort, ...]:
    """Return the one value for equal ones: most slices have the ports of many others."""
    return ports


def _read_endpoint(endpoint: JsonObject, found: list[Address]) -> None:
    conditions = as_object(endpoint.get("conditions"))
    zone = as_text(endpoint["zone"]) if "zone" in endpoint else ""
    if not zone and "topology" in endpoint:
        zone = as_text(as_object(endpoint["topology"]).get(ZONE_LABEL))
    is_ready, serving = conditions.get("ready") is not False, conditions.get("serving")
    is_serving = serving if isinstance(serving, bool) else is_ready
    is_terminating = conditions.get("terminating") is True
    pod = _pod(endpoint) if "targetRef" in endpoint else ""
    for address in as_list(endpoint.get("addresses")):
        if address and isinstance(address, str):
            found.append(Address(address, sys.intern(zone), is_ready, is_serving, is_terminating, pod))


def _pod(endpoint: JsonObject) -> str:
    target = as_object(endpoint.get("targetRef"))
    return as_text(target.get("name")) if target.get("kind") == "Pod" else ""


def read_endpoints(manifest: JsonObject) -> tuple[Slice, ...]:
    """Strip an Endpoints object: its subsets are slices without a family."""
    return tuple(_read_subset(as_object(subset)) for subset in as_list(manifest.get("subsets")))


def _read_subset(subset: JsonObject) -> Slice:
    addresses = (
        Address(as_text(entry.get("ip")), "", is_ready, is_ready, is_terminating=False, pod=_pod(entry))
        for key, is_ready in (("addresses", True), ("notReadyAddresses", False))
        for entry in map(as_object, as_list(subset.get(key)))
    )
    return Slice(None, "", _read_ports(subset.get("ports")), tuple(sorted(found for found in addresses if found[0])))


class Target(NamedTuple):
    """An address and the port to connect to."""

    address: str
    port: int
    zone: str
    is_ready: bool
    is_serving: bool
    is_terminating: bool


def targets(slices: Iterable[Slice], port: ServicePort, families: tuple[str, ...]) -> list[Target]:
    """Return where one port of a Service is served, sorted by address and port, each once.

    Of a dual-stack Service the slices of its first family count; the other family repeats the same pods, and stands in
    only where the first has none that could serve.
    """
    found = list(slices)
    for family in families:
        own = _distinct(_targets_of(each, port) for each in found if each.family in (family, "", "FQDN"))
        if any(target.is_ready or target.is_serving for target in own):
            return own
    return _distinct(_targets_of(each, port) for each in found)


def _targets_of(each: Slice, port: ServicePort) -> Iterator[Target]:
    number = port_number(each, port)
    if number is None:
        return
    for found in each.addresses:
        yield Target(found.address, number, found.zone, found.is_ready, found.is_serving, found.is_terminating)


def port_number(each: Slice, port: ServicePort) -> int | None:
    """Return the port at which a slice's addresses serve a port of the Service; None where they do not."""
    own = port.target if isinstance(port.target, int) else None
    if not each.ports:
        return own
    for candidate in each.ports:
        if candidate.name == port.name and candidate.protocol == port.protocol:
            return candidate.port or own
    return None


def _distinct(groups: Iterable[Iterable[Target]]) -> list[Target]:
    best: dict[tuple[str, int], Target] = {}
    for group in groups:
        for target in group:
            key = (target.address, target.port)
            best[key] = max(target, best.get(key, target), key=_usefulness)
    return [best[key] for key in sorted(best)]


def _usefulness(target: Target) -> tuple[bool, bool, bool]:
    return target.is_ready, target.is_serving, not target.is_terminating


SLICES_OF_SERVICE: Index[Slice] = Index("service", lambda each: (each.service,) if each.service is not None else ())
SLICES_OF_IMPORT: Index[Slice] = Index("import", lambda each: (each.imported,) if each.imported is not None else ())
ENDPOINT_SLICES = StoredKind(ENDPOINT_SLICE, read_slice, indexes=(SLICES_OF_SERVICE, SLICES_OF_IMPORT))
LEGACY_ENDPOINTS = StoredKind(ENDPOINTS, read_endpoints)
