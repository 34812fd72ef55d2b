"""Configuration of the plugins that log requests to one product each."""

import re
from typing import Annotated, Any, Final, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from headgate.common.plugins.config import PluginConfig, SecretText
from headgate.common.plugins.fields import check_url
from headgate.common.plugins.observability.loggers import MAX_ENDPOINTS, MAX_LABELS, BatchConfig


def _checked_url(value: str) -> str:
    check_url(value)
    return value


_Url = Annotated[str, AfterValidator(_checked_url)]


class SkywalkingLoggerConfig(BatchConfig, plugin="skywalking-logger"):
    """Fields of `skywalking-logger`."""

    endpoint_addr: _Url
    """URL of SkyWalking's receiver for HTTP: `http://skywalking:12800`."""
    service_name: str = "APISIX"
    service_instance_name: str = "APISIX Instance Name"
    """`$hostname` is the name of the gateway."""
    timeout: int = Field(default=3, ge=1, le=600)
    """Seconds."""


class GoogleAccount(PluginConfig):
    """As whom entries are written: a service account."""

    client_email: str = Field(min_length=1)
    private_key: SecretText
    """PEM, RSA."""
    project_id: str = Field(min_length=1)
    token_uri: _Url = "https://oauth2.googleapis.com/token"
    entries_uri: _Url = "https://logging.googleapis.com/v2/entries:write"
    scope: tuple[str, ...] = Field(
        default=(
            "https://www.googleapis.com/auth/logging.read",
            "https://www.googleapis.com/auth/logging.write",
            "https://www.googleapis.com/auth/logging.admin",
            "https://www.googleapis.com/auth/cloud-platform",
        ),
        min_length=1,
    )
    scopes: tuple[str, ...] = ()
    """Instead of `scope`."""


class GoogleResource(PluginConfig):
    """What entries are about."""

    type: str
    labels: dict[str, str] = Field(default_factory=dict)


class GoogleCloudLoggingConfig(BatchConfig, plugin="google-cloud-logging"):
    """Fields of `google-cloud-logging`."""

    auth_config: GoogleAccount
    """A file with it (`auth_file`) is not read."""
    resource: GoogleResource = GoogleResource(type="global")
    log_id: str = "apisix.apache.org%2Flogs"
    """Name of the log, percent-encoded."""
    ssl_verify: bool = True
    """Check the servers' certificates."""


class SplunkEndpoint(PluginConfig):
    """Where entries are posted."""

    uri: _Url
    """`https://splunk:8088/services/collector`."""
    token: SecretText
    channel: str | None = None
    """Sent as `X-Splunk-Request-Channel`."""
    timeout: int = Field(default=10, ge=1, le=600)
    """Seconds."""
    keepalive_timeout: int = Field(default=60_000, ge=1000)
    """Taken for compatibility."""


class SplunkHecLoggingConfig(BatchConfig, plugin="splunk-hec-logging"):
    """Fields of `splunk-hec-logging`."""

    endpoint: SplunkEndpoint
    ssl_verify: bool = True
    """Check the server's certificate."""


class ClickhouseLoggerConfig(BatchConfig, plugin="clickhouse-logger"):
    """Fields of `clickhouse-logger`."""

    endpoint_addr: _Url | None = None
    """The only one of `endpoint_addrs`, as older releases have it."""
    endpoint_addrs: tuple[_Url, ...] = Field(default=(), max_length=MAX_ENDPOINTS)
    """URLs of servers, of which each batch goes to one that is drawn: `http://clickhouse:8123`."""
    user: str
    password: SecretText
    database: str
    logtable: str = Field(min_length=1)
    """Table that rows are inserted into; the names in `log_format` are its columns."""
    timeout: int = Field(default=3, ge=1, le=600)
    """Seconds."""
    ssl_verify: bool = True
    """Check the server's certificate."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.endpoint_addr is None) == (not self.endpoint_addrs):
            raise ValueError("needs either endpoint_addr or endpoint_addrs")
        return self


SEVERITIES: Final = ("EMEGR", "ALERT", "CRIT", "ERR", "WARNING", "NOTICE", "INFO", "DEBUG")
"""From the worst on; the first is misspelt in Apache APISIX."""
_STATUS: Final = re.compile("[1-5][0-9]{2}")


def _upper(value: Any) -> Any:
    return value.upper() if isinstance(value, str) and (value.isupper() or value.islower()) else value


def _check_status(value: str) -> str:
    if not _STATUS.fullmatch(value):
        raise ValueError(f"{value[:20]!r} is no status from 100 to 599")
    return value


def _check_tag(value: str) -> str:
    if value.startswith("tag=") or not value.isascii() or not value.isprintable():
        raise ValueError(f"{value[:60]!r} is no tag: printable ASCII, without tag= in front")
    return value


Severity = Annotated[
    Literal["EMEGR", "ALERT", "CRIT", "ERR", "WARNING", "NOTICE", "INFO", "DEBUG"], BeforeValidator(_upper)
]


class LogglyConfig(BatchConfig, plugin="loggly"):
    """Fields of `loggly`."""

    customer_token: SecretText
    severity: Severity = "INFO"
    severity_map: dict[Annotated[str, AfterValidator(_check_status)], Severity] = Field(default_factory=dict)
    """Other severities, by the status of the answer: `{"500": "ERR"}`."""
    tags: tuple[Annotated[str, AfterValidator(_check_tag)], ...] = Field(
        default=("apisix",), min_length=1, max_length=MAX_LABELS
    )
    host: str = Field(default="logs-01.loggly.com", min_length=1)
    """This and the three that follow are a plugin's metadata in Apache APISIX. For `http` and `https` it may be a
    URL."""
    port: int = Field(default=514, ge=1, le=65535)
    protocol: Literal["syslog", "http", "https"] = "syslog"
    """`syslog`: a datagram for each entry, without TLS; the others post batches."""
    timeout: int = Field(default=5000, ge=1, le=600_000)
    """Milliseconds."""
    ssl_verify: bool = True
    """Check the server's certificate, with `https`."""


_TAG: Final = re.compile(r"[^\W\d_][\w.:/-]*(?<!:)")


def _check_metric_tag(value: str) -> str:
    if not 1 <= len(value) <= 200 or not _TAG.fullmatch(value):
        raise ValueError(f"{value[:60]!r} is no tag as team:shop: a letter, then letters, digits and _.:/-")
    return value


_MetricTags = Annotated[tuple[Annotated[str, AfterValidator(_check_metric_tag)], ...], Field(max_length=MAX_LABELS)]


class DatadogConfig(BatchConfig, plugin="datadog"):
    """Fields of `datadog`."""

    constant_tags: _MetricTags = ()
    """Of all metrics: `team:shop`."""
    common_tags: _MetricTags = ("source:apisix",)
    """The same in a plugin's metadata in Apache APISIX (`constant_tags`), as the three that follow."""
    host: str = Field(default="127.0.0.1", min_length=1)
    """Of the agent (DogStatsD). What is denied to routes is denied here too: gateways need `allowed_destinations` for
    one on their own machine."""
    port: int = Field(default=8125, ge=1, le=65535)
    namespace: str = "apisix"
    """In front of the names of metrics."""
    include_path: bool = False
    """Tag metrics with the path of the route."""
    include_method: bool = False
    """Tag metrics with the request's method."""
    prefer_name: bool = True
    """Taken for compatibility: routes have names alone."""
