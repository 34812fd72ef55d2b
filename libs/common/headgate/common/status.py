"""What translators want written back to an object: its addresses, conditions and Events.

Each table that an object is in has a status of it; watchers write what these say together. What a later release's
translator says besides is passed over, so that translators can be upgraded before watchers.
"""

import ipaddress
import re
from datetime import datetime
from enum import StrEnum
from functools import lru_cache
from typing import Final, Literal, NamedTuple, Self

from pydantic import AwareDatetime, BaseModel, ConfigDict

from headgate.common.deltas import escape_token, trusted, unescape_token
from headgate.common.errors import DecodeError
from headgate.common.problems import Problem
from headgate.common.resources import ObjectRef
from headgate.common.snapshot import Version
from headgate.common.table import DEFAULT_TABLE

CONTROLLER_NAME: Final = "headgate.dev/ingress-controller"
"""Of our IngressClasses, and of what we write of policies."""
GATEWAY_CONTROLLER_NAME: Final = "headgate.dev/gateway-controller"
"""Of our GatewayClasses, and of what we write of routes of Gateway API."""
STATUS_STREAM = "HEADGATE_STATUS"
STATUS_PREFIX = "headgate.status"
NOTE_BYTES = 1024
"""Of an Event's note, by the API's limit; it counts bytes."""
CONDITION_CHARACTERS = 4096
"""Of a condition's message: enough to read, and far below the API's limit of 32,768."""


_LABEL = r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?"
_NAME = re.compile(rf"{_LABEL}(\.{_LABEL})*")
_NUMBERS = re.compile(r"[0-9.]+")


def is_address(text: str) -> bool:
    """Return whether an API server takes a text as address or host name of a load balancer."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return len(text) <= 253 and bool(_NAME.fullmatch(text)) and not _NUMBERS.fullmatch(text)
    return True


def status_subject(ref: ObjectRef, table: str) -> str:
    """Subject of an object's status in one table: `headgate.status.<cluster>.<table>.<group>.<resource>...`."""
    cluster, group, resource, namespace, name = ref
    return f"{_kind_subject(cluster, table, group, resource)}.{escape_token(namespace)}.{escape_token(name)}"


@lru_cache(maxsize=4096)
def _kind_subject(*kind: str) -> str:
    """Begin the subjects of a kind's objects in one table: there are thousands of them."""
    return ".".join((STATUS_PREFIX, *map(escape_token, kind)))


def parse_status_subject(subject: str) -> tuple[str, ObjectRef]:
    """Return the table and the object that a status' subject names.

    Raises:
        DecodeError: the subject is not one of `status_subject`.
    """
    of_kind, _, name = subject.rpartition(".")
    of_kind, _, namespace = of_kind.rpartition(".")
    cluster, table, group, resource = _parse_kind_subject(of_kind)
    return table, ObjectRef(cluster, group, resource, unescape_token(namespace), unescape_token(name))


@lru_cache(maxsize=4096)
def _parse_kind_subject(begin: str) -> tuple[str, str, str, str]:
    tokens = begin.removeprefix(f"{STATUS_PREFIX}.").split(".")
    if len(tokens) != 4 or not begin.startswith(f"{STATUS_PREFIX}."):
        raise DecodeError(f"{begin!r} does not begin a subject of {STATUS_PREFIX}")
    cluster, table, group, resource = map(unescape_token, tokens)
    return cluster, table, group, resource


class LoadBalancerAddress(BaseModel):
    """One entry of `status.loadBalancer.ingress`: an address or a host name."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    ip: str | None = None
    hostname: str | None = None


class ConditionType(StrEnum):
    """What is said of objects, by the names that Gateway API gave them. The first three are said of every object."""

    ACCEPTED = "Accepted"
    """Its present version is served, at least in part."""
    RESOLVED_REFS = "ResolvedRefs"
    """What it refers to is there and usable."""
    PROGRAMMED = "Programmed"
    """All live gateway replicas serve what is in the table of it."""
    CONFLICTED = "Conflicted"
    """True for a listener that another one leaves no room for."""
    PARTIALLY_INVALID = "PartiallyInvalid"
    """True for a route of which some rules cannot be served."""
    INSECURE_FRONTEND = "InsecureFrontendValidationMode"
    """True for a Gateway that lets clients in whatever certificate they show; else it is not there."""
    VALID = "Valid"
    """A ServiceExport names a Service that can be exported."""
    READY = "Ready"
    """What it names is joined with what other clusters export."""
    CONFLICT = "Conflict"
    """True for a ServiceExport whose Service is another one than those of its name elsewhere."""
    SUPPORTED_VERSION = "SupportedVersion"
    """Whether the installed version of Gateway API is one that a GatewayClass' controller knows."""


class AncestorRef(NamedTuple):
    """An object that a policy is about, as `status.ancestors[].ancestorRef` of Gateway API's policies names it."""

    group: str
    kind: str
    namespace: str
    name: str
    section: str = ""
    """Part of the object, such as the name of a Service's port; empty for the whole of it."""


class ParentRef(NamedTuple):
    """An object that a route is attached to, as `status.parents[].parentRef` of Gateway API's routes names it."""

    group: str
    kind: str
    namespace: str
    name: str
    section: str = ""
    """Part of the object, such as the name of a Gateway's listener; empty for the whole of it."""
    port: int = 0
    """Port of the object's part; 0 for any."""


class ListenerRef(NamedTuple):
    """A listener of the object itself, as `status.listeners[].name` of a Gateway names it."""

    name: str


PartRef = AncestorRef | ParentRef | ListenerRef
"""An entry of an object's status that has conditions of its own."""


class RouteKind(NamedTuple):
    """A kind of routes that a listener takes."""

    group: str
    kind: str


class ListenerReport(BaseModel):
    """What a Gateway's status says of a listener beside its conditions."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    name: str
    supported_kinds: tuple[RouteKind, ...] = ()
    attached_routes: int = 0
    port: int = 0
    """That gateways open for it; 0 for their own ports, which are open in any case."""
    is_udp: bool = False
    addresses: tuple[str, ...] = ()
    """At which they do; none: those of the gateways."""


class StatusCondition(BaseModel):
    """One condition of an object, in the shape of Kubernetes' own."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    type: ConditionType
    status: Literal["True", "False", "Unknown"]
    reason: str
    """CamelCase, for machines."""
    message: str = ""
    """At most `CONDITION_CHARACTERS`."""
    since: AwareDatetime
    """When `status` last changed."""
    ancestor: AncestorRef | None = None
    """With respect to which object a policy stands so. At most one of this and the next two is set; none is for the
    object as a whole."""
    parent: ParentRef | None = None
    """At which parent a route stands so."""
    listener: ListenerRef | None = None
    """Which listener of the object stands so."""

    @classmethod
    def of(
        cls, part: PartRef | None, *, type: ConditionType, status: str, reason: str, since: datetime, message: str = ""
    ) -> Self:
        """Return a condition of a part of the status, or of the object as a whole. Its values are not validated."""
        fields = {"type": type, "status": status, "reason": reason, "message": message, "since": since}
        fields["ancestor"] = part if isinstance(part, AncestorRef) else None
        fields["parent"] = part if isinstance(part, ParentRef) else None
        fields["listener"] = part if isinstance(part, ListenerRef) else None
        return trusted(cls, fields)

    @property
    def part(self) -> PartRef | None:
        """The part of the object's status that this belongs to; None for the object as a whole."""
        return self.ancestor or self.parent or self.listener


class EventNote(BaseModel):
    """A Kubernetes Event about an object."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    type: Literal["Normal", "Warning"]
    reason: str
    note: str
    """At most `NOTE_BYTES` of UTF-8, the API's limit."""
    at: AwareDatetime
    """When there was reason to say it."""


class ServedVersion(BaseModel):
    """A version of an object that is served in place of the present one."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    resource_version: str
    generation: int = 0
    """0 where versions are not counted."""


class StatusUpdate(BaseModel):
    """What one table wants of the status of one object; replaces what it wanted before."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    ref: ObjectRef
    table: str = DEFAULT_TABLE
    api_version: str
    """Of the object as it was read: `networking.k8s.io/v1`."""
    kind: str
    uid: str
    generation: int = 0
    """`metadata.generation` of the version that this is about: the conditions' observedGeneration; 0 where
    versions are not counted."""
    is_accepted: bool
    """Whether the object is ours and served at least in part; if not ours, nothing is written to its status."""
    addresses: tuple[LoadBalancerAddress, ...] | None = None
    """None leaves the object's addresses alone; empty removes those that we wrote."""
    withdrawn: tuple[LoadBalancerAddress, ...] = ()
    """Addresses that we wanted before and no longer do, so that others' are told from them."""
    conditions: tuple[StatusCondition, ...] = ()
    """One of each type, and of each type for each part; none for an object that is not ours (any more)."""
    listeners: tuple[ListenerReport, ...] = ()
    """Of a Gateway."""
    features: tuple[str, ...] = ()
    """Of Gateway API that the controller of a GatewayClass serves, sorted."""
    attached_listener_sets: int = 0
    """Of a Gateway."""
    stand_in: ServedVersion | None = None
    """The last good version, where that is served instead of the present one."""
    content: str = ""
    """Digest of what is served of the object itself."""
    revision: Version | None = None
    """First revision of the table with that content; None where nothing is served."""
    problems: tuple[Problem, ...] = ()
    events: tuple[EventNote, ...] = ()
    """Of the last hour, oldest first; those from before the last update included, in case they were not written."""
    last_error: EventNote | None = None
    """What was last found wrong, also when it is not any more."""
    at: AwareDatetime
    traceparent: str | None = None

    def encode(self) -> bytes:
        """Return it as boards keep it."""
        return self.model_dump_json().encode()

    @classmethod
    def decode(cls, content: bytes, ref: ObjectRef, table: str) -> Self:
        """Return what a board keeps of an object for a table.

        Raises:
            DecodeError: it cannot be read, or speaks of another object or for another table.
        """
        try:
            update = cls.model_validate_json(content)
        except ValueError as error:
            raise DecodeError(f"the status of {ref} in table {table} cannot be read: {error}") from error
        if (update.ref, update.table) != (ref, table):
            raise DecodeError(f"the status of {ref} in table {table} speaks of {update.ref} in table {update.table}")
        return update


class EncodedStatus(NamedTuple):
    """A status as a board keeps it, for those who compare it more often than they read it."""

    ref: ObjectRef
    content: bytes
    """For `StatusUpdate.decode`."""


def in_table(table: str, text: str) -> str:
    """Return a text about an object that says which table it is about, if that is not the default one."""
    return text if table == DEFAULT_TABLE else f"table {table}: {text}"


def shorten(text: str, limit: int) -> str:
    """Return a text that has at most `limit` bytes of UTF-8, with an ellipsis where something was cut off."""
    encoded = text.encode()
    if len(encoded) <= limit:
        return text
    ellipsis = "…"
    return encoded[: limit - len(ellipsis.encode())].decode(errors="ignore") + ellipsis
