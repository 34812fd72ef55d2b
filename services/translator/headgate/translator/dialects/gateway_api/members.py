"""Which routes a Gateway or a ListenerSet has: how many at each listener, and of which namespaces."""

from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from headgate.common.resources import GATEWAY, LISTENER_SET
from headgate.translator.dialects.gateway_api.attachment import attach
from headgate.translator.dialects.gateway_api.gateways.listeners import GatewayListener
from headgate.translator.dialects.gateway_api.gateways.merged import merged_gateway
from headgate.translator.dialects.gateway_api.gateways.reading import read_gateway, read_set
from headgate.translator.dialects.gateway_api.rivals import Lost, RouteName, lost_of
from headgate.translator.dialects.gateway_api.stored import BY_PARENT, ROUTES, Parent, parent_key
from headgate.translator.sources.gateways import GATEWAYS, LISTENER_SETS, GatewayName
from headgate.translator.world.graph import Level, Lookups, Rule


class _Question(NamedTuple):
    """Something about a Gateway, or a ListenerSet."""

    cluster: str
    kind: str
    namespace: str
    name: str


class Members(NamedTuple):
    """The routes of a Gateway, or of a ListenerSet."""

    attached: Mapping[str, int]
    """How many there are, by name of the listener."""
    namespaces: frozenset[str]
    """Of those that are attached to some listener."""


NO_MEMBERS: Final = Members(MappingProxyType({}), frozenset())


def _count(lookups: Lookups, question: _Question) -> Members:
    listeners, attached, namespaces = _listeners(lookups, question), Counter[str](), set[str]()
    named = parent_key(*question[1:])
    lost = lost_of(lookups, named, listeners)
    for route in (each for kind in ROUTES.values() for each in lookups.find(kind, BY_PARENT, named)):
        parents = (each for each in route.facts.parents if each.key == named)
        found = {name for each in parents for name in attach(route.facts, each, listeners, lookups).hosts}
        if lost:
            found = {name for name in found if (RouteName.of(route.facts), name) not in lost}
        if found:
            attached.update(found)
            namespaces.add(route.facts.namespace)
    return Members(dict(attached), frozenset(namespaces))


def _listeners(lookups: Lookups, question: _Question) -> tuple[GatewayListener, ...]:
    if question.kind == LISTENER_SET.kind:
        found = lookups.get(LISTENER_SETS, question.namespace, question.name)
        return () if found is None else read_set(found)
    gateway = lookups.get(GATEWAYS, question.namespace, question.name)
    return () if gateway is None else read_gateway(gateway.document).listeners


def _lose(lookups: Lookups, question: _Question) -> Lost:
    return lost_of(lookups, parent_key(*question[1:]), _listeners(lookups, question))


def _namespaces(lookups: Lookups, question: _Question) -> frozenset[str]:
    found = {question.namespace} | members_of(lookups, *question[1:]).namespaces
    merged = merged_gateway(lookups, GatewayName(question.namespace, question.name))
    for each in merged.sets if merged is not None else ():
        namespace, _, name = each.partition("/")
        found |= {namespace} | members_of(lookups, LISTENER_SET.kind, namespace, name).namespaces
    return frozenset(found)


_MEMBERS: Rule[_Question, Members] = Rule(
    "routes of a parent", Level.CLUSTER, _count, lambda *_: NO_MEMBERS, is_memo=True
)
_LOST: Rule[_Question, Lost] = Rule("rivals of a parent's routes", Level.CLUSTER, _lose, lambda *_: {}, is_memo=True)
_NAMESPACES: Rule[_Question, frozenset[str]] = Rule(
    "namespaces of a Gateway", Level.SHARED, _namespaces, lambda question, _: frozenset((question.namespace,)), True
)
"""Apart from the former, as routes come and go and their namespaces seldom do: every route of the Gateway asks."""


def members_of(lookups: Lookups, kind: str, namespace: str, name: str) -> Members:
    """Return the routes of a Gateway or a ListenerSet."""
    return lookups.derive(_MEMBERS, _Question(lookups.cluster, kind, namespace, name))


def lost_at(lookups: Lookups, parent: Parent) -> Lost:
    """Return what HTTPRoutes and GRPCRoutes of a parent lose to older ones of the other kind."""
    return lookups.derive(_LOST, _Question(lookups.cluster, parent.ref.kind, parent.ref.namespace, parent.ref.name))


def namespaces_of(lookups: Lookups, gateway: GatewayName) -> frozenset[str]:
    """Return the namespaces that share the hosts of a Gateway: its own, those of its ListenerSets, and of their routes.

    The Gateway decides by `allowedListeners` and `allowedRoutes` who is let in. Among those hosts have no owner.
    """
    return lookups.derive(_NAMESPACES, _Question(lookups.cluster, GATEWAY.kind, *gateway))
