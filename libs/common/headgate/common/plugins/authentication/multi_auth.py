"""Configuration of `multi-auth`."""

from typing import Self

from pydantic import Field, model_validator

from headgate.common.plugins.authentication.basic_auth import BasicAuthConfig
from headgate.common.plugins.authentication.hmac_auth import HmacAuthConfig
from headgate.common.plugins.authentication.jwt_auth import JwtAuthConfig
from headgate.common.plugins.authentication.key_auth import KeyAuthConfig
from headgate.common.plugins.authentication.ldap_auth import LdapAuthConfig
from headgate.common.plugins.config import PluginConfig


class OneOfSeveral(PluginConfig):
    """One of the plugins that are tried: `{"key-auth": {"header": "X-API-KEY"}}`."""

    basic_auth: BasicAuthConfig | None = Field(default=None, alias="basic-auth")
    hmac_auth: HmacAuthConfig | None = Field(default=None, alias="hmac-auth")
    jwt_auth: JwtAuthConfig | None = Field(default=None, alias="jwt-auth")
    key_auth: KeyAuthConfig | None = Field(default=None, alias="key-auth")
    ldap_auth: LdapAuthConfig | None = Field(default=None, alias="ldap-auth")

    @property
    def named(self) -> tuple[str, PluginConfig]:
        """The plugin's name and what it is told."""
        [(name, config)] = self._given()
        return name, config

    def _given(self) -> list[tuple[str, PluginConfig]]:
        fields = type(self).model_fields.items()
        given = ((str(info.alias), getattr(self, field)) for field, info in fields)
        return [(name, config) for name, config in given if config is not None]

    @model_validator(mode="after")
    def _check(self) -> Self:
        if len(self._given()) != 1:
            raise ValueError("needs one plugin, with what it is told: {key-auth: {}}")
        if self.basic_auth is not None and self.basic_auth.has_users:
            raise ValueError("basic-auth is tried for consumers only, without users and htpasswd")
        return self


class MultiAuthConfig(PluginConfig, plugin="multi-auth"):
    """Fields of `multi-auth`."""

    auth_plugins: tuple[OneOfSeveral, ...] = Field(min_length=2, max_length=16)
    """Tried in this order; the first that recognises somebody has it."""
