"""Services that several clusters have: which belong together, and what share of the requests each cluster gets.

Clusters are joined by namespace sameness, as the Multi-Cluster Services API calls it: a Service of one namespace and
name means the same everywhere, once it is exported, by the annotation `headgate.dev/global: "true"` or by a
ServiceExport of its name. No controller of that API is needed: a translator has all clusters' objects to join.

- A Service that its own cluster does not export is that cluster's alone.
- One that is exported has the endpoints of all clusters that export it.
- Where a cluster has no such Service, what others export stands in for it.

What people decide of a cluster (`headgate.common.clusters`) is applied to its endpoints here, whatever Service they are
of.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from headgate.common.clusters import ClusterSettings, Gateway, read_settings
from headgate.common.resources import CLUSTER, SERVICE_EXPORT
from headgate.common.table import Endpoint
from headgate.translator.sources.services import EXTERNAL_NAME, SERVICES, Service, is_global
from headgate.translator.world.documents import Document, document_kind
from headgate.translator.world.graph import Lookups
from headgate.translator.world.world import StoredKind

SERVICE_EXPORTS = StoredKind(
    SERVICE_EXPORT, document_kind(SERVICE_EXPORT).read, is_shared=lambda _: True, restore=Document.decode
)
CLUSTERS = StoredKind(CLUSTER, read_settings)

_FINENESS = 600
"""Weight of a cluster with one endpoint and weight 1: shares of several endpoints are whole numbers, and the greatest
weight of a cluster fits into an endpoint's."""
_PLAIN = ClusterSettings()


class ClusterPart(NamedTuple):
    """What one cluster has of a Service."""

    cluster: str
    settings: ClusterSettings
    endpoints: Sequence[Endpoint]
    """As its pods are."""


def sharers(lookups: Lookups, namespace: str, name: str) -> tuple[str, ...]:
    """Return the clusters whose Services are meant by this name in this cluster, the leading one first.

    The leading one's ports and annotations count: it is the own cluster, or where that has no such Service the first by
    name. Empty if no cluster has it.
    """
    own = lookups.get(SERVICES, namespace, name)
    if own is not None and not _is_exported(lookups, namespace, name, own):
        return (lookups.cluster,)
    exporting = tuple(exporters(lookups, namespace, name))
    return (lookups.cluster, *(each for each in exporting if each != lookups.cluster)) if own else exporting


def find_service(lookups: Lookups, namespace: str, name: str) -> Service | None:
    """Return the Service that a name means in this cluster, the leading one of several; None if no cluster has it."""
    own = lookups.get(SERVICES, namespace, name)
    if own is not None:
        return own  # the own cluster's leads, whether it is exported or not
    clusters = sharers(lookups, namespace, name)
    return lookups.elsewhere(clusters[0]).get(SERVICES, namespace, name) if clusters else None


def exporters(lookups: Lookups, namespace: str, name: str) -> Iterator[str]:
    """Yield the clusters that export a Service, in order of their names."""
    annotated = lookups.sharers(SERVICES, namespace, name)
    declared = lookups.sharers(SERVICE_EXPORTS, namespace, name)
    for cluster in sorted({*annotated, *declared}):
        service = lookups.elsewhere(cluster).get(SERVICES, namespace, name)
        # The name of a host is no Service of a cluster.
        if service is not None and service.type != EXTERNAL_NAME:
            yield cluster


def _is_exported(lookups: Lookups, namespace: str, name: str, own: Service) -> bool:
    if own.type == EXTERNAL_NAME:
        return False
    return is_global(own) or lookups.get(SERVICE_EXPORTS, namespace, name) is not None


def settings_of(lookups: Lookups) -> ClusterSettings:
    """Return what people decided of a cluster."""
    return lookups.get(CLUSTERS, "", lookups.cluster) or _PLAIN


def join(parts: Sequence[ClusterPart], *, may_hop: bool = True) -> tuple[Endpoint, ...]:
    """Return the endpoints of all clusters, each with the weight and rank that its cluster gives it.

    Args:
        parts: what each cluster has.
        may_hop: whether gateways of other clusters can stand for their pods: of requests they can, of streams not.
    """
    is_weighted = any(part.settings.weight is not None for part in parts)
    found: dict[tuple[str, int, str], Endpoint] = {}
    for part in parts:
        for endpoint in _settle(part, is_weighted=is_weighted, may_hop=may_hop):
            # Pods of two clusters with one address are told apart where only their own cluster reaches them.
            key = (endpoint.address, endpoint.port, endpoint.cluster if endpoint.is_local else "")
            found.setdefault(key, endpoint)
    return tuple(found[key] for key in sorted(found))


def _settle(part: ClusterPart, *, is_weighted: bool, may_hop: bool) -> Iterator[Endpoint]:
    settings, endpoints = part.settings, part.endpoints
    if settings is _PLAIN and not is_weighted:
        yield from endpoints
        return
    live = [each for each in endpoints if each.ready] or [each for each in endpoints if each.serving]
    change: dict[str, object] = {"priority": settings.priority, "is_local": settings.has_local_pods}
    if is_weighted:
        change["weight"] = _spread(_share(settings), len(live) or len(endpoints))
    if settings.drained is not None:
        change |= {"ready": False, "terminating": True}
    for endpoint in endpoints:
        more = {"serving": endpoint.ready or endpoint.serving} if settings.drained else {}
        yield endpoint.model_copy(update=change | more)
    if settings.gateways and may_hop:
        yield from _hops(part, live, is_weighted=is_weighted)


def _hops(part: ClusterPart, live: Sequence[Endpoint], *, is_weighted: bool) -> Iterator[Endpoint]:
    """Yield the gateways of a cluster whose pods cannot be reached from elsewhere."""
    settings = part.settings
    count = len(settings.gateways)
    weight = _spread(_share(settings), count) if is_weighted else max(1, len(live) // count)
    for url in settings.gateways:
        gateway = Gateway.parse(url)
        yield Endpoint(
            address=gateway.address,
            port=gateway.port,
            weight=weight,
            cluster=part.cluster,
            priority=settings.priority,
            ready=any(each.ready for each in live) and settings.drained is None,
            serving=bool(live),
            terminating=settings.drained is not None,
            hop=gateway.scheme,
        )


def _share(settings: ClusterSettings) -> int:
    return 1 if settings.weight is None else settings.weight


def _spread(share: int, count: int) -> int:
    """Return the weight of each of so many endpoints that together have a share."""
    return max(1, share * _FINENESS // max(1, count)) if share else 0
