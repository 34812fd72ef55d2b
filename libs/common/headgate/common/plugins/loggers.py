"""What `file-logger`, `http-logger`, `tcp-logger`, `udp-logger` and `syslog` are told."""

from typing import Literal

from pydantic import Field, JsonValue, field_validator

from headgate.common.plugins.config import PluginConfig, SecretText
from headgate.common.plugins.expressions import Expressions
from headgate.common.plugins.fields import check_url


class LoggerConfig(PluginConfig):
    """What is logged."""

    log_format: dict[str, JsonValue] | None = None
    """Names, and templates of their values: `{"host": "$host", "took": "$request_time"}`. By default an entry says all
    that Apache APISIX says, headers with credentials included."""
    include_req_body: bool = False
    """Wait for the request's body, and log it."""
    include_req_body_expr: Expressions = ()
    """Only for requests for which these hold."""
    include_resp_body: bool = False
    """Log the answer's body."""
    include_resp_body_expr: Expressions = ()
    max_req_body_bytes: int = Field(default=524288, ge=1)
    """Longer bodies are logged up to here. A request whose body is longer than 1 MiB is logged without it."""
    max_resp_body_bytes: int = Field(default=524288, ge=1)
    """Longer bodies are logged up to here."""


class FileLoggerConfig(LoggerConfig):
    """Fields of `file-logger`."""

    path: str = Field(min_length=1)
    """`/dev/stdout`, `/dev/stderr`, or a file below the gateway's `plugin_log_dir`; of the latter a relative path is
    enough."""
    match: Expressions = ()
    """Only requests for which these hold are logged."""


class BatchConfig(LoggerConfig):
    """How entries are collected before they are sent."""

    name: str = "logger"
    """Taken for compatibility."""
    max_retry_count: int = Field(default=0, ge=0)
    """How often a batch is sent again that could not be sent."""
    retry_delay: float = Field(default=1, ge=0)
    """Seconds before it is sent again."""
    buffer_duration: float = Field(default=60, ge=1)
    """Seconds after which a batch is sent, counted from its first entry."""
    inactive_timeout: float = Field(default=5, ge=1)
    """Seconds after which it is sent if no entry was added, but not before one second has passed."""
    batch_max_size: int = Field(default=1000, ge=1)
    """Entries with which it is sent at once."""


class HttpLoggerConfig(BatchConfig):
    """Fields of `http-logger`."""

    uri: str
    auth_header: SecretText | None = None
    """Sent as `Authorization`."""
    timeout: float = Field(default=3, ge=1, le=600)
    """Seconds."""
    concat_method: Literal["json", "new_line"] = "json"
    """A batch is a JSON array, or a line for each entry."""
    ssl_verify: bool = False
    """Check the server's certificate."""

    @field_validator("uri")
    @classmethod
    def _check_uri(cls, value: str) -> str:
        check_url(value)
        return value


class AddressConfig(BatchConfig):
    """Where entries are sent."""

    host: str = Field(min_length=1)
    port: int = Field(ge=1, le=65535)


class TcpLoggerConfig(AddressConfig):
    """Fields of `tcp-logger`."""

    timeout: int = Field(default=1000, ge=1, le=600_000)
    """Milliseconds."""
    tls: bool = False
    """Without a check of the server's certificate, as in Apache APISIX."""
    tls_options: str | None = None
    """Server name that is asked for in TLS."""


class UdpLoggerConfig(AddressConfig):
    """Fields of `udp-logger`."""

    timeout: float = Field(default=3, ge=1, le=600)
    """Seconds."""


class SyslogConfig(AddressConfig):
    """Fields of `syslog`."""

    timeout: int = Field(default=3000, ge=1, le=600_000)
    """Milliseconds."""
    sock_type: Literal["tcp", "udp"] = "tcp"
    tls: bool = False
    """Without a check of the server's certificate, as in Apache APISIX; not with `udp`."""
    flush_limit: int = Field(default=4096, ge=1)
    """Taken for compatibility, as the two that follow."""
    drop_limit: int = Field(default=1048576, ge=1)
    pool_size: int = Field(default=5, ge=5)
