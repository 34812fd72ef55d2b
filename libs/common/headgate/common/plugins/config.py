"""The base of what plugins are told, and secrets in it."""

from typing import Annotated, Any, ClassVar, Final

from pydantic import BaseModel, ConfigDict, JsonValue, PlainSerializer, PlainValidator, SerializationInfo

from headgate.common.secret import Secret

_REVEALED: Final = object()
"""Context of a serialization that shows secrets."""


class PluginConfig(BaseModel):
    """Base of what plugins are told; fields that a plugin does not know are refused."""

    # The catalogue has over a hundred models, and most tables use few: validators are built at the first use of each,
    # which is when a table with such a plugin is compiled, not its first request. Table entries are different: decoding
    # chunks needs nearly all of them, and a model that is built by itself and within its parent is built twice.
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True, defer_build=True)

    plugin: ClassVar[str] = ""
    """Name of the plugin whose configuration it is: a keyword of the class. Parts of a configuration have none."""

    def __init_subclass__(cls, *, plugin: str = "", **settings: Any) -> None:
        super().__init_subclass__(**settings)
        if plugin:
            cls.plugin = plugin

    def written(self) -> dict[str, JsonValue]:
        """Return what was given, as a user would write it: for the table, secrets included."""
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True, context=_REVEALED)


SEALED: Final = Secret("")
"""Stands in a configuration for a value that only gateways can open; it is there, and nothing is known of it."""


def _read_secret(value: object) -> Secret[str]:
    if isinstance(value, Secret):
        return value
    if not isinstance(value, str):
        raise ValueError("must be text")
    return Secret(value)


def _write_secret(secret: Secret[str], info: SerializationInfo) -> str:
    return secret.reveal() if info.context is _REVEALED else str(secret)


SecretText = Annotated[
    Secret[str], PlainValidator(_read_secret), PlainSerializer(_write_secret, return_type=str, when_used="json")
]
"""A text that prints as `***`; `reveal()` gives it where it is used."""
