"""The services of a route for streams: upstreams that share its connections by their weights.

A service that cannot be followed costs its own share, which is refused, and no other's.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from headgate.common.problems import Problem
from headgate.common.resources import ObjectRef
from headgate.common.table import BackendProtocol, BackendTls, WeightedUpstream
from headgate.translator.dialects.traefik.models.service import StreamService
from headgate.translator.dialects.traefik.models.stream import TcpService
from headgate.translator.dialects.traefik.references import (
    BadReference,
    check_namespace,
    check_service_type,
    use_service,
    uses_cluster_ip,
)
from headgate.translator.dialects.traefik.services.transport import (
    NO_TRANSPORT,
    BadTransport,
    StreamTransport,
    find_stream_transport,
)
from headgate.translator.fragments.fragment import BackendUse
from headgate.translator.fragments.upstream_refs import RefusalRef
from headgate.translator.manifests.patches import NO_UPSTREAM_PATCH, UpstreamPatch
from headgate.translator.manifests.specs import refuse, warn
from headgate.translator.sources.sharing import find_service
from headgate.translator.upstreams.overridden import OverriddenService, Override
from headgate.translator.world.graph import Lookups

_MAX_WEIGHT: Final = 1_000_000


class StreamBackends(NamedTuple):
    """Where the connections of a route go."""

    backends: tuple[WeightedUpstream, ...]
    uses: tuple[BackendUse, ...]

    @property
    def is_refused(self) -> bool:
        """Whether none of them can be followed."""
        return all(isinstance(use.upstream, RefusalRef) for use in self.uses)


def read_services(
    services: Sequence[StreamService], ref: ObjectRef, kind: str, field: str, lookups: Lookups, found: list[Problem]
) -> StreamBackends:
    """Return where connections go.

    Args:
        services: as the route has them.
        ref: the object, of this `kind`.
        kind: as messages name it.
        field: where the route stands.
        lookups: with the operator's settings.
        found: gets what is wrong.
    """
    if not services:
        found.append(refuse("NoBackends", f"{field}.services", "must have a service; connections are refused"))
        return refuse_all(ref, kind, field, "it has no services")
    read = [_read(each, ref, kind, f"{field}.services[{index}]", lookups, found) for index, each in enumerate(services)]
    return StreamBackends(tuple(backend for backend, _ in read), tuple(use for _, use in read))


def refuse_all(ref: ObjectRef, kind: str, field: str, why: str) -> StreamBackends:
    """Return what refuses all connections of a route, and says why."""
    refusal = _refusal(ref, kind, field, why)
    return StreamBackends((WeightedUpstream(upstream=refusal.key),), (BackendUse(refusal, field, field),))


def _refusal(ref: ObjectRef, kind: str, field: str, why: str) -> RefusalRef:
    reason = f"{kind} {ref.namespace}/{ref.name} refuses connections of {field}: {why}"
    return RefusalRef(ref.cluster, kind, ref.namespace, f"{ref.name}.{field}", reason)


def _read(
    written: StreamService, ref: ObjectRef, kind: str, field: str, lookups: Lookups, problems: list[Problem]
) -> tuple[WeightedUpstream, BackendUse]:
    weight = 1 if written.weight is None else min(written.weight, _MAX_WEIGHT)
    fault, transport = _fault(written, ref, field, lookups), NO_TRANSPORT
    if fault is None and isinstance(written, TcpService) and written.servers_transport and not lookups.is_assumed:
        try:
            transport = find_stream_transport(written.servers_transport, ref.namespace, ref.cluster, lookups)
        except (BadReference, BadTransport) as error:
            reason = error.reason if isinstance(error, BadReference) else "InvalidServersTransport"
            message = f"ServersTransportTCP {written.servers_transport} cannot be followed: {error}"
            fault = refuse(reason, f"{field}.serversTransport", message, written.servers_transport)
    if fault is not None:
        problems.append(fault)
        refusal = _refusal(ref, kind, field, fault.message)
        return WeightedUpstream(upstream=refusal.key, weight=weight), BackendUse(refusal, field, field)
    if written.node_port_lb:
        message = "connections go to the endpoints, not to the nodes' ports"
        problems.append(warn("UnsupportedField", f"{field}.nodePortLB", message))
    protocol, patch = BackendProtocol.UDP, NO_UPSTREAM_PATCH
    if isinstance(written, TcpService):
        protocol, patch = _over_tcp(written, field, transport, problems)
    upstream = OverriddenService(
        ref.cluster,
        written.namespace or ref.namespace,
        written.name,
        written.port,
        protocol=protocol,
        has_policy=True,
        override=Override.of(patch) if patch != NO_UPSTREAM_PATCH else None,
        uses_cluster_ip=uses_cluster_ip(written.native_lb, lookups),
    )
    if protocol is BackendProtocol.UDP and not lookups.is_assumed:
        service = find_service(lookups, upstream.namespace, upstream.name)
        if service is not None and service.is_for_tcp_alone(written.port):
            name = f"{upstream.namespace}/{upstream.name}"
            message = f"port {written.port} of Service {name} is for TCP; datagrams go to its endpoints all the same"
            problems.append(warn("PortNotFound", f"{field}.port", message))
    use = use_service(upstream, field, lookups)
    return WeightedUpstream(upstream=upstream.key, weight=weight), use


def _fault(written: StreamService, ref: ObjectRef, field: str, lookups: Lookups) -> Problem | None:
    """Return why a service cannot be followed."""
    if "@" in written.name:
        message = "services of Traefik's other providers are not read: name a Service of this cluster"
        return refuse("UnsupportedBackend", f"{field}.name", message, written.name)
    try:
        namespace = check_namespace(ref.namespace, written.namespace, lookups)
    except BadReference as error:
        return refuse(error.reason, f"{field}.namespace", str(error), written.namespace)
    try:
        service = None if lookups.is_assumed else find_service(lookups, namespace, written.name)
        check_service_type(service, namespace, written.name, lookups)
    except BadReference as error:
        return refuse(error.reason, f"{field}.name", str(error), written.name)
    return None


def _over_tcp(
    written: TcpService, field: str, transport: StreamTransport, problems: list[Problem]
) -> tuple[BackendProtocol, UpstreamPatch]:
    if written.termination_delay is not None:
        message = "has no effect: the end of one direction is passed on, and the other one goes on"
        problems.append(warn("UnsupportedField", f"{field}.terminationDelay", message, written.termination_delay))
    said: dict[str, object] = {}
    if written.proxy_protocol is not None:
        said["proxy_protocol"] = written.proxy_protocol.version
    elif transport.proxy_protocol is not None:
        said["proxy_protocol"] = transport.proxy_protocol
    if written.tls:
        said["tls"] = transport.tls or BackendTls(verify=True)
    protocol = BackendProtocol.TLS if written.tls else BackendProtocol.TCP
    return protocol, UpstreamPatch.model_validate(said) if said else NO_UPSTREAM_PATCH
