"""What all uses of a plugin have in common: its metadata, as Apache APISIX calls it.

A gateway knows nothing of this: what the metadata say stands in the configuration of each use before it comes there.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar

from pydantic import Field, JsonValue

from headgate.common.plugins.config import PluginConfig
from headgate.common.plugins.fields import HeaderName, HeaderValue

_ANY = frozenset(("*", "**"))


class PluginMetadata(PluginConfig):
    """Base: fields of the plugin's configuration, for uses that do not say them themselves."""

    likely: ClassVar[Mapping[str, str]] = {}
    """Values that a use may lack by itself: they stand in where the metadata are not known."""

    def fill(self, config: dict[str, Any]) -> dict[str, Any]:
        """Return a use's configuration with what it does not say itself."""
        return {**self.model_dump(exclude_unset=True), **config}


class LoggerMetadata(PluginMetadata):
    """Of what sends entries somewhere."""

    log_format: dict[str, JsonValue] = Field(default_factory=dict)
    log_format_extra: dict[str, JsonValue] = Field(default_factory=dict)
    max_pending_entries: int | None = Field(default=None, ge=1, exclude=True)
    """Taken for compatibility."""


class LogglyMetadata(LoggerMetadata):
    """Of `loggly`."""

    host: str = Field(default="", min_length=1)
    port: int = 0
    protocol: str = ""
    timeout: int = 0


class DatadogMetadata(PluginMetadata):
    """Of `datadog`."""

    host: str = Field(default="", min_length=1)
    port: int = 0
    namespace: str = ""
    constant_tags: list[str] = Field(default_factory=list)

    def fill(self, config: dict[str, Any]) -> dict[str, Any]:
        """Add the tags to those of a use."""
        said = self.model_dump(exclude_unset=True)
        tags = {"common_tags": said.pop("constant_tags")} if "constant_tags" in said else {}
        return {**said, **tags, **config}


class OasValidatorMetadata(PluginMetadata):
    """Of `oas-validator`."""

    spec_url_ttl: int = Field(default=0, ge=1)


class FileLoggerMetadata(PluginMetadata):
    """Of `file-logger`."""

    likely: ClassVar[Mapping[str, str]] = {"path": "metadata"}

    log_format: dict[str, JsonValue] = Field(default_factory=dict)
    log_format_extra: dict[str, JsonValue] = Field(default_factory=dict)
    path: str = Field(default="", min_length=1)


class LimitCountMetadata(PluginMetadata):
    """Of `limit-count`."""

    limit_header: HeaderName = ""
    remaining_header: HeaderName = ""
    reset_header: HeaderName = ""


class CorsMetadata(PluginMetadata):
    """Of `cors`."""

    allow_origins: dict[str, HeaderValue] = Field(default_factory=dict)
    """Lists of origins by the names that `allow_origins_by_metadata` has for them."""

    def fill(self, config: dict[str, Any]) -> dict[str, Any]:
        """Add the lists that a use names to its own; names that there are not stay."""
        named = config.get("allow_origins_by_metadata")
        names = [name for name in named if isinstance(name, str)] if isinstance(named, list) else []
        found = [self.allow_origins[name] for name in names if name in self.allow_origins]
        if not found:
            return config
        own = config.get("allow_origins")
        written = own if isinstance(own, list) else [own] if own else []
        if not _ANY.isdisjoint(map(str, written)):
            found = []  # whatever else is allowed besides
        left = [name for name in names if name not in self.allow_origins]
        return {**config, "allow_origins": ",".join(map(str, [*written, *found])), "allow_origins_by_metadata": left}


class AuthzCasbinMetadata(PluginMetadata):
    """Of `authz-casbin`."""

    likely: ClassVar[Mapping[str, str]] = {
        "model": (
            "[request_definition]\nr = sub, obj, act\n[policy_definition]\np = sub, obj, act\n"
            "[policy_effect]\ne = some(where (p.eft == allow))\n[matchers]\nm = false"
        ),
        "policy": "# stands in",
    }

    model: str = Field(default="", min_length=1)
    policy: str = ""


METADATA: Mapping[str, type[PluginMetadata]] = MappingProxyType(
    {
        "authz-casbin": AuthzCasbinMetadata,
        "clickhouse-logger": LoggerMetadata,
        "cors": CorsMetadata,
        "datadog": DatadogMetadata,
        "elasticsearch-logger": LoggerMetadata,
        "file-logger": FileLoggerMetadata,
        "google-cloud-logging": LoggerMetadata,
        "http-logger": LoggerMetadata,
        "kafka-logger": LoggerMetadata,
        "limit-count": LimitCountMetadata,
        "loggly": LogglyMetadata,
        "loki-logger": LoggerMetadata,
        "oas-validator": OasValidatorMetadata,
        "skywalking-logger": LoggerMetadata,
        "splunk-hec-logging": LoggerMetadata,
        "syslog": LoggerMetadata,
        "tcp-logger": LoggerMetadata,
        "udp-logger": LoggerMetadata,
    }
)
