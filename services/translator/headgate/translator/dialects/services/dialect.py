"""One Service to one fragment: its stream port, and what is wrong with its annotations.

What annotations say of the Service's endpoints goes into its upstreams, wherever those are referred to.
"""

from typing import Literal

from headgate.common.problems import Problem
from headgate.common.resources import SERVICE, ObjectRef
from headgate.common.table import BackendProtocol, Provenance, StreamRoute, WeightedUpstream
from headgate.translator.annotations.reading import field_of
from headgate.translator.annotations.service import ServicePolicy, StreamPolicy
from headgate.translator.fragments.fragment import BackendUse, Fragment, Identity, StreamClaim
from headgate.translator.fragments.upstream_refs import ServicePortRef
from headgate.translator.objects.dialect import Dialect, TranslatedKind
from headgate.translator.objects.ownership import ByRule
from headgate.translator.sources.services import SERVICES, Service, port_names
from headgate.translator.world.graph import Lookups

HTTPS_PORT = 443
"""Of a Service without ports, behind the gateways' HTTPS port."""
_OVER_TLS = (BackendProtocol.HTTPS, BackendProtocol.H2)


def translate_service(ref: ObjectRef, service: Service, lookups: Lookups) -> Fragment:
    """Return what a Service contributes by its annotations."""
    identity, policy = _identify(ref, service), service.policy
    if policy is None:
        return Fragment(identity)
    problems = list(policy.problems)
    backend = _backend(ref, service, policy, problems) if policy.stream else None
    if policy.stream is None or backend is None:
        return Fragment(identity, problems=tuple(problems))
    is_named = policy.stream.backend_port is not None
    port_field = field_of("stream-backend-port" if is_named else "stream-port")
    return Fragment(
        identity,
        backends=(BackendUse(backend, field_of("stream-port"), port_field),),
        streams=(_claim(ref, policy.stream, backend),),
        problems=tuple(problems),
    )


def _identify(ref: ObjectRef, service: Service) -> Identity:
    policy = service.policy
    uid, created_at = (policy.uid, policy.created_at) if policy else ("", "")
    return Identity(ref, "v1", SERVICE.kind, uid, created_at)


def _backend(ref: ObjectRef, service: Service, policy: ServicePolicy, problems: list[Problem]) -> ServicePortRef | None:
    """The Service's port that gets the connections: the one that is named, the only one, or that of the same number."""
    stream = policy.stream
    assert stream is not None
    ports = service.udp_ports if stream.protocol == "udp" else service.ports
    number: int | str | None = stream.backend_port
    if number is None:
        same = [port.port for port in ports if port.port == stream.port]
        number = ports[0].port if len(ports) == 1 else next(iter(same), None if ports else stream.port or HTTPS_PORT)
    if number is None:
        message = (
            f"must name the Service's port that gets the connections, of {port_names(ports)}; "
            "until then the last good version stays in force, or its port stays closed"
        )
        problems.append(Problem(reason="Required", field=field_of("stream-backend-port"), message=message))
        return None
    return ServicePortRef(ref.cluster, ref.namespace, ref.name, number, _spoken(stream, policy))


def _spoken(stream: StreamPolicy, policy: ServicePolicy) -> Literal["tcp", "udp", "tls"]:
    if stream.protocol == "udp":
        return "udp"
    is_over_tls = policy.upstream.protocol in _OVER_TLS and stream.protocol != "tls-passthrough"
    return "tls" if is_over_tls else "tcp"


def _claim(ref: ObjectRef, stream: StreamPolicy, backend: ServicePortRef) -> StreamClaim:
    field = field_of("stream-port" if stream.port else "stream-server-names")
    route = StreamRoute(
        key=f"{ref.cluster}/{ref.namespace}/{ref.name}:{stream.port}/{'udp' if stream.protocol == 'udp' else 'tcp'}",
        protocol="tls" if stream.protocol.startswith("tls-") else "udp" if stream.protocol == "udp" else "tcp",
        port=stream.port,
        terminate=stream.protocol == "tls-terminate",
        backends=(WeightedUpstream(upstream=backend.key),),
        provenance=Provenance(
            cluster=ref.cluster, kind=SERVICE.kind, namespace=ref.namespace, name=ref.name, rule=field
        ),
        **stream.fields,
    )
    return StreamClaim(route, field)


def _has_annotations(service: Service) -> bool:
    return service.policy is not None


def _is_ours(ref: ObjectRef, service: Service, lookups: Lookups) -> bool:
    """Whether a Service has annotations of ours, or an error of its own, of which its author must hear."""
    versions = lookups.versions(SERVICES, ref.namespace, ref.name)
    return _has_annotations(service) or bool(versions and versions.errors)


ANNOTATED_SERVICES = Dialect(
    name="services",
    kinds=(
        TranslatedKind(
            SERVICES,
            decode=lambda service: service,
            identify=_identify,
            translate=translate_service,
            ownership=ByRule(_is_ours),
            concerns=_has_annotations,
        ),
    ),
)
