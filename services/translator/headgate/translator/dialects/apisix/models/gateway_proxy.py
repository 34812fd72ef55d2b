"""GatewayProxy: what an IngressClass refers to for plugins of all its routes, and for addresses in statuses.

How its own controller reaches a data plane stands there too. Nothing of that is needed here, but it is checked, as the
published schema checks it.
"""

from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field, JsonValue, model_validator

from headgate.translator.manifests.models import Model, Name, PortNumber


def _rules(*rules: tuple[str, str]) -> ConfigDict:
    """Return rules of CEL, each with its message, for the schema; models say the same in their validators."""
    written: list[JsonValue] = [{"rule": rule, "message": message} for rule, message in rules]
    return ConfigDict(json_schema_extra={"x-kubernetes-validations": written})


class ProxyPlugin(Model):
    """A plugin of every request."""

    name: Name = Field(description="Name of the plugin.")
    enabled: bool = Field(default=True, description="Whether the plugin runs.")
    config: dict[str, Any] = Field(default_factory=dict, description="What the plugin is told.")


class SecretKey(Model):
    """A value of a Secret."""

    name: Name = Field(description="Name of the Secret.")
    key: Name = Field(description="Key of the value in the Secret.")


class AdminKeySource(Model):
    """Where a key is found."""

    secret_key_ref: SecretKey | None = Field(default=None, description="A value of a Secret.")


_ONE_OF_VALUES = "exactly one of value and valueFrom must be given"


class AdminKey(Model):
    """The key of an Admin API."""

    model_config = _rules(("has(self.value) != has(self.valueFrom)", _ONE_OF_VALUES))

    value: str = Field(default="", description="The key itself; hidden wherever it is read.")
    value_from: AdminKeySource | None = Field(default=None, description="Where the key is found.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if ("value" in self.model_fields_set) == (self.value_from is not None):
            raise ValueError(_ONE_OF_VALUES)
        return self


_NEEDS_KEY = "adminKey must be given with the type AdminKey"


class ControlPlaneAuth(Model):
    """How an Admin API knows its controller."""

    model_config = _rules(("self.type == 'AdminKey' ? has(self.adminKey) : true", _NEEDS_KEY))

    type: Literal["AdminKey"] = Field(description="AdminKey.")
    admin_key: AdminKey | None = Field(default=None, description="The key of the Admin API.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.admin_key is None:
            raise ValueError(_NEEDS_KEY)
        return self


class ProviderService(Model):
    """The Service of an Admin API."""

    name: Name = Field(description="Name of the Service.")
    port: PortNumber | None = Field(default=None, description="Its port.")


_ONE_OF_TARGETS = "exactly one of endpoints and service must be given"


class ControlPlane(Model):
    """An Admin API."""

    model_config = _rules(
        ("has(self.endpoints) != has(self.service)", _ONE_OF_TARGETS),
        (
            "oldSelf == null || (!has(self.mode) && !has(oldSelf.mode)) || self.mode == oldSelf.mode",
            "mode is immutable",
        ),
    )

    mode: str = Field(default="", description="apisix, or apisix-standalone.")
    endpoints: Annotated[tuple[str, ...], Field(min_length=1)] | None = Field(
        default=None, description="Addresses of the Admin API."
    )
    service: ProviderService | None = Field(default=None, description="Service of the Admin API.")
    tls_verify: bool | None = Field(default=None, description="Whether its certificate is checked.")
    auth: ControlPlaneAuth = Field(description="How it knows its controller.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.endpoints is None) == (self.service is None):
            raise ValueError(_ONE_OF_TARGETS)
        return self


_NEEDS_CONTROL_PLANE = "controlPlane must be given with the type ControlPlane"


class Provider(Model):
    """A data plane of the other controller."""

    model_config = _rules(("self.type == 'ControlPlane' ? has(self.controlPlane) : true", _NEEDS_CONTROL_PLANE))

    type: Literal["ControlPlane"] = Field(description="ControlPlane.")
    control_plane: ControlPlane | None = Field(default=None, description="How its Admin API is reached.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.control_plane is None:
            raise ValueError(_NEEDS_CONTROL_PLANE)
        return self


class GatewayProxySpec(Model):
    """Plugins of every request, what uses of plugins have in common, and addresses."""

    publish_service: str = Field(
        default="",
        description="Service, as namespace/name, whose load balancer's addresses stand in the status of the Ingresses "
        "of the class.",
    )
    status_address: tuple[str, ...] = Field(
        default=(),
        description="Addresses and host names that stand in the status of the Ingresses of the class, before those of "
        "publishService.",
    )
    provider: Provider | None = Field(
        default=None, description="Not needed, as there is no Admin API; it is checked all the same."
    )
    plugins: tuple[ProxyPlugin, ...] = Field(default=(), description="Plugins that run for every request.")
    plugin_metadata: dict[str, Any] = Field(
        default_factory=dict,
        description="What all uses of a plugin in resources of the class have in common, by the plugin's name.",
    )
