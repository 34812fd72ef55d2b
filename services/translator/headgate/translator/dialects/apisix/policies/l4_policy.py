"""L4RoutePolicy: plugins of TCPRoutes, UDPRoutes and TLSRoutes.

Of several policies for one route the oldest that can be followed holds. If there are policies and none of them can be
followed, it is unknown who may connect, and connections are refused.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from headgate.common.problems import Problem, Severity
from headgate.common.resources import L4_ROUTE_POLICY, UDP_ROUTE, JsonObject, ObjectRef
from headgate.translator.dialects.apisix.context import Context
from headgate.translator.dialects.apisix.models.plugin import NamedPlugin, Plugin
from headgate.translator.dialects.apisix.models.policy import L4RoutePolicySpec
from headgate.translator.dialects.apisix.policies.targets import BY_ROUTE, L4_POLICIES, STREAM_ROUTES, is_ours, route_of
from headgate.translator.dialects.apisix.routes.stream import read_stream_plugins
from headgate.translator.fragments.fragment import Fragment, Seniority
from headgate.translator.manifests.specs import Part, Spec
from headgate.translator.objects.document import identify
from headgate.translator.objects.targets import (
    PolicyTarget,
    ancestors_of,
    not_found,
    outranked,
    read_targets,
    seniority_of,
)
from headgate.translator.sources.policies import NO_CONNECTION_POLICY, ConnectionPolicy, ObjectTarget
from headgate.translator.world.graph import Lookups


class _Rival(NamedTuple):
    """A policy for a route."""

    seniority: Seniority
    fields: JsonObject | None
    """Of a stream route; None if it cannot be followed."""


def translate_l4_policy(ref: ObjectRef, manifest: JsonObject, context: Context) -> Fragment:
    """Return what is wrong with an L4RoutePolicy, and with each of its targets that is ours."""
    problems: list[Problem] = []
    lookups, found = context.lookups, [*read_targets(manifest)]
    targets = [target for target in found if is_ours(lookups, ref.namespace, target) is not False]
    spec = _read_plugins(manifest, found, problems)[0]
    if not lookups.is_assumed and not _has_errors(problems):
        for target in targets:
            problems += _judge(lookups, ref, target, seniority_of(manifest))
    return Fragment(
        identify(ref, manifest),
        problems=tuple(problems),
        parts=ancestors_of(ref, targets, is_readable=spec is not None),
    )


def find_stream_policy(lookups: Lookups, target: ObjectTarget) -> ConnectionPolicy:
    """Return what holds for the connections or datagrams of a route."""
    if (target.group, target.kind) not in STREAM_ROUTES:
        return NO_CONNECTION_POLICY
    rivals = sorted(_rivals(lookups, target), key=lambda rival: rival.seniority)
    if not rivals:
        return NO_CONNECTION_POLICY
    fields = next((rival.fields for rival in rivals if rival.fields is not None), None)
    if fields is None:
        first = rivals[0].seniority
        return ConnectionPolicy(fault=f"L4RoutePolicy {first.namespace}/{first.name} cannot be followed")
    return ConnectionPolicy(fields)


def _read_plugins(
    manifest: JsonObject, targets: Sequence[PolicyTarget], problems: list[Problem]
) -> tuple[L4RoutePolicySpec | None, JsonObject]:
    """Read a policy; return it, if it is one at all, and the fields of a stream route that it stands for."""
    spec = Spec(manifest.get("spec"), problems)
    found = spec.rest(L4RoutePolicySpec, "plugins")
    parts = [
        Part(Plugin(name=part.value.name, config=part.value.config), part.field)
        for part in spec.each("plugins", NamedPlugin)
    ]
    fields = read_stream_plugins(parts, problems, is_udp=any(target.kind == UDP_ROUTE.kind for target in targets))
    return found, fields


def _judge(lookups: Lookups, ref: ObjectRef, target: PolicyTarget, own: Seniority) -> Iterator[Problem]:
    what = f"{target.kind} {ref.namespace}/{target.name}"
    if is_ours(lookups, ref.namespace, target) is None:
        yield not_found(target, f"{what} not found")
    elif target.section:
        yield not_found(target, f"{what} has no sections that a policy can be about; take sectionName away")
    else:
        named = ObjectTarget(target.group, target.kind, ref.namespace, target.name)
        older = [each.seniority for each in _rivals(lookups, named) if each.fields is not None and each.seniority < own]
        if older:
            yield outranked(target, what, L4_ROUTE_POLICY.kind, min(older), own)


def _rivals(lookups: Lookups, target: ObjectTarget) -> Iterator[_Rival]:
    """Yield the policies for a route."""
    for document in lookups.find(L4_POLICIES, BY_ROUTE, route_of(target), namespace=target.namespace):
        manifest, problems = document.decode(), list[Problem]()
        targets = [*read_targets(manifest)]
        if any(route_of(each) == route_of(target) and not each.section for each in targets):
            fields = _read_plugins(manifest, targets, problems)[1]
            yield _Rival(seniority_of(manifest), None if _has_errors(problems) else fields)


def _has_errors(problems: Sequence[Problem]) -> bool:
    return any(problem.severity is Severity.ERROR for problem in problems)
