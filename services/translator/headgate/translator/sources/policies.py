"""What policies say of the objects that they are attached to, whichever dialect they are written in."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from headgate.translator.manifests.patches import NO_ROUTE_PATCH, RoutePatch, UpstreamPatch
from headgate.translator.world.attachments import AttachmentPoint


class ObjectTarget(NamedTuple):
    """An object that a policy is about."""

    group: str
    kind: str
    namespace: str
    name: str
    section: str = ""
    """Name of a part of it, such as a rule; empty for the whole object, and for a part without a name."""


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
    """What holds for all routes of an object, or of a part of it."""

    patch: RoutePatch = NO_ROUTE_PATCH
    fault: str = ""
    """Set if it is unknown which requests the routes are for."""


class ConnectionPolicy(NamedTuple):
    """What holds for the connections or datagrams of a route."""

    fields: Mapping[str, Any] = {}
    """Of a `StreamRoute`."""
    fault: str = ""
    """Set if it cannot be followed, so that it is unknown who may connect."""


NO_ROUTE_POLICY: Final = RoutePolicy()
NO_CONNECTION_POLICY: Final = ConnectionPolicy()
BACKEND_POLICIES: AttachmentPoint[ServicePortTarget, BackendPolicy | None] = AttachmentPoint("backend policy", None)
ROUTE_POLICIES: AttachmentPoint[ObjectTarget, RoutePolicy] = AttachmentPoint("route policy", NO_ROUTE_POLICY)
CONNECTION_POLICIES: AttachmentPoint[ObjectTarget, ConnectionPolicy] = AttachmentPoint(
    "connection policy", NO_CONNECTION_POLICY
)
SECTIONS: AttachmentPoint[ObjectTarget, frozenset[str] | None] = AttachmentPoint("sections", None)
"""Names of the parts of an object that policies may be about; None if it is not there, or its kind has none."""
OWNERSHIP: AttachmentPoint[ObjectTarget, bool | None] = AttachmentPoint("ownership", None)
"""Whether an object that is translated is ours; None if it is not there. The core provides it for all dialects."""
