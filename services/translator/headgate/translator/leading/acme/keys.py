"""Keys and certificates that are made here: of accounts, of orders, and those that answer TLS-ALPN-01."""

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from headgate.common.acme import IssuedCertificate
from headgate.common.sealing import Purpose, Sealer

_ACME_IDENTIFIER: Final = x509.ObjectIdentifier("1.3.6.1.5.5.7.1.31")
"""`id-pe-acmeIdentifier` (RFC 8737, section 3)."""
_OCTETS: Final = b"\x04\x20"
"""DER of an octet string of 32 bytes, before them."""


def new_key() -> ec.EllipticCurvePrivateKey:
    """Return a P-256 key."""
    return ec.generate_private_key(ec.SECP256R1())


def to_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """Return a key in PEM (PKCS #8)."""
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def make_request(key: ec.EllipticCurvePrivateKey, names: Sequence[str]) -> bytes:
    """Return a request for a certificate, in PEM."""
    alternatives = x509.SubjectAlternativeName(list(map(x509.DNSName, names)))
    request = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([]))
    return (
        request.add_extension(alternatives, critical=False)
        .sign(key, hashes.SHA256())
        .public_bytes(serialization.Encoding.PEM)
    )


def issued(chain_pem: str, key: ec.EllipticCurvePrivateKey, sealer: Sealer) -> IssuedCertificate:
    """Return a certificate with its key sealed.

    Raises:
        ValueError: the chain is none, or its first certificate is of another key.
    """
    leaf = x509.load_pem_x509_certificate(chain_pem.encode())
    if leaf.public_key() != key.public_key():
        raise ValueError("the certificate is of another key")
    return IssuedCertificate(
        chain_pem=chain_pem,
        private_key=sealer.seal(to_pem(key), Purpose.PRIVATE_KEY),
        fingerprint=leaf.fingerprint(hashes.SHA256()).hex(),
        not_before=leaf.not_valid_before_utc,
        not_after=leaf.not_valid_after_utc,
    )


def answering_certificate(host: str, key_authorization: str, sealer: Sealer) -> IssuedCertificate:
    """Return the certificate that answers TLS-ALPN-01 (RFC 8737, section 3)."""
    key, now = new_key(), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "ACME challenge")])
    digest = hashlib.sha256(key_authorization.encode()).digest()
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=7))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        .add_extension(x509.UnrecognizedExtension(_ACME_IDENTIFIER, _OCTETS + digest), critical=True)
        .sign(key, hashes.SHA256())
    )
    return issued(certificate.public_bytes(serialization.Encoding.PEM).decode(), key, sealer)
