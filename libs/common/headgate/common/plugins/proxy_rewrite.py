"""What `proxy-rewrite` is told."""

from typing import Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from headgate.common.patterns import compile_pattern
from headgate.common.plugins.config import PluginConfig
from headgate.common.plugins.fields import HeaderName, HeaderTemplate, PatternText, configured_value


def _check_template(text: str) -> str:
    configured_value(text)
    return text


class HeaderChanges(PluginConfig):
    """Changes of headers; removal comes first, then `set`, then `add`. Values may have `$` references."""

    add: dict[HeaderName, HeaderTemplate] = Field(default_factory=dict)
    set: dict[HeaderName, HeaderTemplate] = Field(default_factory=dict)
    """An empty value removes the header."""
    remove: tuple[str, ...] = ()

    @field_validator("add", "set")
    @classmethod
    def _check_values(cls, values: dict[str, str]) -> dict[str, str]:
        return {name: _check_template(value) for name, value in values.items()}


class PrefixReplacement(PluginConfig):
    """A prefix of the path, of whole elements, and what stands there instead (Gateway API `ReplacePrefixMatch`)."""

    prefix: str = Field(pattern="^/")
    replacement: str


class ProxyRewriteConfig(PluginConfig):
    """Fields of `proxy-rewrite`. Of the changes to the path the first that is given and matches is made."""

    uri: str | None = Field(default=None, pattern="^/", max_length=8192)
    """The new path, a template; the query stays, behind one that stands here."""
    regex_uri: tuple[str, ...] = ()
    """Pairs of a pattern and what its first match in the path is replaced by; the first that matches counts."""
    regex_ignore_case: bool = False
    replace_prefix: PrefixReplacement | None = None
    strip_prefixes: tuple[str, ...] = ()
    """The first that the path begins with is cut off (Traefik `stripPrefix`)."""
    strip_regex: tuple[PatternText, ...] = ()
    """The first that matches at the beginning of the path is cut off (Traefik `stripPrefixRegex`)."""
    add_prefix: str | None = Field(default=None, pattern="^/")
    """Put in front of the path, after any of the changes above."""
    forwarded_prefix: bool = False
    """Tell the upstream in `X-Forwarded-Prefix` what was cut off."""
    host: str | None = Field(default=None, pattern=r"^[A-Za-z0-9._~\[\]:-]+$")
    """Host that is sent, with a port if need be."""
    method: str | None = Field(default=None, pattern="^[A-Z]+$")
    scheme: Literal["http", "https"] | None = None
    """Taken for compatibility with older versions: what is spoken with an upstream is the upstream's business."""
    use_real_request_uri_unsafe: bool = False
    """Taken for compatibility: the path goes on as the client sent it, not decoded, in any case."""
    headers: HeaderChanges = HeaderChanges()

    @field_validator("headers", mode="before")
    @classmethod
    def _read_flat(cls, value: Any) -> Any:
        """Read the older, flat form: names and values to set."""
        flat = isinstance(value, dict) and value and not set(value) & {"add", "set", "remove"}
        return {"set": value} if flat else value

    @field_validator("regex_uri")
    @classmethod
    def _check_pairs(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if len(value) % 2:
            raise ValueError("needs pairs: a pattern and its replacement")
        for pattern in value[::2]:
            compile_pattern(pattern)
        return value

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.model_fields_set:
            raise ValueError("has nothing to change: give uri, regex_uri, host, method or headers")
        return self
