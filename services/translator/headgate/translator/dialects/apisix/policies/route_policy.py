"""HTTPRoutePolicy: what the Ingresses that it names ask of requests besides, and which of them goes first.

All policies for an Ingress hold together, and requests have to satisfy the `vars` of each. Those that disagree about
the priority do not hold, none of them. If one cannot be read, it is unknown which requests are meant: they are
refused.
"""

from headgate.common.problems import Problem, Severity
from headgate.common.resources import JsonObject, ObjectRef
from headgate.common.table import Condition
from headgate.translator.dialects.apisix.context import Context
from headgate.translator.dialects.apisix.models.policy import HttpRoutePolicySpec
from headgate.translator.dialects.apisix.policies.targets import BY_INGRESS, ROUTE_POLICIES, SERVED_ROUTES
from headgate.translator.dialects.apisix.routes.vars import read_vars
from headgate.translator.fragments.fragment import Fragment
from headgate.translator.fragments.status_part import TARGETS_NOT_SERVED
from headgate.translator.manifests.patches import RoutePatch
from headgate.translator.manifests.reading import as_text, metadata
from headgate.translator.manifests.specs import Spec, refuse, warn
from headgate.translator.objects.document import identify
from headgate.translator.objects.targets import PolicyTarget, ancestors_of, conflicted, not_found, read_targets
from headgate.translator.sources.policies import NO_ROUTE_POLICY, OWNERSHIP, ObjectTarget, RoutePolicy
from headgate.translator.world.graph import Lookups

_HTTP_ROUTE = ("gateway.networking.k8s.io", "HTTPRoute")


def is_for_us(ref: ObjectRef, manifest: JsonObject, lookups: Lookups) -> bool:
    """Whether not all that a policy is about is another controller's."""
    context, targets = Context(lookups), [*read_targets(manifest)]
    return not targets or not all(_is_foreign(context, ref.namespace, target) for target in targets)


def translate_route_policy(ref: ObjectRef, manifest: JsonObject, context: Context) -> Fragment:
    """Return what is wrong with an HTTPRoutePolicy, and with each of its targets that is ours."""
    problems: list[Problem] = []
    targets = [target for target in read_targets(manifest) if not _is_foreign(context, ref.namespace, target)]
    policy = _read(manifest, problems)
    if policy is not None and not context.lookups.is_assumed:
        for target in targets:
            problems += _judge(context, ref, target, policy)
    return Fragment(
        identify(ref, manifest),
        problems=tuple(dict.fromkeys(problems)),
        parts=ancestors_of(ref, targets, is_readable=policy is not None),
    )


def find_route_policy(lookups: Lookups, target: ObjectTarget) -> RoutePolicy:
    """Return what holds for all routes of an Ingress."""
    group, kind, namespace, name = target
    if (group, kind) != SERVED_ROUTES:
        return NO_ROUTE_POLICY
    conditions: list[Condition] = []
    priorities = set()
    for document in lookups.find(ROUTE_POLICIES, BY_INGRESS, name, namespace=namespace):
        manifest = document.decode()
        policy = _read(manifest, [])
        if policy is None:
            named = f"{namespace}/{as_text(metadata(manifest).get('name'))}"
            return RoutePolicy(fault=f"HTTPRoutePolicy {named} cannot be followed")
        conditions += policy.patch.conditions
        priorities.add(policy.patch.path_priority)
    if len(priorities) != 1:
        return NO_ROUTE_POLICY
    return RoutePolicy(RoutePatch(path_priority=priorities.pop(), conditions=tuple(conditions)))


def _read(manifest: JsonObject, problems: list[Problem]) -> RoutePolicy | None:
    """Read a policy; None where some of it cannot be followed, which goes to `problems`."""
    found: list[Problem] = []
    spec = Spec(manifest.get("spec"), found).rest(HttpRoutePolicySpec)
    conditions = read_vars(spec.vars, "spec.vars", found) if spec is not None else []
    for index, target in enumerate(spec.target_refs if spec is not None else ()):
        if target.section_name and (target.group, target.kind) == SERVED_ROUTES:
            message = "an Ingress has no sections; the policy holds for all of it"
            field = f"spec.targetRefs[{index}].sectionName"
            found.append(warn("UnsupportedField", field, message, target.section_name))
    problems += found
    if spec is None or any(problem.severity is Severity.ERROR for problem in found):
        return None
    return RoutePolicy(RoutePatch(path_priority=spec.priority or 0, conditions=tuple(conditions)))


def _is_foreign(context: Context, namespace: str, target: PolicyTarget) -> bool:
    return _is_ours(context, namespace, target) is False


def _is_ours(context: Context, namespace: str, target: PolicyTarget) -> bool | None:
    """Return whether an Ingress is ours; None for one that is not there, and for targets of other kinds."""
    if (target.group, target.kind) != SERVED_ROUTES:
        return None
    return context.lookups.attached(OWNERSHIP, ObjectTarget(target.group, target.kind, namespace, target.name))


def _judge(context: Context, ref: ObjectRef, target: PolicyTarget, policy: RoutePolicy) -> list[Problem]:
    if (target.group, target.kind) not in (SERVED_ROUTES, _HTTP_ROUTE):
        message = f"cannot be a target; name an Ingress of group {SERVED_ROUTES[0]}"
        return [refuse("UnsupportedTarget", f"{target.field}.kind", message, target.kind)]
    if (target.group, target.kind) == _HTTP_ROUTE:
        message = f"checked, and not in force for HTTPRoute {target.name}: such policies hold for Ingresses"
        return [Problem(severity=Severity.INFO, reason=TARGETS_NOT_SERVED, field=target.field, message=message)]
    what = f"Ingress {ref.namespace}/{target.name}"
    if _is_ours(context, ref.namespace, target) is None:
        return [not_found(target, f"{what} not found")]
    for document in context.lookups.find(ROUTE_POLICIES, BY_INGRESS, target.name, namespace=ref.namespace):
        manifest = document.decode()
        name, other = as_text(metadata(manifest).get("name")), _read(manifest, [])
        if name != ref.name and other is not None and other.patch.path_priority != policy.patch.path_priority:
            theirs, own = other.patch.path_priority, policy.patch.path_priority
            message = (
                f"{what} has HTTPRoutePolicy {ref.namespace}/{name} with priority {theirs} too, and here it is {own}; "
                "until they agree none of the Ingress' policies holds"
            )
            return [conflicted(target, message)]
    return []
