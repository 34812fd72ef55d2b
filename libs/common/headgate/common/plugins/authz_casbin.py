"""What `authz-casbin` is told."""

import re
from typing import Annotated

from pydantic import AfterValidator, Field

from headgate.common.plugins.config import PluginConfig

_SECTIONS = ("request_definition", "policy_definition", "policy_effect", "matchers")
_RULE = re.compile(r"\s*(?:[pg][0-9]?\s*,.*|#.*)?")


def _checked_model(text: str) -> str:
    for section in _SECTIONS:
        if f"[{section}]" not in text:
            raise ValueError(f"a model of Casbin has a section [{section}]")
    return text


def _checked_policy(text: str) -> str:
    for number, line in enumerate(text.splitlines(), 1):
        if not _RULE.fullmatch(line):
            raise ValueError(f"line {number} is no rule of Casbin: p, alice, /orders/*, GET")
    return text


class AuthzCasbinConfig(PluginConfig):
    """Fields of `authz-casbin`."""

    model: Annotated[str, AfterValidator(_checked_model)]
    """In Casbin's language; a request is a subject, a path and a method: `r = sub, obj, act`."""
    policy: Annotated[str, AfterValidator(_checked_policy)]
    """Rules, one in a line: `p, admin, /orders/*, GET`, `g, alice, admin`."""
    username: str = Field(min_length=1)
    """Header that names the subject: `X-Consumer-Username`; `anonymous` without it."""
