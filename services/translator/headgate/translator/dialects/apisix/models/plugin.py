"""Plugins as the kinds name them, and the kinds that hold nothing else."""

from typing import Any

from pydantic import Field

from headgate.translator.manifests.models import Model, Name


class Plugin(Model):
    """A plugin and its configuration."""

    name: Name = Field(description="Name of the plugin, such as limit-count.")
    enable: bool = Field(default=True, description="Whether the plugin runs; true by default.")
    config: dict[str, Any] = Field(default_factory=dict, description="What the plugin is told.")
    secret_ref: str = Field(
        default="",
        description="Secret in the same namespace whose keys are merged into the configuration; a dot in a key goes "
        "one level down.",
    )


class NamedPlugin(Model):
    """A plugin and its configuration."""

    name: Name = Field(description="Name of the plugin, such as limit-count.")
    config: dict[str, Any] = Field(default_factory=dict, description="What the plugin is told.")


class PluginConfigSpec(Model):
    """Plugins that several routes share."""

    ingress_class_name: str = Field(default="", description="Class of the object; the default class without one.")
    plugins: tuple[Plugin, ...] = Field(default=(), description="Plugins of the routes that name this object.")


class GlobalRuleSpec(Model):
    """Plugins of every request."""

    ingress_class_name: str = Field(default="", description="Class of the object; the default class without one.")
    plugins: tuple[Plugin, ...] = Field(default=(), description="Plugins that run for every request.")


class RoutePluginConfigSpec(Model):
    """Plugins that routes of Gateway API name by an ExtensionRef."""

    plugins: tuple[NamedPlugin, ...] = Field(description="Plugins of the routes that name this object.")
