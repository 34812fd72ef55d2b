"""Certificates of HTTPS listeners: Secrets of the Gateway's namespace, or of others that grant it.

A certificate is presented for the listener's hostname, whatever names it is valid for, as Gateway API has it. Of
several each is presented for those of its own names that the listener takes, and the first for the others.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from headgate.common.problems import Problem
from headgate.common.resources import GATEWAY_GROUP, SECRET, ObjectRef
from headgate.common.table import OTHER_NAMES
from headgate.translator.dialects.gateway_api.gateways.listeners import GatewayListener, kind_of
from headgate.translator.dialects.gateway_api.hostnames import EVERY_HOST, intersect
from headgate.translator.dialects.gateway_api.models.gateway import SecretReference
from headgate.translator.fragments.fragment import CertificateRef, NameClaim
from headgate.translator.manifests.specs import refuse
from headgate.translator.sources.certificates import PAIR, SECRETS, stand_in
from headgate.translator.sources.gateways import Party, is_granted
from headgate.translator.world.graph import Lookups

INVALID: Final = "InvalidCertificateRef"
NOT_PERMITTED: Final = "RefNotPermitted"


class ListenerCertificates(NamedTuple):
    """The certificates of a listener."""

    names: tuple[NameClaim, ...]
    """Server names for which they are presented; none if none can be used."""
    problems: tuple[Problem, ...]
    certificates: tuple[CertificateRef, ...]
    """Those that can be used, in the order of the listener."""


NO_CERTIFICATES: Final = ListenerCertificates((), (), ())


class _Usable(NamedTuple):
    certificate: CertificateRef
    names: tuple[str, ...]
    field: str


def claim_certificates(listener: GatewayListener, ref: ObjectRef, lookups: Lookups) -> ListenerCertificates:
    """Return which certificates an HTTPS listener of a Gateway presents, and what is wrong with the others."""
    problems: list[Problem] = []
    tls, at = listener.spec.tls, f"{listener.field}.tls"
    written = tls.certificate_refs if tls is not None else ()
    if not written:
        problems.append(refuse(INVALID, f"{at}.certificateRefs", "must name a Secret of type kubernetes.io/tls"))
    named = ((each, f"{at}.certificateRefs[{index}]") for index, each in enumerate(written))
    usable = [found for each, field in named if (found := _find(each, field, ref, lookups, problems)) is not None]
    claims: dict[str, NameClaim] = {}
    for claim in _claims(listener.hostname, usable):
        claims.setdefault(claim.name, claim)
    certificates = tuple(dict.fromkeys(each.certificate for each in usable))
    return ListenerCertificates(tuple(claims.values()), tuple(problems), certificates)


def _find(
    written: SecretReference, field: str, ref: ObjectRef, lookups: Lookups, problems: list[Problem]
) -> _Usable | None:
    if (written.group, written.kind) != (SECRET.group, SECRET.kind):
        what = f"{written.kind}.{written.group}" if written.group else written.kind
        problems.append(refuse(INVALID, f"{field}.kind", "must be a Secret of the core group", what))
        return None
    namespace = written.namespace or ref.namespace
    what = f"Secret {namespace}/{written.name}"
    source, target = Party(GATEWAY_GROUP, kind_of(ref), ref.namespace), Party(SECRET.group, SECRET.kind, written.name)
    if namespace != ref.namespace and not is_granted(lookups, source, target, namespace):
        message = f"{what}: no ReferenceGrant there allows {kind_of(ref)}s of namespace {ref.namespace}"
        problems.append(refuse(NOT_PERMITTED, f"{field}.namespace", message, namespace))
        return None
    secret = lookups.get(SECRETS, namespace, written.name)
    if secret is None or secret.problem:
        why = "not found" if secret is None else secret.problem
        problems.append(refuse(INVALID, f"{field}.name", f"{what} {why}", written.name))
        return None
    if instead := stand_in(lookups, namespace, written.name, PAIR):
        problems.append(refuse(INVALID, f"{field}.name", f"{what} {instead}", written.name))
    return _Usable(CertificateRef(ref.cluster, namespace, written.name), secret.names, field)


def _claims(hostname: str, usable: list[_Usable]) -> Iterator[NameClaim]:
    for certificate, names, field in usable:
        for name in names:
            common = intersect(hostname, name) if name != "*" else None
            if common:
                yield NameClaim(common, certificate, field)
    for certificate, _, field in usable[:1]:
        yield NameClaim(OTHER_NAMES if hostname == EVERY_HOST else hostname, certificate, field)
