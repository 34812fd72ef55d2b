"""TLSOption and TLSStore: how TLS is spoken with clients."""

from typing import Literal

from pydantic import Field

from headgate.translator.dialects.traefik.models.fields import Domain, LocalSecret
from headgate.translator.manifests.models import Model


class ClientAuthentication(Model):
    """Certificates of clients."""

    secret_names: tuple[str, ...] = Field(default=(), description="Secrets with authorities, under tls.ca or ca.crt.")
    client_auth_type: Literal[
        "",
        "NoClientCert",
        "RequestClientCert",
        "RequireAnyClientCert",
        "VerifyClientCertIfGiven",
        "RequireAndVerifyClientCert",
    ] = Field(default="", description="What is asked of clients; NoClientCert by default.")


class TlsOptionSpec(Model):
    """Versions, ciphers and client authentication."""

    min_version: str = Field(default="", description="VersionTLS10 to VersionTLS13; VersionTLS12 by default.")
    max_version: str = Field(default="", description="VersionTLS10 to VersionTLS13; the newest by default.")
    cipher_suites: tuple[str, ...] = Field(default=(), description="Suites of TLS 1.2 and older, by Go's names.")
    curve_preferences: tuple[str, ...] = Field(default=(), description="Curves, the preferred first.")
    client_auth: ClientAuthentication | None = Field(default=None, description="Certificates of clients.")
    sni_strict: bool = Field(default=False, description="Refuse names without a certificate.")
    alpn_protocols: tuple[str, ...] = Field(default=(), description="Protocols; h2, http/1.1, acme-tls/1 by default.")
    disable_session_tickets: bool = Field(default=False, description="No resumption of sessions by tickets.")
    prefer_server_cipher_suites: bool | None = Field(default=None, description="Deprecated, without effect.")


class GeneratedCertificate(Model):
    """A default certificate that a resolver gets."""

    resolver: str = Field(default="", description="Who is asked for it.")
    domain: Domain | None = Field(default=None, description="Names that it is asked for.")


class TlsStoreSpec(Model):
    """Certificates that no route names."""

    default_certificate: LocalSecret | None = Field(default=None, description="For names without a certificate.")
    default_generated_cert: GeneratedCertificate | None = Field(default=None, description="The same, from a resolver.")
    certificates: tuple[LocalSecret, ...] = Field(default=(), description="Further certificates.")
