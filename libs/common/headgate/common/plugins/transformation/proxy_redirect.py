"""Configuration of `proxy-redirect`."""

from typing import Self

from pydantic import Field, model_validator

from headgate.common.patterns import compile_pattern
from headgate.common.plugins.config import PluginConfig
from headgate.common.plugins.fields import HeaderTemplate


class AddressRule(PluginConfig):
    """What is replaced by what; the first rule that fits counts."""

    pattern: str = Field(min_length=1, max_length=8192)
    """A text that may have `$` references, or a pattern."""
    replacement: HeaderTemplate = ""
    """May have `$` references, `$1` among them where there is a pattern."""
    is_regex: bool = False
    """`pattern` is looked for as a pattern, and all of the address is replaced."""
    ignore_case: bool = False
    """With a pattern."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.is_regex:
            compile_pattern(self.pattern, ignore_case=self.ignore_case, captures=True)
        return self


class ProxyRedirectConfig(PluginConfig, plugin="proxy-redirect"):
    """Fields of `proxy-redirect`."""

    location: tuple[AddressRule, ...] = ()
    """For `Location` and `Refresh`: a text is replaced where the address begins with it."""
    absolute: bool = False
    """A rewritten `Location` that is a path is given scheme and host of the request."""
    cookie_domain: tuple[AddressRule, ...] = ()
    """For `Domain` of cookies: a text has to be the whole domain, whatever the case and a dot before it; the dot
    stays."""
    cookie_path: tuple[AddressRule, ...] = ()
    """For `Path` of cookies: a text is replaced where the path begins with it."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not (self.location or self.cookie_domain or self.cookie_path):
            raise ValueError("needs location, cookie_domain or cookie_path")
        return self
