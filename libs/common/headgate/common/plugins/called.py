"""Whom plugins ask that send requests of their own."""

from typing import ClassVar, Self

from pydantic import Field, model_validator

from headgate.common.plugins.config import PluginConfig
from headgate.common.plugins.fields import check_url
from headgate.common.plugins.variables import REFERENCE


class CalledConfig(PluginConfig):
    """Whom a plugin asks: a service by its URL, or an upstream of the table with the path to ask for."""

    uri: str | None = None
    """`http://auth.example:9000/check`."""
    upstream: str | None = Field(default=None, min_length=1)
    """Key of an upstream of the table, instead of `uri`."""
    path: str = Field(default="/", pattern="^/")
    """With `upstream`."""
    ssl_verify: bool = True
    """Check the certificate of a `uri` over HTTPS."""

    is_uri_template: ClassVar[bool] = False
    """References in `uri` are filled in for each request."""

    @property
    def asks_nobody(self) -> bool:
        """Whether the plugin answers by itself as it is configured."""
        return False

    @model_validator(mode="after")
    def _check_called(self) -> Self:
        if self.asks_nobody and self.uri is None and self.upstream is None:
            return self
        if (self.uri is None) == (self.upstream is None):
            raise ValueError("needs either uri or upstream")
        if self.uri is not None:
            check_url(REFERENCE.sub("1", self.uri) if self.is_uri_template else self.uri)
        return self
