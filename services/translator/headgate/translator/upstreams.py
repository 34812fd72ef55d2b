"""Upstreams: the endpoints behind a reference, or why there are none.

What is wrong with a backend is decided here once, and told twice: in the entry, for whoever gets the 503, and as a
condition for the objects that refer to it.
"""

from typing import Any, NamedTuple

from headgate.common.problems import Severity
from headgate.common.table import BackendProtocol, Endpoint, Provenance, Upstream
from headgate.translator.annotations import PREFIX
from headgate.translator.endpoints import ENDPOINT_SLICES, LEGACY_ENDPOINTS, Target, targets
from headgate.translator.fragment import RefusalRef, ResourceRef, ServicePortRef, UpstreamRef
from headgate.translator.graph import Lookups, Rule
from headgate.translator.services import EXTERNAL_NAME, SERVICES, Service, ServicePort, port_names
from headgate.translator.standing import Standing


class BackendFault(NamedTuple):
    """Why an upstream cannot serve."""

    reason: str
    message: str
    severity: Severity = Severity.ERROR
    is_about_port: bool = False
    """Whether the port is at fault rather than the Service."""


class ResolvedUpstream(NamedTuple):
    """An upstream's entry, and what those who refer to it should hear."""

    entry: Upstream
    fault: BackendFault | None


def resolve_upstream(lookups: Lookups, ref: UpstreamRef, *, heeds_wishes: bool = True) -> ResolvedUpstream:
    """Find the endpoints of a reference.

    Looks up the Service, then its EndpointSlices; the Endpoints object only where there are no slices. The policies
    that the Service's annotations wish for are left out unless `heeds_wishes`.
    """
    if isinstance(ref, ResourceRef):
        return _unavailable(ref, BackendFault("UnsupportedResourceBackend", unsupported_resource(ref)))
    if isinstance(ref, RefusalRef):
        entry = Upstream(key=ref.key, unavailable=ref.reason, provenance=_provenance(ref))
        return ResolvedUpstream(entry, None)  # its object has said so itself
    service = lookups.get(SERVICES, ref.namespace, ref.service)
    if service is None:
        return _unavailable(ref, BackendFault("ServiceNotFound", f"{_name(ref)} not found"))
    if not heeds_wishes:
        service = service._replace(wishes=None)
    if service.wishes and service.wishes.refusal:
        message = f"{_name(ref)} refuses requests: its annotation {PREFIX}{service.wishes.refusal} cannot be followed"
        return _unavailable(ref, BackendFault("InvalidAnnotation", message))
    resolved = _resolve_service(lookups, ref, service)
    if resolved.fault is None and (standing := lookups.standing(SERVICES, ref.namespace, ref.service)):
        return resolved._replace(fault=_stand_in(ref, standing))
    return resolved


def _resolve_service(lookups: Lookups, ref: ServicePortRef, service: Service) -> ResolvedUpstream:
    port = service.find_port(ref.port, is_udp=ref.stream == "udp")
    if port is None:
        return _unavailable(ref, BackendFault("PortNotFound", _missing_port(ref, service), is_about_port=True))
    if service.type == EXTERNAL_NAME:
        return _resolve_external(ref, service, port)
    return _resolve_endpoints(lookups, ref, service, port)


def _stand_in(ref: ServicePortRef, standing: Standing) -> BackendFault | None:
    """Say that a Service is used as it was before an update that cannot be."""
    if standing.good is None:
        return None
    message = f"{_name(ref)} is used as of {standing.good.version}, as it cannot be used as it is: {standing.errors[0]}"
    return BackendFault("InvalidService", message, Severity.WARNING)


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
        return _unavailable(ref, BackendFault("InvalidExternalName", f"{_name(ref)} has no externalName"))
    number = port.target if isinstance(port.target, int) else port.port
    endpoint = Endpoint(address=service.external_name.lower(), port=number, cluster=ref.cluster)
    return ResolvedUpstream(_entry(ref, service, (endpoint,)), None)


def _resolve_endpoints(lookups: Lookups, ref: ServicePortRef, service: Service, port: ServicePort) -> ResolvedUpstream:
    slices = lookups.find(ENDPOINT_SLICES, ref.namespace, ref.service)
    if not slices:
        slices = lookups.get(LEGACY_ENDPOINTS, ref.namespace, ref.service) or ()
    found = targets(slices, port, service.families)
    endpoints = tuple(_endpoint(target, ref.cluster) for target in found)
    if any(target.is_ready or target.is_serving for target in found):
        return ResolvedUpstream(_entry(ref, service, endpoints), None)
    what = f"no ready endpoint among {len(found)}" if found else "no endpoints"
    fault = BackendFault("NoReadyEndpoints", f"{_name(ref)} has {what}", Severity.WARNING)
    return ResolvedUpstream(_entry(ref, service, endpoints, unavailable=fault.message), fault)


def _entry(ref: ServicePortRef, service: Service, endpoints: tuple[Endpoint, ...], **fields: Any) -> Upstream:
    wishes = service.wishes.upstream if service.wishes else {}
    if ref.stream:
        fields["protocol"] = BackendProtocol(ref.stream)
    return Upstream(key=ref.key, endpoints=endpoints, provenance=_provenance(ref), **wishes | fields)


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


def _unavailable(ref: UpstreamRef, fault: BackendFault) -> ResolvedUpstream:
    entry = Upstream(key=ref.key, unavailable=fault.message, provenance=_provenance(ref))
    return ResolvedUpstream(entry, fault)


def _provenance(ref: UpstreamRef) -> Provenance:
    kind, name = ("Service", ref.service) if isinstance(ref, ServicePortRef) else (ref.kind, ref.name)
    return Provenance(cluster=ref.cluster, kind=kind, namespace=ref.namespace, name=name)


def _name(ref: ServicePortRef) -> str:
    return f"Service {ref.namespace}/{ref.service}"


def _give_up(ref: UpstreamRef, error: Exception) -> ResolvedUpstream:
    message = f"internal error while resolving {ref.key}: {type(error).__name__}"
    return _unavailable(ref, BackendFault("InternalError", message))


UPSTREAM: Rule[UpstreamRef, ResolvedUpstream] = Rule("upstream", 2, resolve_upstream, _give_up)
