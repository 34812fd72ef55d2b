"""What is public about a TLS certificate, and whether its key belongs to it.

Only the watcher holds both halves readable, so only it can tell; everybody after it relies on `CertificateFacts`.
An expired certificate is a fact, not a problem: it is served, and its dates say so.
"""

from datetime import datetime
from typing import Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.x509.oid import ExtensionOID, NameOID

from headgate.common.sealing import CertificateFacts

UNREADABLE: Final = (ValueError, UnsupportedAlgorithm, x509.InvalidVersion)
"""What reading a certificate, key or revocation list may raise. The last is no ValueError."""


class _Unusable(Exception):
    """The text is what the certificate's author is told; it never quotes the key."""


def read_certificate_facts(chain_pem: bytes, key_pem: bytes) -> CertificateFacts:
    """Describe a certificate and say in `problem` why the pair cannot be used, if so.

    Args:
        chain_pem: `tls.crt`: the leaf first, then its issuers.
        key_pem: `tls.key`: unencrypted PEM (PKCS#1, PKCS#8 or SEC1).
    """
    try:
        chain = _read_chain(chain_pem)
        ordered = _in_order(chain)
    except _Unusable as unusable:
        return CertificateFacts(chain_pem="", problem=str(unusable))
    leaf = chain[0]
    names: tuple[str, ...] = ()
    problem = None
    try:
        names = _names(leaf)
        _check_key(chain, key_pem)
    except _Unusable as unusable:
        problem = str(unusable)
    return CertificateFacts(
        # Encoded again: text around the PEM blocks, which may be anything, does not leave the watcher.
        chain_pem="".join(one.public_bytes(serialization.Encoding.PEM).decode() for one in ordered),
        names=names,
        not_before=_date(leaf, "not_valid_before_utc"),
        not_after=_date(leaf, "not_valid_after_utc"),
        fingerprint=leaf.fingerprint(hashes.SHA256()).hex(),
        problem=problem,
    )


def read_authorities(pem: bytes) -> str:
    """Return the certificates of `ca.crt`, encoded again; empty where it is unreadable."""
    try:
        found = x509.load_pem_x509_certificates(pem)
    except UNREADABLE:
        return ""
    return "".join(one.public_bytes(serialization.Encoding.PEM).decode() for one in found)


def read_revocations(pem: bytes) -> str:
    """Return a revocation list, encoded again; empty where it is unreadable."""
    try:
        return x509.load_pem_x509_crl(pem).public_bytes(serialization.Encoding.PEM).decode()
    except UNREADABLE:
        return ""


def _read_chain(pem: bytes) -> list[x509.Certificate]:
    if not pem.strip():
        raise _Unusable("tls.crt is empty: it must hold the certificate and its chain in PEM")
    try:
        return x509.load_pem_x509_certificates(pem)
    except UNREADABLE:
        raise _Unusable("tls.crt is not a readable PEM certificate") from None


def _names(leaf: x509.Certificate) -> tuple[str, ...]:
    """Subject alternative names; the common name only where there are none (RFC 6125, section 6.4.4)."""
    try:
        found = leaf.extensions.get_extension_for_oid(ExtensionOID.SUBJECT_ALTERNATIVE_NAME).value
    except x509.ExtensionNotFound:
        return _common_names(leaf)
    except (ValueError, x509.DuplicateExtension, x509.UnsupportedGeneralNameType):
        raise _Unusable("tls.crt has extensions that cannot be read") from None
    assert isinstance(found, x509.SubjectAlternativeName)
    addresses = tuple(str(one) for one in found.get_values_for_type(x509.IPAddress))
    return (*filter(None, found.get_values_for_type(x509.DNSName)), *addresses)


def _common_names(leaf: x509.Certificate) -> tuple[str, ...]:
    try:
        return tuple(str(one.value) for one in leaf.subject.get_attributes_for_oid(NameOID.COMMON_NAME))
    except ValueError:
        raise _Unusable("tls.crt has a subject that cannot be read") from None


def _check_key(chain: list[x509.Certificate], pem: bytes) -> None:
    if not pem.strip():
        raise _Unusable("tls.key is empty: it must hold the private key in PEM")
    try:
        key = serialization.load_pem_private_key(pem, password=None)
    except TypeError:
        raise _Unusable("tls.key is encrypted: it must be stored without a passphrase") from None
    except UNREADABLE:
        raise _Unusable("tls.key is not a readable PEM private key") from None
    own = _public_bytes(key.public_key())
    try:
        position = next((number for number, one in enumerate(chain) if _public_bytes(one.public_key()) == own), None)
    except UNREADABLE:
        raise _Unusable("tls.crt holds a kind of key that is not supported") from None
    if position is None:
        raise _Unusable("tls.key does not belong to the certificate in tls.crt")
    if position:
        raise _Unusable(f"tls.key belongs to certificate {position + 1} in tls.crt: that one must come first")


def _in_order(chain: list[x509.Certificate]) -> list[x509.Certificate]:
    """Put each issuer after what it issued, as RFC 5246 section 7.4.2 asks; what belongs nowhere comes last."""
    ordered, rest = chain[:1], chain[1:]
    try:
        while (issuer := next((one for one in rest if one.subject == ordered[-1].issuer), None)) is not None:
            ordered.append(issuer)
            rest.remove(issuer)
    except ValueError:
        raise _Unusable("tls.crt has a subject or issuer that cannot be read") from None
    return ordered + rest


def _public_bytes(key: object) -> bytes:
    encode = key.public_bytes  # type: ignore[attr-defined] # every kind of public key has it
    return bytes(encode(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo))


def _date(leaf: x509.Certificate, which: str) -> datetime | None:
    try:
        value: datetime = getattr(leaf, which)
    except ValueError:
        return None
    return value
