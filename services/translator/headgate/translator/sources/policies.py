"""What policies of one dialect say of another's objects: found by whoever translates these objects.

So a policy changes what it names, wherever that is used, and no dialect knows another's resources.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from headgate.common.table import Condition, Retries, Timeouts
from headgate.translator.sources.classes import ClassSettings
from headgate.translator.world.graph import Lookups


class BackendPolicy(NamedTuple):
    """How a port of a Service is spoken to."""

    upstream: Mapping[str, Any]
    """Fields of the table's upstream, for which the Service's own annotations say nothing."""
    timeouts: Timeouts | None
    """Of routes that say none themselves."""
    retries: Retries | None


class RoutePolicy(NamedTuple):
    """What holds for all routes of an object."""

    preference: int = 0
    """As in `RouteClaim`."""
    conditions: tuple[Condition, ...] = ()
    """That requests have to satisfy besides."""
    fault: str = ""
    """Why nobody can tell which requests its routes are for."""


NO_ROUTE_POLICY: Final = RoutePolicy()
FindBackendPolicy = Callable[[Lookups, str, str, int | str], BackendPolicy | None]
"""Finds what holds for a port of a Service, by namespace, name and port."""
FindRoutePolicy = Callable[[Lookups, str, str], RoutePolicy]
"""Finds what holds for an Ingress, by namespace and name."""
FindIngress = Callable[[Lookups, str, str, ClassSettings], bool | None]
"""Whether an Ingress is ours by its class; None where there is none of this namespace and name."""


def no_backend_policy(lookups: Lookups, namespace: str, name: str, port: int | str) -> None:
    """Stand in where policies are of no account."""


def no_route_policy(lookups: Lookups, namespace: str, name: str) -> RoutePolicy:
    """Stand in where policies are of no account."""
    return NO_ROUTE_POLICY


def no_ingress(lookups: Lookups, namespace: str, name: str, settings: ClassSettings) -> None:
    """Stand in where Ingresses are not read."""
