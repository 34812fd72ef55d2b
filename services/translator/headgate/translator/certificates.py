"""Certificates from sealed Secrets of type kubernetes.io/tls. The translator sees what is public of them only."""

from typing import NamedTuple

from pydantic import ValidationError

from headgate.common.resources import SECRET, JsonObject
from headgate.common.sealing import SealedSecret
from headgate.common.table import Certificate, Provenance
from headgate.translator.fragment import CertificateRef
from headgate.translator.graph import Lookups, Rule
from headgate.translator.world import StoredKind

TLS_TYPE = "kubernetes.io/tls"
KEY_FIELD = "tls.key"


class TlsSecret(NamedTuple):
    """What translation needs of a Secret."""

    sealed: SealedSecret | None
    problem: str | None
    """Why it holds no usable certificate."""
    authorities_pem: str | None = None
    """As in `SealedSecret`."""
    revocations_pem: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Names that the certificate is valid for, lower case."""
        if self.sealed is None or self.sealed.certificate is None:
            return ()
        return tuple(name.lower() for name in self.sealed.certificate.names)


def read_secret(manifest: JsonObject) -> TlsSecret:
    """Strip a sealed Secret; the problem does not repeat any value."""
    if manifest.get("type") != TLS_TYPE:
        return TlsSecret(None, f"is not of type {TLS_TYPE}")
    try:
        sealed = SealedSecret.model_validate(manifest.get("sealed"))
    except ValidationError:
        return TlsSecret(None, "did not arrive sealed")
    problem = _problem(sealed)
    return TlsSecret(None if problem else sealed, problem, sealed.authorities_pem, sealed.revocations_pem)


def _problem(sealed: SealedSecret) -> str | None:
    if sealed.certificate is None:
        return "has no certificate under tls.crt"
    if sealed.certificate.problem:
        return f"cannot be used: {sealed.certificate.problem}"
    if KEY_FIELD not in sealed.values:
        return f"has no private key under {KEY_FIELD}"
    return None


def covers(pattern: str, name: str) -> bool:
    """Whether a certificate's name is valid for a server name; `*` stands for exactly one label (RFC 6125, 6.4.3)."""
    if pattern == name:
        return True
    return pattern.startswith("*.") and not name.startswith("*.") and name.partition(".")[2] == pattern[2:]


def read_certificate(lookups: Lookups, ref: CertificateRef) -> Certificate | None:
    """Return a Secret's certificate, without the server names that objects claim for it; None where it is unusable."""
    secret = lookups.get(SECRETS, ref.namespace, ref.secret)
    if secret is None or secret.sealed is None or secret.sealed.certificate is None:
        return None
    facts = secret.sealed.certificate
    return Certificate(
        key=ref.key,
        server_names=(),
        chain_pem=facts.chain_pem,
        private_key=secret.sealed.values[KEY_FIELD],
        fingerprint=facts.fingerprint,
        not_after=facts.not_after.isoformat() if facts.not_after else "",
        provenance=Provenance(cluster=ref.cluster, kind="Secret", namespace=ref.namespace, name=ref.secret),
    )


def _give_up(ref: CertificateRef, error: Exception) -> None:
    return None


SECRETS = StoredKind(SECRET, read_secret)
CERTIFICATE: Rule[CertificateRef, Certificate | None] = Rule("certificate", 2, read_certificate, _give_up)
