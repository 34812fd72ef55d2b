"""The certificate that gateways have for Services: `tls.backend.clientCertificateRef` of a Gateway.

It is shown where a BackendTLSPolicy has TLS spoken with a Service, for routes all of whose Gateways have the same one.
"""

from typing import Final, NamedTuple

from headgate.common.problems import Problem, Severity
from headgate.common.resources import GATEWAY, GATEWAY_GROUP, SECRET
from headgate.common.table import BackendTls
from headgate.translator.dialects.gateway_api.models.gateway import GatewayBackendTls, SecretReference
from headgate.translator.dialects.gateway_api.parents import find_gateway
from headgate.translator.dialects.gateway_api.stored import RouteFacts
from headgate.translator.manifests.reading import as_object
from headgate.translator.manifests.specs import read_part, refuse, warn
from headgate.translator.sources.certificates import SECRETS
from headgate.translator.sources.gateways import Party, find_our_gateway, is_granted
from headgate.translator.world.graph import Level, Lookups, Rule

INVALID: Final = "InvalidClientCertificateRef"
NOT_PERMITTED: Final = "RefNotPermitted"
_FIELD: Final = "spec.tls.backend"


class SecretName(NamedTuple):
    """A Secret with a certificate and its key."""

    namespace: str
    name: str


class _Question(NamedTuple):
    """What a Gateway shows."""

    cluster: str
    namespace: str
    gateway: str


def find_client_certificate(
    tls: object, namespace: str, lookups: Lookups, problems: list[Problem]
) -> SecretName | None:
    """Return the Secret that a Gateway in a namespace names in `spec.tls`; None if it names none that can be used."""
    written = as_object(tls).get("backend")
    found: list[Problem] = []
    part = read_part(GatewayBackendTls, written, _FIELD, found) if written is not None else None
    problems += (
        refuse(INVALID, each.field, each.message, each.value) if each.severity is Severity.ERROR else each
        for each in found
    )
    if part is None or part.value.client_certificate_ref is None:
        return None
    return _find(part.value.client_certificate_ref, f"{_FIELD}.clientCertificateRef", namespace, lookups, problems)


def _find(
    written: SecretReference, field: str, own: str, lookups: Lookups, problems: list[Problem]
) -> SecretName | None:
    if (written.group, written.kind) != (SECRET.group, SECRET.kind):
        what = f"{written.kind}.{written.group}" if written.group else written.kind
        problems.append(refuse(INVALID, f"{field}.kind", "must be a Secret of the core group", what))
        return None
    namespace = written.namespace or own
    what = f"Secret {namespace}/{written.name}"
    source, target = Party(GATEWAY_GROUP, GATEWAY.kind, own), Party(SECRET.group, SECRET.kind, written.name)
    if namespace != own and not is_granted(lookups, source, target, namespace):
        message = f"{what}: no ReferenceGrant there allows Gateways of namespace {own}"
        problems.append(refuse(NOT_PERMITTED, f"{field}.namespace", message, namespace))
        return None
    secret = lookups.get(SECRETS, namespace, written.name)
    if secret is None or secret.sealed is None or secret.sealed.certificate is None:
        why = "not found" if secret is None else secret.problem or "has no certificate"
        problems.append(refuse(INVALID, f"{field}.name", f"{what} {why}", written.name))
        return None
    return SecretName(namespace, written.name)


def _shown(lookups: Lookups, question: _Question) -> SecretName | None:
    document = find_our_gateway(lookups, question.namespace, question.gateway)
    if document is None:
        return None
    tls = as_object(document.decode().get("spec")).get("tls")
    return find_client_certificate(tls, question.namespace, lookups, [])


_SHOWN: Rule[_Question, SecretName | None] = Rule(
    "client certificate of a Gateway", Level.SHARED, _shown, lambda *_: None, is_memo=True
)


def certificate_of(route: RouteFacts, lookups: Lookups, problems: list[Problem]) -> SecretName | None:
    """Return what is shown to Services of a route: what all of its Gateways agree on."""
    ours = {parent.field: found for parent in route.parents if (found := find_gateway(parent, lookups)) is not None}
    named = (_Question(lookups.cluster, *gateway) for gateway in ours.values())
    shown = {lookups.derive(_SHOWN, question) for question in dict.fromkeys(named)}
    if len(shown) > 1:
        message = "its Gateways show Services different certificates, so that none is shown; attach it to one of them"
        problems.append(warn("UnsupportedValue", next(iter(ours)), message))
        return None
    return next(iter(shown), None)


def with_certificate(tls: BackendTls, shown: SecretName | None, lookups: Lookups) -> BackendTls:
    """Return how TLS is spoken with a Service, with a certificate of the gateways' own."""
    secret = lookups.get(SECRETS, *shown) if shown is not None else None
    if secret is None or secret.sealed is None or secret.sealed.certificate is None:
        return tls
    key = secret.sealed.values[secret.key_field].of(lookups.cluster)
    return tls.model_copy(update={"certificate_pem": secret.sealed.certificate.chain_pem, "private_key": key})
