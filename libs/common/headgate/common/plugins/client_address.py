"""Which address stands for a client, where it is not the one that the gateway's trusted proxies name."""

from typing import Self

from pydantic import Field, model_validator

from headgate.common.plugins.config import PluginConfig
from headgate.common.plugins.fields import NetworkText


class ClientAddressConfig(PluginConfig):
    """An address of `X-Forwarded-For`, as trusted proxies have sent it, or a network of the client's own."""

    depth: int = Field(default=0, ge=0)
    """Its place, counted from the right, from 1 on. A request without such a place has no address."""
    excluded: tuple[NetworkText, ...] = ()
    """Without `depth`: the last address that is in none of these."""
    ipv6_subnet: int | None = Field(default=None, ge=0, le=128)
    """Bits of an IPv6 address; clients of one such network count as one. Not with `excluded`."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.depth and not self.excluded and self.ipv6_subnet is None:
            raise ValueError("needs depth, excluded or ipv6_subnet")
        return self
