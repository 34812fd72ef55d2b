"""BackendTrafficPolicy: how the Services that it names are spoken to, as backends of Ingresses.

For backends of ApisixRoutes an ApisixUpstream says this, as in Apache APISIX. Of several policies for one target the
oldest holds; one for a port goes before one for the whole Service, and nothing of the two is put together.
"""

from typing import NamedTuple

from headgate.common.problems import Problem, Severity
from headgate.common.resources import BACKEND_TRAFFIC_POLICY, JsonObject, ObjectRef
from headgate.translator.dialects.apisix.context import Context
from headgate.translator.dialects.apisix.models.policy import BackendTrafficPolicySpec
from headgate.translator.dialects.apisix.policies.targets import BACKEND_POLICIES, BY_SERVICE
from headgate.translator.dialects.apisix.upstreams.upstream import read_fields, read_retries, read_timeouts
from headgate.translator.fragments.fragment import Fragment, Seniority
from headgate.translator.manifests.patches import RoutePatch, UpstreamPatch
from headgate.translator.manifests.specs import Spec
from headgate.translator.objects.document import identify
from headgate.translator.objects.targets import (
    PolicyTarget,
    ancestors_of,
    not_found,
    outranked,
    read_targets,
    seniority_of,
)
from headgate.translator.sources.policies import BackendPolicy, ServicePortTarget
from headgate.translator.sources.services import port_names
from headgate.translator.sources.sharing import find_service
from headgate.translator.world.graph import Lookups


class _Rival(NamedTuple):
    """A policy that can be followed."""

    seniority: Seniority
    targets: tuple[PolicyTarget, ...]
    policy: BackendPolicy

    def is_for(self, service: str, section: str) -> bool:
        return any((target.name, target.section) == (service, section) for target in self.targets)


def translate_backend_policy(ref: ObjectRef, manifest: JsonObject, context: Context) -> Fragment:
    """Return what is wrong with a BackendTrafficPolicy, and with each of its targets."""
    problems: list[Problem] = []
    targets = tuple(read_targets(manifest))
    policy = _read(manifest, problems)
    if policy is not None and not context.lookups.is_assumed:
        for target in targets:
            problems += _judge(context.lookups, ref, target, seniority_of(manifest))
    return Fragment(
        identify(ref, manifest),
        problems=tuple(dict.fromkeys(problems)),
        parts=ancestors_of(ref, targets, is_readable=policy is not None),
    )


def find_backend_policy(lookups: Lookups, target: ServicePortTarget) -> BackendPolicy | None:
    """Return what holds for a port of a Service, if anything does."""
    namespace, name, port = target
    rivals = _rivals(lookups, namespace, name)
    if not rivals:
        return None
    service = find_service(lookups, namespace, name)
    found = service.find_port(port) if service is not None else None
    sections = [found.name, ""] if found is not None and found.name else [""]
    holding = (rival.policy for section in sections for rival in rivals if rival.is_for(name, section))
    return next(holding, None)


def _rivals(lookups: Lookups, namespace: str, service: str) -> list[_Rival]:
    """Return the policies for a Service and its ports that can be followed, the oldest first."""
    found: list[_Rival] = []
    documents = lookups.find(BACKEND_POLICIES, BY_SERVICE, service, namespace=namespace)
    if not documents:
        return found
    for document in documents:
        manifest = document.decode()
        policy = _read(manifest, [])
        if policy is not None:
            found.append(_Rival(seniority_of(manifest), tuple(read_targets(manifest)), policy))
    return sorted(found, key=lambda rival: rival.seniority)


def _read(manifest: JsonObject, problems: list[Problem]) -> BackendPolicy | None:
    """Read a policy; None where some of it cannot be followed, which goes to `problems`."""
    found: list[Problem] = []
    spec = Spec(manifest.get("spec"), found).rest(BackendTrafficPolicySpec)
    fields = read_fields(spec, "spec", found) if spec is not None else {}
    problems += found
    if spec is None or any(problem.severity is Severity.ERROR for problem in found):
        return None
    route = RoutePatch(
        timeouts=read_timeouts(spec.timeout) if spec.timeout is not None else None,
        retries=read_retries(spec.retries) if spec.retries is not None else None,
    )
    return BackendPolicy(UpstreamPatch(**fields), route)


def _judge(lookups: Lookups, ref: ObjectRef, target: PolicyTarget, seniority: Seniority) -> list[Problem]:
    what = f"Service {ref.namespace}/{target.name}"
    service = find_service(lookups, ref.namespace, target.name)
    if service is None:
        return [not_found(target, f"{what} not found")]
    if target.section and all(port.name != target.section for port in service.ports):
        message = f"{what} has no port named {target.section!r}; it has {port_names(service.ports)}"
        return [not_found(target, message)]
    older = (
        rival.seniority
        for rival in _rivals(lookups, ref.namespace, target.name)
        if rival.seniority < seniority and rival.is_for(target.name, target.section)
    )
    winner = next(older, None)
    if winner is None:
        return []
    where = f"port {target.section} of {what}" if target.section else what
    return [outranked(target, where, BACKEND_TRAFFIC_POLICY.kind, winner, seniority)]
