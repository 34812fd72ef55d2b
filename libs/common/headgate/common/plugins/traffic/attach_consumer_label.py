"""Configuration of `attach-consumer-label`."""

from typing import Annotated

from pydantic import Field

from headgate.common.plugins.config import PluginConfig
from headgate.common.plugins.fields import HeaderName


class AttachConsumerLabelConfig(PluginConfig, plugin="attach-consumer-label"):
    """Fields of `attach-consumer-label`."""

    headers: dict[HeaderName, Annotated[str, Field(pattern=r"^\$.")]] = Field(min_length=1, max_length=64)
    """Headers, and labels of the consumer behind a `$`: `{"X-Department": "$department"}`. What clients send
    under these names is dropped, also where the consumer lacks the label."""
