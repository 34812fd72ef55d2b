"""What policies say of the objects that they are attached to, whichever dialect they are written in."""

from typing import Final, NamedTuple

from headgate.translator.manifests.patches import NO_ROUTE_PATCH, RoutePatch, UpstreamPatch
from headgate.translator.world.attachments import AttachmentPoint


class ObjectTarget(NamedTuple):
    """An object that a policy is about."""

    group: str
    kind: str
    namespace: str
    name: str


class ServicePortTarget(NamedTuple):
    """A port of a Service, by number or by name, that a policy is about."""

    namespace: str
    service: str
    port: int | str


class BackendPolicy(NamedTuple):
    """How a port of a Service is spoken to."""

    upstream: UpstreamPatch
    route: RoutePatch
    """Holds for routes to it."""


class RoutePolicy(NamedTuple):
    """What holds for all routes of an object."""

    patch: RoutePatch = NO_ROUTE_PATCH
    fault: str = ""
    """Set if it is unknown which requests the routes are for."""


NO_ROUTE_POLICY: Final = RoutePolicy()
BACKEND_POLICIES: AttachmentPoint[ServicePortTarget, BackendPolicy | None] = AttachmentPoint("backend policy", None)
ROUTE_POLICIES: AttachmentPoint[ObjectTarget, RoutePolicy] = AttachmentPoint("route policy", NO_ROUTE_POLICY)
OWNERSHIP: AttachmentPoint[ObjectTarget, bool | None] = AttachmentPoint("ownership", None)
"""Whether an object that is translated is ours; None if it is not there. The core provides it for all dialects."""
