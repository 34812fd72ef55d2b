"""Configuration of `authz-casbin`."""

from functools import lru_cache
from typing import Annotated, Self

from pydantic import AfterValidator, Field, ValidationInfo, field_validator, model_validator

from headgate.common.casbin.deciding import Enforcer
from headgate.common.casbin.model import read_model
from headgate.common.effort import spend
from headgate.common.plugins.config import PluginConfig

_KEPT = 16


@lru_cache(_KEPT)
def enforcer_of(model: str, policy: str) -> Enforcer:
    """Return a model with its policy, read once for all routes that have the same. Raises CasbinFault."""
    return Enforcer(model, policy)


def checked_model(text: str) -> str:
    """Return a text that is a model of Casbin. Raises ValueError."""
    spend(len(text))
    read_model(text)
    return text


class AuthzCasbinConfig(PluginConfig, plugin="authz-casbin"):
    """Fields of `authz-casbin`: `model` and `policy`, or the paths of two files."""

    model: Annotated[str, AfterValidator(checked_model)] | None = None
    """In Casbin's language; a request is a subject, a path and a method: `r = sub, obj, act`."""
    policy: str | None = None
    """Rules, one in a line: `p, admin, /orders/*, GET`, `g, alice, admin`."""
    model_path: str | None = Field(default=None, min_length=1)
    """A file below the gateway's `plugin_policy_dir`; of it a relative path is enough. Files go before texts."""
    policy_path: str | None = Field(default=None, min_length=1)
    username: str = Field(min_length=1)
    """Header that names the subject: `X-Consumer-Username`; `anonymous` without it."""

    @field_validator("policy")
    @classmethod
    def _check_policy(cls, text: str | None, info: ValidationInfo) -> str | None:
        model = info.data.get("model")
        if text is not None and model is not None:
            spend(len(text))
            enforcer_of(model, text)
        return text

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.model_path is None) != (self.policy_path is None):
            raise ValueError("needs both model_path and policy_path, or neither")
        if self.model_path is None and (self.model is None or self.policy is None):
            raise ValueError("needs model and policy, or the files model_path and policy_path")
        return self
