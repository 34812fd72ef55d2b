"""ApisixRoute as `v1` had it."""

from typing import Annotated, Any

from pydantic import Field

from headgate.translator.dialects.apisix.models.fields import Timeout
from headgate.translator.manifests.models import Model, Name, ServicePort


class LegacyBackend(Model):
    """A port of a Service in the same namespace."""

    service_name: Name = Field(description="Name of the Service.")
    service_port: ServicePort = Field(description="Port of the Service, by number or name.")
    resolve_granularity: str = Field(default="", description="endpoint, the default, or service.")
    subset: str = Field(default="", description="Name of a subset of the ApisixUpstream of the Service's name.")


class LegacyPlugin(Model):
    """A plugin and its configuration."""

    name: Name = Field(description="Name of the plugin.")
    enable: bool = Field(default=True, description="Whether the plugin runs; true by default.")
    config: dict[str, Any] = Field(default_factory=dict, description="What the plugin is told.")
    config_set: tuple[dict[str, Any], ...] = Field(
        default=(), alias="config_set", description="Older form of config: the first element counts."
    )


class LegacyPath(Model):
    """A path of a host."""

    path: str = Field(default="", description="Path, or with * at its end all that begin with what is before it.")
    backend: LegacyBackend = Field(description="Where its requests go.")
    timeout: Timeout | None = Field(default=None, description="Times; 60s each by default.")
    plugins: tuple[LegacyPlugin, ...] = Field(default=(), description="Plugins of the path.")


class LegacyHttp(Model):
    """The paths of a host."""

    paths: Annotated[tuple[LegacyPath, ...], Field(min_length=1)] = Field(description="The paths.")


class LegacyRule(Model):
    """A host and its paths."""

    host: str = Field(default="", description="The host; all by default.")
    http: LegacyHttp = Field(description="Its paths.")


class LegacyRouteSpec(Model):
    """Rules for requests."""

    ingress_class_name: str = Field(default="", description="Class of the object; the default class without one.")
    rules: tuple[LegacyRule, ...] = Field(default=(), description="Hosts and their paths.")
