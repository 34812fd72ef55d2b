"""The base of what plugins are told, and secrets in it."""

from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, PlainValidator

from headgate.common.secret import Secret


class PluginConfig(BaseModel):
    """Base of what plugins are told; fields that a plugin does not know are refused."""

    # The catalogue has over a hundred models, and most tables use few: validators are built at the first use of each,
    # which is when a table with such a plugin is compiled, not its first request. Table entries are different: decoding
    # chunks needs nearly all of them, and a model that is built by itself and within its parent is built twice.
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True, defer_build=True)


SEALED: Final = Secret("")
"""Stands in a configuration for a value that only gateways can open; it is there, and nothing is known of it."""


def _read_secret(value: object) -> Secret[str]:
    if isinstance(value, Secret):
        return value
    if not isinstance(value, str):
        raise ValueError("must be text")
    return Secret(value)


SecretText = Annotated[Secret[str], PlainValidator(_read_secret)]
"""A text that prints as `***`; `reveal()` gives it where it is used."""
