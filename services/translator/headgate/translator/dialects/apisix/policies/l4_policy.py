"""L4RoutePolicy: plugins of TCPRoutes, UDPRoutes and TLSRoutes, which are checked; those routes are not served.

Of several policies for one target the oldest counts, as with BackendTrafficPolicies.
"""

from collections.abc import Iterator, Sequence

from headgate.common.problems import Problem, Severity
from headgate.common.resources import L4_ROUTE_POLICY, JsonObject, ObjectRef
from headgate.translator.dialects.apisix.context import Context
from headgate.translator.dialects.apisix.models.plugin import NamedPlugin, Plugin
from headgate.translator.dialects.apisix.models.policy import L4RoutePolicySpec
from headgate.translator.dialects.apisix.policies.targets import BY_STREAM_ROUTE, L4_POLICIES, stream_route
from headgate.translator.dialects.apisix.routes.stream import read_stream_plugins
from headgate.translator.fragments.fragment import Fragment, Seniority
from headgate.translator.fragments.status_part import TARGETS_NOT_SERVED
from headgate.translator.manifests.specs import Part, Spec
from headgate.translator.objects.document import identify
from headgate.translator.objects.targets import PolicyTarget, ancestors_of, outranked, read_targets, seniority_of
from headgate.translator.world.graph import Lookups


def translate_l4_policy(ref: ObjectRef, manifest: JsonObject, context: Context) -> Fragment:
    """Return what is wrong with an L4RoutePolicy, and that nothing that it is about is served."""
    problems: list[Problem] = []
    targets = [*read_targets(manifest)]
    is_readable = _read(manifest, targets, problems)
    if not context.lookups.is_assumed and not _has_errors(problems):
        problems += _judge(context.lookups, ref, targets, seniority_of(manifest))
    message = "checked, and not in force anywhere: TCPRoutes, UDPRoutes and TLSRoutes are not served"
    problems.append(Problem(severity=Severity.INFO, reason=TARGETS_NOT_SERVED, field="spec", message=message))
    return Fragment(
        identify(ref, manifest),
        problems=tuple(problems),
        parts=ancestors_of(ref, targets, is_readable=is_readable),
    )


def _read(manifest: JsonObject, targets: Sequence[PolicyTarget], problems: list[Problem]) -> bool:
    """Check a policy; return whether it is one at all."""
    spec = Spec(manifest.get("spec"), problems)
    found = spec.rest(L4RoutePolicySpec, "plugins")
    parts = [
        Part(Plugin(name=part.value.name, config=part.value.config), part.field)
        for part in spec.each("plugins", NamedPlugin)
    ]
    read_stream_plugins(parts, problems, is_udp=any(target.kind == "UDPRoute" for target in targets))
    return found is not None


def _judge(lookups: Lookups, ref: ObjectRef, targets: Sequence[PolicyTarget], own: Seniority) -> Iterator[Problem]:
    for target in targets:
        if rivals := [rival for rival in _rivals(lookups, ref.namespace, target) if rival < own]:
            part = f"{target.section} of " if target.section else ""
            what = f"{part}{target.kind} {ref.namespace}/{target.name}"
            yield outranked(target, what, L4_ROUTE_POLICY.kind, min(rivals), own)


def _rivals(lookups: Lookups, namespace: str, target: PolicyTarget) -> Iterator[Seniority]:
    """Yield the places of the policies for exactly this target that can be followed."""
    wanted = target._replace(field="")
    for document in lookups.find(L4_POLICIES, BY_STREAM_ROUTE, stream_route(target), namespace=namespace):
        manifest, problems = document.decode(), list[Problem]()
        targets = [*read_targets(manifest)]
        if any(other._replace(field="") == wanted for other in targets):
            _read(manifest, targets, problems)
            if not _has_errors(problems):
                yield seniority_of(manifest)


def _has_errors(problems: Sequence[Problem]) -> bool:
    return any(problem.severity is Severity.ERROR for problem in problems)
