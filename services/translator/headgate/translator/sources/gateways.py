"""Gateways of Gateway API, as far as other objects are ours by them, and what may be referred to across namespaces.

A Gateway is ours by the controller of its GatewayClass, and where no GatewayClass of that name can be seen by the name,
as it is with IngressClasses.
"""

from typing import NamedTuple

from headgate.common.resources import GATEWAY, GATEWAY_CLASS, REFERENCE_GRANT, JsonObject
from headgate.translator.manifests.reading import as_list, as_object, as_text
from headgate.translator.world.graph import Lookups
from headgate.translator.world.world import EVERY, StoredKind


def _read_gateway(manifest: JsonObject) -> str:
    return as_text(as_object(manifest.get("spec")).get("gatewayClassName"))


def _read_gateway_class(manifest: JsonObject) -> str:
    return as_text(as_object(manifest.get("spec")).get("controllerName"))


class Party(NamedTuple):
    """One end of references that a ReferenceGrant allows."""

    group: str
    kind: str
    name: str
    """Of whose references it is about the namespace; of what is referred to the name, empty for all."""


class ReferenceGrant(NamedTuple):
    """Who may refer to what in the namespace of the grant."""

    sources: frozenset[Party]
    targets: frozenset[Party]


def _read_grant(manifest: JsonObject) -> ReferenceGrant:
    spec = as_object(manifest.get("spec"))
    return ReferenceGrant(_parties(spec, "from", "namespace"), _parties(spec, "to", "name"))


def _parties(spec: JsonObject, field: str, name: str) -> frozenset[Party]:
    written = map(as_object, as_list(spec.get(field)))
    return frozenset(
        Party(as_text(one.get("group")), as_text(one.get("kind")), as_text(one.get(name))) for one in written
    )


GATEWAYS = StoredKind(GATEWAY, _read_gateway)
"""The names of their classes."""
GATEWAY_CLASSES = StoredKind(GATEWAY_CLASS, _read_gateway_class)
"""The names of their controllers."""
REFERENCE_GRANTS = StoredKind(REFERENCE_GRANT, _read_grant, indexes=(EVERY,))


def owns_gateway(class_name: str, lookups: Lookups) -> bool:
    """Whether Gateways of a class are ours."""
    settings = lookups.settings
    controller = lookups.get(GATEWAY_CLASSES, "", class_name)
    return class_name in settings.class_names if controller is None else settings.owns(controller)


def is_granted(lookups: Lookups, source: Party, target: Party, namespace: str) -> bool:
    """Whether objects of a kind and namespace may refer to an object of another namespace."""
    accepted = {target, target._replace(name="")}
    grants = lookups.find(REFERENCE_GRANTS, EVERY, namespace=namespace)
    return any(source in grant.sources and not accepted.isdisjoint(grant.targets) for grant in grants)
