"""ApisixTls: the certificate of some hosts, and what is asked of their clients."""

from typing import Annotated

from pydantic import Field

from headgate.translator.dialects.apisix.models.fields import SecretReference
from headgate.translator.manifests.models import Model, Name

Host = Annotated[str, Field(pattern=r"^\*?[0-9a-zA-Z-.]+$")]


class Client(Model):
    """Certificates of clients."""

    ca_secret: SecretReference | None = Field(default=None, description="Authorities that clients' certificates need.")
    depth: int = Field(default=0, ge=0, le=16, description="Longest chain of certificates; 1 by default.")
    skip_mtls_uri_regex: tuple[Name, ...] = Field(
        default=(),
        alias="skip_mtls_uri_regex",
        description="Paths, as patterns, that need no certificate.",
    )


class TlsSpec(Model):
    """A certificate and its hosts."""

    ingress_class_name: str = Field(default="", description="Class of the object; the default class without one.")
    hosts: Annotated[tuple[Host, ...], Field(min_length=1)] = Field(description="Server names, perhaps *.foo.com.")
    secret: SecretReference = Field(description="Secret with the certificate and its key.")
    client: Client | None = Field(default=None, description="What is asked of clients.")
