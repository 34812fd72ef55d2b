"""ApisixUpstream: how the Service of the same name is spoken to, or nodes outside of the cluster."""

from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from headgate.translator.dialects.apisix.models.fields import SecretReference, Timeout
from headgate.translator.manifests.models import INT_OR_STRING, Model, Name, PortNumber, Seconds
from headgate.translator.manifests.texts import duration

Scheme = Literal["http", "https", "grpc", "grpcs", "tcp", "tls", "udp"]


def _timeout_count(value: Any) -> Any:
    if not isinstance(value, str) or value.isdecimal():
        return value
    duration(value)
    return 0


CheckCount = Annotated[int, Field(ge=0, le=254)]
TimeoutCount = Annotated[CheckCount, BeforeValidator(_timeout_count), WithJsonSchema(INT_OR_STRING)]
"""A count. Documentation of v1 has a time in its place, which never had a meaning and is as good as absent."""
Status = Annotated[int, Field(ge=200, le=599)]

MAX_NODES: Final = 512
"""Nodes that one object may name: gateways ask for the addresses of each that is a DNS name."""


class LoadBalancer(Model):
    """How requests are spread."""

    type: Literal["roundrobin", "chash", "ewma", "least_conn"] = Field(
        default="roundrobin", description="roundrobin, the default; chash: by a hash; ewma: by latency; least_conn."
    )
    hash_on: Literal["vars", "header", "cookie", "consumer", "vars_combinations"] = Field(
        default="vars", description="What chash hashes; a variable by default."
    )
    key: str = Field(default="", description="Name of the variable, header or cookie, or a text with $variables.")


class Discovery(Model):
    """Nodes that a registry knows."""

    service_name: Name = Field(description="Name there: namespace/name:port, with a cluster in front for another one.")
    type: Name = Field(description="kubernetes, or dns for a host name, perhaps with a port.")
    args: dict[str, str] = Field(default_factory=dict, description="Not used by these.")


class ExternalNode(Model):
    """A node outside of the cluster."""

    name: Name = Field(description="Host name or address, or the name of an ExternalName Service.")
    type: Literal["Domain", "Service"] = Field(description="What the name is.")
    weight: int | None = Field(default=None, ge=0, le=65535, description="Share among the nodes; 100 by default.")
    port: PortNumber | None = Field(default=None, description="Port; that of the scheme by default.")


class Subset(Model):
    """Some of a Service's pods."""

    name: Name = Field(description="Name by which backends refer to it.")
    labels: dict[str, str] = Field(default_factory=dict, description="Labels that the pods must have.")


class ActiveHealthy(Model):
    """When an active check finds a node healthy."""

    http_codes: tuple[Status, ...] = Field(default=(), description="Answers that count; 200 and 302 by default.")
    successes: CheckCount = Field(default=0, description="So many in a row; 2 by default.")
    interval: Seconds = Field(default=0.0, description="Between two checks of a healthy node; 1s by default.")


class ActiveUnhealthy(Model):
    """When an active check finds a node unhealthy."""

    http_codes: tuple[Status, ...] = Field(
        default=(), description="Answers that count; 429, 404 and 500 to 505 by default."
    )
    http_failures: CheckCount = Field(default=0, description="So many of them in a row; 5 by default.")
    tcp_failures: CheckCount = Field(default=0, description="So many failures to connect in a row; 2 by default.")
    timeout: TimeoutCount = Field(default=0, description="So many timeouts in a row; 3 by default.")
    interval: Seconds = Field(default=0.0, description="Between two checks of an unhealthy node; 1s by default.")


class ActiveCheck(Model):
    """Asks every node from time to time."""

    type: Literal["http", "https", "tcp"] = Field(default="http", description="How a node is asked; http by default.")
    timeout: Seconds = Field(default=0.0, description="For an answer; 1s by default.")
    concurrency: int = Field(default=0, ge=0, description="Not needed: checks of all nodes run side by side.")
    host: str = Field(default="", description="Host header; the node's address by default.")
    port: PortNumber | None = Field(default=None, description="Port that is asked; the node's own by default.")
    http_path: str = Field(default="/", description="Path that is asked for.")
    strict_tls: bool = Field(default=True, alias="strictTLS", description="Check the certificate, for https.")
    request_headers: tuple[str, ...] = Field(default=(), description="Headers such as `X-Probe: yes`.")
    healthy: ActiveHealthy = Field(default=ActiveHealthy(), description="When a node is healthy.")
    unhealthy: ActiveUnhealthy = Field(default=ActiveUnhealthy(), description="When a node is unhealthy.")


class PassiveHealthy(Model):
    """Not needed: a node that was taken out comes back by active checks, or after a while."""

    http_codes: tuple[Status, ...] = Field(default=(), description="Answers that count.")
    successes: CheckCount = Field(default=0, description="So many in a row.")


class PassiveUnhealthy(Model):
    """When answers to requests make a node unhealthy."""

    http_codes: tuple[Status, ...] = Field(default=(), description="Answers that count; 429, 500, 503 by default.")
    http_failures: CheckCount = Field(default=0, description="So many of them in a row; 5 by default.")
    tcp_failures: CheckCount = Field(default=0, description="So many failures to connect in a row; 2 by default.")
    timeout: TimeoutCount = Field(default=0, description="So many timeouts in a row; 7 by default.")


class PassiveCheck(Model):
    """Looks at how requests go."""

    type: Literal["http", "https", "tcp"] = Field(default="http", description="What is looked at.")
    healthy: PassiveHealthy = Field(default=PassiveHealthy(), description="When a node is healthy.")
    unhealthy: PassiveUnhealthy = Field(default=PassiveUnhealthy(), description="When a node is unhealthy.")


class HealthCheck(Model):
    """Which nodes get requests."""

    active: ActiveCheck = Field(description="Asks every node from time to time.")
    passive: PassiveCheck | None = Field(default=None, description="Looks at how requests go.")


class BackendSettings(Model):
    """How nodes are chosen, watched and spoken to, wherever they come from."""

    loadbalancer: LoadBalancer | None = Field(
        default=None, alias="loadbalancer", description="How requests are spread."
    )
    scheme: Scheme | None = Field(default=None, description="What is spoken with the nodes; http by default.")
    retries: int | None = Field(default=None, ge=0, description="Further attempts of a request; 0 for none.")
    timeout: Timeout | None = Field(default=None, description="Times; 60s each by default.")
    health_check: HealthCheck | None = Field(default=None, description="Which nodes get requests.")
    pass_host: Literal["pass", "node", "rewrite"] | None = Field(
        default=None, description="Host that nodes see: the client's (pass, the default), their own, or upstreamHost."
    )
    upstream_host: str = Field(default="", description="Host that nodes see, with passHost rewrite.")


class UpstreamSettings(BackendSettings):
    """How nodes are chosen, watched and spoken to, and which they are."""

    tls_secret: SecretReference | None = Field(default=None, description="Our certificate for the nodes.")
    subsets: tuple[Subset, ...] = Field(default=(), description="Groups of pods that backends can name.")
    discovery: Discovery | None = Field(default=None, description="Nodes that a registry knows.")


class PortSettings(UpstreamSettings):
    """The same for one port of the Service; what is not written here is as above."""

    port: PortNumber = Field(description="Port of the Service.")


class UpstreamSpec(UpstreamSettings):
    """How a Service is spoken to, or nodes outside of the cluster."""

    ingress_class_name: str = Field(default="", description="Class of the object; the default class without one.")
    external_nodes: tuple[ExternalNode, ...] = Field(
        default=(), max_length=MAX_NODES, description="Nodes outside of the cluster."
    )
    port_level_settings: tuple[PortSettings, ...] = Field(default=(), description="Settings of single ports.")
