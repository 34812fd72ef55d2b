"""What `authz-casbin` is told."""

import re
from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from headgate.common.plugins.config import PluginConfig

_SECTIONS = ("request_definition", "policy_definition", "policy_effect", "matchers")
_RULE = re.compile(r"\s*(?:[pg][0-9]?\s*,.*|#.*)?")


def checked_model(text: str) -> str:
    """Return a text that is a model of Casbin. Raises ValueError."""
    for section in _SECTIONS:
        if f"[{section}]" not in text:
            raise ValueError(f"a model of Casbin has a section [{section}]")
    return text


def checked_policy(text: str) -> str:
    """Return a text that has rules of Casbin. Raises ValueError."""
    for number, line in enumerate(text.splitlines(), 1):
        if not _RULE.fullmatch(line):
            raise ValueError(f"line {number} is no rule of Casbin: p, alice, /orders/*, GET")
    return text


class AuthzCasbinConfig(PluginConfig):
    """Fields of `authz-casbin`: `model` and `policy`, or the paths of two files."""

    model: Annotated[str, AfterValidator(checked_model)] | None = None
    """In Casbin's language; a request is a subject, a path and a method: `r = sub, obj, act`."""
    policy: Annotated[str, AfterValidator(checked_policy)] | None = None
    """Rules, one in a line: `p, admin, /orders/*, GET`, `g, alice, admin`."""
    model_path: str | None = Field(default=None, min_length=1)
    """A file below the gateway's `plugin_policy_dir`; of it a relative path is enough. Files go before texts."""
    policy_path: str | None = Field(default=None, min_length=1)
    username: str = Field(min_length=1)
    """Header that names the subject: `X-Consumer-Username`; `anonymous` without it."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.model_path is None) != (self.policy_path is None):
            raise ValueError("needs both model_path and policy_path, or neither")
        if self.model_path is None and (self.model is None or self.policy is None):
            raise ValueError("needs model and policy, or the files model_path and policy_path")
        return self
