"""Certificates by server name, changed while connections come in.

The listener has one context for good; its server-name callback puts the right one in its place during the handshake.
Contexts are made when a name is first asked for and kept by fingerprint: ten thousand certificates cost nothing until
they are used, and a swap of the table costs one dictionary.
"""

import contextlib
import datetime
import logging
import os
import ssl
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from headgate.common.secret import Secret

_log = logging.getLogger(__name__)

FALLBACK_NAME = "headgate.invalid"
_FALLBACK_DAYS = 3650

CertificateEntry = tuple[tuple[str, ...], str, Secret[bytes], str]
"""Server names (lower case; `*.foo.com` for one more label), chain in PEM, key in PEM, fingerprint."""


@dataclass(frozen=True, slots=True)
class _Held:
    chain_pem: str
    key_pem: Secret[bytes]
    fingerprint: str


class CertificateStore:
    """What a TLS listener presents. Names that no certificate has get a self-signed one made at the start."""

    def __init__(self) -> None:
        chain, key = self_signed(FALLBACK_NAME)
        self._by_name: dict[str, _Held] = {}
        self._contexts: dict[str, ssl.SSLContext] = {}
        self._unusable: set[str] = set()
        self.server_context = _server_context(chain, key)
        """The context for listeners."""
        # A method of this object, seen as the attribute that typeshed knows it as.
        self.server_context.sni_callback = self._choose

    def set_certificates(self, entries: Iterable[CertificateEntry]) -> None:
        """Replace all certificates. Of two with the same name the first is used."""
        by_name: dict[str, _Held] = {}
        for names, chain_pem, key_pem, fingerprint in entries:
            held = _Held(chain_pem, key_pem, fingerprint)
            for name in names:
                by_name.setdefault(_normal(name), held)
        live = {held.fingerprint for held in by_name.values()}
        self._by_name = by_name
        self._contexts = {key: context for key, context in self._contexts.items() if key in live}
        self._unusable &= live

    def context_for(self, server_name: str) -> ssl.SSLContext:
        """Give the context for a server name: exact, then wildcard of one label, then the fallback."""
        name = _normal(server_name)
        held = self._by_name.get(name) or self._by_name.get("*." + name.partition(".")[2])
        if held is None or held.fingerprint in self._unusable:
            return self.server_context
        return self._contexts.get(held.fingerprint) or self._load(held)

    def _load(self, held: _Held) -> ssl.SSLContext:
        try:
            context = _server_context(held.chain_pem.encode(), held.key_pem.reveal())
        except (ssl.SSLError, ValueError) as error:
            # The translator refuses what does not fit; should one come through, only its own names suffer.
            self._unusable.add(held.fingerprint)
            _log.warning("certificate unusable", extra={"fingerprint": held.fingerprint, "error": str(error)})
            return self.server_context
        self._contexts[held.fingerprint] = context
        return context

    def _choose(self, connection: ssl.SSLObject | ssl.SSLSocket, name: str | None, _: ssl.SSLContext) -> None:
        if name:
            connection.context = self.context_for(name)


def _normal(name: str) -> str:
    return name.lower().removesuffix(".")


def _server_context(chain_pem: bytes, key_pem: bytes) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    # Renegotiation and compression have nothing but attacks to offer.
    context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION
    with _in_memory_file(chain_pem) as chain, _in_memory_file(key_pem) as key:
        context.load_cert_chain(chain, key)
    return context


@contextlib.contextmanager
def _in_memory_file(content: bytes) -> Iterator[str]:
    """Path of an anonymous file in memory: OpenSSL's loader takes paths only, and a key does not go to a disk."""
    descriptor = os.memfd_create("pem", os.MFD_CLOEXEC)
    try:
        os.write(descriptor, content)
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)


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
        .not_valid_after(now + datetime.timedelta(days=_FALLBACK_DAYS))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    key_pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return certificate.public_bytes(serialization.Encoding.PEM), key_pem
