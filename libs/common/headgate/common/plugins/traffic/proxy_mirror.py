"""Configuration of `proxy-mirror`."""

from typing import Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, model_validator

from headgate.common.plugins.config import PluginConfig
from headgate.common.plugins.fields import check_url
from headgate.common.table import Mirror


class ProxyMirrorConfig(PluginConfig, plugin="proxy-mirror"):
    """Fields of `proxy-mirror`."""

    host: str | None = None
    """Where copies go: `http://shadow.example:8080`, without a path."""
    upstream: str | None = Field(default=None, min_length=1)
    """Key of an upstream of the table, instead of `host`."""
    path: str | None = Field(default=None, pattern="^/")
    path_concat_mode: Literal["replace", "prefix"] = "replace"
    """What `path` does to the request's own."""
    sample_ratio: float = Field(default=1.0, ge=0.00001, le=1)
    """Share of the requests that are copied."""
    host_header: str | None = Field(default=None, pattern=r"^[A-Za-z0-9._~\[\]:-]+$")
    """Host of the copy; the request's own with `upstream`, that of the URL with `host`."""
    mirror_body: bool = True
    max_body: int = Field(default=1 << 20, ge=0)
    """Bytes; requests with longer bodies are not copied."""
    max_in_flight: int = Field(default=128, ge=1)
    """Copies under way, for each route and worker; more are dropped."""
    timeout: float = Field(default=10, gt=0, le=600)
    """Seconds for a copy and its answer."""
    ssl_verify: bool = True

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.host is None) == (self.upstream is None):
            raise ValueError("needs either host or upstream")
        if self.host is not None:
            check_url(self.host)
            if urlsplit(self.host).path.strip("/"):
                raise ValueError("host has no path: give it as path")
        return self

    def as_mirror(self) -> Mirror:
        """Return it as routes have it."""
        return Mirror(
            upstream=self.upstream or "",
            address=self.host or "",
            share=self.sample_ratio,
            path=self.path or "",
            path_mode=self.path_concat_mode,
            host=self.host_header or "",
            with_body=self.mirror_body,
            max_body=self.max_body,
            max_in_flight=self.max_in_flight,
            timeout_s=self.timeout,
            verify_tls=self.ssl_verify,
        )
