"""What Gateways ask of clients that come over TLS."""

from typing import Literal

from pydantic import Field

from headgate.translator.dialects.gateway_api.models.gateway import SecretReference
from headgate.translator.manifests.models import Model, PortNumber


class AuthorityReference(SecretReference):
    """A ConfigMap with authorities."""

    kind: str = ""


class FrontendValidation(Model):
    """How clients' certificates are checked."""

    ca_certificate_refs: tuple[AuthorityReference, ...] = Field(alias="caCertificateRefs", min_length=1, max_length=8)
    mode: Literal["AllowValidOnly", "AllowInsecureFallback"] = "AllowValidOnly"


class FrontendTls(Model):
    """What holds for some listeners."""

    validation: FrontendValidation | None = None


class PortTls(Model):
    """What holds for the HTTPS listeners of a port."""

    port: PortNumber
    tls: FrontendTls


class GatewayFrontend(Model):
    """What holds for the HTTPS listeners of a Gateway."""

    default: FrontendTls
    per_port: tuple[PortTls, ...] = Field(default=(), max_length=64)
