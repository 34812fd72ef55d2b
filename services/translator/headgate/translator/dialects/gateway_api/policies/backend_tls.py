"""BackendTLSPolicies: how TLS is spoken with the Services of HTTPRoutes and GRPCRoutes.

Of several policies for one port the oldest holds; one for a port by its name goes before one for the whole Service. A
Service whose policy cannot be followed gets no requests: it is never spoken to without TLS, or without a check.
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from headgate.common.problems import Problem, Severity
from headgate.common.resources import BACKEND_TLS_POLICY, JsonObject, ObjectRef
from headgate.common.status import ConditionType
from headgate.common.table import BackendTls
from headgate.translator.dialects.gateway_api.models.policy import BackendTlsPolicySpec, BackendTlsValidation
from headgate.translator.dialects.gateway_api.policies.authorities import Authorities, find_authorities
from headgate.translator.dialects.gateway_api.policies.targets import gateways_of, is_service, services_of
from headgate.translator.fragments.fragment import Fragment, Seniority
from headgate.translator.fragments.status_part import SaidCondition, StatusPart
from headgate.translator.manifests.specs import Spec, refuse, warn
from headgate.translator.objects.document import identify
from headgate.translator.objects.targets import PolicyTarget, not_found, outranked, read_targets, seniority_of
from headgate.translator.sources.services import port_names
from headgate.translator.sources.sharing import find_service
from headgate.translator.world.documents import document_index, document_kind
from headgate.translator.world.graph import Level, Lookups, Rule

_SYSTEM: Final = "System"
_VALIDATION: Final = "spec.validation"


_BY_TARGET: Final = document_index("target", services_of)
BACKEND_TLS_POLICIES: Final = document_kind(
    BACKEND_TLS_POLICY, metadata_fields=("creationTimestamp", "name", "namespace", "uid"), indexes=(_BY_TARGET,)
)


class PortQuestion(NamedTuple):
    """Which policy holds for a port of a Service."""

    cluster: str
    namespace: str
    service: str
    port_name: str


class BackendTlsPolicy(NamedTuple):
    """What holds for a port of a Service."""

    tls: BackendTls | None
    """None: the policy cannot be followed, and connections must fail."""
    name: str
    """Of the policy."""


class _Rival(NamedTuple):
    """A policy that is for a Service."""

    seniority: Seniority
    targets: tuple[PolicyTarget, ...]
    manifest: JsonObject

    def is_for(self, service: str, section: str) -> bool:
        return any(is_service(each) and (each.name, each.section) == (service, section) for each in self.targets)


def _rivals(lookups: Lookups, namespace: str, service: str) -> list[_Rival]:
    """Return the policies for a Service and its ports, the oldest first."""
    found = (each.decode() for each in lookups.find(BACKEND_TLS_POLICIES, _BY_TARGET, service, namespace=namespace))
    rivals = (_Rival(seniority_of(manifest), tuple(read_targets(manifest)), manifest) for manifest in found)
    return sorted(rivals, key=lambda rival: rival.seniority)


def _find(lookups: Lookups, question: PortQuestion) -> BackendTlsPolicy | None:
    _, namespace, service, port_name = question
    rivals = _rivals(lookups, namespace, service)
    for section in dict.fromkeys((port_name, "")):
        for rival in rivals:
            if rival.is_for(service, section):
                return BackendTlsPolicy(_tls_of(rival.manifest, namespace, lookups), rival.seniority.name)
    return None


_POLICY: Rule[PortQuestion, BackendTlsPolicy | None] = Rule(
    "TLS policy of a port", Level.CLUSTER, _find, lambda question, _: BackendTlsPolicy(None, "unknown"), is_memo=True
)


def tls_policy_of(lookups: Lookups, namespace: str, service: str, port_name: str) -> BackendTlsPolicy | None:
    """Return how TLS is spoken with a port of a Service; None if no policy says so."""
    return lookups.derive(_POLICY, PortQuestion(lookups.cluster, namespace, service, port_name))


def _tls_of(manifest: JsonObject, namespace: str, lookups: Lookups) -> BackendTls | None:
    problems: list[Problem] = []
    spec = _read(manifest, problems)
    if spec is None or problems:
        return None
    authorities = find_authorities(spec.validation, _VALIDATION, namespace, lookups, [])
    if not authorities.is_known:
        return None
    names = tuple(name.value for name in spec.validation.subject_alt_names)
    return BackendTls(verify=True, ca_pem=authorities.pem, server_name=spec.validation.hostname, subject_names=names)


def _read(manifest: JsonObject, problems: list[Problem]) -> BackendTlsPolicySpec | None:
    """Read a policy; what is wrong with it by itself goes to `problems`."""
    found: list[Problem] = []
    spec = Spec(manifest.get("spec"), found).rest(BackendTlsPolicySpec)
    if spec is not None:
        found += _faults(spec.validation)
    problems += (problem for problem in found if problem.severity is Severity.ERROR)
    return spec


def _faults(written: BackendTlsValidation) -> Iterator[Problem]:
    known, at = written.well_known_ca_certificates, f"{_VALIDATION}.wellKnownCACertificates"
    if known and written.ca_certificate_refs:
        yield refuse("Invalid", at, "caCertificateRefs and wellKnownCACertificates exclude each other: take one away")
    elif known and known != _SYSTEM:
        yield refuse("Invalid", at, f"must be {_SYSTEM}: there are no other sets", known)
    elif not known and not written.ca_certificate_refs:
        yield refuse("Invalid", _VALIDATION, f"must have caCertificateRefs, or wellKnownCACertificates: {_SYSTEM}")
    for index, name in enumerate(written.subject_alt_names):
        if not name.value:
            field = f"{_VALIDATION}.subjectAltNames[{index}].{'hostname' if name.type == 'Hostname' else 'uri'}"
            yield refuse("Invalid", field, f"must be given with type {name.type}")


# The object


def is_for_our_routes(ref: ObjectRef, manifest: JsonObject, lookups: Lookups) -> bool:
    """Whether a route of a Gateway of ours goes to a Service that a policy is for."""
    return bool(gateways_of(ref, list(read_targets(manifest)), lookups))


def translate_backend_tls_policy(ref: ObjectRef, manifest: JsonObject, lookups: Lookups) -> Fragment:
    """Return how a BackendTLSPolicy stands at each Gateway; what it says takes effect in upstreams of routes."""
    identity, invalid = identify(ref, manifest), list[Problem]()
    spec, targets = _read(manifest, invalid), list(read_targets(manifest))
    if lookups.is_assumed:
        return Fragment(identity, problems=tuple(dict.fromkeys(invalid)))
    about = [problem for target in targets for problem in _judge(lookups, ref, target, seniority_of(manifest))]
    unresolved: list[Problem] = []
    authorities = Authorities("", is_known=True)
    if spec is not None and not invalid:
        authorities = find_authorities(spec.validation, _VALIDATION, ref.namespace, lookups, unresolved)
    warnings = []
    if spec is not None and spec.options:
        warnings.append(warn("UnsupportedField", "spec.options", "options of TLS are not followed"))
    is_for_some = len(about) < len(targets)
    said = tuple(_said(invalid, about, unresolved, has_authorities=authorities.is_known, is_for_some=is_for_some))
    return Fragment(
        identity,
        problems=tuple(dict.fromkeys((*invalid, *about, *unresolved, *warnings))),
        parts=tuple(StatusPart(each, "", said) for each in gateways_of(ref, targets, lookups)),
    )


def _said(
    invalid: Sequence[Problem],
    about: Sequence[Problem],
    unresolved: Sequence[Problem],
    *,
    has_authorities: bool,
    is_for_some: bool,
) -> Iterator[SaidCondition]:
    """Yield conditions. Of a policy without mistakes Accepted is left to what is known of its versions."""
    accepted, resolved = ConditionType.ACCEPTED, ConditionType.RESOLVED_REFS
    if invalid:
        yield SaidCondition(accepted, "False", "Invalid", "; ".join(map(str, invalid)))
    elif about and not is_for_some:
        yield SaidCondition(accepted, "False", about[0].reason, "; ".join(map(str, about)))
    elif not has_authorities:
        yield SaidCondition(accepted, "False", "NoValidCACertificate", "; ".join(map(str, unresolved)))
    elif about or unresolved:
        yield SaidCondition(accepted, "True", "Accepted", "; ".join(map(str, about)))
    if unresolved:
        yield SaidCondition(resolved, "False", unresolved[0].reason, "; ".join(map(str, unresolved)))
    else:
        yield SaidCondition(resolved, "True", "ResolvedRefs")


def _judge(lookups: Lookups, ref: ObjectRef, target: PolicyTarget, seniority: Seniority) -> Iterator[Problem]:
    """Yield why a policy does not hold for a target."""
    what = f"{target.kind} {ref.namespace}/{target.name}"
    if not is_service(target):
        yield not_found(target, f"{what}: policies hold for Services")
        return
    service = find_service(lookups, ref.namespace, target.name)
    if service is None:
        yield not_found(target, f"{what} not found")
        return
    if target.section and all(port.name != target.section for port in service.ports):
        yield not_found(target, f"{what} has no port named {target.section!r}; it has {port_names(service.ports)}")
        return
    rivals = _rivals(lookups, ref.namespace, target.name)
    older = (each for each in rivals if each.seniority < seniority and each.is_for(target.name, target.section))
    if (winner := next(older, None)) is not None:
        where = f"port {target.section} of {what}" if target.section else what
        yield outranked(target, where, BACKEND_TLS_POLICY.kind, winner.seniority, seniority)
