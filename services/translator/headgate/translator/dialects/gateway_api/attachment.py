"""Which listeners a route is attached to, and why it is not.

The order of the questions is that of Gateway API: a listener that the reference means, one that lets the route's
namespace and kind in, one whose hostname has hosts in common with the route's. How a listener or a route stands
otherwise does not matter.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from headgate.common.resources import GATEWAY_GROUP
from headgate.common.status import RouteKind
from headgate.translator.dialects.gateway_api.gateways.allowing import lets_in
from headgate.translator.dialects.gateway_api.gateways.listeners import GatewayListener
from headgate.translator.dialects.gateway_api.hostnames import EVERY_HOST, intersect
from headgate.translator.dialects.gateway_api.stored import Parent, RouteFacts
from headgate.translator.world.graph import Lookups


class Attachment(NamedTuple):
    """How a route stands with one parent."""

    hosts: Mapping[str, tuple[str, ...]]
    """Names of the listeners that it is attached to, each with the hostnames that both have in common."""
    reason: str = ""
    """Why it is attached to none."""
    message: str = ""


def attach(route: RouteFacts, parent: Parent, listeners: Sequence[GatewayListener], lookups: Lookups) -> Attachment:
    """Return how a route stands with a parent, a Gateway or a ListenerSet with these listeners."""
    what = str(parent)
    kind = RouteKind(GATEWAY_GROUP, route.kind)
    meant = [each for each in listeners if _means(parent, each)]
    if not meant:
        names = ", ".join(f"{each.spec.name} (port {each.spec.port})" for each in listeners) or "none"
        return Attachment({}, "NoMatchingParent", f"{what} has no such listener; its listeners are: {names}")
    allowed = [each for each in meant if kind in each.kinds and _lets_in(each, parent, route, lookups)]
    if not allowed:
        names = ", ".join(each.spec.name for each in meant)
        message = f"{route.kind}s of namespace {route.namespace} are not allowed by listener {names} of {what}"
        return Attachment({}, "NotAllowedByListeners", f"{message}; see allowedRoutes there")
    common = ((each.spec.name, _common_hosts(each.hostname, route.hostnames)) for each in allowed)
    found = {name: hosts for name, hosts in common if hosts}
    if not found:
        theirs = ", ".join(f"{each.spec.name} ({each.spec.hostname})" for each in allowed)
        message = f"no hostname of the route is one of a listener of {what}; these are: {theirs}"
        return Attachment({}, "NoMatchingListenerHostname", message)
    return Attachment(found)


def _means(parent: Parent, listener: GatewayListener) -> bool:
    section, port = parent.ref.section, parent.ref.port
    return (not section or section == listener.spec.name) and port in (0, listener.spec.port)


def _lets_in(listener: GatewayListener, parent: Parent, route: RouteFacts, lookups: Lookups) -> bool:
    return lets_in(listener.spec.allowed_routes.namespaces, parent.ref.namespace, route.namespace, lookups)


def _common_hosts(hostname: str, hostnames: Iterable[str]) -> tuple[str, ...]:
    found = (intersect(hostname, each) for each in tuple(hostnames) or (EVERY_HOST,))
    return tuple(dict.fromkeys(each for each in found if each is not None))
