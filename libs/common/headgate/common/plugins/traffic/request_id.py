"""Configuration of `request-id`."""

from typing import Literal

from pydantic import Field

from headgate.common.plugins.config import PluginConfig
from headgate.common.plugins.fields import HeaderName


class RangeId(PluginConfig):
    """Ids of characters that you choose."""

    length: int = Field(default=16, ge=6, le=256)
    char_set: str = Field(
        default="abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789&", min_length=6, pattern="^[!-~]+$"
    )


class RequestIdConfig(PluginConfig, plugin="request-id"):
    """Fields of `request-id`."""

    header_name: HeaderName = "X-Request-Id"
    include_in_response: bool = True
    algorithm: Literal["uuid", "nanoid", "range_id", "ksuid", "uuidv7"] = "uuid"
    range_id: RangeId = RangeId()
