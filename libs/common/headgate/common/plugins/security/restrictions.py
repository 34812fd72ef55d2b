"""Configuration of `ua-restriction`, `referer-restriction` and `uri-blocker`."""

import re
from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from headgate.common.plugins.config import PluginConfig
from headgate.common.plugins.fields import PatternText


class UaRestrictionConfig(PluginConfig, plugin="ua-restriction"):
    """Fields of `ua-restriction`."""

    allowlist: tuple[PatternText, ...] = ()
    """Only clients whose `User-Agent` matches one of these may come."""
    denylist: tuple[PatternText, ...] = ()
    """Those that match one of these may not, whatever the allowlist says."""
    bypass_missing: bool = False
    """Let requests without `User-Agent` pass."""
    message: str = Field(default="Not allowed", min_length=1, max_length=1024)
    """Answered with 403, as `{"message": ...}`."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.allowlist and not self.denylist:
            raise ValueError("needs an allowlist or a denylist")
        return self


_HOST = re.compile(r"\*|\*?[0-9a-zA-Z._\[\]:-]+")


def _check_host(text: str) -> str:
    if not _HOST.fullmatch(text):
        raise ValueError(f"{text[:60]!r} is no host as example.com or *.example.com")
    return text


RefererHost = Annotated[str, AfterValidator(_check_host)]


class RefererRestrictionConfig(PluginConfig, plugin="referer-restriction"):
    """Fields of `referer-restriction`."""

    whitelist: tuple[RefererHost, ...] = ()
    """Only requests from pages of these hosts may come; `*.example.com` is all hosts below."""
    blacklist: tuple[RefererHost, ...] = ()
    """Those from pages of these may not, whatever the whitelist says."""
    bypass_missing: bool = False
    """Let requests pass whose `Referer` is absent or no URL."""
    message: str = Field(default="Your referer host is not allowed", min_length=1, max_length=1024)
    """Answered with 403, as `{"message": ...}`."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.whitelist and not self.blacklist:
            raise ValueError("needs a whitelist or a blacklist")
        return self


class UriBlockerConfig(PluginConfig, plugin="uri-blocker"):
    """Fields of `uri-blocker`."""

    block_rules: tuple[PatternText, ...] = Field(min_length=1)
    """A request is refused if one of these matches its path and query, as the client sent them."""
    case_insensitive: bool = False
    only_path: bool = False
    """Look at the path alone, as it is now and as it stands, not decoded."""
    rejected_code: int = Field(default=403, ge=200, le=599)
    rejected_msg: str | None = Field(default=None, min_length=1)
    """Answered as `{"error_msg": ...}`."""
