"""Where the requests of a rule go: its Services by their weights.

A Service that cannot be had keeps its share, and that share is answered with 500, as Gateway API has it. One that is
there and has no ready endpoint answers 503.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from headgate.common.plugins.transformation.fault_injection import Abort, FaultInjectionConfig
from headgate.common.problems import Problem
from headgate.common.resources import GATEWAY_GROUP
from headgate.common.table import (
    Backend,
    BackendGroup,
    BackendProtocol,
    Mirror,
    PluginUse,
    Provenance,
    Retries,
    Timeouts,
    Weighted,
)
from headgate.translator.dialects.gateway_api.gateways.client_certificate import with_certificate
from headgate.translator.dialects.gateway_api.models.backend import BackendReference
from headgate.translator.dialects.gateway_api.policies.backend_tls import tls_policy_of
from headgate.translator.dialects.gateway_api.policies.backend_traffic import (
    NO_TRAFFIC_POLICY,
    TrafficPolicy,
    traffic_policy_of,
)
from headgate.translator.dialects.gateway_api.routes.context import RouteContext
from headgate.translator.fragments.fragment import BackendUse
from headgate.translator.fragments.upstream_refs import RefusalRef, ResourceRef, ServicePortRef
from headgate.translator.manifests.patches import UpstreamPatch
from headgate.translator.manifests.specs import refuse, warn
from headgate.translator.sources.gateways import Party, is_granted
from headgate.translator.sources.imports import find_import
from headgate.translator.sources.policies import BACKEND_POLICIES, BackendPolicy, ServicePortTarget
from headgate.translator.sources.services import Service, ServicePort, port_names
from headgate.translator.sources.sharing import find_service
from headgate.translator.upstreams.imported import ImportedService
from headgate.translator.upstreams.overridden import OverriddenService, Override
from headgate.translator.upstreams.resolution import APP_PROTOCOLS, NOT_EXPORTED, is_service_import

_LAST: Final = -10_000
"""Behind the plugins of filters: a redirect and a preflight need no Service."""
NO_SERVICE: Final = PluginUse.of(FaultInjectionConfig(abort=Abort(http_status=500))).model_copy(update={"order": _LAST})
"""Answers what has nowhere to go."""
_KUBERNETES: Final = "kubernetes.io/"
_SPOKEN: Final = ("kubernetes.io/h2c", "kubernetes.io/ws", "kubernetes.io/wss")
"""Protocols of ports that Kubernetes has names for (KEP-3726). Others are anybody's, and HTTP is spoken."""


class OnTheWay(NamedTuple):
    """What is done with requests before they go to a Service."""

    plugins: tuple[PluginUse, ...] = ()
    mirrors: tuple[Mirror, ...] = ()


class Destination(NamedTuple):
    """A Service of a rule, with what is done on the way there."""

    written: BackendReference
    weight: int
    field: str
    way: OnTheWay = OnTheWay()
    is_refused: bool = False
    """A filter of it cannot be followed."""


class FoundService(NamedTuple):
    """A port of a Service that requests may be sent to."""

    use: BackendUse
    policy: BackendPolicy | None = None
    """What policies say of it."""
    traffic: TrafficPolicy = NO_TRAFFIC_POLICY
    """The same of an XBackendTrafficPolicy."""


class RuleBackends(NamedTuple):
    """Where the requests of a rule go."""

    backends: tuple[Backend, ...]
    """None: nothing is there to answer."""
    uses: tuple[BackendUse, ...]
    retries: Retries | None = None
    """By a policy for the only Service."""
    groups: tuple[BackendGroup, ...] = ()
    """Of Services with sessions of their own."""


def find_backends(
    destinations: Sequence[Destination], context: RouteContext, problems: list[Problem], *, has_sessions: bool
) -> RuleBackends:
    """Return where the requests of a rule go; what cannot be had is reported, and keeps its share.

    Args:
        destinations: as they are written.
        context: the route.
        problems: where mistakes go.
        has_sessions: the rule says how clients keep to a pod, whatever policies say.
    """
    groups: list[BackendGroup] = []
    backends: list[Backend] = []
    uses: list[BackendUse] = []
    policies: list[BackendPolicy | None] = []
    for one in destinations:
        found = find_service_port(one.written, one.field, context, problems)
        if found is not None and not one.is_refused:
            policies.append(found.policy)
            group = None if has_sessions else _group(one, found, context)
            groups += () if group is None else (group,)
            backends.append(_backend(one, found, group))
            uses.append(found.use)
        else:
            refused = refusal(context, one.field)
            backends.append(Backend(upstream=refused.key, weight=one.weight, plugins=(NO_SERVICE,)))
            uses.append(BackendUse(refused, one.field, one.field))
    if not any(one.weight for one in backends):
        return RuleBackends((), ())
    only = policies[0] if len(backends) == len(policies) == 1 else None
    retries = only.route.retries if only is not None else None
    return RuleBackends(tuple(backends), tuple(uses), retries, tuple(groups))


def _group(one: Destination, found: FoundService, context: RouteContext) -> BackendGroup | None:
    """Return a Service as a group of its own, if clients keep to its pods."""
    if found.traffic.stickiness is None:
        return None
    ref = context.ref
    return BackendGroup(
        key=f"gateway-api/{ref.cluster}/{ref.namespace}/{ref.resource}/{ref.name}/{one.field}",
        weighted=Weighted(backends=(Backend(upstream=found.use.upstream.key),)),
        stickiness=found.traffic.stickiness,
        provenance=Provenance(
            cluster=ref.cluster, kind=context.kind, namespace=ref.namespace, name=ref.name, rule=one.field
        ),
    )


def _backend(one: Destination, found: FoundService, group: BackendGroup | None) -> Backend:
    """Return a Service as the table has it. Timeouts of a policy hold for its requests alone."""
    timeouts = found.policy.route.timeouts if found.policy is not None else None
    return Backend(
        upstream=found.use.upstream.key if group is None else "",
        group=group.key if group is not None else "",
        weight=one.weight,
        plugins=one.way.plugins,
        mirrors=one.way.mirrors,
        timeouts=timeouts or Timeouts(),
    )


def refusal(context: RouteContext, field: str) -> RefusalRef:
    """Return the upstream that refuses what a field of a route is about."""
    ref, kind = context.ref, context.kind
    reason = f"{kind} {ref.namespace}/{ref.name}: {field} cannot be followed"
    return RefusalRef(ref.cluster, kind, ref.namespace, f"{ref.name}/{field}", reason)


def find_service_port(
    written: BackendReference, field: str, context: RouteContext, problems: list[Problem]
) -> FoundService | None:
    """Return the port of a Service that a route may send requests to; None if there is none, with the reason."""
    ref, lookups = context.ref, context.lookups
    if lookups.is_assumed:
        return None
    namespace = written.namespace or ref.namespace
    is_import = is_service_import(written.group, written.kind)
    if not (written.is_service or is_import):
        what = f"{written.kind}.{written.group}" if written.group else written.kind
        message = "requests go to Services, and to ServiceImports of multicluster.x-k8s.io"
        problems.append(refuse("InvalidKind", f"{field}.kind", message, what))
        return None
    what = f"{written.kind} {namespace}/{written.name}"
    source = Party(GATEWAY_GROUP, context.kind, ref.namespace)
    target = Party(written.group, written.kind, written.name)
    if namespace != ref.namespace and not is_granted(lookups, source, target, namespace):
        message = f"{what}: no ReferenceGrant there allows {context.kind}s of namespace {ref.namespace}"
        problems.append(refuse("RefNotPermitted", f"{field}.namespace", message, namespace))
        return None
    if is_import:
        return _find_import(written, namespace, field, context, problems)
    service = find_service(lookups, namespace, written.name)
    if service is None:
        problems.append(refuse("BackendNotFound", f"{field}.name", f"{what} not found", written.name))
        return None
    if written.port is None:
        message = f"must be one of the ports of {what}: {port_names(service.ports)}"
        problems.append(refuse("BackendNotFound", f"{field}.port", message))
        return None
    is_udp = context.stream is BackendProtocol.UDP
    port = service.find_port(written.port, is_udp=is_udp)
    if port is None:
        kind = "UDP port" if is_udp else "port"
        ports = port_names(service.udp_ports if is_udp else service.ports)
        message = f"{what} has no {kind} {written.port}; it has {ports or 'none'}"
        problems.append(refuse("BackendNotFound", f"{field}.port", message, str(written.port)))
        return None
    if context.stream is None and port.app_protocol.startswith(_KUBERNETES) and port.app_protocol not in _SPOKEN:
        message = f"port {written.port} of {what} speaks {port.app_protocol}; of these {', '.join(_SPOKEN)} are spoken"
        problems.append(refuse("UnsupportedProtocol", f"{field}.port", message, port.app_protocol))
        return None
    policy = lookups.attached(BACKEND_POLICIES, ServicePortTarget(namespace, written.name, written.port))
    traffic = traffic_policy_of(lookups, namespace, written.name) if context.stream is None else NO_TRAFFIC_POLICY
    named = (ref.cluster, namespace, written.name, written.port)
    protocol = _grpc_protocol(service, port, policy) if context.is_grpc else _stream_protocol(context, policy)
    may_be_secured = context.stream is None or context.ends_tls
    secured = tls_policy_of(lookups, namespace, written.name, port.name) if may_be_secured else None
    if secured is not None and secured.tls is None:
        message = f"BackendTLSPolicy {namespace}/{secured.name} for {what} cannot be followed; its status says why"
        problems.append(warn("PolicyNotFollowed", f"{field}.name", message, written.name))
        return FoundService(BackendUse(refusal(context, field), field, field))
    if secured is not None and secured.tls is not None:
        tls = with_certificate(secured.tls, context.shown, lookups)
        patch = UpstreamPatch(tls=tls, retry_budget=traffic.budget)
        secure = OverriddenService(*named, _over_tls(protocol, port), policy is not None, Override.of(patch))
        return FoundService(BackendUse(secure, f"{field}.name", f"{field}.port"), policy, traffic)
    upstream: ServicePortRef | OverriddenService = ServicePortRef(*named)
    if policy is not None or protocol is not None or traffic.budget is not None:
        override = None if traffic.budget is None else Override.of(UpstreamPatch(retry_budget=traffic.budget))
        upstream = OverriddenService(*named, protocol, policy is not None, override)
    return FoundService(BackendUse(upstream, f"{field}.name", f"{field}.port"), policy, traffic)


def _find_import(
    written: BackendReference, namespace: str, field: str, context: RouteContext, problems: list[Problem]
) -> FoundService | None:
    """Return the port of a ServiceImport."""
    what, cluster = f"{written.kind} {namespace}/{written.name}", context.ref.cluster
    if written.port is None and not context.is_grpc and context.stream is None:
        resource = ResourceRef(cluster, namespace, written.group, written.kind, written.name)
        return FoundService(BackendUse(resource, f"{field}.name", f"{field}.port"))
    found = find_import(context.lookups, namespace, written.name)
    if found is None:
        message = f"{what} not found, and {NOT_EXPORTED}"
        problems.append(refuse("BackendNotFound", f"{field}.name", message, written.name))
        return None
    is_udp = context.stream is BackendProtocol.UDP
    port = None if written.port is None else found.service.find_port(written.port, is_udp=is_udp)
    if port is None:
        ports = port_names(found.service.udp_ports if is_udp else found.service.ports)
        message = f"must be one of the ports of {what}: {ports}"
        problems.append(refuse("BackendNotFound", f"{field}.port", message, written.port))
        return None
    protocol = context.stream
    if context.is_grpc:
        said = APP_PROTOCOLS.get(port.app_protocol)
        protocol = BackendProtocol.H2 if said in (BackendProtocol.HTTPS, BackendProtocol.H2) else BackendProtocol.H2C
    imported = ImportedService(cluster, namespace, written.name, port.port, protocol)
    return FoundService(BackendUse(imported, f"{field}.name", f"{field}.port"))


def _grpc_protocol(service: Service, port: ServicePort, policy: BackendPolicy | None) -> BackendProtocol:
    """Return what is spoken with a Service of gRPC: over TLS if its annotations, a policy or `appProtocol` say so."""
    said = service.policy.upstream.protocol if service.policy else None
    said = said or (policy.upstream.protocol if policy is not None else None) or APP_PROTOCOLS.get(port.app_protocol)
    return BackendProtocol.H2 if said in (BackendProtocol.HTTPS, BackendProtocol.H2) else BackendProtocol.H2C


def _stream_protocol(context: RouteContext, policy: BackendPolicy | None) -> BackendProtocol | None:
    """Return what is spoken with a Service of streams: TLS too, if a policy says so."""
    is_over_tls = policy is not None and policy.upstream.protocol is BackendProtocol.TLS
    return BackendProtocol.TLS if is_over_tls and context.stream is BackendProtocol.TCP else context.stream


def _over_tls(protocol: BackendProtocol | None, port: ServicePort) -> BackendProtocol:
    """Return what is spoken over TLS with a port: HTTP/2 where it is without, and nothing known in streams."""
    if protocol in (BackendProtocol.TCP, BackendProtocol.TLS):
        return BackendProtocol.TLS
    said = protocol or APP_PROTOCOLS.get(port.app_protocol)
    return BackendProtocol.H2 if said in (BackendProtocol.H2, BackendProtocol.H2C) else BackendProtocol.HTTPS
