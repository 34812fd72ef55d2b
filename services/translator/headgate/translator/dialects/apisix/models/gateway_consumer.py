"""Consumer of v1alpha1: who uses the routes of a Gateway, and how that is known."""

from typing import Any, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from headgate.translator.dialects.apisix.models.fields import SecretReference
from headgate.translator.dialects.apisix.models.plugin import NamedPlugin
from headgate.translator.manifests.models import Model, Name

CredentialType = Literal["jwt-auth", "basic-auth", "key-auth", "hmac-auth"]


class GatewayRef(Model):
    """A Gateway."""

    name: Name = Field(description="Name of the Gateway.")
    kind: Literal["Gateway"] = Field(default="Gateway", description="Gateway, by default.")
    group: Literal["gateway.networking.k8s.io"] = Field(
        default="gateway.networking.k8s.io", description="Gateway API, by default."
    )
    namespace: str = Field(default="", description="Namespace of the Gateway; the object's own by default.")


_ONE_SOURCE = "needs exactly one of config and secretRef"


class GatewayCredential(Model):
    """A credential, written here or in a Secret."""

    model_config = ConfigDict(
        json_schema_extra={
            "x-kubernetes-validations": [{"rule": "has(self.config) != has(self.secretRef)", "message": _ONE_SOURCE}]
        }
    )

    type: CredentialType = Field(description="The plugin that recognises it.")
    name: str = Field(default="", description="What upstreams are told that it was, in X-Credential-Identifier.")
    config: dict[str, Any] | None = Field(default=None, description="The credential, as its plugin has it.")
    secret_ref: SecretReference | None = Field(
        default=None,
        description="Secret with the same fields as keys; one in another namespace needs a ReferenceGrant there.",
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.config is None) == (self.secret_ref is None):
            raise ValueError(_ONE_SOURCE)
        return self


class GatewayConsumerSpec(Model):
    """Who uses the routes of a Gateway."""

    gateway_ref: GatewayRef = Field(description="The Gateway.")
    credentials: tuple[GatewayCredential, ...] = Field(default=(), description="How the consumer is known.")
    plugins: tuple[NamedPlugin, ...] = Field(default=(), description="Plugins of the consumer's requests.")
