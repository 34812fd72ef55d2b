"""What OpenSSL contexts are told: authorities, versions, ciphers; and certificates made on the spot."""

import datetime
import ssl
import warnings
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from headgate.common.pem import in_memory_file
from headgate.gateway.tls.errors import TlsConfigError
from headgate.gateway.tls.openssl import SET_GROUPS, pointer, usable_library

_SELF_SIGNED_DAYS = 3650
_DER: Final = 2
"""As OpenSSL numbers the forms of certificates."""
_VERSIONS: Final = {
    "1.0": ssl.TLSVersion.TLSv1,
    "1.1": ssl.TLSVersion.TLSv1_1,
    "1.2": ssl.TLSVersion.TLSv1_2,
    "1.3": ssl.TLSVersion.TLSv1_3,
}


def load_authorities(context: ssl.SSLContext, ca_pem: str, crl_pem: str = "") -> None:
    """Trust these authorities, and check the whole chain against the revocation lists if there are any.

    Raises:
        TlsConfigError: one of the two cannot be read; the text begins with the field's name.
    """
    try:
        x509.load_pem_x509_certificates(ca_pem.encode())
        # The loader for files knows revocation lists, the one for strings does not.
        with in_memory_file(ca_pem.encode()) as path:
            context.load_verify_locations(path)
    except (ssl.SSLError, ValueError, x509.InvalidVersion) as error:
        raise TlsConfigError(f"ca_pem: not certificates in PEM: {error}") from error
    if not crl_pem:
        return
    try:
        x509.load_pem_x509_crl(crl_pem.encode())
        with in_memory_file(crl_pem.encode()) as path:
            context.load_verify_locations(path)
    except (ssl.SSLError, ValueError, x509.InvalidVersion) as error:
        raise TlsConfigError(f"crl_pem: not a revocation list in PEM: {error}") from error
    context.verify_flags |= ssl.VerifyFlags.VERIFY_CRL_CHECK_CHAIN


@lru_cache(maxsize=4096)
def own_names(chain_pem: str) -> frozenset[str]:
    """Return the DNS names that a certificate is valid for, in lower case; none if it cannot be read."""
    try:
        found = x509.load_pem_x509_certificate(chain_pem.encode())
        names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        return frozenset(name.lower() for name in names.get_values_for_type(x509.DNSName))
    except (ValueError, x509.ExtensionNotFound, x509.InvalidVersion):
        return frozenset()


def set_versions(context: ssl.SSLContext, minimum: str, maximum: str = "") -> None:
    """Bound the protocol versions; `minimum` is `1.0` to `1.3`, an empty `maximum` the newest.

    Raises:
        TlsConfigError: there is no version between the two.
    """
    if maximum and _VERSIONS[minimum] > _VERSIONS[maximum]:
        raise TlsConfigError(f"min_version: {minimum} is above max_version {maximum}")
    with warnings.catch_warnings():
        # Someone asked for the old versions by name; documentation warns of them.
        warnings.simplefilter("ignore", DeprecationWarning)
        context.minimum_version = _VERSIONS[minimum]
        if maximum:
            context.maximum_version = _VERSIONS[maximum]


def set_ciphers(context: ssl.SSLContext, ciphers: str) -> None:
    """Set the ciphers for TLS 1.2 and older, in OpenSSL's notation.

    Raises:
        TlsConfigError: the list names none that OpenSSL knows.
    """
    try:
        context.set_ciphers(ciphers)
    except ssl.SSLError as error:
        raise TlsConfigError(f"ciphers: {ciphers!r} names no cipher that can be used") from error


def set_curves(context: ssl.SSLContext, curves: Sequence[str]) -> None:
    """Set the groups for the exchange of keys, the preferred first; those that OpenSSL does not know are left out.

    Raises:
        TlsConfigError: it knows none of them, or this build of Python does not allow setting them.
    """
    library = usable_library()
    if library is None:
        raise TlsConfigError("curves: cannot be set by this build of Python; leave them out for those of OpenSSL")
    probe = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    known = [curve for curve in curves if library.control(pointer(probe), SET_GROUPS, 0, curve.encode())]
    library.clear_errors()  # of those that it does not know: a connection would take them for its own
    if not known:
        raise TlsConfigError(f"curves: OpenSSL knows none of {', '.join(curves)}")
    library.control(pointer(context), SET_GROUPS, 0, ":".join(known).encode())


def verified_intermediates(connection: ssl.SSLObject) -> int:
    """Count the certificates between the peer's own and the authority; 0 for a resumed session, which has no chain.

    Python has no setter for OpenSSL's verification depth.
    """
    return max(0, len(_with_chains(connection).get_verified_chain() or ()) - 2)


def presented_chain(connection: ssl.SSLObject) -> tuple[bytes, ...]:
    """Return the certificates that the peer has sent, in DER, its own first; only that one for a resumed session."""
    own = connection.getpeercert(binary_form=True)
    sent = _with_chains(connection).get_unverified_chain() if own else None
    if not sent:
        return (own,) if own else ()
    return tuple(each if isinstance(each, bytes) else each.public_bytes(_DER) for each in sent)


def _with_chains(connection: ssl.SSLObject) -> Any:
    """Return what has the methods about chains: public from Python 3.13 on, up to 3.12 one object deeper."""
    return connection if hasattr(connection, "get_verified_chain") else below_object(connection)


def below_object(connection: ssl.SSLObject) -> Any:
    """Return what does the work of an SSLObject, with the same methods: each request calls four of them."""
    return connection._sslobj  # type: ignore[attr-defined]  # noqa: SLF001 - there is no other way to it


def self_signed(name: str) -> tuple[bytes, bytes]:
    """Make a self-signed certificate for a name; gives certificate and key in PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=_SELF_SIGNED_DAYS))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    key_pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return certificate.public_bytes(serialization.Encoding.PEM), key_pem
