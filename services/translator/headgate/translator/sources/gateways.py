"""Gateways of Gateway API, their classes, and what may be referred to across namespaces.

A Gateway is ours by the controller of its GatewayClass, and where no GatewayClass of that name can be seen by the name,
as it is with IngressClasses.
"""

from functools import lru_cache
from typing import Final, NamedTuple

from headgate.common.resources import GATEWAY, GATEWAY_CLASS, REFERENCE_GRANT, JsonObject
from headgate.translator.manifests.reading import as_list, as_object, as_text
from headgate.translator.world.documents import Document, document_kind
from headgate.translator.world.graph import Lookups
from headgate.translator.world.world import EVERY, StoredKind


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


GATEWAYS: Final = document_kind(GATEWAY)
GATEWAY_CLASSES: Final = document_kind(GATEWAY_CLASS)
REFERENCE_GRANTS: Final = StoredKind(REFERENCE_GRANT, _read_grant, indexes=(EVERY,))


def find_our_gateway(lookups: Lookups, namespace: str, name: str) -> Document | None:
    """Return a Gateway that is ours; None where there is none."""
    found = lookups.get(GATEWAYS, namespace, name)
    return found if found is not None and owns_gateway(found, lookups) else None


def owns_gateway(gateway: Document, lookups: Lookups) -> bool:
    """Whether a Gateway is ours."""
    return owns_class(_class_of(gateway), lookups)


@lru_cache(maxsize=1024)
def _class_of(gateway: Document) -> str:
    """Return the class that a Gateway names; each of its routes asks."""
    return class_name(gateway.decode())


def class_name(gateway: JsonObject) -> str:
    """Return the class that a Gateway names."""
    return as_text(as_object(gateway.get("spec")).get("gatewayClassName"))


def owns_class(name: str, lookups: Lookups) -> bool:
    """Whether Gateways of a class are ours."""
    found = lookups.get(GATEWAY_CLASSES, "", name)
    if found is None:
        return name in lookups.settings.class_names
    return lookups.settings.owns_gateways_of(controller_of(found.decode()))


def controller_of(gateway_class: JsonObject) -> str:
    """Return the controller that a GatewayClass names."""
    return as_text(as_object(gateway_class.get("spec")).get("controllerName"))


def is_granted(lookups: Lookups, source: Party, target: Party, namespace: str) -> bool:
    """Whether objects of a kind and namespace may refer to an object of another namespace."""
    accepted = {target, target._replace(name="")}
    grants = lookups.find(REFERENCE_GRANTS, EVERY, namespace=namespace)
    return any(source in grant.sources and not accepted.isdisjoint(grant.targets) for grant in grants)
