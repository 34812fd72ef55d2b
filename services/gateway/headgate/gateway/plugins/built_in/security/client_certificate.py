"""`client-certificate`: tell the upstream of the certificates that a client has shown (Traefik's `passTLSClientCert`).

What clients send under these names themselves never passes, as it begins with `X-Forwarded-`.
"""

import base64
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final
from urllib.parse import quote_plus

from cryptography import x509
from cryptography.x509.oid import NameOID, ObjectIdentifier

from headgate.common.plugins.security.client_certificate import CertificateInfoConfig, ClientCertificateConfig
from headgate.gateway.plugins.interface import Plugin, Request

_CERTIFICATE: Final = "X-Forwarded-Tls-Client-Cert"
_INFO: Final = "X-Forwarded-Tls-Client-Cert-Info"
_PARTS: Final[Mapping[str, tuple[str, ObjectIdentifier]]] = {
    "domainComponent": ("DC", NameOID.DOMAIN_COMPONENT),
    "country": ("C", NameOID.COUNTRY_NAME),
    "province": ("ST", NameOID.STATE_OR_PROVINCE_NAME),
    "locality": ("L", NameOID.LOCALITY_NAME),
    "organization": ("O", NameOID.ORGANIZATION_NAME),
    "organizationalUnit": ("OU", NameOID.ORGANIZATIONAL_UNIT_NAME),
    "serialNumber": ("SN", NameOID.SERIAL_NUMBER),
    "commonName": ("CN", NameOID.COMMON_NAME),
}
"""In the order in which they are written."""
_SINGLE: Final = ("SN", "CN")
"""Those of which the last counts if there are several."""


class ClientCertificate(Plugin[ClientCertificateConfig]):
    """Writes headers about a client's certificate."""

    name = "client-certificate"
    order = 2950
    preview = "passes"
    Config = ClientCertificateConfig
    is_shareable = True

    def on_request(self, request: Request) -> None:
        """Write the headers, if there is a certificate."""
        encoded = request.fact("client_certificates")
        if not encoded:
            return
        if self.config.pem:
            request.headers.set(_CERTIFICATE, encoded)
        if self.config.info is not None:
            request.headers.set(_INFO, quote_plus(_all_described(encoded, self.config.info)))


@lru_cache(256)
def _read(encoded: str) -> x509.Certificate:
    return x509.load_der_x509_certificate(base64.b64decode(encoded))


def _all_described(encoded: str, info: CertificateInfoConfig) -> str:
    return ",".join(_described(each, info) for each in encoded.split(","))


def _described(encoded: str, info: CertificateInfoConfig) -> str:
    certificate = _read(encoded)
    values = [
        ("Subject", _name(certificate.subject, info.subject)),
        ("Issuer", _name(certificate.issuer, info.issuer)),
        ("SerialNumber", str(certificate.serial_number) if info.serial_number else ""),
        ("NB", str(int(certificate.not_valid_before_utc.timestamp())) if info.not_before else ""),
        ("NA", str(int(certificate.not_valid_after_utc.timestamp())) if info.not_after else ""),
        ("SAN", ",".join(_alternative_names(certificate)) if info.sans else ""),
    ]
    return ";".join(f'{name}="{value}"' for name, value in values if value)


def _name(name: x509.Name, wanted: Sequence[str]) -> str:
    parts = []
    for part, (short, oid) in _PARTS.items():
        if part in wanted:
            found = [str(each.value) for each in name.get_attributes_for_oid(oid) if each.value]
            parts += [f"{short}={value}" for value in (found[-1:] if short in _SINGLE else found)]
    return ",".join(parts)


def _alternative_names(certificate: x509.Certificate) -> Iterator[str]:
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return
    for kind in (x509.DNSName, x509.RFC822Name, x509.IPAddress, x509.UniformResourceIdentifier):
        yield from (str(value) for value in names.get_values_for_type(kind))
