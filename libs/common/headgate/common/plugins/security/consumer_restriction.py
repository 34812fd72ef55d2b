"""Configuration of `consumer-restriction`."""

from typing import Literal, Self

from pydantic import Field, model_validator

from headgate.common.plugins.config import PluginConfig

Method = Literal["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "CONNECT", "TRACE", "PURGE"]


class AllowedMethods(PluginConfig):
    """What one of them may do."""

    user: str = Field(min_length=1)
    methods: tuple[Method, ...] = ()


class ConsumerRestrictionConfig(PluginConfig, plugin="consumer-restriction"):
    """Fields of `consumer-restriction`."""

    type: Literal["consumer_name", "consumer_group_id", "route_id", "service_id"] = "consumer_name"
    """What the lists name: consumers, groups, routes (as `headgate routes --json` calls them) or upstreams by their
    keys. The last two are for a restriction in the plugins of a consumer."""
    whitelist: tuple[str, ...] = ()
    """Who alone may pass, with all methods."""
    blacklist: tuple[str, ...] = ()
    """Who may not; looked at first."""
    allowed_by_methods: tuple[AllowedMethods, ...] = ()
    """Methods of some; those who are not named here may use all."""
    rejected_code: int = Field(default=403, ge=200, le=599)
    rejected_msg: str | None = Field(default=None, min_length=1)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not (self.whitelist or self.blacklist or self.allowed_by_methods):
            raise ValueError("needs one of whitelist, blacklist and allowed_by_methods")
        return self
