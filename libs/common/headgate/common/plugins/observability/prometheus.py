"""Configuration of `prometheus` and `public-api`."""

from headgate.common.plugins.config import PluginConfig


class PrometheusConfig(PluginConfig, plugin="prometheus"):
    """Fields of `prometheus`."""

    prefer_name: bool = False
    """Taken for compatibility: routes are always counted under their names."""


class PublicApiConfig(PluginConfig, plugin="public-api"):
    """Fields of `public-api`."""

    uri: str = ""
    """The page; the request's own path by default."""
