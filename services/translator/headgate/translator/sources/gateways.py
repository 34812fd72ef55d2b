"""Gateways of Gateway API, their classes, and what may be referred to across namespaces.

A Gateway is ours by the controller of its GatewayClass, and where no GatewayClass of that name can be seen by the name,
as it is with IngressClasses.
"""

from functools import lru_cache
from typing import Final, NamedTuple

from headgate.common.resources import (
    BUNDLE_VERSION,
    DEFINITION,
    GATEWAY,
    GATEWAY_CLASS,
    GATEWAY_GROUP,
    LISTENER_SET,
    REFERENCE_GRANT,
    JsonObject,
)
from headgate.translator.manifests.reading import as_list, as_object, as_text, metadata
from headgate.translator.world.address_pool import normal_address
from headgate.translator.world.documents import Document, document_index, document_kind
from headgate.translator.world.graph import Level, Lookups, Rule
from headgate.translator.world.world import EVERY, Index, StoredKind


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


class StoredGateway(NamedTuple):
    """A Gateway."""

    document: Document
    held: tuple[str, ...]
    """Addresses that its status shows. What is served of it does not depend on them, but which addresses it gets."""
    parameters: str = ""
    """The object that it names as its parameters; see `parameters_name`."""

    def decode(self) -> JsonObject:
        """Return the manifest, without its status."""
        return self.document.decode()


_DOCUMENTS: Final = document_kind(GATEWAY)
EVERYWHERE: Index[StoredGateway] = Index("everywhere", lambda _: ("",), is_table_wide=True)
"""The Gateways of all clusters: they share the addresses of one pool."""


def _read_gateway(manifest: JsonObject) -> StoredGateway:
    shown = map(as_object, as_list(as_object(manifest.get("status")).get("addresses")))
    held = (normal_address(as_text(each.get("value"))) for each in shown)
    infrastructure = as_object(as_object(manifest.get("spec")).get("infrastructure"))
    parameters = _parameters_name(infrastructure.get("parametersRef"), as_text(metadata(manifest).get("namespace")))
    return StoredGateway(_DOCUMENTS.read(manifest), tuple(filter(None, held)), parameters)


def parameters_name(group: str, kind: str, namespace: str, name: str) -> str:
    """Return the value by which Gateways and GatewayClasses are found whose parameters an object has."""
    return f"{kind}.{group}/{namespace}/{name}"


def _parameters_name(value: object, namespace: str) -> str:
    written = as_object(value)
    group, kind, name = (as_text(written.get(field)) for field in ("group", "kind", "name"))
    return parameters_name(group, kind, namespace, name) if written else ""


def _class_parameters(gateway_class: JsonObject) -> tuple[str, ...]:
    written = as_object(as_object(gateway_class.get("spec")).get("parametersRef"))
    return (_parameters_name(written, as_text(written.get("namespace"))),) if written else ()


BY_PARAMETERS: Index[StoredGateway] = Index(
    "parameters", lambda gateway: (gateway.parameters,) if gateway.parameters else (), is_cluster_wide=True
)
CLASSES_BY_PARAMETERS: Index[Document] = document_index("parameters", _class_parameters, is_cluster_wide=True)


GATEWAYS: Final = StoredKind(
    GATEWAY,
    _read_gateway,
    indexes=(EVERYWHERE, BY_PARAMETERS),
    restore=StoredGateway.decode,
    combine=lambda present, good: good._replace(held=present.held),
)


class GatewayName(NamedTuple):
    """A Gateway."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


def parent_of_set(manifest: JsonObject) -> GatewayName | None:
    """Return the Gateway that a ListenerSet is for; None if it names something else."""
    written = as_object(as_object(manifest.get("spec")).get("parentRef"))
    is_gateway = (written.get("group", GATEWAY_GROUP), written.get("kind", GATEWAY.kind)) == (
        GATEWAY_GROUP,
        GATEWAY.kind,
    )
    own, name = as_text(metadata(manifest).get("namespace")), as_text(written.get("name"))
    return GatewayName(as_text(written.get("namespace")) or own, name) if is_gateway and name else None


def _parents_of_set(manifest: JsonObject) -> frozenset[str]:
    parent = parent_of_set(manifest)
    return frozenset() if parent is None else frozenset((str(parent),))


SETS_BY_GATEWAY: Final = document_index("gateway", _parents_of_set, is_cluster_wide=True)
LISTENER_SETS: Final = document_kind(
    LISTENER_SET, metadata_fields=("creationTimestamp", "uid", "namespace", "name"), indexes=(SETS_BY_GATEWAY,)
)
GATEWAY_CLASSES: Final = document_kind(GATEWAY_CLASS, indexes=(CLASSES_BY_PARAMETERS,))
REFERENCE_GRANTS: Final = StoredKind(REFERENCE_GRANT, _read_grant, indexes=(EVERY,))


def _read_version(manifest: JsonObject) -> str:
    return as_text(as_object(metadata(manifest).get("annotations")).get(BUNDLE_VERSION))


DEFINITIONS: Final = StoredKind(DEFINITION, _read_version)
"""By the version of Gateway API that they are of; empty where they do not say it."""


def installed_version(lookups: Lookups) -> str | None:
    """Return the version of Gateway API that a cluster's definitions are of, such as `v1.6.1`; None: not known."""
    return lookups.get(DEFINITIONS, "", DEFINITION.names[0]) or None


class _Named(NamedTuple):
    cluster: str
    namespace: str
    name: str


def _find_ours(lookups: Lookups, named: _Named) -> Document | None:
    found = lookups.get(GATEWAYS, named.namespace, named.name)
    return found.document if found is not None and owns_gateway(found, lookups) else None


_OURS: Final[Rule[_Named, Document | None]] = Rule(
    "Gateway of ours", Level.CLUSTER, _find_ours, lambda *_: None, is_memo=True
)
"""Of a Gateway whose status has got addresses no route is translated again."""


def find_our_gateway(lookups: Lookups, namespace: str, name: str) -> Document | None:
    """Return a Gateway that is ours; None where there is none."""
    return None if lookups.is_assumed else lookups.derive(_OURS, _Named(lookups.cluster, namespace, name))


def owns_gateway(gateway: StoredGateway, lookups: Lookups) -> bool:
    """Whether a Gateway is ours."""
    return owns_class(_class_of(gateway.document), lookups)


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
