"""Who a client is by its certificate: checked for each request to a host that asks, and told to its upstream.

The handshake verifies; a request then has to come over a connection that was verified for its own host. HTTP lets a
client name any host on a connection, so without that check the name in the handshake would choose the rules, and the
Host header the target.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Protocol
from urllib.parse import quote

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.x509.oid import NameOID

if TYPE_CHECKING:
    from headgate.gateway.tls.policy import ClientGuard

Refusal = tuple[int, str, bytes]
"""Status, reason, further whole header lines."""

_CLAIMS: Final = re.compile(rb"(?im)^ssl[-_]client[-_](?:verify|subject[-_]dn|issuer[-_]dn|cert)[ \t]*:[^\r\n]*\r\n")
_ATTRIBUTE_NAMES: Final = {NameOID.EMAIL_ADDRESS: "emailAddress", NameOID.SERIAL_NUMBER: "serialNumber"}
"""As OpenSSL calls what cryptography writes as numbers."""


@dataclass(frozen=True, slots=True)
class ClientIdentity:
    """What a connection's client certificate says."""

    verdict: str
    """`SUCCESS`, `NONE` or `FAILED:<reason>`, as nginx `$ssl_client_verify`."""
    subject_dn: str = ""
    """RFC 2253, printable ASCII: all other bytes of its UTF-8 form as `\\XX`."""
    issuer_dn: str = ""
    serial: str = ""
    """Hex, upper case."""
    sha1: str = ""
    """Fingerprints of the certificate in DER, hex."""
    sha256: str = ""
    pem: str = ""
    lacks_authority: bool = False
    """Nothing is wrong with it but that no known authority vouches for it."""


NOBODY: Final = ClientIdentity("NONE")
MISDIRECTED: Final = "the connection was made for another server name"


class TlsConnection(Protocol):
    """The connection that a request came over, as far as it matters here."""

    @property
    def server_name(self) -> str:
        """That the client asked for; empty if it did for none."""

    @property
    def asked(self) -> str:
        """What a certificate was verified against; empty if none was asked for."""

    @property
    def identity(self) -> ClientIdentity:
        """Who the client is."""

    @property
    def chain(self) -> Sequence[bytes]:
        """Certificates in DER that the client sent, its own first. A resumed session has none but that."""

    def suits(self, host: str) -> bool:
        """Whether the handshake followed the policy of a host: lower case, empty if a request names none."""

    def version(self) -> str | None:
        """Version of TLS: `TLSv1.3`."""


def read_identity(
    certificate: bytes | None, now: datetime | None = None, *, failure: str = "", lacks_authority: bool = False
) -> ClientIdentity:
    """Read a certificate in DER that the handshake verified, or failed to verify; None: the client showed none.

    A resumed session is not verified again, so its certificate may have ended meanwhile.
    """
    if not certificate:
        return NOBODY
    read = x509.load_der_x509_certificate(certificate)
    ended = read.not_valid_after_utc < (now or datetime.now(UTC))
    return ClientIdentity(
        verdict=f"FAILED:{failure or 'certificate has expired'}" if failure or ended else "SUCCESS",
        subject_dn=_printable(read.subject),
        issuer_dn=_printable(read.issuer),
        serial=f"{read.serial_number:X}",
        sha1=read.fingerprint(hashes.SHA1()).hex(),  # noqa: S303 - a name that others use, not a proof
        sha256=read.fingerprint(hashes.SHA256()).hex(),
        pem=read.public_bytes(serialization.Encoding.PEM).decode(),
        lacks_authority=lacks_authority and not ended,
    )


def _printable(name: x509.Name) -> str:
    """Write a name for a header: a certificate may hold line breaks, and a header must not."""
    written = name.rfc4514_string(_ATTRIBUTE_NAMES).encode()
    return "".join(chr(byte) if 0x20 <= byte < 0x7F else f"\\{byte:02X}" for byte in written)


def check(
    guard: "ClientGuard", connection: TlsConnection | None, path: bytes = b"", secure_url: bytes = b""
) -> Refusal | None:
    """Decide whether a request may reach a host that asks for client certificates; None lets it in.

    Args:
        guard: of the host that the request was matched to.
        connection: that it came over; None for plain HTTP.
        path: of the request, as routes are asked for it.
        secure_url: the same request over HTTPS; empty if it came over HTTPS, or nobody knows its host.
    """
    if guard.problem:
        return 500, guard.problem, b""
    if connection is not None and connection.asked != guard.asked:
        # RFC 9110 section 15.5.20: the client asks again on a connection of its own.
        return 421, MISDIRECTED, b""
    identity = connection.identity if connection is not None else NOBODY
    is_needed = guard.is_required and not any(pattern.match(path) for pattern in guard.skip_paths)
    is_taken = identity.verdict == "SUCCESS" or (guard.takes_unverified and identity.lacks_authority)
    is_taken = is_taken or (guard.takes_any and identity is not NOBODY)
    if not is_taken and (is_needed or identity is not NOBODY):
        if guard.redirects_http and secure_url:
            return 308, "a client certificate needs HTTPS", b"Location: %b\r\n" % secure_url
        return _send_away(guard, identity)
    name = identity.subject_dn.encode()
    if guard.allowed_names and not any(pattern.search(name) for pattern in guard.allowed_names):
        return 403, "the client certificate's subject is not among those allowed", b""
    return None


def _send_away(guard: "ClientGuard", identity: ClientIdentity) -> Refusal:
    reason = "no client certificate was sent" if identity is NOBODY else f"client certificate: {identity.verdict}"
    if guard.error_page:
        return 302, reason, b"Location: %b\r\n" % guard.error_page.encode()
    return 400, reason, b""


def identity_lines(guard: "ClientGuard", connection: TlsConnection | None) -> bytes:
    """Write the header lines that tell an upstream who the client is, named as ingress-nginx names them."""
    identity = connection.identity if connection is not None else NOBODY
    lines = f"ssl-client-verify: {identity.verdict}\r\n"
    if identity is not NOBODY:
        lines += f"ssl-client-subject-dn: {identity.subject_dn}\r\nssl-client-issuer-dn: {identity.issuer_dn}\r\n"
        if guard.pass_certificate:
            lines += f"ssl-client-cert: {quote(identity.pem, safe='')}\r\n"
    return lines.encode("ascii")


def without_claims(lines: bytes) -> bytes:
    """Drop what the client itself sent under the names of `identity_lines`, spelled with `_` too."""
    return _CLAIMS.sub(b"", lines)
