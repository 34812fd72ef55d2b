"""Serving certificates, each of an authority of its own whose key is forgotten as soon as it has signed; pure.

So the most that can be stolen is one certificate for one webhook, and there is one way of renewal and not two.
Rejected: an authority that is kept for years, whose key would have to be guarded as long.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from ipaddress import ip_address

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from headgate.common.secret import Secret
from headgate.watcher.objects.certificates import UNREADABLE, read_certificate_facts

BACKDATED = timedelta(hours=1)
"""Clocks of API servers may be behind ours by so much."""
_PEM = serialization.Encoding.PEM
_USAGES = (
    "digital_signature",
    "content_commitment",
    "key_encipherment",
    "data_encipherment",
    "key_agreement",
    "key_cert_sign",
    "crl_sign",
    "encipher_only",
    "decipher_only",
)


@dataclass(frozen=True, slots=True)
class Pair:
    """A serving certificate and its key, PEM, as a Secret holds them: nothing is known of them yet."""

    chain_pem: bytes
    key_pem: Secret[bytes]


def issue(names: Sequence[str], now: datetime, life: timedelta) -> tuple[Pair, x509.Certificate]:
    """Make an authority and a certificate of it, and return the certificate and the authority's.

    Args:
        names: DNS names and addresses that the certificate is for.
        now: with a time zone.
        life: from now on; both end at once.
    """
    authority_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    serial = x509.random_serial_number()
    issuer = _named(f"headgate-admission-ca {serial:x}")
    authority = (
        _builder(issuer, issuer, authority_key, authority_key, now, life, "key_cert_sign")
        .serial_number(serial)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(authority_key, hashes.SHA256())
    )
    certificate = (
        _builder(_named("headgate-admission"), issuer, key, authority_key, now, life, "digital_signature")
        .serial_number(x509.random_serial_number())
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName([_alternative(name) for name in names]), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    key_pem = key.private_bytes(_PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return Pair(certificate.public_bytes(_PEM), Secret(key_pem)), authority


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    signer: ec.EllipticCurvePrivateKey,
    now: datetime,
    life: timedelta,
    usage: str,
) -> x509.CertificateBuilder:
    signed_by = x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key())
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .not_valid_before(now - BACKDATED)
        .not_valid_after(now + life)
        .add_extension(x509.KeyUsage(**{name: name == usage for name in _USAGES}), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(signed_by, critical=False)
    )


def _named(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)


@dataclass(frozen=True, slots=True)
class CertificateState:
    """What is to be known of a pair."""

    names: frozenset[str] = frozenset()
    not_after: datetime | None = None
    problem: str | None = None
    """Why it cannot be used now."""


def examine(pair: Pair, authorities: Sequence[x509.Certificate], now: datetime) -> CertificateState:
    """Say how a pair stands: it must fit together, be signed by one of the authorities, and be valid now."""
    facts = read_certificate_facts(pair.chain_pem, pair.key_pem.reveal())
    if facts.problem or facts.not_before is None or facts.not_after is None:
        return CertificateState(problem=facts.problem or "tls.crt has dates that cannot be read")
    problem = None
    leaf = x509.load_pem_x509_certificate(pair.chain_pem)
    if not any(_has_signed(authority, leaf) for authority in authorities):
        problem = "no authority in ca.crt has signed tls.crt"
    elif facts.not_after <= now:
        problem = f"it ended at {facts.not_after:%Y-%m-%d %H:%M:%S} UTC"
    elif facts.not_before > now:
        problem = f"it is valid from {facts.not_before:%Y-%m-%d %H:%M:%S} UTC on: a clock is or was wrong"
    return CertificateState(frozenset(facts.names), facts.not_after, problem)


def _has_signed(authority: x509.Certificate, leaf: x509.Certificate) -> bool:
    try:
        leaf.verify_directly_issued_by(authority)
    except (*UNREADABLE, TypeError, InvalidSignature):
        return False
    return True
