"""GatewayProxy: what an IngressClass refers to for plugins of all its routes, and how a data plane is reached."""

from typing import Any

from pydantic import Field

from headgate.translator.dialects.apisix.models.fields import Model, Name


class ProxyPlugin(Model):
    """A plugin of every request."""

    name: Name = Field(description="Name of the plugin.")
    enabled: bool = Field(default=True, description="Whether the plugin runs.")
    config: dict[str, Any] = Field(default_factory=dict, description="What the plugin is told.")


class GatewayProxySpec(Model):
    """Plugins of every request, and a data plane."""

    publish_service: str = Field(default="", description="Not used: HEADGATE_PUBLISH_ADDRESSES says the addresses.")
    status_address: tuple[str, ...] = Field(
        default=(), description="Not used: HEADGATE_PUBLISH_ADDRESSES says the addresses."
    )
    provider: dict[str, Any] = Field(default_factory=dict, description="Not needed: there is no Admin API.")
    plugins: tuple[ProxyPlugin, ...] = Field(default=(), description="Plugins that run for every request.")
    plugin_metadata: dict[str, Any] = Field(default_factory=dict, description="Settings of plugins; not used.")
