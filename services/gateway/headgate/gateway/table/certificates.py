"""Certificates with their keys opened: the only place where a sealed key becomes a usable one."""

from dataclasses import dataclass

from headgate.common.errors import SealingError
from headgate.common.sealing import Purpose, Unseal
from headgate.common.secret import Secret
from headgate.common.table import Certificate


@dataclass(frozen=True, slots=True)
class OpenedCertificate:
    """A certificate as the TLS listener takes it."""

    key: str
    server_names: tuple[str, ...]
    chain_pem: str
    private_key: Secret[bytes] | None
    """PEM; None if it could not be opened and no earlier version of the certificate could either."""
    fingerprint: str
    not_after: str = ""
    """RFC 3339; empty if the table does not say."""
    problem: str = ""
    """Why the newest version is not the one served; empty if it is."""


def open_certificate(certificate: Certificate, previous: OpenedCertificate | None, unseal: Unseal) -> OpenedCertificate:
    """Open a certificate's key; if that fails go on with the certificate that was served before."""
    try:
        private_key = unseal(certificate.private_key, Purpose.PRIVATE_KEY)
    except SealingError as error:
        return _refused(certificate, previous, f"the key of {certificate.key} cannot be opened: {error}")
    return OpenedCertificate(
        key=certificate.key,
        server_names=certificate.server_names,
        chain_pem=certificate.chain_pem,
        private_key=private_key,
        fingerprint=certificate.fingerprint,
        not_after=certificate.not_after,
    )


def _refused(certificate: Certificate, previous: OpenedCertificate | None, problem: str) -> OpenedCertificate:
    return OpenedCertificate(
        key=certificate.key,
        server_names=previous.server_names if previous else certificate.server_names,
        chain_pem=previous.chain_pem if previous else certificate.chain_pem,
        private_key=previous.private_key if previous else None,
        fingerprint=previous.fingerprint if previous else certificate.fingerprint,
        not_after=previous.not_after if previous else certificate.not_after,
        problem=problem,
    )
