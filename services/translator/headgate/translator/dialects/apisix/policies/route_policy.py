"""HTTPRoutePolicy: what the Ingresses and HTTPRoutes that it names ask of requests besides, and which goes first.

Of an HTTPRoute it may be about a rule, by its name. All policies for an Ingress or a rule hold together, and requests
have to satisfy the `vars` of each. Those that disagree about the priority do not hold, none of them. If one cannot be
read, it is unknown which requests are meant: they are refused.
"""

from collections.abc import Iterator
from typing import NamedTuple

from headgate.common.problems import Problem, Severity
from headgate.common.resources import HTTP_ROUTE, HTTP_ROUTE_POLICY, INGRESS, JsonObject, ObjectRef
from headgate.common.table import Condition
from headgate.translator.dialects.apisix.context import Context
from headgate.translator.dialects.apisix.models.policy import HttpRoutePolicySpec
from headgate.translator.dialects.apisix.policies.targets import (
    BY_ROUTE,
    HTTP_ROUTES,
    INGRESSES,
    ROUTE_POLICIES,
    is_ours,
    route_of,
)
from headgate.translator.dialects.apisix.routes.vars import read_vars
from headgate.translator.fragments.fragment import Fragment
from headgate.translator.manifests.patches import RoutePatch
from headgate.translator.manifests.reading import as_text, metadata
from headgate.translator.manifests.specs import Spec, refuse, warn
from headgate.translator.objects.document import identify
from headgate.translator.objects.targets import PolicyTarget, ancestors_of, conflicted, not_found, read_targets
from headgate.translator.sources.policies import NO_ROUTE_POLICY, SECTIONS, ObjectTarget, RoutePolicy
from headgate.translator.world.graph import Lookups


class _Rival(NamedTuple):
    """A policy for a route, or for parts of it."""

    name: str
    sections: frozenset[str]
    """That with an empty name is the whole."""
    policy: RoutePolicy | None
    """None if it cannot be followed."""

    @property
    def priority(self) -> int | None:
        """The priority that it gives; None if it cannot be followed."""
        return self.policy.patch.path_priority if self.policy is not None else None

    def is_for(self, section: str) -> bool:
        """Whether it is about a part, or about some part for an empty name."""
        return not section or "" in self.sections or section in self.sections


def translate_route_policy(ref: ObjectRef, manifest: JsonObject, context: Context) -> Fragment:
    """Return what is wrong with an HTTPRoutePolicy, and with each of its targets that is ours."""
    problems: list[Problem] = []
    lookups, found = context.lookups, read_targets(manifest)
    targets = [target for target in found if is_ours(lookups, ref.namespace, target) is not False]
    policy = _read(manifest, problems)
    if policy is not None and not lookups.is_assumed:
        for target in targets:
            problems += _judge(lookups, ref, target, policy)
    return Fragment(
        identify(ref, manifest),
        problems=tuple(dict.fromkeys(problems)),
        parts=ancestors_of(ref, targets, is_readable=policy is not None),
    )


def find_route_policy(lookups: Lookups, target: ObjectTarget) -> RoutePolicy:
    """Return what holds for all routes of an Ingress, or of a rule of an HTTPRoute."""
    if (target.group, target.kind) not in (INGRESSES, HTTP_ROUTES):
        return NO_ROUTE_POLICY
    conditions: list[Condition] = []
    priorities = set()
    for name, sections, policy in _rivals(lookups, target):
        if "" not in sections and target.section not in sections:
            continue
        if policy is None:
            return RoutePolicy(fault=f"HTTPRoutePolicy {target.namespace}/{name} cannot be followed")
        conditions += policy.patch.conditions
        priorities.add(policy.patch.path_priority)
    if len(priorities) != 1:
        return NO_ROUTE_POLICY
    return RoutePolicy(RoutePatch(path_priority=priorities.pop(), conditions=tuple(conditions)))


def _rivals(lookups: Lookups, target: ObjectTarget) -> Iterator[_Rival]:
    """Yield the policies for a route, those for its parts too."""
    for document in lookups.find(ROUTE_POLICIES, BY_ROUTE, route_of(target), namespace=target.namespace):
        manifest = document.decode()
        wanted = target[:2], target.name
        sections = frozenset(
            "" if wanted[0] == INGRESSES else each.section
            for each in read_targets(manifest)
            if (each[:2], each.name) == wanted
        )
        yield _Rival(as_text(metadata(manifest).get("name")), sections, _read(manifest, []))


def _read(manifest: JsonObject, problems: list[Problem]) -> RoutePolicy | None:
    """Read a policy; None where some of it cannot be followed, which goes to `problems`."""
    found: list[Problem] = []
    spec = Spec(manifest.get("spec"), found).rest(HttpRoutePolicySpec)
    conditions = read_vars(spec.vars, "spec.vars", found) if spec is not None else []
    for index, target in enumerate(spec.target_refs if spec is not None else ()):
        if target.section_name and (target.group, target.kind) == INGRESSES:
            message = "an Ingress has no sections; the policy holds for all of it"
            field = f"spec.targetRefs[{index}].sectionName"
            found.append(warn("UnsupportedField", field, message, target.section_name))
    problems += found
    if spec is None or any(problem.severity is Severity.ERROR for problem in found):
        return None
    return RoutePolicy(RoutePatch(path_priority=spec.priority or 0, conditions=tuple(conditions)))


def _judge(lookups: Lookups, ref: ObjectRef, target: PolicyTarget, own: RoutePolicy) -> Iterator[Problem]:
    if (target.group, target.kind) not in (INGRESSES, HTTP_ROUTES):
        message = f"cannot be a target; name an {INGRESS.kind} of group {INGRESS.group} or an {HTTP_ROUTE.kind}"
        yield refuse("UnsupportedTarget", f"{target.field}.kind", message, target.kind)
        return
    named = ObjectTarget(target.group, target.kind, ref.namespace, target.name)
    what = f"{target.kind} {ref.namespace}/{target.name}"
    if is_ours(lookups, ref.namespace, target) is None:
        yield not_found(target, f"{what} not found")
        return
    is_whole = not target.section or target[:2] == INGRESSES
    rules = None if is_whole else lookups.attached(SECTIONS, named)
    if rules is not None and target.section not in rules:
        names = ", ".join(sorted(filter(None, rules))) or "none"
        yield not_found(target, f"{what} has no rule named {target.section}; the names of its rules are: {names}")
        return
    section = "" if is_whole else target.section
    for other in _rivals(lookups, named):
        if other.name != ref.name and other.is_for(section) and other.priority not in (None, own.patch.path_priority):
            message = (
                f"{what} has {HTTP_ROUTE_POLICY.kind} {ref.namespace}/{other.name} with priority {other.priority} too, "
                f"and here it is {own.patch.path_priority}; until they agree none of these policies holds there"
            )
            yield conflicted(target, message)
            return
