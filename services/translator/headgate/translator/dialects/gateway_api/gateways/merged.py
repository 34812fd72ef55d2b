"""All listeners of a Gateway: its own, and those of the ListenerSets that it lets in, the oldest first.

This is a memo, so that a Gateway whose listeners are as before translates neither its routes nor its ListenerSets
again.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from headgate.translator.dialects.gateway_api.gateways.addresses import own_place
from headgate.translator.dialects.gateway_api.gateways.allowing import lets_in
from headgate.translator.dialects.gateway_api.gateways.listeners import Faults, GatewayListener, faults_of
from headgate.translator.dialects.gateway_api.gateways.reading import read_gateway, read_set
from headgate.translator.dialects.gateway_api.models.gateway import AllowedListeners
from headgate.translator.objects.targets import seniority_of
from headgate.translator.sources.gateways import (
    GATEWAYS,
    LISTENER_SETS,
    SETS_BY_GATEWAY,
    GatewayName,
    owns_gateway,
)
from headgate.translator.world.graph import Level, Lookups, Rule

MAX_SETS: Final = 512
"""ListenerSets of a Gateway that are looked at, the oldest."""


class _Question(NamedTuple):
    cluster: str
    namespace: str
    name: str


class MergedGateway(NamedTuple):
    """A Gateway of ours with its ListenerSets."""

    own: tuple[GatewayListener, ...]
    sets: Mapping[str, tuple[GatewayListener, ...]]
    """Listeners of the ListenerSets that it lets in, by their namespaces and names, the oldest first."""
    faults: Faults
    """Of all of them."""
    is_accepted: bool
    """As a whole; its listeners stand for themselves."""

    @property
    def accepted(self) -> tuple[GatewayListener, ...]:
        """All listeners that are served, or would be with a certificate."""
        everything = (*self.own, *(each for group in self.sets.values() for each in group))
        return tuple(each for each in everything if each.id not in self.faults)

    @property
    def namespaces(self) -> frozenset[str]:
        """Those of its ListenerSets."""
        return frozenset(name.partition("/")[0] for name in self.sets)


def sets_of(lookups: Lookups, name: GatewayName, allowed: AllowedListeners) -> dict[str, tuple[GatewayListener, ...]]:
    """Return the listeners of the ListenerSets that a Gateway lets in, as `MergedGateway` has them."""
    if allowed.namespaces.from_ == "None":
        return {}
    place = own_place(lookups, name.namespace, name.name)
    found = []
    for document in lookups.find(LISTENER_SETS, SETS_BY_GATEWAY, str(name)):
        seniority = seniority_of(document.decode())
        if lets_in(allowed.namespaces, name.namespace, seniority.namespace, lookups):
            found.append((seniority, document))
    found.sort(key=lambda each: each[0])
    return {f"{age.namespace}/{age.name}": read_set(document, place) for age, document in found[:MAX_SETS]}


def _merge(lookups: Lookups, question: _Question) -> MergedGateway | None:
    _, namespace, name = question
    found = lookups.get(GATEWAYS, namespace, name)
    if found is None or not owns_gateway(found, lookups):
        return None
    listeners, allowed, is_accepted = read_gateway(found.document, own_place(lookups, namespace, name))
    sets = sets_of(lookups, GatewayName(namespace, name), allowed)
    faults = faults_of((listeners, *sets.values()), lookups.settings.entry_points)
    return MergedGateway(listeners, sets, faults, is_accepted)


_MERGED: Rule[_Question, MergedGateway | None] = Rule(
    "listeners of a Gateway", Level.CLUSTER, _merge, lambda *_: None, is_memo=True
)


def merged_gateway(lookups: Lookups, name: GatewayName) -> MergedGateway | None:
    """Return a Gateway with its ListenerSets; None if there is none that is ours."""
    return None if lookups.is_assumed else lookups.derive(_MERGED, _Question(lookups.cluster, *name))
