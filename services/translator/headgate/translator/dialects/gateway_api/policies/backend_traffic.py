"""XBackendTrafficPolicies: the budget of retries and the sessions of Services of HTTPRoutes and GRPCRoutes.

Of several policies for one Service the oldest that can be followed holds.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from headgate.common.problems import Problem, Severity
from headgate.common.resources import TRAFFIC_POLICY, JsonObject, ObjectRef
from headgate.common.status import ConditionType
from headgate.common.table import RetryBudget, Stickiness
from headgate.translator.dialects.gateway_api.models.policy import RetryConstraint, TrafficPolicySpec
from headgate.translator.dialects.gateway_api.policies.targets import gateways_of, is_service, services_of
from headgate.translator.dialects.gateway_api.routes.sending import stickiness_of
from headgate.translator.fragments.fragment import Fragment, Seniority
from headgate.translator.fragments.status_part import SaidCondition, StatusPart
from headgate.translator.manifests.specs import Spec, warn
from headgate.translator.objects.document import identify
from headgate.translator.objects.targets import PolicyTarget, not_found, outranked, read_targets, seniority_of
from headgate.translator.sources.sharing import find_service
from headgate.translator.world.documents import document_index, document_kind
from headgate.translator.world.graph import Lookups

_BY_TARGET: Final = document_index("target", services_of)
TRAFFIC_POLICIES: Final = document_kind(
    TRAFFIC_POLICY, metadata_fields=("creationTimestamp", "name", "namespace", "uid"), indexes=(_BY_TARGET,)
)


class TrafficPolicy(NamedTuple):
    """What holds for a Service."""

    budget: RetryBudget | None = None
    """Of retries; None where nothing is said of it."""
    stickiness: Stickiness | None = None


NO_TRAFFIC_POLICY: Final = TrafficPolicy()


def traffic_policy_of(lookups: Lookups, namespace: str, service: str) -> TrafficPolicy:
    """Return what holds for a Service."""
    return next((policy for _, policy in _rivals(lookups, namespace, service)), NO_TRAFFIC_POLICY)


def is_for_routes_of_ours(ref: ObjectRef, manifest: JsonObject, lookups: Lookups) -> bool:
    """Whether a route of a Gateway of ours goes to a Service that a policy is for."""
    return bool(gateways_of(ref, list(read_targets(manifest)), lookups))


def translate_traffic_policy(ref: ObjectRef, manifest: JsonObject, lookups: Lookups) -> Fragment:
    """Return how an XBackendTrafficPolicy stands at each Gateway; what it says takes effect in routes."""
    problems: list[Problem] = []
    policy, targets = _read(manifest, problems), list(read_targets(manifest))
    if lookups.is_assumed:
        return Fragment(identify(ref, manifest), problems=tuple(problems))
    about = [problem for target in targets for problem in _judge(lookups, ref, target, seniority_of(manifest))]
    said = () if policy is None else tuple(_said(about, is_for_some=len(about) < len(targets)))
    return Fragment(
        identify(ref, manifest),
        problems=(*problems, *about),
        parts=tuple(StatusPart(each, "", said) for each in gateways_of(ref, targets, lookups)),
    )


def _said(about: list[Problem], *, is_for_some: bool) -> Iterator[SaidCondition]:
    """Yield conditions. Of a policy without mistakes Accepted is left to what is known of its versions."""
    if about:
        text = "; ".join(map(str, about))
        reason = "Accepted" if is_for_some else about[0].reason
        yield SaidCondition(ConditionType.ACCEPTED, "True" if is_for_some else "False", reason, text)


def _read(manifest: JsonObject, problems: list[Problem]) -> TrafficPolicy | None:
    """Read a policy; None where it cannot be followed, which goes to `problems`."""
    found: list[Problem] = []
    spec = Spec(manifest.get("spec"), found).rest(TrafficPolicySpec)
    persistence = spec.session_persistence if spec is not None else None
    if persistence is not None and persistence.idle_timeout:
        message = "sessions end after absoluteTimeout, if at all"
        found.append(warn("UnsupportedField", "spec.sessionPersistence.idleTimeout", message))
    problems += found
    if spec is None or any(problem.severity is Severity.ERROR for problem in found):
        return None
    return TrafficPolicy(_budget(spec.retry_constraint), stickiness_of(persistence))


def _budget(written: RetryConstraint | None) -> RetryBudget | None:
    if written is None:
        return None
    budget, rate = written.budget, written.min_retry_rate
    return RetryBudget(
        share=budget.percent / 100, interval_s=budget.interval, least=rate.count, least_interval_s=rate.interval
    )


def _rivals(lookups: Lookups, namespace: str, service: str) -> list[tuple[Seniority, TrafficPolicy]]:
    """Return the policies for a Service that can be followed, the oldest first."""
    manifests = (each.decode() for each in lookups.find(TRAFFIC_POLICIES, _BY_TARGET, service, namespace=namespace))
    read = ((seniority_of(manifest), _read(manifest, [])) for manifest in manifests)
    return sorted(((age, policy) for age, policy in read if policy is not None), key=lambda rival: rival[0])


def _judge(lookups: Lookups, ref: ObjectRef, target: PolicyTarget, own: Seniority) -> Iterator[Problem]:
    """Yield why a policy does not hold for a target."""
    what = f"{target.kind} {ref.namespace}/{target.name}"
    if not is_service(target):
        yield not_found(target, f"{what}: policies hold for Services")
    elif find_service(lookups, ref.namespace, target.name) is None:
        yield not_found(target, f"{what} not found")
    else:
        older = next((age for age, _ in _rivals(lookups, ref.namespace, target.name) if age < own), None)
        if older is not None:
            yield outranked(target, what, TRAFFIC_POLICY.kind, older, own)
