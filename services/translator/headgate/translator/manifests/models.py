"""What the models of all kinds are made of: the base, durations, ports, and numbers that stand for text.

Manifests are read as the published schemas take them and a little more kindly: null is as good as absent, a duration
may be a number of seconds or a text such as `5s`, and a number stands for text where text is wanted. Fields that no
model has are kept aside, so that they can be named instead of being dropped without a word.
"""

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator
from pydantic.alias_generators import to_camel

from headgate.translator.manifests.texts import duration


class Model(BaseModel):
    """Base of all models: fields by their names in manifests."""

    # Validators are built at the first use of a model: manifests of Ingresses alone need none of them.
    model_config = ConfigDict(
        frozen=True, extra="allow", alias_generator=to_camel, hide_input_in_errors=True, defer_build=True
    )

    @model_validator(mode="before")
    @classmethod
    def _drop_nulls(cls, value: Any) -> Any:
        if isinstance(value, dict):
            return {name: member for name, member in value.items() if member is not None}
        return value


def _seconds(value: Any) -> Any:
    if isinstance(value, str):
        return 0.0 if value in ("0", "0s") else duration(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("must be a time such as 5s, 1m30s or 500ms, or a number of seconds")
    if value < 0:
        raise ValueError("must not be negative")
    return float(value)


def _text(value: Any) -> Any:
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def _port(value: Any) -> Any:
    if isinstance(value, str) and value.isascii() and value.isdigit():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int | str) or value == "":
        raise ValueError("must be the number of one of the Service's ports, or its name")
    if isinstance(value, int) and not 0 < value < 65536:
        raise ValueError("must be a number from 1 to 65535, or the name of one of the Service's ports")
    return value


INT_OR_STRING = {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]}

Seconds = Annotated[float, BeforeValidator(_seconds), WithJsonSchema(INT_OR_STRING)]
"""A time in seconds; 0 is as good as absent."""
Text = Annotated[str, BeforeValidator(_text)]
"""Text for which a number may stand, as YAML reads `value: 18`."""
ServicePort = Annotated[int | str, BeforeValidator(_port), WithJsonSchema(INT_OR_STRING)]
"""A port of a Service, by number or name."""
PortNumber = Annotated[int, Field(ge=1, le=65535)]
Name = Annotated[str, Field(min_length=1)]
KEEPS_UNKNOWN = ConfigDict(json_schema_extra={"x-kubernetes-preserve-unknown-fields": True})
"""`model_config` of a part that older versions spell otherwise: an API server must keep what it does not know of it."""
MAX_TARGETS = 16
"""Targets that a policy may have, as in policies of Gateway API."""
