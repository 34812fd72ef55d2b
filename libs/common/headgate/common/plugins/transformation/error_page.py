"""Configuration of `error-page`."""

from typing import Any

from pydantic import Field, field_validator

from headgate.common.plugins.called import CalledConfig
from headgate.common.plugins.config import PluginConfig
from headgate.common.plugins.fields import HeaderName, HeaderTemplate, HeaderValue


class FixedPage(PluginConfig):
    """A page that is the same for all errors."""

    status: int = Field(ge=200, le=599)
    body: str = Field(default="", max_length=65536)
    content_type: HeaderValue = "text/plain; charset=utf-8"


class ErrorPageConfig(CalledConfig, plugin="error-page"):
    """Fields of `error-page`."""

    group: str | None = Field(default=None, min_length=1)
    """Key of a group of backends of the table, instead of `uri` and `upstream`."""
    page: FixedPage | None = None
    """Answered in the place of errors, instead of asking a service."""
    statuses: tuple[tuple[int, int], ...] = Field(min_length=1)
    """Statuses and ranges of them: `[404, "500-599"]`."""
    path: str = Field(default="/", pattern="^/")
    """Asked for; `{status}` and `{url}` (the request's, percent-encoded) are filled in. With `uri` too."""
    headers: dict[HeaderName, HeaderTemplate] = Field(default_factory=dict)
    """More headers for the service; values may have `$` references."""
    forward_request: bool = False
    """Ask with the client's method, query and headers too; its body is not sent."""
    tells_case: bool = True
    """Tell the service of the case in `X-Code`, `X-Format`, `X-Original-URI`, `X-Request-ID` and `X-Forwarded-Host`."""
    request_headers: tuple[str, ...] | None = ("Accept", "Accept-Language", "User-Agent")
    """Headers of the client that the service gets; all without a list."""
    whole_url: bool = False
    """`{url}` is the whole address with scheme, host and query, as plugins have changed it, encoded as a parameter of a
    query."""
    rewrites: tuple[tuple[int, int, int], ...] = ()
    """Status that the client gets instead of those of a range: `{"500-503": 404}`. Of ranges that overlap the first
    counts. `{status}` is the new one and `{originalStatus}` the error's."""
    kept_headers: tuple[HeaderName, ...] = ("WWW-Authenticate", "Retry-After", "Allow", "Set-Cookie", "X-Request-Id")
    """Headers of the error that the page gets."""
    own_only: bool = False
    """Replace errors of the gateway itself only, not those of upstreams."""
    keep_status: bool = False
    """The client gets the status of the error; by default that of the service's answer."""
    timeout: float = Field(default=5, gt=0, le=600)
    """Seconds; without an answer in time the client gets the error as it was."""
    max_body: int = Field(default=1 << 20, gt=0)

    @property
    def asks_nobody(self) -> bool:
        """Whether the page is fixed, or a group asked."""
        return self.page is not None or self.group is not None

    @field_validator("rewrites", mode="before")
    @classmethod
    def _read_rewrites(cls, value: Any) -> Any:
        return [(*_read_range(one), to) for one, to in value.items()] if isinstance(value, dict) else value

    @field_validator("statuses", mode="before")
    @classmethod
    def _read_statuses(cls, value: Any) -> Any:
        return [_read_range(one) for one in value] if isinstance(value, list | tuple) else value


def _read_range(text: Any) -> Any:
    """Read `404` or `500-599`."""
    if isinstance(text, list | tuple):
        return text
    first, _, last = str(text).partition("-")
    if not first.isdecimal() or not (last or first).isdecimal() or not 200 <= int(first) <= int(last or first) <= 599:
        raise ValueError("a status is a number from 200 to 599, or a range as 500-599")
    return int(first), int(last or first)
