"""One IngressRouteTCP to one fragment.

Routes of streams are told apart by server names, and by the protocols that clients offer. Of routes of one object that
want the same the one of the highest priority has it, and the others are reported. A route that cannot be followed keeps
its names, so that its connections are never another's: they are refused.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from headgate.common.problems import Problem
from headgate.common.resources import JsonObject, ObjectRef
from headgate.common.table import AllOf, Condition, Provenance, StreamRoute, TlsPolicy
from headgate.translator.dialects.traefik.entry_points import FIELD, entry_points_of
from headgate.translator.dialects.traefik.models.stream import IngressRouteTcpSpec, TcpRule, TcpTls
from headgate.translator.dialects.traefik.rules import (
    RuleError,
    StreamAlternative,
    parse_tcp_rule,
    plain_alternatives,
    stream_alternatives,
)
from headgate.translator.dialects.traefik.streams.middlewares import follow_middlewares
from headgate.translator.dialects.traefik.streams.services import StreamBackends, read_services, refuse_all
from headgate.translator.dialects.traefik.tls.certificates import claim_valid_names
from headgate.translator.dialects.traefik.tls.following import default_policy, read_options
from headgate.translator.dialects.traefik.tls.options import NOBODY
from headgate.translator.dialects.traefik.tls.resolvers import claim_resolved
from headgate.translator.fragments.fragment import Fragment, NameClaim, StreamClaim
from headgate.translator.manifests.specs import Part, Spec, refuse
from headgate.translator.objects.document import identify
from headgate.translator.world.entry_points import EntryPoint
from headgate.translator.world.graph import Lookups

KIND: Final = "IngressRouteTCP"
_CONNECT_TIMEOUT_S: Final = 30.0
_EVERY: Final = AllOf(all_of=())
"""Takes all connections."""


class _Settings(IngressRouteTcpSpec):
    """All but the routes."""

    routes: tuple[TcpRule, ...] = ()


class _Matched(NamedTuple):
    """A route of the object whose rule could be read."""

    rule: TcpRule
    field: str
    places: tuple[StreamAlternative, ...]
    priority: int
    networks: tuple[str, ...] = ()
    """From which clients may connect, as its middlewares say; none: from everywhere."""
    most: int | None = None
    """Connections of one address at once, as its middlewares say."""


def translate_tcp_route(ref: ObjectRef, manifest: JsonObject, lookups: Lookups) -> Fragment:
    """Return what an IngressRouteTCP that is ours contributes."""
    problems: list[Problem] = []
    spec = Spec(manifest.get("spec"), problems)
    settings, rules = spec.rest(_Settings, "routes"), spec.each("routes", TcpRule)
    if settings is None:
        return Fragment(identify(ref, manifest), problems=tuple(problems))
    points = entry_points_of(settings.entry_points, lookups.settings.entry_points, problems, is_udp=False)
    policy = _policy_of(ref, settings.tls, lookups, problems)
    fault = "its TLSOption cannot be followed, and may keep clients out" if policy == NOBODY else ""
    matched = sorted(_matched(rules, settings.tls, lookups, problems), key=lambda one: -one.priority)
    served = [_serve(ref, one, fault, lookups, problems) for one in matched]
    streams = tuple(_claims(ref, served, settings.tls, policy, _usable(points, settings.tls, problems), problems))
    return Fragment(
        identify(ref, manifest),
        streams=streams,
        backends=tuple(use for _, backends in served for use in backends.uses),
        names=tuple(_names(ref, settings.tls, matched, lookups, problems)),
        problems=tuple(dict.fromkeys(problems)),
    )


def _policy_of(ref: ObjectRef, tls: TcpTls | None, lookups: Lookups, problems: list[Problem]) -> TlsPolicy | None:
    """Return how TLS is spoken where it ends here; `NOBODY` if the TLSOption for it cannot be followed."""
    if tls is None or tls.passthrough:
        return None
    if tls.options is not None:
        return read_options(tls.options, ref, lookups, problems)
    return default_policy("spec.tls", lookups, problems)


def _usable(points: Sequence[EntryPoint], tls: TcpTls | None, problems: list[Problem]) -> list[EntryPoint]:
    """Return the entry points that serve such routes: the HTTPS port those with TLS, the HTTP port none."""
    found = [point for point in points if point.protocol == "tcp" or (point.protocol == "https" and tls is not None)]
    if points and not found:
        message = "must name an entry point for these routes: web serves no streams, and websecure only those with tls"
        problems.append(refuse("EntryPointNotFound", FIELD, message))
    return found


def _names(
    ref: ObjectRef, tls: TcpTls | None, matched: Sequence[_Matched], lookups: Lookups, problems: list[Problem]
) -> Iterator[NameClaim]:
    if tls is None or tls.passthrough:
        return
    if not tls.secret_name:
        of_rules = [{name for place in one.places for name in place.server_names} for one in matched]
        yield from claim_resolved(tls.cert_resolver, tls.domains, of_rules, lookups, problems)
    else:
        yield from claim_valid_names(ref, tls.secret_name, "spec.tls.secretName", lookups, problems)


# Rules


def _matched(
    rules: Sequence[Part[TcpRule]], tls: TcpTls | None, lookups: Lookups, problems: list[Problem]
) -> Iterator[_Matched]:
    for rule, field in rules:
        try:
            parsed = parse_tcp_rule(rule.match, rule.syntax or lookups.settings.traefik.default_rule_syntax)
            places = stream_alternatives(parsed) if tls is not None else plain_alternatives(parsed)
            one = _Matched(rule, field, places, parsed.priority(rule.priority))
        except (RuleError, ValueError) as error:
            problems.append(refuse("InvalidRule", f"{field}.match", str(error), rule.match))
            continue
        if not places:
            message = "no connection without TLS satisfies this rule, as it has no server name and no protocol: add tls"
            problems.append(refuse("InvalidRule", f"{field}.match", message, rule.match))
            continue
        yield one


def _serve(
    ref: ObjectRef, one: _Matched, fault: str, lookups: Lookups, problems: list[Problem]
) -> tuple[_Matched, StreamBackends]:
    """Return a route with the networks that its middlewares admit, and where its connections go."""
    field = f"{one.field}.middlewares"
    admission = follow_middlewares(one.rule.middlewares, ref.namespace, field, lookups, problems)
    fault = fault or admission.fault
    if not fault and not admission.networks:
        fault = "its middlewares admit no network in common"
        problems.append(refuse("InvalidValue", field, fault))
    if fault:
        return one, refuse_all(ref, KIND, one.field, fault)
    return one._replace(networks=admission.allowed, most=admission.most), read_services(
        one.rule.services, ref, KIND, one.field, lookups, problems
    )


# Claims


def _claims(
    ref: ObjectRef,
    served: Sequence[tuple[_Matched, StreamBackends]],
    tls: TcpTls | None,
    policy: TlsPolicy | None,
    points: Sequence[EntryPoint],
    problems: list[Problem],
) -> Iterator[StreamClaim]:
    """Yield the routes of the table: of each entry point, for each of a rule's alternatives."""
    taken: dict[tuple[EntryPoint, str, tuple[str, ...], Condition | None], str] = {}
    for one, backends in served:
        common: dict[str, Any] = {
            "protocol": "tcp" if tls is None else "tls",
            "terminate": tls is not None and not tls.passthrough,
            "tls": None if policy == NOBODY else policy,
            "backends": backends.backends,
            "max_connections_per_client": one.most,
            "connect_timeout_s": _CONNECT_TIMEOUT_S,
            "provenance": Provenance(
                cluster=ref.cluster, kind=KIND, namespace=ref.namespace, name=ref.name, rule=one.field
            ),
        }
        for point, (index, place) in ((point, each) for point in points for each in enumerate(one.places)):
            names = _left(place, point, one.field, taken, problems)
            if names is None:
                continue
            when = place.when
            if tls is None and when is None and one.priority > 0:
                when = _EVERY  # so that it has a place among routes with conditions
            route = StreamRoute(
                key=f"{ref.cluster}/{ref.namespace}/{ref.resource}/{ref.name}/{one.field}/{index}:{point.port}",
                port=point.port,
                address=point.address,
                accept_proxy_protocol=bool(point.port and point.options.proxy_protocol),
                server_names=names,
                alpn=place.alpn,
                when=when,
                priority=0 if tls is None and when is None else one.priority,
                allowed_networks=one.networks,
                **common,
            )
            yield StreamClaim(route, f"{one.field}.match", is_refused=backends.is_refused, gives_way=tls is not None)


def _left(
    place: StreamAlternative,
    point: EntryPoint,
    field: str,
    taken: dict[tuple[EntryPoint, str, tuple[str, ...], Condition | None], str],
    problems: list[Problem],
) -> tuple[str, ...] | None:
    """Return the server names that no route before it has; None if there are none left."""
    left = []
    for name in place.server_names or ("",):
        if (point, name, place.alpn, place.when) in taken:
            what = f"server name {name}" if name else "what has no other route"
            by = taken[point, name, place.alpn, place.when]
            message = f"{what} on {point.name} goes by {by}, whose rule is the same"
            problems.append(refuse("StreamConflict", f"{field}.match", message))
        else:
            taken[point, name, place.alpn, place.when] = field
            left.append(name)
    return (tuple(left) if place.server_names else ()) if left else None
