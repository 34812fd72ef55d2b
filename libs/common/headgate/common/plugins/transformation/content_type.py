"""Configuration of `content-type`."""

from headgate.common.plugins.config import PluginConfig


class ContentTypeConfig(PluginConfig, plugin="content-type"):
    """`content-type` has no fields."""
