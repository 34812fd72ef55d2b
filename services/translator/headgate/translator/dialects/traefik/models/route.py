"""IngressRoute: rules for HTTP requests, and where they go."""

from typing import Literal

from pydantic import Field

from headgate.translator.dialects.traefik.models.fields import Domain, ObjectReference
from headgate.translator.dialects.traefik.models.service import LoadBalancer
from headgate.translator.manifests.models import Model, Name


class Observability(Model):
    """What is seen of a route's requests."""

    access_logs: bool | None = Field(default=None, description="Lines of the access log; true by default.")
    metrics: bool | None = Field(default=None, description="Metrics; true by default.")
    tracing: bool | None = Field(default=None, description="Traces; true by default.")
    trace_verbosity: Literal["minimal", "detailed"] = Field(default="minimal", description="Detail of the traces.")


class RouteRule(Model):
    """Which requests are taken, and what happens to them."""

    match: Name = Field(description="Rule such as Host(`example.com`) && PathPrefix(`/api`).")
    kind: Literal["", "Rule"] = Field(default="", description="Rule.")
    priority: int = Field(default=0, le=9223372036854774807, description="The higher goes first; 0: the rule's length.")
    syntax: str = Field(default="", description="Syntax of the rule: v3, the default, or v2.")
    services: tuple[LoadBalancer, ...] = Field(default=(), description="Where the requests go.")
    middlewares: tuple[ObjectReference, ...] = Field(default=(), description="What is done on the way, in this order.")
    observability: Observability | None = Field(default=None, description="What is seen of the requests.")


class RouteTls(Model):
    """TLS for the hosts of the routes; an empty one is TLS with the default certificate."""

    secret_name: str = Field(default="", description="Secret with the certificate and its key.")
    options: ObjectReference | None = Field(default=None, description="TLSOption: versions, ciphers, client auth.")
    store: ObjectReference | None = Field(default=None, description="TLSStore; only the default one is used.")
    cert_resolver: str = Field(default="", description="Who is asked for certificates.")
    domains: tuple[Domain, ...] = Field(default=(), description="Names that certificates are asked for.")


class RouteSettings(Model):
    """What of the spec holds for all its routes."""

    ingress_class_name: str = Field(default="", description="Class of the object, beside the annotation.")
    entry_points: tuple[str, ...] = Field(default=(), description="Entry points; the default ones by default.")
    tls: RouteTls | None = Field(default=None, description="TLS for the hosts of the routes.")
    parent_refs: tuple[ObjectReference, ...] = Field(default=(), description="IngressRoutes that this one is below.")


class IngressRouteSpec(RouteSettings):
    """Routes of HTTP requests on some entry points."""

    routes: tuple[RouteRule, ...] = Field(description="Rules, and where requests go.")
