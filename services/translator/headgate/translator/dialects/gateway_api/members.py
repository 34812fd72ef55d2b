"""Which routes a Gateway has: how many at each listener, and of which namespaces."""

from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from headgate.translator.dialects.gateway_api.attachment import attach
from headgate.translator.dialects.gateway_api.gateways.reading import read_gateway
from headgate.translator.dialects.gateway_api.stored import BY_GATEWAY, ROUTES, gateway_name
from headgate.translator.sources.gateways import GATEWAYS
from headgate.translator.world.graph import Level, Lookups, Rule


class GatewayQuestion(NamedTuple):
    """Something about a Gateway."""

    cluster: str
    namespace: str
    name: str


class GatewayMembers(NamedTuple):
    """The routes of a Gateway."""

    attached: Mapping[str, int]
    """How many there are, by name of the listener."""
    namespaces: frozenset[str]
    """Of those that are attached to some listener."""


NO_MEMBERS: Final = GatewayMembers(MappingProxyType({}), frozenset())


def _count(lookups: Lookups, question: GatewayQuestion) -> GatewayMembers:
    gateway = lookups.get(GATEWAYS, question.namespace, question.name)
    if gateway is None:
        return NO_MEMBERS
    listeners, attached, namespaces = read_gateway(gateway.document).listeners, Counter[str](), set[str]()
    named = gateway_name(question.namespace, question.name)
    for route in (each for kind in ROUTES.values() for each in lookups.find(kind, BY_GATEWAY, named)):
        parents = (each for each in route.facts.parents if each.gateway == named)
        found = {name for each in parents for name in attach(route.facts, each, listeners, lookups).hosts}
        if found:
            attached.update(found)
            namespaces.add(route.facts.namespace)
    return GatewayMembers(dict(attached), frozenset(namespaces))


def _namespaces(lookups: Lookups, question: GatewayQuestion) -> frozenset[str]:
    return lookups.derive(_MEMBERS, question).namespaces | {question.namespace}


_MEMBERS: Rule[GatewayQuestion, GatewayMembers] = Rule(
    "routes of a Gateway", Level.CLUSTER, _count, lambda *_: NO_MEMBERS, is_memo=True
)
_NAMESPACES: Rule[GatewayQuestion, frozenset[str]] = Rule(
    "namespaces of a Gateway", Level.SHARED, _namespaces, lambda question, _: frozenset((question.namespace,)), True
)
"""Apart from the former, as routes come and go and their namespaces seldom do: every route of the Gateway asks."""


def members_of(lookups: Lookups, namespace: str, name: str) -> GatewayMembers:
    """Return the routes of a Gateway."""
    return lookups.derive(_MEMBERS, GatewayQuestion(lookups.cluster, namespace, name))


def namespaces_of(lookups: Lookups, namespace: str, name: str) -> frozenset[str]:
    """Return the namespaces that share the hosts of a Gateway: its own, and those of its routes.

    The Gateway decides by `allowedRoutes` who is let in. Among those hosts have no owner.
    """
    return lookups.derive(_NAMESPACES, GatewayQuestion(lookups.cluster, namespace, name))
