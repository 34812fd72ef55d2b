"""What routes, TraefikServices and middlewares refer to: a Service, or a TraefikService, and how it is used."""

from typing import Final, Literal

from pydantic import Field

from headgate.translator.dialects.traefik.models.fields import Duration, ObjectReference
from headgate.translator.manifests.models import Model, Name, ServicePort

SERVICE: Final = "Service"
TRAEFIK_SERVICE: Final = "TraefikService"


class Cookie(Model):
    """A cookie that keeps clients with the server that served them first."""

    name: str = Field(default="", description="Name of the cookie; a hash of the service's name by default.")
    secure: bool = Field(default=False, description="Sent over HTTPS only.")
    http_only: bool = Field(default=False, description="Not for scripts.")
    same_site: Literal["", "none", "lax", "strict", "None", "Lax", "Strict", "NONE", "LAX", "STRICT"] = Field(
        default="", description="The cookie's SameSite attribute."
    )
    max_age: int = Field(
        default=0, description="Seconds for which it is kept; 0: for the session, negative: not at all."
    )
    path: str | None = Field(default=None, description="The cookie's path; / by default.")
    domain: str = Field(default="", description="The cookie's domain; the request's host by default.")


class Sticky(Model):
    """How clients are kept with a server."""

    cookie: Cookie | None = Field(default=None, description="By a cookie.")


class ResponseForwarding(Model):
    """How answers are passed on."""

    flush_interval: Duration | None = Field(default=None, description="Between two flushes to the client.")


class HealthCheck(Model):
    """Asks every server from time to time."""

    scheme: str = Field(default="", description="Scheme of the check; that of the servers by default.")
    mode: str = Field(default="", description="http, the default, or grpc.")
    path: str = Field(default="", description="Path that is asked for.")
    method: str = Field(default="", description="Method; GET by default.")
    status: int = Field(default=0, description="The answer that is expected; 200 to 399 by default.")
    port: int = Field(default=0, ge=0, le=65535, description="Port that is asked; the server's own by default.")
    interval: Duration | None = Field(default=None, description="Between two checks; 30s by default.")
    unhealthy_interval: Duration | None = Field(
        default=None, description="Between two checks of an unhealthy server; as interval by default."
    )
    timeout: Duration | None = Field(default=None, description="For an answer; 5s by default.")
    hostname: str = Field(default="", description="Host header of the check.")
    follow_redirects: bool = Field(default=True, description="Follow redirects; true by default.")
    headers: dict[str, str] = Field(default_factory=dict, description="Headers of the check.")


class PassiveHealthCheck(Model):
    """Takes servers out that fail requests."""

    failure_window: Duration | None = Field(default=None, description="In which failures count; 10s by default.")
    max_failed_attempts: int | None = Field(default=None, description="Failures that are too many; 1 by default.")


class LoadBalancer(Model):
    """A Service or a TraefikService, and how it is used."""

    name: Name = Field(description="Name of the Service or TraefikService.")
    kind: Literal["", "Service", "TraefikService"] = Field(default="", description="Service, the default.")
    namespace: str = Field(default="", description="Its namespace; that of the object by default.")
    port: ServicePort | None = Field(default=None, description="Port of the Service, by number or name.")
    scheme: str = Field(
        default="",
        description="http, https or h2c; https by default for port 443 and ports whose name begins with https.",
    )
    strategy: Literal["", "wrr", "p2c", "hrw", "leasttime", "RoundRobin"] = Field(
        default="", description="How a server is chosen; wrr by default."
    )
    weight: int | None = Field(default=None, ge=0, description="Share of the requests; 1 by default.")
    sticky: Sticky | None = Field(default=None, description="How clients are kept with a server.")
    pass_host_header: bool | None = Field(default=None, description="Send the client's Host; true by default.")
    response_forwarding: ResponseForwarding | None = Field(default=None, description="How answers are passed on.")
    servers_transport: str = Field(default="", description="ServersTransport: how servers are spoken to.")
    native_lb: bool | None = Field(default=None, alias="nativeLB", description="Use the Service's own address.")
    node_port_lb: bool = Field(default=False, alias="nodePortLB", description="Use the nodes' ports.")
    health_check: HealthCheck | None = Field(default=None, description="Asks every server from time to time.")
    passive_health_check: PassiveHealthCheck | None = Field(
        default=None, description="Takes servers out that fail requests."
    )
    middlewares: tuple[ObjectReference, ...] = Field(default=(), description="What is done on the way there.")

    @property
    def is_traefik_service(self) -> bool:
        """Whether a TraefikService is meant."""
        return self.kind == TRAEFIK_SERVICE


class StreamService(Model):
    """A Service that connections or datagrams go to."""

    name: Name = Field(description="Name of the Service.")
    namespace: str = Field(default="", description="Its namespace; that of the object by default.")
    port: ServicePort = Field(description="Port of the Service, by number or name.")
    weight: int | None = Field(default=None, ge=0, description="Share of the connections; 1 by default.")
    native_lb: bool | None = Field(default=None, alias="nativeLB", description="Use the Service's own address.")
    node_port_lb: bool = Field(default=False, alias="nodePortLB", description="Use the nodes' ports.")
