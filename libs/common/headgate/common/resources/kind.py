"""The row of a kind: all that is declared about it, once.

A kind is known by its API group and plural (`networking.k8s.io`, `ingresses`), never by its version: the watcher
may read an object in any served version, and the translator decides what it understands.

Watcher, manifest reader, status writer, webhook, command line, audit, RBAC and custom resource definitions derive what
they do for a kind from its row. Rejected: a table of kinds in each of them, which one more kind had to find.
"""

from dataclasses import KW_ONLY, dataclass
from enum import Enum, auto

from headgate.common.resources.references import ReferenceField


class OwnershipRule(Enum):
    """By what it is decided whether an object is ours or another controller's."""

    NONE = auto()
    """No controller owns the object: it is looked up, or has a meaning for us by an annotation of ours."""
    CLASS = auto()
    """By the IngressClass that the object names."""
    ANNOTATION = auto()
    """By an annotation that names a class, whatever IngressClasses there are."""
    GATEWAY = auto()
    """By the Gateway that the object refers to."""
    REFERENCE = auto()
    """By what refers to the object, by what the object is attached to, or by the controller that it names itself."""


class StatusShape(Enum):
    """Which part of an object's status is ours to write."""

    NONE = auto()
    INGRESS = auto()
    """`status.loadBalancer.ingress`; there is no place for conditions."""
    CONDITIONS = auto()
    """`status.conditions`, with the types that the kind's definition knows."""
    ACCEPTANCE = auto()
    """`status.conditions` of a kind that has `Accepted` and no other condition of ours."""
    EXPORT = auto()
    """`status.conditions` of ServiceExports, with the types of the Multi-Cluster Services API."""
    PREFIXED_CONDITIONS = auto()
    """`status.conditions` of a kind of Kubernetes' own: our types have a prefix."""
    ANCESTORS = auto()
    """`status.ancestors`, as policies of Gateway API have it (GEP-713)."""
    GATEWAY_ANCESTORS = auto()
    """The same, in the name of the controller of GatewayClasses."""
    PARENTS = auto()
    """`status.parents`, as routes of Gateway API have it."""
    LISTENERS = auto()
    """`status.conditions`, `status.addresses` and `status.listeners`, as Gateways have them."""


class Sealing(Enum):
    """Which values of an object are sealed to the gateways before it is published."""

    NOTHING = auto()
    SECRET = auto()
    """All values of a Secret."""
    CREDENTIALS = auto()
    """What identifies a consumer."""


class Narrowing(Enum):
    """Which setting of the watcher narrows the objects that are read."""

    NONE = auto()
    LABELS = auto()
    """The label selector `ingress_selector`."""
    SECRET_TYPES = auto()
    """By `watch_secrets`: a field selector on `type`, and perhaps what other objects name."""


class WatchMode(Enum):
    """When a cluster is asked for objects of a kind."""

    ALWAYS = auto()
    PODS = auto()
    """Only with the setting `watch_pods`: a cluster has many."""
    NAMED = auto()
    """The objects that the setting `watch_config_maps` names, and those that other objects name."""
    NEVER = auto()
    """Never: people write them into the log themselves."""


@dataclass(frozen=True, slots=True, eq=False)
class ResourceKind:
    """A kind of object that Headgate reads. There is one row of each, which is compared by identity."""

    group: str
    """API group; empty for the core group."""
    resource: str
    """Plural in lower case, as in API paths: `ingresses`."""
    kind: str
    """Kind as in manifests: `Ingress`."""
    versions: tuple[str, ...]
    """Versions that we understand, preferred first."""
    namespaced: bool = True

    _: KW_ONLY

    short_names: tuple[str, ...] = ()
    """As kubectl takes them: `ing`."""
    has_label_name: bool = False
    """Whether names are DNS labels, and not DNS names."""
    stands_in_for: "ResourceKind | None" = None
    """The kind that says the same and is preferred: this one is read where a server does not have that."""
    has_whole_group: bool = False
    """Whether all kinds of the group are about routing, so that the right to read is asked for all of the group, and an
    object of a kind that is not read is worth a line in an audit."""
    has_definition: bool = False
    """Whether `crds/` has a custom resource definition of it."""

    dialect: str = ""
    """The translator's dialect that makes something of its objects; empty for what is only looked up."""
    ownership: OwnershipRule = OwnershipRule.NONE

    watch: WatchMode = WatchMode.ALWAYS
    narrowed_by: Narrowing = Narrowing.NONE
    names: tuple[str, ...] = ()
    """The only objects that are read, each by a watch of its own; empty: all."""
    is_for_tenants: bool = True
    """Whether a watcher that is confined to a tenant's namespaces may read it."""
    is_fetched: bool = False
    """Whether the right to get single objects is asked for, although their status is not written."""

    sealing: Sealing = Sealing.NOTHING
    hidden: tuple[str, ...] = ()
    """Fields whose value is replaced by `***` before an object is published, such as `spec.auth.key`."""
    references: tuple[ReferenceField, ...] = ()
    """Fields that name Secrets and ConfigMaps, which the watcher then reads. Those of ConfigMaps count for the ones
    only that `watch_config_maps` names."""
    keeps_labels_only: bool = False
    """Whether nothing of an object is published but its names and labels."""
    kept_annotations: tuple[str, ...] = ()
    """Annotations that are published with an object's names, where nothing else of it is; empty: the rest is too."""
    keeps_status: bool = False
    """Whether an object's status is published with it."""
    status_fields: tuple[str, ...] = ()
    """Fields of the status that are published with an object where the rest of it is not."""

    status: StatusShape = StatusShape.NONE
    is_asked: bool = False
    """Whether the admission webhook asks about it."""

    @property
    def is_routing(self) -> bool:
        """Whether all objects are about routing; of others, as of Services, only some have a meaning for us."""
        return self.ownership is not OwnershipRule.NONE

    @property
    def verbs(self) -> tuple[str, ...]:
        """Verbs of the right to read it. An object is fetched before its status is written."""
        is_fetched = self.is_fetched or self.status is not StatusShape.NONE
        return ("get", "list", "watch") if is_fetched else ("list", "watch")

    def is_called(self, name: str) -> bool:
        """Whether a name is the kind, the plural or a short name of it, in any case."""
        return name.lower() in (self.kind.lower(), self.resource, *self.short_names)

    def __str__(self) -> str:
        return f"{self.resource}.{self.group}" if self.group else self.resource
