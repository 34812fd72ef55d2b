"""Configuration of `grpc-transcode`."""

from typing import Literal, Self

from pydantic import Field, model_validator

from headgate.common.plugins.config import PluginConfig
from headgate.common.plugins.transformation.protobuf_methods import find_method

Option = Literal[
    "enum_as_name",
    "enum_as_value",
    "int64_as_number",
    "int64_as_string",
    "int64_as_hexstring",
    "auto_default_values",
    "no_default_values",
    "use_default_values",
    "use_default_metatable",
    "enable_hooks",
    "disable_hooks",
]


class GrpcTranscodeConfig(PluginConfig, plugin="grpc-transcode"):
    """Fields of `grpc-transcode`."""

    proto: str | None = Field(default=None, min_length=1)
    """Descriptors of the service in base64, as `protoc --include_imports --descriptor_set_out=x.pb x.proto` writes
    them."""
    proto_id: str | int | None = None
    """Taken for compatibility: it names what Apache APISIX has from its Admin API, of which `proto` takes the place."""
    service: str = Field(min_length=1)
    """With its package: `helloworld.Greeter`."""
    method: str = Field(min_length=1)
    """One that takes a message and gives a message, no stream of them."""
    deadline: float = Field(default=0, ge=0)
    """Milliseconds that the service is told it has; 0: it is told none."""
    pb_option: tuple[Option, ...] = Field(
        default=("enum_as_name", "int64_as_number", "auto_default_values", "disable_hooks"), min_length=1
    )
    """How answers are written: members of enumerations by name or number; numbers of 64 bits as numbers, or as text
    behind a `#`; fields that are not set with their default values, or not at all."""
    show_status_in_body: bool = False
    """Errors have the status and its details (`grpc-status-details-bin`) as `{"error": …}` in their body."""
    status_detail_type: str | None = None
    """Message in `proto` that the details are."""
    max_resp_body_size: int = Field(default=64 << 20, ge=1)
    """Bytes of an answer; a longer one is a 502. At most 4 MiB count."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.proto is None:
            raise ValueError(
                "needs proto, the descriptors of the service in base64 (protoc --include_imports "
                "--descriptor_set_out): there is no Admin API with what proto_id names"
            )
        found = find_method(self.proto, self.service, self.method)
        if self.status_detail_type is not None:
            found.message_of(self.status_detail_type)
        return self
