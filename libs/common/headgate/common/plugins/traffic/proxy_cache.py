"""Configuration of `proxy-cache`."""

from typing import Annotated, Literal

from pydantic import Field

from headgate.common.plugins.config import PluginConfig

VariableText = Annotated[str, Field(min_length=1)]


class ProxyCacheConfig(PluginConfig, plugin="proxy-cache"):
    """Fields of `proxy-cache`."""

    cache_strategy: Literal["disk", "memory"] = "disk"
    """Answers are kept in memory, or by several workers together in files, whatever this says. With `disk` they are
    kept for as long as the upstream says in `max-age`, `s-maxage` or `Expires`, as nginx does; with `memory` only if
    `cache_control` is set."""
    cache_zone: str = Field(default="disk_cache_one", min_length=1, max_length=100)
    """Routes of one zone share what they keep, if their keys are the same."""
    cache_key: tuple[VariableText, ...] = Field(default=("$host", "$request_uri"), min_length=1)
    """Templates that are joined; `$request_method` is not needed, HEAD is answered from what GET brought."""
    cache_method: tuple[Literal["GET", "POST", "HEAD"], ...] = Field(default=("GET", "HEAD"), min_length=1)
    cache_http_status: tuple[Annotated[int, Field(ge=200, le=599)], ...] = Field(default=(200, 301, 404), min_length=1)
    cache_bypass: tuple[VariableText, ...] = ()
    """If one of these is neither empty nor `0`, the upstream is asked, whatever is kept: `$arg_bypass`."""
    no_cache: tuple[VariableText, ...] = ()
    """If one of these is neither empty nor `0`, the answer is not kept."""
    cache_ttl: int = Field(default=300, ge=1)
    """Seconds, where the upstream does not decide; with `disk` 10 unless it is given."""
    cache_control: bool = False
    """Keep to `Cache-Control` of requests and `max-age`, `s-maxage` and `Expires` of answers."""
    hide_cache_headers: bool = False
    """Take `Cache-Control` and `Expires` out of answers."""
    consumer_isolation: bool = True
    """Consumers, and users whom a plugin has recognised, never get what was kept for others."""
    cache_set_cookie: bool = False
    """Keep answers with `Set-Cookie` too."""
