"""Configuration of `redirect`."""

from typing import Self

from pydantic import Field, model_validator

from headgate.common.plugins.config import PluginConfig
from headgate.common.plugins.fields import PatternText


class RedirectConfig(PluginConfig, plugin="redirect"):
    """Fields of `redirect`: exactly one of the first three."""

    http_to_https: bool = False
    """Redirect requests over plain HTTP to HTTPS: 301 for GET and HEAD, 308 for others, unless `ret_code` is given."""
    uri: str | None = Field(default=None, min_length=1, max_length=8192)
    """Where to: a template, as `https://$host/new$uri`."""
    regex_uri: tuple[PatternText, str] | None = None
    """A pattern, and what its first match in the path is replaced by; requests that it does not match go on."""
    replaces_all: bool = False
    """It replaces all matches (Traefik)."""
    match_url: bool = False
    """`regex_uri` looks at the whole URL, `http://host/path?query`, without the port that its scheme has anyway."""
    of_connection: bool = False
    """With `match_url`: the URL has the scheme of the connection, whatever trusted proxies say of it, and the port as
    it was sent (`redirectRegex` of Traefik)."""
    ret_code: int | None = Field(default=None, ge=200, le=599)
    """302 by default."""
    keep_method: bool = False
    """Requests other than `GET` get 307 in the place of 302, and 308 in that of 301."""
    encode_uri: bool = False
    """Percent-encode the path again, `%` included."""
    append_query_string: bool = False
    """Add the request's query to `uri` or `regex_uri`."""
    https_port: int = Field(default=443, ge=1, le=65535)
    names_port: bool = False
    """With `http_to_https`: name the port where it is 443 too, which clients take without."""
    strip_trailing_slash: bool = False
    """With `http_to_https`: without the slash that the URL ends with."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.http_to_https + (self.uri is not None) + (self.regex_uri is not None) != 1:
            raise ValueError("needs exactly one of http_to_https, uri and regex_uri")
        if self.http_to_https and self.append_query_string:
            raise ValueError("http_to_https keeps the query by itself: leave append_query_string out")
        if self.of_connection and not self.match_url:
            raise ValueError("of_connection is for match_url only")
        for name in ("strip_trailing_slash", "names_port"):
            if getattr(self, name) and not self.http_to_https:
                raise ValueError(f"{name} is for http_to_https only")
        return self
