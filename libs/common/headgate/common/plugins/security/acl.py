"""Configuration of `acl`."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from headgate.common.plugins.config import PluginConfig

_Labels = dict[str, Annotated[tuple[str, ...], Field(min_length=1)]]


class AclConfig(PluginConfig, plugin="acl"):
    """Fields of `acl`."""

    allow_labels: _Labels | None = Field(default=None, min_length=1)
    """Labels, and values of them: only consumers with one of these pass."""
    deny_labels: _Labels | None = Field(default=None, min_length=1)
    """Labels, and values of them: consumers with one of these are refused; looked at first."""
    rejected_code: int = Field(default=403, ge=200, le=599)
    rejected_msg: str | None = None
    external_user_label_field: str = Field(default="groups", min_length=1)
    """Taken for compatibility, as those that follow: they are about users of `saml-auth`, `feishu-auth` and
    `dingtalk-auth`, which do not exist here."""
    external_user_label_field_key: str | None = Field(default=None, min_length=1)
    external_user_label_field_parser: Literal["segmented_text", "json", "table"] | None = None
    external_user_label_field_separator: str | None = Field(default=None, min_length=1)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.allow_labels is None and self.deny_labels is None:
            raise ValueError("needs allow_labels or deny_labels")
        if self.external_user_label_field_parser == "segmented_text" and not self.external_user_label_field_separator:
            raise ValueError("needs external_user_label_field_separator with the parser segmented_text")
        return self
