"""Configuration of `satisfy-any`."""

from typing import Self

from pydantic import Field, model_validator

from headgate.common.plugins.authentication.basic_auth import BasicAuthConfig
from headgate.common.plugins.authentication.digest_auth import DigestAuthConfig
from headgate.common.plugins.authentication.forward_auth import ForwardAuthConfig
from headgate.common.plugins.config import PluginConfig
from headgate.common.plugins.security.ip_restriction import IpRestrictionConfig


class SatisfyAnyConfig(PluginConfig, plugin="satisfy-any"):
    """Fields of `satisfy-any`: two plugins at least."""

    ip_restriction: IpRestrictionConfig | None = Field(default=None, alias="ip-restriction")
    """A client of its `whitelist` is let in. One that is in neither list is left to the others."""
    basic_auth: BasicAuthConfig | None = Field(default=None, alias="basic-auth")
    """With users of its own."""
    digest_auth: DigestAuthConfig | None = Field(default=None, alias="digest-auth")
    forward_auth: ForwardAuthConfig | None = Field(default=None, alias="forward-auth")

    @model_validator(mode="after")
    def _check(self) -> Self:
        given = (self.ip_restriction, self.basic_auth, self.digest_auth, self.forward_auth)
        if sum(config is not None for config in given) < 2:
            raise ValueError("needs two plugins at least: {ip-restriction: {...}, basic-auth: {...}}")
        if self.basic_auth is not None and not self.basic_auth.has_users:
            raise ValueError("basic-auth is tried for users of its own only: it needs users or htpasswd")
        return self
