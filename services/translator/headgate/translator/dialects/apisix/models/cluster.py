"""ApisixClusterConfig: what a whole cluster is watched with. Later releases have ApisixGlobalRule in its place."""

from typing import Any

from pydantic import Field

from headgate.translator.manifests.models import Model


class Prometheus(Model):
    """Metrics."""

    enable: bool = Field(default=False, description="Whether requests are counted by route and consumer.")
    prefer_name: bool = Field(default=False, alias="prefer_name", description="Name routes rather than number them.")


class Monitoring(Model):
    """How the cluster is watched."""

    prometheus: Prometheus = Field(default=Prometheus(), description="Metrics.")
    skywalking: dict[str, Any] = Field(default_factory=dict, description="Not there; the plugin opentelemetry is.")


class ClusterConfigSpec(Model):
    """Settings of a cluster."""

    ingress_class_name: str = Field(default="", description="Class of the object; the default class without one.")
    monitoring: Monitoring = Field(default=Monitoring(), description="How the cluster is watched.")
    admin: dict[str, Any] = Field(default_factory=dict, description="Not needed: there is no Admin API.")
