"""Configuration of the plugins that log requests."""

from typing import Final, Literal, Self

from pydantic import Field, JsonValue, field_validator, model_validator

from headgate.common.plugins.config import PluginConfig, SecretText
from headgate.common.plugins.expressions import Expressions, HeadExpressions
from headgate.common.plugins.fields import HeaderName, HeaderValue, check_url, configured_value
from headgate.common.secret import Secret

MAX_LABELS: Final = 30
"""Of an entry; more would make a stream for nearly every entry."""
MAX_ENDPOINTS: Final = 64
MAX_HEADERS: Final = 64
MAX_BROKERS: Final = 64
"""That one use of `kafka-logger` may name; they name the others."""


class LoggerConfig(PluginConfig):
    """What is logged."""

    log_format: dict[str, JsonValue] | None = None
    """Names, and templates of their values: `{"host": "$host", "took": "$request_time"}`. By default an entry says all
    that Apache APISIX says, headers with credentials included."""
    log_format_extra: dict[str, JsonValue] | None = None
    """Members that are added to an entry that says all by default, unless it has them."""
    include_req_body: bool = False
    """Wait for the request's body, and log it."""
    include_req_body_expr: Expressions = ()
    """Only for requests for which these hold."""
    include_resp_body: bool = False
    """Log the answer's body."""
    include_resp_body_expr: HeadExpressions = ()
    max_req_body_bytes: int = Field(default=524288, ge=1)
    """Longer bodies are logged up to here. A request whose body is longer than 1 MiB is logged without it."""
    max_resp_body_bytes: int = Field(default=524288, ge=1)
    """Longer bodies are logged up to here."""


class FileLoggerConfig(LoggerConfig, plugin="file-logger"):
    """Fields of `file-logger`."""

    path: str = Field(min_length=1)
    """`/dev/stdout`, `/dev/stderr`, or a file below the gateway's `plugin_log_dir`; of the latter a relative path is
    enough."""
    match: HeadExpressions = ()
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


class HttpLoggerConfig(BatchConfig, plugin="http-logger"):
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


class PostedConfig(BatchConfig):
    """Where entries are posted, by the interface of one product."""

    endpoint_addrs: tuple[str, ...] = Field(min_length=1, max_length=MAX_ENDPOINTS)
    """URLs of servers, of which each batch goes to one that is drawn: `http://loki.logging:3100`."""
    headers: dict[HeaderName, SecretText] = Field(default_factory=dict, max_length=MAX_HEADERS)
    """Further headers of the requests."""
    ssl_verify: bool = True
    """Check the server's certificate."""

    @field_validator("endpoint_addrs")
    @classmethod
    def _check_addresses(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for address in value:
            check_url(address)
            if "?" in address or "#" in address:
                raise ValueError(f"{address[:80]!r} must end with its path, as that of the interface follows")
        return value

    @field_validator("headers")
    @classmethod
    def _check_headers(cls, value: dict[str, Secret[str]]) -> dict[str, Secret[str]]:
        for text in value.values():
            configured_value(text.reveal())
        return value

    @property
    def addresses(self) -> tuple[str, ...]:
        """URLs of all servers."""
        return self.endpoint_addrs


class LokiLoggerConfig(PostedConfig, plugin="loki-logger"):
    """Fields of `loki-logger`."""

    endpoint_uri: str = Field(default="/loki/api/v1/push", min_length=1, pattern="^/")
    """Path of the interface that takes entries."""
    tenant_id: HeaderValue = "fake"
    """Sent as `X-Scope-OrgID`."""
    log_labels: dict[str, str] = Field(default_factory=lambda: {"job": "apisix"}, min_length=1, max_length=MAX_LABELS)
    """Labels of entries, and templates of their values: `{"host": "$host"}`. Entries with the same values make one
    stream."""
    timeout: int = Field(default=3000, ge=1, le=60_000)
    """Milliseconds."""
    ssl_verify: bool = False
    """Check the server's certificate."""
    keepalive: bool = True
    """Taken for compatibility, as the two that follow: connections are kept and shared by all loggers."""
    keepalive_timeout: int = Field(default=60_000, ge=1000)
    keepalive_pool: int = Field(default=5, ge=1)


class ElasticsearchField(PluginConfig):
    """Where Elasticsearch keeps entries."""

    index: str = Field(min_length=1)
    """Name of the index, with the day in it if that is wanted: `requests-{%Y.%m.%d}`, by `strftime`, in UTC. It may
    have variables: `requests-$host`."""
    type: str | None = None
    """Type of the documents, for Elasticsearch before 7; Apache APISIX asks the server for its release instead."""


class ElasticsearchLogin(PluginConfig):
    """As whom entries are sent."""

    username: str = Field(min_length=1)
    password: SecretText


class ElasticsearchLoggerConfig(PostedConfig, plugin="elasticsearch-logger"):
    """Fields of `elasticsearch-logger`."""

    endpoint_addrs: tuple[str, ...] = Field(default=(), max_length=MAX_ENDPOINTS)
    """URLs of servers, of which each batch goes to one that is drawn: `http://elasticsearch.logging:9200`."""
    endpoint_addr: str | None = None
    """The same with one URL, in the form of older releases."""
    field: ElasticsearchField
    auth: ElasticsearchLogin | None = None
    timeout: int = Field(default=10, ge=1, le=600)
    """Seconds."""

    @field_validator("endpoint_addr")
    @classmethod
    def _check_address(cls, value: str | None) -> str | None:
        cls._check_addresses((value,) if value is not None else ())
        return value

    @model_validator(mode="after")
    def _check_that_one_form_is_used(self) -> Self:
        if bool(self.endpoint_addrs) == (self.endpoint_addr is not None):
            raise ValueError("must have either endpoint_addrs or endpoint_addr, with a URL at least")
        return self

    @property
    def addresses(self) -> tuple[str, ...]:
        """URLs of all servers."""
        return (self.endpoint_addr,) if self.endpoint_addr is not None else self.endpoint_addrs


class KafkaLogin(PluginConfig):
    """As whom entries are sent."""

    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = "PLAIN"
    user: str = Field(min_length=1)
    password: SecretText


class KafkaBroker(PluginConfig):
    """A broker that is asked for the others."""

    host: str = Field(min_length=1)
    port: int = Field(ge=1, le=65535)
    sasl_config: KafkaLogin | None = None
    """The same for all brokers."""


class KafkaTls(PluginConfig):
    """TLS to the brokers."""

    verify: bool = False
    """Check their certificates."""


class KafkaLoggerConfig(BatchConfig, plugin="kafka-logger"):
    """Fields of `kafka-logger`."""

    brokers: tuple[KafkaBroker, ...] = Field(default=(), max_length=MAX_BROKERS)
    """Some of the cluster's, which name the others."""
    broker_list: dict[str, int] = Field(default_factory=dict, max_length=MAX_BROKERS)
    """The same in the form of older releases: ports by host."""
    tls: KafkaTls | None = None
    """Without it brokers are spoken to without TLS."""
    kafka_topic: str = Field(min_length=1, max_length=249, pattern="^[a-zA-Z0-9._-]+$")
    key: str | None = None
    """Messages with the same key go to the same partition; without one partitions are drawn."""
    required_acks: Literal[0, 1, -1] = 1
    """Who has to have a message before it counts as sent: no broker, the partition's leader, or all that are in "
    "sync."""
    timeout: int = Field(default=3, ge=1, le=600)
    """Seconds, for each question to a broker."""
    meta_format: Literal["default", "origin"] = "default"
    """`origin`: an entry is the request as text, with its head and, where that is included, its body."""
    meta_refresh_interval: int = Field(default=30, ge=1)
    """Seconds after which brokers are asked again who has which partition."""
    producer_type: Literal["async", "sync"] = "async"
    """Taken for compatibility, as those that follow: entries are always sent off the way of requests, as batches that
    are sent again if they were not taken."""
    cluster_name: int = Field(default=1, ge=0)
    api_version: Literal[0, 1, 2] = 1
    producer_batch_num: int = Field(default=200, ge=1)
    producer_batch_size: int = Field(default=1048576, ge=0)
    producer_max_buffering: int = Field(default=50000, ge=1)
    producer_time_linger: int = Field(default=1, ge=1)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if bool(self.brokers) == bool(self.broker_list):
            raise ValueError("must have either brokers or broker_list, with a broker at least")
        if not all(0 < port < 65536 for port in self.broker_list.values()):
            raise ValueError("ports in broker_list must be from 1 to 65535")
        if len({broker.sasl_config for broker in self.brokers}) > 1:
            raise ValueError("sasl_config must be the same for all brokers")
        return self

    @property
    def addresses(self) -> tuple[tuple[str, int], ...]:
        """Host and port of each broker."""
        return tuple((broker.host, broker.port) for broker in self.brokers) or tuple(self.broker_list.items())

    @property
    def login(self) -> KafkaLogin | None:
        """As whom entries are sent."""
        return self.brokers[0].sasl_config if self.brokers else None


class AddressConfig(BatchConfig):
    """Where entries are sent."""

    host: str = Field(min_length=1)
    port: int = Field(ge=1, le=65535)


class TcpLoggerConfig(AddressConfig, plugin="tcp-logger"):
    """Fields of `tcp-logger`."""

    timeout: int = Field(default=1000, ge=1, le=600_000)
    """Milliseconds."""
    tls: bool = False
    """Without a check of the server's certificate, as in Apache APISIX."""
    tls_options: str | None = None
    """Server name that is asked for in TLS."""


class UdpLoggerConfig(AddressConfig, plugin="udp-logger"):
    """Fields of `udp-logger`."""

    timeout: float = Field(default=3, ge=1, le=600)
    """Seconds."""


class SyslogConfig(AddressConfig, plugin="syslog"):
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
