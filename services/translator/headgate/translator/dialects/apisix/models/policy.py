"""Policies: what is said of objects that others own, each of which a policy names as its target."""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, ValidationInfo, WithJsonSchema, field_validator

from headgate.translator.dialects.apisix.models.plugin import NamedPlugin
from headgate.translator.dialects.apisix.models.upstream import (
    ActiveCheck,
    ActiveUnhealthy,
    BackendSettings,
    HealthCheck,
    LoadBalancer,
    PassiveCheck,
    PassiveUnhealthy,
    Scheme,
)
from headgate.translator.manifests.models import MAX_TARGETS, Model

_GROUP = r"^$|^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
_KIND = r"^[a-zA-Z]([-a-zA-Z0-9]*[a-zA-Z0-9])?$"
_SECTION = r"^$|^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
_HOST = r"^(\*\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"


class TargetReference(Model):
    """An object in the policy's own namespace."""

    group: str = Field(max_length=253, pattern=_GROUP, description="API group of the target; empty for a Service.")
    kind: str = Field(min_length=1, max_length=63, pattern=_KIND, description="Kind of the target.")
    name: str = Field(min_length=1, max_length=253, description="Name of the target.")
    section_name: str = Field(
        default="", max_length=253, pattern=_SECTION, description="Part of the target; the whole of it by default."
    )


class ServiceReference(TargetReference):
    """A Service in the policy's own namespace, or one of its ports."""

    group: Literal[""] = Field(description="API group of the target: empty.")
    kind: Literal["Service"] = Field(description="Kind of the target: Service.")
    section_name: str = Field(
        default="",
        max_length=253,
        pattern=_SECTION,
        description="Name of a port; it goes before a policy for the whole Service, which is the default.",
    )


class PolicyLoadBalancer(LoadBalancer):
    """How requests are spread."""

    model_config = ConfigDict(
        json_schema_extra={
            "x-kubernetes-validations": [
                {"rule": "!(has(self.key) && self.type != 'chash')", "message": "key is for type chash only"}
            ]
        }
    )

    type: Literal["roundrobin", "chash", "ewma", "least_conn"] = Field(
        description="roundrobin; chash: by a hash; ewma: by latency; least_conn."
    )

    @field_validator("key")
    @classmethod
    def _check_key(cls, key: str, info: ValidationInfo) -> str:
        if key and info.data.get("type", "chash") != "chash":
            raise ValueError(f"must be left out: it is for type chash, and type is {info.data['type']}")
        return key


TimeoutCount = Annotated[int, Field(ge=1, le=254)]
Priority = Annotated[int, Field(ge=-(2**63), lt=2**63), WithJsonSchema({"type": "integer", "format": "int64"})]


class PolicyActiveUnhealthy(ActiveUnhealthy):
    """When an active check finds a node unhealthy."""

    timeout: TimeoutCount = Field(default=3, alias="timeouts", description="So many timeouts in a row; 3 by default.")


class PolicyActiveCheck(ActiveCheck):
    """Asks every node from time to time."""

    unhealthy: PolicyActiveUnhealthy = Field(default=PolicyActiveUnhealthy(), description="When a node is unhealthy.")


class PolicyPassiveUnhealthy(PassiveUnhealthy):
    """When answers to requests make a node unhealthy."""

    timeout: TimeoutCount = Field(default=7, alias="timeouts", description="So many timeouts in a row; 7 by default.")


class PolicyPassiveCheck(PassiveCheck):
    """Looks at how requests go."""

    unhealthy: PolicyPassiveUnhealthy = Field(default=PolicyPassiveUnhealthy(), description="When a node is unhealthy.")


class PolicyHealthCheck(HealthCheck):
    """Which nodes get requests."""

    active: PolicyActiveCheck = Field(description="Asks every node from time to time.")
    passive: PolicyPassiveCheck | None = Field(default=None, description="Looks at how requests go.")


class BackendTrafficPolicySpec(BackendSettings):
    """How Services are spoken to."""

    target_refs: tuple[ServiceReference, ...] = Field(
        min_length=1, max_length=MAX_TARGETS, description="The Services that this holds for."
    )
    loadbalancer: PolicyLoadBalancer | None = Field(
        default=None, alias="loadbalancer", description="How requests are spread."
    )
    scheme: Scheme | None = Field(
        default=None,
        description="What is spoken with the nodes; without it what the port's appProtocol says, or http. "
        "Of tcp, tls and udp only tls says anything: connections of TCPRoutes and TLSRoutes go on over TLS.",
    )
    health_check: PolicyHealthCheck | None = Field(default=None, description="Which nodes get requests.")
    upstream_host: str = Field(
        default="", max_length=253, pattern=f"^$|{_HOST}", description="Host that nodes see, with passHost rewrite."
    )


class HttpRoutePolicySpec(Model):
    """What routes ask of requests besides, and which goes first."""

    target_refs: tuple[TargetReference, ...] = Field(
        min_length=1, max_length=MAX_TARGETS, description="The Ingresses that this holds for."
    )
    priority: Priority | None = Field(
        default=None,
        description="Of routes for one host and path the one with the higher priority goes first; 0 by default.",
    )
    vars: tuple[Any, ...] = Field(
        default=(), description='What requests have to satisfy, all of it: [["arg_name", "==", "jack"]].'
    )


class StreamRouteReference(TargetReference):
    """A route of Gateway API for connections or datagrams, in the policy's own namespace."""

    group: Literal["gateway.networking.k8s.io"] = Field(description="API group of the target: that of Gateway API.")
    kind: Literal["TCPRoute", "UDPRoute", "TLSRoute"] = Field(description="TCPRoute, UDPRoute or TLSRoute.")


class L4RoutePolicySpec(Model):
    """Plugins of routes for connections and datagrams."""

    target_refs: tuple[StreamRouteReference, ...] = Field(
        min_length=1, max_length=MAX_TARGETS, description="The routes that this holds for."
    )
    plugins: tuple[NamedPlugin, ...] = Field(default=(), description="Plugins for streams, such as ip-restriction.")
