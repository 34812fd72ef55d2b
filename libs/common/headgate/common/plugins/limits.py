"""What `limit-conn`, `limit-count` and `limit-req` are told."""

from typing import Literal, Self

from pydantic import Field, model_validator

from headgate.common.plugins.config import PluginConfig
from headgate.common.plugins.fields import NetworkText

KeyType = Literal["var", "var_combination", "constant"]


class LimitConfig(PluginConfig):
    """What all limits can be told."""

    policy: Literal["local"] = "local"
    """Counts are kept by each worker for itself."""
    rejected_code: int = Field(default=503, ge=200, le=599)
    rejected_msg: str | None = Field(default=None, min_length=1)
    """Answered as `{"error_msg": ...}`."""
    allow_degradation: bool = False
    """Taken for compatibility: a local limit has nothing that could be down."""
    allowlist: tuple[NetworkText, ...] = ()
    """Clients that are not limited."""


class LimitKeyConfig(LimitConfig):
    """A limit by one key."""

    key: str = Field(default="remote_addr", min_length=1)
    """Name of a variable; with `var_combination` a template: `$remote_addr $http_user_agent`."""
    key_type: KeyType = "var"


class LimitConnConfig(LimitKeyConfig):
    """Fields of `limit-conn`."""

    conn: int = Field(gt=0)
    """Requests at once."""
    burst: int = Field(default=0, ge=0)
    """More of them that are delayed instead of refused."""
    default_conn_delay: float = Field(default=0.1, gt=0)
    """Seconds."""
    only_use_default_delay: bool = False
    """Delay by `default_conn_delay` however many there are."""


class LimitReqConfig(LimitKeyConfig):
    """Fields of `limit-req`."""

    rate: float = Field(gt=0)
    """Requests in a second; may be below one."""
    burst: float = Field(ge=0)
    """Requests beyond the rate that wait instead of being refused."""
    nodelay: bool = False
    """Do not let the burst wait."""


class CountRule(PluginConfig):
    """One of several limits; all hold."""

    count: int = Field(gt=0)
    time_window: float = Field(gt=0)
    key: str = Field(min_length=1)
    """A template: `$remote_addr`."""
    header_prefix: str | None = Field(default=None, pattern="^[A-Za-z0-9-]+$")
    """`X-<prefix>-RateLimit-Limit` and so on; the rule's position by default."""


class LimitCountConfig(LimitKeyConfig):
    """Fields of `limit-count`."""

    count: int | None = Field(default=None, gt=0)
    """Requests in one window."""
    time_window: float | None = Field(default=None, gt=0)
    """Seconds."""
    window_type: Literal["fixed"] = "fixed"
    rules: tuple[CountRule, ...] = ()
    """Instead of `count` and `time_window`."""
    group: str | None = Field(default=None, min_length=1)
    """Uses of one group count together, over routes."""
    show_limit_quota_header: bool = True
    """Answers say what is left: `X-RateLimit-Limit`, `-Remaining` and `-Reset` (seconds)."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        single = self.count is not None and self.time_window is not None
        if single == bool(self.rules) or (self.rules and (self.count or self.time_window)):
            raise ValueError("needs either count and time_window, or rules")
        return self
