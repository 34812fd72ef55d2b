"""Configuration of `cors`."""

from typing import Annotated, Self

from pydantic import BeforeValidator, Field, model_validator

from headgate.common.plugins.config import PluginConfig
from headgate.common.plugins.fields import HeaderValue, PatternText


def _join(value: object) -> object:
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else value


ListText = Annotated[HeaderValue, BeforeValidator(_join)]
"""Comma-separated, or a list."""


class CorsConfig(PluginConfig, plugin="cors"):
    """Fields of `cors`."""

    allow_origins: ListText = "*"
    """`*`; `**` for any, also with credentials; `null`; or `https://a.example,https://*.b.example:8443`, where `*` is
    one label."""
    allow_origins_by_regex: tuple[PatternText, ...] = ()
    """Origins that match one of these are allowed too, and `allow_origins` counts only if it is given."""
    allow_origins_by_metadata: tuple[str, ...] = ()
    """Names of lists of origins in the plugin's metadata; the translation puts the lists into `allow_origins`."""
    allow_methods: ListText = "*"
    """`**` for all, by name, which works with credentials."""
    allow_headers: ListText = "*"
    """`**` for whatever the preflight asks for."""
    expose_headers: ListText = ""
    """`**` for all that the answer has, which works with credentials."""
    max_age: int | None = 5
    """Seconds for which browsers keep a preflight's answer; `null`: that is not said."""
    allow_credential: bool = False
    timing_allow_origins: ListText = ""
    """As `allow_origins`, for `Timing-Allow-Origin`."""
    timing_allow_origins_by_regex: tuple[PatternText, ...] = ()
    preflight_status: int = Field(default=200, ge=200, le=299)
    """Of the answer to a preflight."""
    unconditional: bool = False
    """Every `OPTIONS` of an allowed origin counts as a preflight, and `*` holds for requests without an `Origin`, too.
    It may stand beside `allow_credential`, as ingress-nginx sends it: browsers read it for requests without them."""

    every_preflight: bool = False
    """A preflight of an origin that is not allowed is answered here too, without a word of what is allowed; `**` for
    methods is answered with the one that a preflight asks for."""
    by_phase: bool = False
    """Every preflight is answered, and headers about methods, headers and time are for these alone. An origin of the
    list or `*` counts as Traefik takes it; an origin that is not allowed keeps what the upstream says to it."""
    vary: bool = False
    """With `by_phase`: add `Origin` to `Vary`. Otherwise it is there if answers depend on the origin."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.allow_credential and not self.unconditional and not self.by_phase:
            starred = [
                field
                for field in ("allow_origins", "allow_methods", "allow_headers", "expose_headers")
                if getattr(self, field) == "*" and not (field == "allow_origins" and self.allow_origins_by_regex)
            ]
            if starred:
                raise ValueError(f"browsers take no * with allow_credential: give {starred[0]} by name, or as **")
        return self
