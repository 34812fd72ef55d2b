"""A plugin, and its configuration."""

from typing import ClassVar, Protocol, Self

from pydantic import Field, JsonValue

from headgate.common.sealing import ClusterValue
from headgate.common.table.base import Entry


class TypedConfig(Protocol):
    """A plugin's configuration as a value: a model of `headgate.common.plugins`."""

    plugin: ClassVar[str]

    def written(self) -> dict[str, JsonValue]:
        """Return it as a user would write it."""


class PluginUse(Entry):
    """A plugin and its configuration, as a user wrote it or, made by `of`, as a dialect says it."""

    name: str
    """Under which the plugin is registered: `cors`."""
    config: dict[str, JsonValue] = Field(default_factory=dict)
    secrets: dict[str, ClusterValue] = Field(default_factory=dict)
    """Values that gateways open and put into the config, by their place in it: `users.0.password`."""
    order: int | None = None
    """Instead of the plugin's own; greater runs earlier."""
    fault: str = ""
    """Why the plugin cannot be followed, if requests must not come through without it: gateways refuse them."""
    is_nested: bool = False
    """Sees answers only of what comes behind it (Traefik): those of plugins that answer before a request comes to it
    pass it by."""
    is_global: bool = False
    """Runs before the plugins of routes, whatever the orders; no route's and no consumer's of the same name stands
    in its place."""

    gateways: tuple[str, ...] = ()
    """Gateways of the route, sorted, `<cluster>/<namespace>/<name>`: consumers of others are not recognised. Without
    any, those of all Gateways are."""

    @classmethod
    def of(cls, config: TypedConfig) -> Self:
        """Return the use of the plugin whose configuration it is."""
        return cls(name=config.plugin, config=config.written())
