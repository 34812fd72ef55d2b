"""Configuration of `limit-conn`, `limit-count` and `limit-req`."""

import math
from typing import Annotated, Any, Final, Literal, Self

from pydantic import Field, PlainValidator, model_validator

from headgate.common.plugins.client_address import ClientAddressConfig
from headgate.common.plugins.config import PluginConfig
from headgate.common.plugins.fields import HeaderName, NetworkText
from headgate.common.plugins.limits.counting import CountingConfig

_MAX_TEMPLATE: Final = 1024
KeyType = Literal["var", "var_combination", "constant"]
_OR_VARIABLE: Final = ", or a text with a variable: $http_count or ${http_count ?? 10}"


def _number(value: Any, kind: str, least: float, *, is_whole: bool) -> Any:
    """Read a number, or a template that gives one. Raises ValueError."""
    if isinstance(value, str):
        if "$" in value and len(value) <= _MAX_TEMPLATE:
            return value
        value = int(value) if value.isascii() and value.isdigit() else value
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not least < value < math.inf or (is_whole and value != int(value)):
        raise ValueError(f"must be {kind}{_OR_VARIABLE}{f', but is {value}' if is_number else ''}")
    return int(value) if is_whole else value


def _read_count(value: Any) -> Any:
    return _number(value, "a whole number above 0", 0, is_whole=True)


def _read_more(value: Any) -> Any:
    return _number(value, "a whole number from 0 on", -1, is_whole=True)


def _read_seconds(value: Any) -> Any:
    return _number(value, "a number above 0", 0, is_whole=False)


VariableCount = Annotated[int | str, PlainValidator(_read_count)]
"""A number above 0, or a template that gives one for each request."""
VariableBurst = Annotated[int | str, PlainValidator(_read_more)]
"""The same from 0 on."""
VariableSeconds = Annotated[float | str, PlainValidator(_read_seconds)]


class LimitConfig(CountingConfig):
    """What all limits can be told."""

    rejected_code: int = Field(default=503, ge=200, le=599)
    rejected_msg: str | None = Field(default=None, min_length=1)
    """Answered as `{"error_msg": ...}`."""
    allowlist: tuple[NetworkText, ...] = ()
    """Clients that are not limited."""


class LimitKeyConfig(LimitConfig):
    """A limit by one key."""

    key: str = Field(default="remote_addr", min_length=1)
    """Name of a variable; with `var_combination` a template: `$remote_addr $http_user_agent`."""
    key_type: KeyType = "var"
    client: ClientAddressConfig | None = None
    """Count by this address of the client instead of `key`."""
    group: str | None = Field(default=None, min_length=1)
    """Uses of one group count together, over the routes of a namespace."""


class ConnRule(PluginConfig):
    """One of several bounds; all hold."""

    conn: VariableCount
    burst: VariableBurst = 0
    key: str = Field(min_length=1)
    """A template: `$remote_addr`. The rule is passed over if the request has none of its variables."""


class LimitConnConfig(LimitKeyConfig, plugin="limit-conn"):
    """Fields of `limit-conn`."""

    conn: VariableCount | None = None
    """Requests at once: a number, or a template that gives one."""
    burst: VariableBurst = 0
    """More of them that are delayed instead of refused."""
    rules: tuple[ConnRule, ...] = Field(default=(), max_length=100)
    """Instead of `conn` and `burst`."""
    default_conn_delay: float = Field(default=0.1, gt=0)
    """Seconds."""
    only_use_default_delay: bool = False
    """Delay by `default_conn_delay` however many there are."""
    key_ttl: int = Field(default=3600, ge=1)
    """Seconds after which Redis forgets a request whose end it never heard of."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.conn is None) == (not self.rules):
            raise ValueError("needs either conn or rules")
        return self


class RequestRate(PluginConfig):
    """A rate and the burst that it allows."""

    rate: float = Field(gt=0)
    burst: float = Field(ge=0)


class LimitReqConfig(LimitKeyConfig, plugin="limit-req"):
    """Fields of `limit-req`."""

    rate: float = Field(gt=0)
    """Requests in a second; may be below one."""
    burst: float = Field(ge=0)
    """Requests beyond the rate that wait instead of being refused."""
    also: tuple[RequestRate, ...] = Field(default=(), max_length=10)
    """Further rates, each with its burst, that hold besides."""
    nodelay: bool = False
    """Do not let the burst wait."""
    max_delay: float | None = Field(default=None, ge=0)
    """A bucket of tokens: the burst passes at once, and requests beyond it wait for so many seconds at most (Traefik).
    Those that would wait longer are refused, with `Retry-After` and `X-Retry-In`."""


class CountRule(PluginConfig):
    """One of several limits; all hold."""

    count: VariableCount
    time_window: VariableSeconds
    key: str = Field(min_length=1)
    """A template: `$remote_addr`. The rule is passed over if the request has none of its variables."""
    header_prefix: str | None = Field(default=None, pattern="^[A-Za-z0-9-]+$")
    """`X-<prefix>-RateLimit-Limit` and so on; the rule's position by default."""


class LimitCountConfig(LimitKeyConfig, plugin="limit-count"):
    """Fields of `limit-count`."""

    count: VariableCount | None = None
    """Requests in one window: a number, or a template that gives one (`${http_quota ?? 10}`)."""
    time_window: VariableSeconds | None = None
    """Seconds, or a template that gives them."""
    window_type: Literal["fixed", "sliding"] = "fixed"
    """`fixed`: a window begins with its first request. `sliding`: counted is what came in the last `time_window`
    seconds, where the window before counts by its share that still lies within."""
    rules: tuple[CountRule, ...] = Field(default=(), max_length=100)
    """Instead of `count` and `time_window`."""
    show_limit_quota_header: bool = True
    """Answers say what is left, in the three headers that follow; the last in seconds."""
    limit_header: HeaderName = "X-RateLimit-Limit"
    """These are a plugin's metadata in Apache APISIX. Not with `rules`."""
    remaining_header: HeaderName = "X-RateLimit-Remaining"
    reset_header: HeaderName = "X-RateLimit-Reset"

    @model_validator(mode="after")
    def _check(self) -> Self:
        single = self.count is not None and self.time_window is not None
        if single == bool(self.rules) or (self.rules and (self.count or self.time_window)):
            raise ValueError("needs either count and time_window, or rules")
        return self
