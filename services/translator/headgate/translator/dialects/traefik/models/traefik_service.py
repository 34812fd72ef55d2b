"""TraefikService: Services that share requests, are mirrored, or stand in for each other."""

from pydantic import Field

from headgate.translator.dialects.traefik.models.service import LoadBalancer, Sticky
from headgate.translator.manifests.models import Model


class WeightedServices(Model):
    """Services that share requests by their weights."""

    services: tuple[LoadBalancer, ...] = Field(default=(), description="The services, each with its weight.")
    sticky: Sticky | None = Field(default=None, description="How clients are kept with a service.")


class MirrorService(LoadBalancer):
    """A service that gets copies of requests."""

    percent: int = Field(default=0, description="Share of the requests of which it gets copies, in percent.")


class Mirroring(LoadBalancer):
    """A service that gets all requests, and services that get copies."""

    mirror_body: bool = Field(default=True, description="Copy requests' bodies; true by default.")
    max_body_size: int = Field(default=-1, description="Bytes of a body that is copied; -1: any.")
    mirrors: tuple[MirrorService, ...] = Field(default=(), description="Services that get copies.")


class HighestRandomWeight(Model):
    """Services of which the client's address chooses one."""

    services: tuple[LoadBalancer, ...] = Field(default=(), description="The services, each with its weight.")


class FailoverErrors(Model):
    """Answers after which the fallback is asked."""

    status: tuple[str, ...] = Field(default=(), description="Statuses, such as 500 or 500-504.")
    max_request_body_bytes: int = Field(default=-1, description="Bytes of a body that is sent again; -1: any.")


class Failover(Model):
    """A service, and another one in its place."""

    service: LoadBalancer = Field(description="The service that is asked first.")
    fallback: LoadBalancer = Field(description="The service that stands in.")
    errors: FailoverErrors | None = Field(default=None, description="Answers after which the fallback is asked.")


class TraefikServiceSpec(Model):
    """One of four ways to use services."""

    weighted: WeightedServices | None = Field(default=None, description="Services that share requests by weights.")
    mirroring: Mirroring | None = Field(default=None, description="A service, and others that get copies.")
    highest_random_weight: HighestRandomWeight | None = Field(
        default=None, description="Services of which the client's address chooses one."
    )
    failover: Failover | None = Field(default=None, description="A service, and another one in its place.")
