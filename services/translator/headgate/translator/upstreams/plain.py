"""Ports of Services of the usual sort, resolved straight into their encoded entry.

Almost every upstream is a Service of one cluster without annotations of ours, whose endpoints are in one EndpointSlice.
Nothing is wrong with it, and nothing is joined, weighed or chosen, so that no model of it is made. For all others
`resolve_plainly` returns None, and `resolve_upstream` looks again. Both look up the same objects.
"""

from typing import NamedTuple

from headgate.common.table.plain import PlainEndpoint, encode_plain_upstream
from headgate.translator.fragments.upstream_refs import ServicePortRef
from headgate.translator.sources.endpoints import ENDPOINT_SLICES, SLICES_OF_SERVICE, port_number
from headgate.translator.sources.services import EXTERNAL_NAME, SERVICES, Service
from headgate.translator.sources.sharing import CLUSTERS, SERVICE_EXPORTS
from headgate.translator.world.graph import Lookups


class PlainUpstream(NamedTuple):
    """An upstream of one cluster that serves; to be taken as a `ResolvedUpstream`."""

    content: bytes
    """Its entry, as `encode_entry` has it."""
    fault: None = None
    clusters: tuple[str, ...] = ()


def resolve_plainly(lookups: Lookups, ref: ServicePortRef) -> PlainUpstream | None:
    """Return the entry of a port of a Service; None where there is more to it than its endpoints."""
    cluster, namespace, name, wanted, stream = ref
    if stream:
        return None
    versions = lookups.versions(SERVICES, namespace, name)
    if versions is None or versions.good is not None:
        return None
    service: Service | None = versions.present.form
    if service is None or service.policy is not None or service.type == EXTERNAL_NAME:
        return None
    port = service.find_port(wanted)
    if port is None or port.app_protocol or lookups.get(SERVICE_EXPORTS, namespace, name) is not None:
        return None
    if lookups.get(CLUSTERS, "", cluster) is not None:
        return None
    slices = lookups.find(ENDPOINT_SLICES, SLICES_OF_SERVICE, name, namespace=namespace)
    if len(slices) != 1:
        return None
    number, addresses = port_number(slices[0], port), slices[0].addresses
    if number is None or not any(each.is_ready or each.is_serving for each in addresses):
        return None
    if len({each.address for each in addresses}) < len(addresses):
        return None
    endpoints = [
        PlainEndpoint(each.address, number, each.zone, cluster, each.is_ready, each.is_serving, each.is_terminating)
        for each in addresses
    ]
    return PlainUpstream(encode_plain_upstream(ref.key, endpoints, cluster, namespace, name))
