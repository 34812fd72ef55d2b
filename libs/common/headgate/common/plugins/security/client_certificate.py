"""Configuration of `client-certificate`."""

from typing import Literal

from pydantic import Field

from headgate.common.plugins.config import PluginConfig

NamePart = Literal[
    "domainComponent",
    "country",
    "province",
    "locality",
    "organization",
    "organizationalUnit",
    "serialNumber",
    "commonName",
]


class CertificateInfoConfig(PluginConfig):
    """Parts of a certificate."""

    subject: tuple[NamePart, ...] = ()
    """Of the client's name."""
    issuer: tuple[NamePart, ...] = ()
    """Of the issuer's name."""
    serial_number: bool = False
    not_before: bool = False
    not_after: bool = False
    sans: bool = False
    """Its other names."""


class ClientCertificateConfig(PluginConfig, plugin="client-certificate"):
    """Fields of `client-certificate`."""

    pem: bool = False
    """Tell the upstream the certificate in `X-Forwarded-Tls-Client-Cert`: PEM in one line, without its frame."""
    info: CertificateInfoConfig | None = Field(default=None)
    """And these parts of it in `X-Forwarded-Tls-Client-Cert-Info`, encoded as in a query."""
