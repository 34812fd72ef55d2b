"""Configuration of `proxy-rewrite`."""

from typing import Annotated, Any, Final, Literal, Self

from pydantic import Field, PlainSerializer, PlainValidator, field_validator, model_validator

from headgate.common.patterns import compile_pattern
from headgate.common.plugins.config import PluginConfig
from headgate.common.plugins.fields import HeaderName, PatternText, configured_value

_MAX_VALUE: Final = 8192


def _read_values(value: Any) -> str | tuple[str, ...]:
    if isinstance(value, list | tuple) and value:
        return tuple(_read_value(each) for each in value)
    return _read_value(value)


def _read_value(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError("must be a text or a number, or a list of these")
    text = str(value)
    if len(text) > _MAX_VALUE:
        raise ValueError(f"must have at most {_MAX_VALUE} characters")
    configured_value(text)
    return text


def _write_values(value: str | tuple[str, ...]) -> str | list[str]:
    return value if isinstance(value, str) else list(value)


HeaderTemplates = Annotated[
    str | tuple[str, ...], PlainValidator(_read_values), PlainSerializer(_write_values, when_used="json")
]
"""One value, or several for as many headers of one name."""


def _with_host_apart(written: dict[str, Any]) -> dict[str, Any]:
    headers = written.get("headers")
    place = headers.get("set", headers) if isinstance(headers, dict) else None
    hosts = [name for name in place if name.lower() == "host"] if isinstance(place, dict) else []
    if not hosts or not isinstance(headers, dict) or not isinstance(place, dict):
        return written
    rest = {name: value for name, value in place.items() if name not in hosts}
    changed = {"host": place[hosts[0]], **written}
    if "set" in headers or rest:
        return changed | {"headers": {**headers, "set": rest} if place is not headers else rest}
    return {name: value for name, value in changed.items() if name != "headers"}


class HeaderChanges(PluginConfig):
    """Changes of headers; removal comes first, then `set`, then `add`. Values may have `$` references."""

    add: dict[HeaderName, HeaderTemplates] = Field(default_factory=dict)
    set: dict[HeaderName, HeaderTemplates] = Field(default_factory=dict)
    """An empty value removes the header; of a list all values are set."""
    remove: tuple[str, ...] = ()
    """Names; with a `*` at the end all that begin so."""


def texts_of(value: HeaderTemplates) -> tuple[str, ...]:
    """Return the values of one name."""
    return (value,) if isinstance(value, str) else value


class PrefixReplacement(PluginConfig):
    """A prefix of the path, of whole elements, and what stands there instead (Gateway API `ReplacePrefixMatch`)."""

    prefix: str = Field(pattern="^/")
    replacement: str


class ProxyRewriteConfig(PluginConfig, plugin="proxy-rewrite"):
    """Fields of `proxy-rewrite`. Of the changes to the path the first that is given and matches is made."""

    uri: str | None = Field(default=None, pattern="^/", max_length=8192)
    """The new path, a template; the query stays, behind one that stands here."""
    regex_uri: tuple[str, ...] = ()
    """Pairs of a pattern and what its first match in the path is replaced by; the first that matches counts."""
    regex_ignore_case: bool = False
    replaces_all: bool = False
    """`regex_uri` replaces all matches (Traefik)."""
    replace_prefix: PrefixReplacement | None = None
    strip_prefixes: tuple[str, ...] = ()
    """The first that the decoded path begins with is cut off (Traefik `stripPrefix`)."""
    strip_regex: tuple[PatternText, ...] = ()
    """The first that matches at the beginning of the decoded path is cut off (Traefik `stripPrefixRegex`)."""
    add_prefix: str | None = Field(default=None, pattern="^/")
    """Put in front of the path, after any of the changes above."""
    forwarded_prefix: bool = False
    """Tell the upstream in `X-Forwarded-Prefix` what was cut off."""
    refuses_unclean: bool = False
    """Answer 400 where a changed path has empty or dot segments (Traefik); not for `add_prefix`."""
    replaced_path: bool = False
    """Tell the upstream in `X-Replaced-Path` what `uri` or `regex_uri` have replaced."""
    host: str | None = Field(default=None, pattern=r"^(?:[A-Za-z0-9._~\[\]:-]|\$\w|\$\{\w+\})+$")
    """Host that is sent, with a port if need be: a template. A `host` among the headers to set is the same."""
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

    @model_validator(mode="before")
    @classmethod
    def _read_host(cls, value: Any) -> Any:
        """Take a Host among the headers to set for `host`, which goes before it."""
        return _with_host_apart(value) if isinstance(value, dict) else value

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
