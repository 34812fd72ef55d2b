"""One route of streams to one fragment: a TLSRoute, a TCPRoute or a UDPRoute.

A port, or a server name on a port of TLS, becomes a route of streams of the table. Of several routes that want the same
the oldest has it. A Service that cannot be had keeps its share, and connections of that share are closed.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from headgate.common.problems import Problem
from headgate.common.resources import TCP_ROUTE, TLS_ROUTE, UDP_ROUTE, JsonObject, ObjectRef
from headgate.common.table import (
    BackendProtocol,
    Compare,
    Condition,
    Not,
    Operator,
    Provenance,
    StreamRoute,
    Subject,
    WeightedUpstream,
)
from headgate.translator.dialects.gateway_api.hostnames import EVERY_HOST, name_pattern, table_host
from headgate.translator.dialects.gateway_api.models.stream_route import StreamRule, StreamSettings, TlsRouteSettings
from headgate.translator.dialects.gateway_api.routes.backends import find_service_port, refusal
from headgate.translator.dialects.gateway_api.routes.context import RouteContext
from headgate.translator.dialects.gateway_api.routes.places import StreamSpot, find_places
from headgate.translator.dialects.gateway_api.routes.policies import stream_policy_of
from headgate.translator.dialects.gateway_api.routes.standing import status_parts
from headgate.translator.dialects.gateway_api.stored import read_facts
from headgate.translator.fragments.fragment import BackendUse, Fragment, StreamClaim
from headgate.translator.fragments.upstream_refs import RefusalRef
from headgate.translator.manifests.specs import Part, Spec, refuse, warn
from headgate.translator.objects.document import identify
from headgate.translator.sources.policies import NO_CONNECTION_POLICY, ConnectionPolicy
from headgate.translator.world.graph import Lookups

MAX_STREAMS: Final = 1000
"""Stream routes of the table that one object may make."""
_UDP_IDLE_S: Final = 60.0
"""After which a session of UDP ends."""
_TCP_IDLE_S: Final = 600.0


class _Backends(NamedTuple):
    """Where connections go."""

    backends: tuple[WeightedUpstream, ...]
    uses: tuple[BackendUse, ...]

    @property
    def is_refused(self) -> bool:
        """Whether none of them can be followed."""
        return all(isinstance(use.upstream, RefusalRef) for use in self.uses)


def translate_tls_route(ref: ObjectRef, manifest: JsonObject, lookups: Lookups) -> Fragment:
    """Return what a TLSRoute that is ours contributes."""
    context = RouteContext(ref, TLS_ROUTE.kind, lookups, stream=BackendProtocol.TCP)
    return _translate(manifest, context, TlsRouteSettings)


def translate_tcp_route(ref: ObjectRef, manifest: JsonObject, lookups: Lookups) -> Fragment:
    """Return what a TCPRoute that is ours contributes."""
    return _translate(manifest, RouteContext(ref, TCP_ROUTE.kind, lookups, stream=BackendProtocol.TCP), StreamSettings)


def translate_udp_route(ref: ObjectRef, manifest: JsonObject, lookups: Lookups) -> Fragment:
    """Return what a UDPRoute that is ours contributes."""
    return _translate(manifest, RouteContext(ref, UDP_ROUTE.kind, lookups, stream=BackendProtocol.UDP), StreamSettings)


def _translate(manifest: JsonObject, context: RouteContext, model: type[StreamSettings]) -> Fragment:
    ref, lookups = context.ref, context.lookups
    problems: list[Problem] = []
    spec = Spec(manifest.get("spec"), problems)
    settings, rules = spec.rest(model, "rules"), spec.each("rules", StreamRule)
    for rule in rules[1:]:
        problems.append(refuse("UnsupportedValue", rule.field, "is never used: a route has one rule; put it into that"))
    policy = NO_CONNECTION_POLICY if lookups.is_assumed else stream_policy_of(context)
    served = _read_backends(rules[0], context, problems) if rules else _Backends((), ())
    if policy.fault and rules:
        message = f"{policy.fault}; its status says why; connections are refused"
        problems.append(warn("PolicyNotFollowed", rules[0].field, message))
        served = _refused(policy.fault, rules[0].field, context)
    identity = identify(ref, manifest)
    if lookups.is_assumed:
        return Fragment(identity, problems=tuple(dict.fromkeys(problems)))
    if settings is not None and settings.use_default_gateways:
        problems.append(warn("UnsupportedField", "spec.useDefaultGateways", "name the Gateway in parentRefs"))
    facts = read_facts({**manifest, "metadata": {"namespace": ref.namespace, "name": ref.name}}, context.kind)
    places = find_places(facts, lookups, problems)
    # Without its hostnames a route would take connections of all names.
    is_served = settings is not None and bool(served.backends)
    spots = _within_bounds(places.streams, problems) if is_served else ()
    ended = served
    if not policy.fault and any(spot.ends_tls for spot in spots):
        ended = _read_backends(rules[0], context._replace(ends_tls=True), problems)
    by_end = {False: served, True: ended}
    streams = tuple(_claims(spots, rules[0].field, by_end, policy, context, problems)) if rules else ()
    uses = [use for spot in spots for use in by_end[spot.ends_tls].uses]
    return Fragment(
        identity,
        streams=streams,
        backends=tuple(dict.fromkeys(uses)),
        problems=tuple(dict.fromkeys(problems)),
        parts=tuple(status_parts(facts, places.refused, problems)),
        shares_routes_with=places.namespaces,
    )


def _read_backends(part: Part[StreamRule], context: RouteContext, problems: list[Problem]) -> _Backends:
    """Return where connections go; what cannot be had is reported, and keeps its share."""
    rule, at = part
    backends: list[WeightedUpstream] = []
    uses: list[BackendUse] = []
    for index, written in enumerate(rule.backend_refs):
        field = f"{at}.backendRefs[{index}]"
        found = find_service_port(written, field, context, problems)
        use = found.use if found is not None else BackendUse(refusal(context, field), field, field)
        backends.append(WeightedUpstream(upstream=use.upstream.key, weight=written.weight))
        uses.append(use)
    if not backends:
        problems.append(refuse("UnsupportedValue", f"{at}.backendRefs", "must name a Service; connections are closed"))
        refused = refusal(context, at)
        return _Backends((WeightedUpstream(upstream=refused.key),), (BackendUse(refused, at, at),))
    return _Backends(tuple(backends), tuple(uses))


def _refused(why: str, field: str, context: RouteContext) -> _Backends:
    ref, kind = context.ref, context.kind
    reason = f"{kind} {ref.namespace}/{ref.name} refuses connections: {why}"
    refused = RefusalRef(ref.cluster, kind, ref.namespace, f"{ref.name}/{field}", reason)
    return _Backends((WeightedUpstream(upstream=refused.key),), (BackendUse(refused, field, field),))


def _within_bounds(spots: Sequence[StreamSpot], problems: list[Problem]) -> Sequence[StreamSpot]:
    if len(spots) > MAX_STREAMS:
        message = f"asks for {len(spots)} ports and server names; {MAX_STREAMS} are served of one object"
        problems.append(refuse("TooMuchWork", "spec.parentRefs", message))
    return spots[:MAX_STREAMS]


def _claims(
    spots: Sequence[StreamSpot],
    field: str,
    by_end: Mapping[bool, _Backends],
    policy: ConnectionPolicy,
    context: RouteContext,
    problems: list[Problem],
) -> Iterator[StreamClaim]:
    """Yield what is served where; connections go elsewhere if their TLS ends here than if it does not."""
    for spot in spots:
        if "mqtt" in policy.fields and spot.transport == "tls" and not spot.ends_tls:
            message = "plugin mqtt-proxy of its L4RoutePolicy reads what is said, and TLS does not end here: not served"
            problems.append(refuse("UnsupportedValue", "spec.parentRefs", message))
            continue
        yield _claim(spot, field, by_end[spot.ends_tls], policy, context)


def _claim(
    spot: StreamSpot, field: str, served: _Backends, policy: ConnectionPolicy, context: RouteContext
) -> StreamClaim:
    ref, kind = context.ref, context.kind
    name = spot.hostname and table_host(spot.hostname)
    # Of listeners at addresses of their own several may have one port and name: those of different Gateways.
    where = f"/{spot.listener}" if spot.listener else ""
    what = f"{name or '-'}:{spot.port}/{spot.transport}{where}"
    route = StreamRoute(
        key=f"{ref.cluster}/{ref.namespace}/{ref.resource}/{ref.name}/{what}",
        protocol=spot.transport,
        port=spot.port,
        listener=spot.listener,
        server_names=() if spot.hostname == EVERY_HOST else (name,),
        when=_but_for(spot.without),
        terminate=spot.ends_tls,
        backends=served.backends,
        idle_timeout_s=_UDP_IDLE_S if spot.transport == "udp" else _TCP_IDLE_S,
        provenance=Provenance(cluster=ref.cluster, kind=kind, namespace=ref.namespace, name=ref.name, rule=field),
        **policy.fields,
    )
    return StreamClaim(route, field, is_refused=served.is_refused, precedence=spot.precedence)


def _but_for(hostnames: Sequence[str]) -> Condition | None:
    """Return what leaves connections to more specific listeners."""
    patterns = tuple(f"^{name_pattern(each)}$" for each in hostnames)
    if not patterns:
        return None
    return Not(negated=Compare(subject=Subject.HOST, operator=Operator.REGEX, values=patterns))
