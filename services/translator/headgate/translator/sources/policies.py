"""What policies say of the objects that they are attached to, whichever dialect they are written in."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from headgate.common.table import Condition, Retries, Timeouts
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

    upstream: Mapping[str, Any]
    """Fields of the table's upstream, for which the Service's own annotations say nothing."""
    timeouts: Timeouts | None
    """Of routes that say none themselves."""
    retries: Retries | None


class RoutePolicy(NamedTuple):
    """What holds for all routes of an object."""

    priority: int = 0
    """Among routes for the same path: `Rank.path_priority`."""
    conditions: tuple[Condition, ...] = ()
    """That requests have to satisfy besides."""
    fault: str = ""
    """Set if nobody can tell which requests the routes are for."""


NO_ROUTE_POLICY: Final = RoutePolicy()
BACKEND_POLICIES: AttachmentPoint[ServicePortTarget, BackendPolicy | None] = AttachmentPoint("backend policy", None)
ROUTE_POLICIES: AttachmentPoint[ObjectTarget, RoutePolicy] = AttachmentPoint("route policy", NO_ROUTE_POLICY)
OWNERSHIP: AttachmentPoint[ObjectTarget, bool | None] = AttachmentPoint("ownership", None)
"""Whether an object that is translated is ours; None if it is not there. The core provides it for all dialects."""
