"""ServiceImports in stored form, and the ports that one has.

One is made by a controller of the Multi-Cluster Services API, which puts endpoints of other clusters into slices beside
it, or it is a mere name for what clusters export.
"""

from typing import NamedTuple

from headgate.common.resources import SERVICE_IMPORT, JsonObject
from headgate.translator.sources.endpoints import ENDPOINT_SLICES, SLICES_OF_IMPORT, Slice
from headgate.translator.sources.services import SERVICES, Service, read_service
from headgate.translator.sources.sharing import exporters
from headgate.translator.world.graph import Lookups
from headgate.translator.world.world import StoredKind


def _read(manifest: JsonObject) -> Service:
    """Strip a ServiceImport: its ports are written as those of a Service are."""
    return read_service({"spec": manifest.get("spec")})


SERVICE_IMPORTS: StoredKind[Service] = StoredKind(SERVICE_IMPORT, _read)


class Imported(NamedTuple):
    """What a ServiceImport means in a cluster."""

    service: Service
    """Its ports."""
    slices: tuple[Slice, ...] = ()
    """Of a controller: where its endpoints are."""
    clusters: tuple[str, ...] = ()
    """Without such slices: clusters that export a Service of the name, that with these ports first."""


def find_import(lookups: Lookups, namespace: str, name: str) -> Imported | None:
    """Return what a ServiceImport means; None if there is none of the name, and no cluster exports a Service of it.

    What a controller says goes first: it knows by which addresses pods of other clusters are reached.
    """
    written = lookups.get(SERVICE_IMPORTS, namespace, name)
    slices = lookups.find(ENDPOINT_SLICES, SLICES_OF_IMPORT, name, namespace=namespace) if written is not None else ()
    if written is not None and slices:
        return Imported(written, slices)
    clusters = tuple(exporters(lookups, namespace, name))
    if clusters:
        service = lookups.elsewhere(clusters[0]).get(SERVICES, namespace, name)
        assert service is not None, clusters
        return Imported(service, clusters=clusters)
    return None if written is None else Imported(written)
