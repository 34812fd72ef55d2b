"""What routes are attached to, as it is now: a Gateway of ours, or a ListenerSet of one."""

from typing import NamedTuple

from headgate.common.resources import LISTENER_SET
from headgate.translator.dialects.gateway_api.gateways.addresses import own_place
from headgate.translator.dialects.gateway_api.gateways.listeners import GatewayListener
from headgate.translator.dialects.gateway_api.gateways.merged import MergedGateway, merged_gateway
from headgate.translator.dialects.gateway_api.gateways.reading import read_set
from headgate.translator.dialects.gateway_api.stored import Parent
from headgate.translator.sources.gateways import LISTENER_SETS, GatewayName, find_our_gateway, parent_of_set
from headgate.translator.world.graph import Lookups


class KnownParent(NamedTuple):
    """A parent of a route."""

    gateway: GatewayName
    merged: MergedGateway
    """The Gateway with all of its listeners."""
    listeners: tuple[GatewayListener, ...]
    """Those of the parent itself."""
    pending: str
    """Why nothing of it is served; empty if it is."""


def gateway_of(parent: Parent, lookups: Lookups) -> GatewayName | None:
    """Return the Gateway that a parent is, or is for; None if the parent is not there."""
    namespace, name = parent.ref.namespace, parent.ref.name
    if parent.ref.kind != LISTENER_SET.kind:
        return GatewayName(namespace, name)
    found = lookups.get(LISTENER_SETS, namespace, name)
    return None if found is None else parent_of_set(found.decode())


def find_gateway(parent: Parent, lookups: Lookups) -> GatewayName | None:
    """Return the Gateway that a parent is, or is for, if it is ours."""
    named = gateway_of(parent, lookups)
    return named if named is not None and find_our_gateway(lookups, *named) is not None else None


def find_parent(parent: Parent, lookups: Lookups) -> KnownParent | None:
    """Return a parent as it is; None if it is not there, or another controller's."""
    named = gateway_of(parent, lookups)
    merged = merged_gateway(lookups, named) if named is not None else None
    if named is None or merged is None:
        return None
    pending = "" if merged.is_accepted else f"Gateway {named} is not accepted; its status says why"
    if parent.ref.kind != LISTENER_SET.kind:
        return KnownParent(named, merged, merged.own, pending)
    listeners = merged.sets.get(f"{parent.ref.namespace}/{parent.ref.name}")
    if listeners is None:
        found = lookups.get(LISTENER_SETS, parent.ref.namespace, parent.ref.name)
        listeners = read_set(found, own_place(lookups, *named)) if found is not None else ()
        pending = f"{parent} is not accepted; its status says why"
    return KnownParent(named, merged, listeners, pending)
