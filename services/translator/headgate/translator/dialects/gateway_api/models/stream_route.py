"""Routes of streams: TLSRoutes, TCPRoutes and UDPRoutes."""

from pydantic import Field

from headgate.translator.dialects.gateway_api.models.backend import BackendReference
from headgate.translator.dialects.gateway_api.models.names import Hostname, SectionName
from headgate.translator.dialects.gateway_api.models.route import ParentReference
from headgate.translator.manifests.models import Model


class StreamSettings(Model):
    """A TCPRoute or UDPRoute but for its rules."""

    parent_refs: tuple[ParentReference, ...] = ()
    use_default_gateways: str = ""


class TlsRouteSettings(StreamSettings):
    """A TLSRoute but for its rules."""

    hostnames: tuple[Hostname, ...] = ()
    """None: those of the listener."""


class StreamBackend(BackendReference):
    """A Service with its share of the connections."""

    weight: int = Field(default=1, ge=0, le=1_000_000)


class StreamRule(Model):
    """A rule: it is for all connections, so that a route has one."""

    name: SectionName | None = None
    backend_refs: tuple[StreamBackend, ...] = ()
