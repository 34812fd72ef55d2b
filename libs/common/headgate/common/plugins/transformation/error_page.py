"""What `error-page` is told."""

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
    own_only: bool = False
    """Replace errors of the gateway itself only, not those of upstreams."""
    keep_status: bool = False
    """The client gets the status of the error; by default that of the service's answer."""
    timeout: float = Field(default=5, gt=0, le=600)
    """Seconds; without an answer in time the client gets the error as it was."""
    max_body: int = Field(default=1 << 20, gt=0)

    @property
    def asks_nobody(self) -> bool:
        """Whether the page is fixed."""
        return self.page is not None

    @field_validator("statuses", mode="before")
    @classmethod
    def _read_statuses(cls, value: Any) -> Any:
        return [_read_range(one) for one in value] if isinstance(value, list | tuple) else value


def _read_range(text: Any) -> Any:
    """Read `404` or `500-599`."""
    if isinstance(text, list | tuple):
        return text
    first, _, last = str(text).partition("-")
    if not first.isdecimal() or not (last or first).isdecimal() or not 300 <= int(first) <= int(last or first) <= 599:
        raise ValueError("a status is a number from 300 to 599, or a range as 500-599")
    return int(first), int(last or first)
