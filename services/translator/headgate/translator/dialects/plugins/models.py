"""The spec as a model."""

from typing import Any, Final

from pydantic import Field

from headgate.translator.manifests.models import Model

MAX_PLUGINS: Final = 32
"""Plugins of one object."""


class SecretReference(Model):
    """A Secret in the namespace of the object."""

    name: str = Field(min_length=1, max_length=253, description="Name of the Secret.")


class NamedPlugin(Model):
    """A plugin and its configuration."""

    name: str = Field(min_length=1, max_length=128, description="Name of the plugin, such as limit-count.")
    config: dict[str, Any] = Field(
        default_factory=dict, description="The plugin's fields, as docs/plugins.md has them."
    )
    secret_ref: SecretReference | None = Field(
        default=None,
        description="Secret in the same namespace whose keys are merged into the configuration; a dot in a key goes "
        "one level down.",
    )


class PluginSpec(Model):
    """Plugins that routes name."""

    plugins: tuple[NamedPlugin, ...] = Field(
        min_length=1,
        max_length=MAX_PLUGINS,
        description="Plugins of the routes that name this object, each once.",
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
    )
