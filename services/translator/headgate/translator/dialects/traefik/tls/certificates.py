"""Certificates that objects name by their Secrets: each is presented for all names that it is valid for."""

from collections.abc import Iterator

from headgate.common.problems import Problem
from headgate.common.resources import ObjectRef
from headgate.translator.fragments.fragment import CertificateRef, NameClaim
from headgate.translator.manifests.specs import refuse
from headgate.translator.sources.certificates import PAIR, SECRETS, TlsSecret, stand_in
from headgate.translator.world.graph import Lookups


def claim_valid_names(
    ref: ObjectRef, name: str, field: str, lookups: Lookups, problems: list[Problem]
) -> Iterator[NameClaim]:
    """Yield the names that a Secret's certificate is valid for; none if it cannot be used, which `problems` say."""
    secret = usable_certificate(ref.namespace, name, field, lookups, problems)
    for valid in sorted(set(secret.names)) if secret is not None else ():
        yield NameClaim(valid, CertificateRef(ref.cluster, ref.namespace, name), field)


def usable_certificate(
    namespace: str, name: str, field: str, lookups: Lookups, problems: list[Problem]
) -> TlsSecret | None:
    """Return the Secret of a certificate; None if it cannot be used, which `problems` say, or is assumed."""
    if lookups.is_assumed:
        return None
    secret = lookups.get(SECRETS, namespace, name)
    if secret is None or secret.problem:
        why = "not found" if secret is None else secret.problem
        reason = "SecretNotFound" if secret is None else "InvalidCertificate"
        problems.append(refuse(reason, field, f"Secret {namespace}/{name} {why}", name))
        return None
    if instead := stand_in(lookups, namespace, name, PAIR):
        problems.append(refuse("InvalidCertificate", field, f"Secret {namespace}/{name} {instead}", name))
    return secret
