"""Configuration of `body-transformer`."""

import base64
import binascii
from typing import Final, Literal, Self

from pydantic import Field, model_validator

from headgate.common.effort import spend
from headgate.common.plugins.config import PluginConfig
from headgate.common.templates.nodes import Template
from headgate.common.templates.parsing import MAX_LENGTH, parse

MAX_BODY: Final = 8 << 20
"""Bytes of a body that is decoded in one piece."""
BodyFormat = Literal["xml", "json", "encoded", "args", "plain", "multipart"]


class BodyTemplate(PluginConfig):
    """How one body becomes another."""

    input_format: BodyFormat | None = None
    """What the body is; without it `Content-Type` says so. `args` are the parameters of the request's query, as for
    every GET; `plain` has no fields, only `_body`."""
    template: str = Field(min_length=1, max_length=2 * MAX_LENGTH)
    """32 KiB at most. `{{name}}` is a field of the body, escaped for HTML, `{*name*}` the same as it is, and
    `{% if name then %}` a condition."""
    template_is_base64: bool = False
    """`template` is given in base64. One that can be read so is taken so without it too, unless the format is
    `encoded` or `args`."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        self.parsed()
        return self

    def parsed(self) -> Template:
        """Read the template. Raises ValueError."""
        try:
            text = self._text()
            spend(3 * len(text))
            return parse(text)
        except ValueError as fault:
            raise ValueError(f"template: {fault}") from None

    def _text(self) -> str:
        if not self.template_is_base64 and self.input_format in ("encoded", "args"):
            return self.template
        try:
            return base64.b64decode(self.template, validate=True).decode()
        except (binascii.Error, ValueError):
            if self.template_is_base64:
                raise ValueError("is not UTF-8 in base64") from None
            return self.template


class BodyTransformerConfig(PluginConfig, plugin="body-transformer"):
    """Fields of `body-transformer`: one of the two templates or both."""

    request: BodyTemplate | None = None
    response: BodyTemplate | None = None
    max_req_body_size: int = Field(default=1 << 20, gt=0)
    """Bytes, once it is decompressed too; longer bodies are refused with 413. At most 8 MiB count."""
    max_resp_body_size: int = Field(default=1 << 20, gt=0)
    """The same of answers, in the place of which the client gets a 502."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.request is None and self.response is None:
            raise ValueError("needs request or response")
        return self
