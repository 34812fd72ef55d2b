"""Certificates from sealed Secrets, of type kubernetes.io/tls or with the same keys. The translator sees only what is
public of them.
"""

from collections.abc import Iterator, Set
from typing import NamedTuple

from pydantic import ValidationError

from headgate.common.problems import Problem
from headgate.common.resources import SECRET, JsonObject
from headgate.common.sealing import ClusterValue, SealedSecret
from headgate.common.table import Certificate, Provenance
from headgate.translator.fragments.fragment import CertificateRef
from headgate.translator.sources.ordered import read_issued
from headgate.translator.world.graph import Level, Lookups, Rule
from headgate.translator.world.world import StoredKind

TLS_TYPE = "kubernetes.io/tls"
CHAIN_FIELD, KEY_FIELD = "tls.crt", "tls.key"
OPAQUE_KEY_FIELD = "key"
"""Beside `cert`, as Apache APISIX names the two."""
_NOT_TLS = f"is not of type {TLS_TYPE}"
PAIR, AUTHORITIES, REVOCATIONS = "data[tls.crt]", "data[ca.crt]", "data[ca.crl]"


class TlsSecret(NamedTuple):
    """What translation needs of a Secret."""

    sealed: SealedSecret | None
    problem: str | None
    """Why it holds no usable certificate."""
    authorities_pem: str | None = None
    """As in `SealedSecret`."""
    revocations_pem: str | None = None
    held: SealedSecret | None = None
    """All of its values, sealed, whether or not they make a certificate."""
    is_tls: bool = True
    """Whether it is of type kubernetes.io/tls."""

    @property
    def key_field(self) -> str:
        """Under which the private key of the certificate is."""
        return _key_field(self.sealed, self.is_tls)

    @property
    def names(self) -> tuple[str, ...]:
        """Names that the certificate is valid for, lower case."""
        if self.sealed is None or self.sealed.certificate is None:
            return ()
        return tuple(name.lower() for name in self.sealed.certificate.names)


def read_secret(manifest: JsonObject) -> TlsSecret:
    """Strip a sealed Secret; the problem does not repeat any value."""
    is_tls = manifest.get("type") == TLS_TYPE
    try:
        sealed = SealedSecret.model_validate(manifest.get("sealed"))
    except ValidationError:
        return TlsSecret(None, "did not arrive sealed" if is_tls else _NOT_TLS, is_tls=is_tls)
    problem = _problem(sealed, is_tls)
    return TlsSecret(
        None if problem else sealed, problem, sealed.authorities_pem, sealed.revocations_pem, sealed, is_tls
    )


def _problem(sealed: SealedSecret, is_tls: bool) -> str | None:
    if sealed.certificate is None:
        return "has no certificate under tls.crt" if is_tls else _NOT_TLS
    if sealed.certificate.problem:
        return f"cannot be used: {sealed.certificate.problem}"
    key = _key_field(sealed, is_tls)
    return None if key in sealed.values else f"has no private key under {key}"


def _key_field(sealed: SealedSecret | None, is_tls: bool) -> str:
    """Choose between the two pairs as watchers do."""
    has_pair = is_tls or (sealed is not None and sealed.values.keys() >= {CHAIN_FIELD, KEY_FIELD})
    return KEY_FIELD if has_pair else OPAQUE_KEY_FIELD


def restore_secret(secret: TlsSecret) -> JsonObject:
    """Return a manifest of a usable Secret, still sealed."""
    sealed = secret.sealed if secret.is_tls else secret.held
    return {
        "type": TLS_TYPE if secret.is_tls else "Opaque",
        "sealed": sealed.model_dump(mode="json") if sealed else None,
    }


def values_of(sealed: SealedSecret, cluster: str) -> dict[str, ClusterValue]:
    """Return the values of a cluster's Secret as a table has them."""
    return {name: value.of(cluster) for name, value in sealed.values.items()}


def check_secret(manifest: JsonObject, secret: TlsSecret) -> Iterator[Problem]:
    """Yield what makes a Secret unusable. A pair, authorities and a revocation list are used apart from each other."""
    if secret.problem and secret.is_tls:
        yield Problem(reason="InvalidCertificate", field=PAIR, message=secret.problem)
    if secret.authorities_pem == "":
        message = "has no readable certificates under ca.crt"
        yield Problem(reason="InvalidCertificate", field=AUTHORITIES, message=message)
    if secret.revocations_pem == "":
        message = "has a revocation list that cannot be read"
        yield Problem(reason="InvalidCertificate", field=REVOCATIONS, message=message)


def combine_secrets(present: TlsSecret, good: TlsSecret) -> TlsSecret:
    """Return the present Secret with its unusable parts as they were last good."""
    pair = good if present.problem else present
    return TlsSecret(
        pair.sealed,
        pair.problem,
        good.authorities_pem if present.authorities_pem == "" else present.authorities_pem,
        good.revocations_pem if present.revocations_pem == "" else present.revocations_pem,
        present.held,
        present.is_tls,
    )


def stand_in(lookups: Lookups, namespace: str, name: str, *fields: str) -> str | None:
    """Say, where parts of a Secret cannot be used, which version's are; None where its own are."""
    versions = lookups.versions(SECRETS, namespace, name)
    if versions is None or versions.good is None:
        return None
    problem = next((error.message for error in versions.errors if error.field in fields), None)
    return problem and f"{problem}; that of {versions.good.version} is used instead"


def covers(names: Set[str], name: str) -> bool:
    """Whether a certificate's names are valid for a server name; `*` is for exactly one label (RFC 6125, 6.4.3)."""
    return name in names or (not name.startswith("*.") and f"*.{name.partition('.')[2]}" in names)


def read_certificate(lookups: Lookups, ref: CertificateRef) -> Certificate | None:
    """Return a certificate, without the server names that objects claim for it; None where it is unusable."""
    if ref.resolver:
        return read_issued(lookups, ref)
    secret = lookups.get(SECRETS, ref.namespace, ref.secret)
    if secret is None or secret.sealed is None or secret.sealed.certificate is None:
        return None
    facts = secret.sealed.certificate
    return Certificate(
        key=ref.key,
        server_names=(),
        chain_pem=facts.chain_pem,
        private_key=secret.sealed.values[secret.key_field].of(ref.cluster),
        fingerprint=facts.fingerprint,
        not_after=facts.not_after.isoformat() if facts.not_after else "",
        provenance=Provenance(cluster=ref.cluster, kind="Secret", namespace=ref.namespace, name=ref.secret),
    )


def _give_up(ref: CertificateRef, error: Exception) -> None:
    return None


SECRETS = StoredKind(
    SECRET,
    read_secret,
    check=check_secret,
    restore=restore_secret,
    combine=combine_secrets,
    sample=TlsSecret(sealed=None, problem=None, authorities_pem="-"),
)
CERTIFICATE: Rule[CertificateRef, Certificate | None] = Rule("certificate", Level.REFERENCE, read_certificate, _give_up)
