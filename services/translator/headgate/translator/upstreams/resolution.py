"""Upstreams: the endpoints behind a reference, or why there are none.

What is wrong with a backend is decided here once, and reported twice: in the entry, for the client of the 503, and as a
condition for the objects that refer to it.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from headgate.common.problems import Severity
from headgate.common.resources import SERVICE_IMPORT
from headgate.common.table import BackendProtocol, Endpoint, Provenance, Upstream
from headgate.common.table_image import encode_entry
from headgate.operations.committing.held_table import REFUSES
from headgate.translator.annotations import PREFIX
from headgate.translator.fragments.upstream_refs import (
    DialectRef,
    RefusalRef,
    ResourceRef,
    ServicePortRef,
    Stream,
    UpstreamRef,
)
from headgate.translator.sources.endpoints import (
    ENDPOINT_SLICES,
    LEGACY_ENDPOINTS,
    SLICES_OF_SERVICE,
    Address,
    Target,
    targets,
)
from headgate.translator.sources.imports import Imported, find_import
from headgate.translator.sources.services import EXTERNAL_NAME, SERVICES, Service, ServicePort, port_names
from headgate.translator.sources.sharing import ClusterPart, join, settings_of, sharers
from headgate.translator.world.graph import Lookups
from headgate.translator.world.last_good import ObjectVersions

NOT_EXPORTED = f"no cluster exports a Service of that name, by {PREFIX}global or a ServiceExport"
"""Why a ServiceImport is nothing."""

APP_PROTOCOLS = {
    "https": BackendProtocol.HTTPS,
    "grpc": BackendProtocol.H2C,
    "grpcs": BackendProtocol.H2,
    "kubernetes.io/h2c": BackendProtocol.H2C,
    "kubernetes.io/wss": BackendProtocol.HTTPS,
}
"""What is spoken with a Service's port by its `appProtocol`, where nothing else says it: HTTP by all others."""


class BackendFault(NamedTuple):
    """Why an upstream cannot serve."""

    reason: str
    message: str
    severity: Severity = Severity.ERROR
    is_about_port: bool = False
    """Whether the port is at fault rather than the Service."""

    @property
    def is_emptiness(self) -> bool:
        """Whether all that is wrong is that nothing is ready at the moment."""
        return self.reason == NO_READY_ENDPOINTS


class ResolvedUpstream(NamedTuple):
    """An upstream's entry, and what those who refer to it should hear."""

    entry: Upstream
    fault: BackendFault | None
    clusters: tuple[str, ...] = ()
    """That have a part in it; empty if it is one cluster's alone."""

    @property
    def content(self) -> bytes:
        """The entry, encoded."""
        return encode_entry(self.entry)


NO_READY_ENDPOINTS: Final = "NoReadyEndpoints"
"""Reason of the warning about a Service that nothing serves at the moment."""
Selects = Callable[[Lookups, Address], bool]
"""Whether an address of a Service is one of those that are meant."""


def resolve_upstream(
    lookups: Lookups, ref: UpstreamRef, *, heeds_wishes: bool = True, selects: Selects | None = None
) -> ResolvedUpstream:
    """Find the endpoints of a reference.

    Looks up the Service, in other clusters too where it is shared, then its EndpointSlices; the Endpoints object only
    where there are no slices. The policies that the Service's annotations wish for are left out unless `heeds_wishes`;
    of the addresses those are taken that `selects` takes.
    """
    if isinstance(ref, ResourceRef):
        return _resolve_resource(lookups, ref)
    if isinstance(ref, RefusalRef):
        entry = Upstream(key=ref.key, unavailable=ref.reason, provenance=_provenance(ref))
        return ResolvedUpstream(entry, None)  # its object has said so itself
    if not isinstance(ref, ServicePortRef):
        return ref.resolve(lookups)
    clusters = sharers(lookups, ref.namespace, ref.service)
    if not clusters:
        return unavailable(ref, BackendFault("ServiceNotFound", f"{_name(ref)} not found"))
    service = lookups.elsewhere(clusters[0]).get(SERVICES, ref.namespace, ref.service)
    assert service is not None, clusters
    if not heeds_wishes:
        service = service._replace(policy=None)
    if service.policy and service.policy.refusal:
        message = f"{_name(ref)} {REFUSES} {PREFIX}{service.policy.refusal} cannot be followed"
        return unavailable(ref, BackendFault("InvalidAnnotation", message))
    resolved = _resolve_service(lookups, ref, service, clusters, selects)
    if resolved.fault is None and (versions := lookups.versions(SERVICES, ref.namespace, ref.service)):
        return resolved._replace(fault=_stand_in(ref, versions))
    return resolved


def _resolve_resource(lookups: Lookups, ref: ResourceRef) -> ResolvedUpstream:
    """Resolve what is no Service: a ServiceImport stands for all Services of its name that are exported."""
    if not is_service_import(ref.api_group, ref.kind):
        return unavailable(ref, BackendFault("UnsupportedResourceBackend", unsupported_resource(ref)))
    return resolve_import(lookups, ref)


def resolve_import(
    lookups: Lookups, ref: ResourceRef | DialectRef, port: int | None = None, stream: Stream = ""
) -> ResolvedUpstream:
    """Find the endpoints of a ServiceImport: those of its slices, or of the clusters that export a Service of its name.

    It need not exist as an object: a translator has all clusters' objects, and what a controller would make of them.
    Without a port it must have one alone.
    """
    what = f"ServiceImport {ref.namespace}/{ref.name}"
    found = find_import(lookups, ref.namespace, ref.name)
    if found is None:
        return unavailable(ref, BackendFault("ServiceNotFound", f"{what}: {NOT_EXPORTED}"))
    ports = found.service.udp_ports if stream == "udp" else found.service.ports
    if port is None and len(ports) != 1:
        message = f"{what} must have one port to be a backend without one; it has {port_names(ports)}"
        return unavailable(ref, BackendFault("PortNotFound", message))
    wanted = ServicePortRef(lookups.cluster, ref.namespace, ref.name, port or ports[0].port, stream)
    if found.clusters:
        resolved = _resolve_service(lookups, wanted, found.service, found.clusters)
    else:
        resolved = _resolve_slices(lookups, wanted, found, what)
    return resolved._replace(entry=resolved.entry.model_copy(update={"key": ref.key, "provenance": _provenance(ref)}))


def _resolve_slices(lookups: Lookups, ref: ServicePortRef, found: Imported, what: str) -> ResolvedUpstream:
    """Resolve a ServiceImport of a controller, whose slices say in which cluster endpoints are."""
    port = found.service.find_port(ref.port, is_udp=ref.stream == "udp")
    if port is None:
        return unavailable(ref, BackendFault("PortNotFound", _missing_port(ref, found.service), is_about_port=True))
    parts = []
    for cluster in sorted({each.source for each in found.slices}):
        where = lookups.elsewhere(cluster) if cluster else lookups
        slices = [each for each in found.slices if each.source == cluster]
        endpoints = tuple(_endpoint(target, where.cluster) for target in targets(slices, port, ()))
        # The controller's addresses are reached from here: no gateway has to stand for them.
        settings = settings_of(where).model_copy(update={"gateways": (), "table_gateways": {}})
        parts.append(ClusterPart(where.cluster, settings, endpoints))
    endpoints = join(parts, may_hop=False)
    if any(endpoint.ready or endpoint.serving for endpoint in endpoints):
        return ResolvedUpstream(_entry(ref, found.service, endpoints), None)
    fault = BackendFault(NO_READY_ENDPOINTS, f"{what} has no ready endpoints", Severity.WARNING)
    return ResolvedUpstream(_entry(ref, found.service, endpoints, unavailable=fault.message), fault)


def _resolve_service(
    lookups: Lookups, ref: ServicePortRef, service: Service, clusters: Sequence[str], selects: Selects | None = None
) -> ResolvedUpstream:
    port = service.find_port(ref.port, is_udp=ref.stream == "udp")
    if port is None:
        return unavailable(ref, BackendFault("PortNotFound", _missing_port(ref, service), is_about_port=True))
    if service.type == EXTERNAL_NAME and lookups.settings.nginx.disable_external_names:
        message = f"{_name(ref)} is of type ExternalName, which the setting nginx_disable_svc_external_name leaves out"
        return unavailable(ref, BackendFault("ExternalNameDisabled", message))
    if service.type == EXTERNAL_NAME:
        return _resolve_external(ref, service, port)
    return _resolve_endpoints(lookups, ref, service, clusters, selects)


def at_cluster_ip(service: Service, port: ServicePort, resolved: ResolvedUpstream) -> ResolvedUpstream | None:
    """Return an upstream whose only endpoint is its Service's own address; None if the Service has none."""
    if service.type == EXTERNAL_NAME or not service.cluster_ip:
        return None
    endpoint = Endpoint(address=service.cluster_ip, port=port.port, cluster=resolved.entry.provenance.cluster)
    entry = resolved.entry.model_copy(update={"endpoints": (endpoint,), "unavailable": None})
    return ResolvedUpstream(entry, None)


def _stand_in(ref: ServicePortRef, versions: ObjectVersions) -> BackendFault | None:
    """Say that a Service is used as it was before an update that cannot be."""
    if versions.good is None:
        return None
    message = f"{_name(ref)} is used as of {versions.good.version}, as it cannot be used as it is: {versions.errors[0]}"
    return BackendFault("InvalidService", message, Severity.WARNING)


def is_service_import(api_group: str, kind: str) -> bool:
    """Whether a resource is one that stands for Services."""
    return (api_group, kind) == (SERVICE_IMPORT.group, SERVICE_IMPORT.kind)


def unsupported_resource(ref: ResourceRef) -> str:
    """Say that a backend is not a Service."""
    return f"{ref.kind} {ref.namespace}/{ref.name} cannot be a backend: only Services can; name one under `service`"


def _missing_port(ref: ServicePortRef, service: Service) -> str:
    if ref.stream != "udp" and ref.port in service.other_ports:
        return f"port {ref.port} of {_name(ref)} is not a TCP port"
    what = f"named {ref.port!r}" if isinstance(ref.port, str) else str(ref.port)
    kind = "UDP port" if ref.stream == "udp" else "port"
    names = port_names(service.udp_ports if ref.stream == "udp" else service.ports)
    return f"{_name(ref)} has no {kind} {what}; it has {names}"


def _resolve_external(ref: ServicePortRef, service: Service, port: ServicePort) -> ResolvedUpstream:
    if not service.external_name:
        return unavailable(ref, BackendFault("InvalidExternalName", f"{_name(ref)} has no externalName"))
    number = port.target if isinstance(port.target, int) else port.port
    endpoint = Endpoint(address=service.external_name.lower(), port=number, cluster=ref.cluster)
    return ResolvedUpstream(_entry(ref, service, (endpoint,)), None)


def _resolve_endpoints(
    lookups: Lookups, ref: ServicePortRef, service: Service, clusters: Sequence[str], selects: Selects | None
) -> ResolvedUpstream:
    parts = [_part(lookups.elsewhere(cluster), ref, selects) for cluster in clusters]
    endpoints, shared = join(parts, may_hop=not ref.stream), tuple(clusters) if len(clusters) > 1 else ()
    found = [endpoint for part in parts for endpoint in part.endpoints]
    if any(endpoint.ready or endpoint.serving for endpoint in found):
        return ResolvedUpstream(_entry(ref, service, endpoints), None, shared)
    what = f"no ready endpoint among {len(found)}" if found else "no endpoints"
    where = f" in clusters {', '.join(clusters)}" if len(clusters) > 1 else ""
    fault = BackendFault(NO_READY_ENDPOINTS, f"{_name(ref)} has {what}{where}", Severity.WARNING)
    return ResolvedUpstream(_entry(ref, service, endpoints, unavailable=fault.message), fault, shared)


def _part(lookups: Lookups, ref: ServicePortRef, selects: Selects | None) -> ClusterPart:
    """Return what a cluster has of a Service; nothing where its Service has no such port."""
    return ClusterPart(lookups.cluster, settings_of(lookups), tuple(_endpoints(lookups, ref, selects)))


def _endpoints(lookups: Lookups, ref: ServicePortRef, selects: Selects | None) -> Iterator[Endpoint]:
    service = lookups.get(SERVICES, ref.namespace, ref.service)
    port = service.find_port(ref.port, is_udp=ref.stream == "udp") if service is not None else None
    if service is None or port is None:
        return
    slices = lookups.find(ENDPOINT_SLICES, SLICES_OF_SERVICE, ref.service, namespace=ref.namespace)
    if not slices:
        slices = lookups.get(LEGACY_ENDPOINTS, ref.namespace, ref.service) or ()
    if selects is not None:
        slices = tuple(each.only(lambda address: selects(lookups, address)) for each in slices)
    for target in targets(slices, port, service.families):
        yield _endpoint(target, lookups.cluster)


def _entry(ref: ServicePortRef, service: Service, endpoints: tuple[Endpoint, ...], **fields: Any) -> Upstream:
    said: dict[str, Any] = {}
    port = service.find_port(ref.port) if not ref.stream else None
    if port is not None and port.app_protocol in APP_PROTOCOLS:
        said["protocol"] = APP_PROTOCOLS[port.app_protocol]
    said |= service.policy.upstream.said if service.policy else {}
    if ref.stream:
        fields["protocol"] = BackendProtocol(ref.stream)
    return Upstream(key=ref.key, endpoints=endpoints, provenance=_provenance(ref), **said | fields)


def _endpoint(target: Target, cluster: str) -> Endpoint:
    return Endpoint(
        address=target.address,
        port=target.port,
        zone=target.zone,
        cluster=cluster,
        ready=target.is_ready,
        serving=target.is_serving,
        terminating=target.is_terminating,
    )


def unavailable(ref: UpstreamRef, fault: BackendFault) -> ResolvedUpstream:
    """Return an upstream that answers 503, and why."""
    entry = Upstream(key=ref.key, unavailable=fault.message, provenance=_provenance(ref))
    return ResolvedUpstream(entry, fault)


def _provenance(ref: UpstreamRef) -> Provenance:
    kind, name = ("Service", ref.service) if isinstance(ref, ServicePortRef) else (ref.kind, ref.name)
    return Provenance(cluster=ref.cluster, kind=kind, namespace=ref.namespace, name=name)


def _name(ref: ServicePortRef) -> str:
    return f"Service {ref.namespace}/{ref.service}"
