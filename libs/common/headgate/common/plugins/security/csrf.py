"""Configuration of `csrf`."""

from pydantic import Field

from headgate.common.plugins.config import PluginConfig, SecretText
from headgate.common.plugins.fields import HeaderName


class CsrfConfig(PluginConfig, plugin="csrf"):
    """Fields of `csrf`."""

    key: SecretText
    """Signs the tokens; the same in all replicas."""
    expires: int = Field(default=7200, ge=0)
    """Seconds for which a token is taken; 0: without end."""
    name: HeaderName = "apisix-csrf-token"
    """Of the cookie and of the header."""
