"""The delta log's vocabulary: what a watcher says and a translator hears.

One delta is one object: applied whole, or deleted. The last delta of each object is the state of the world, so the
log is a compacted table with an order, and replaying the last value of every subject is enough to start.

Other messages travel in the same stream, so that they keep their place among the deltas:

- `ClusterAnnouncement`: a watcher says which kinds it is going to send for its cluster;
- `SyncMarker`: the initial list of one kind is complete (or will never come: absent, forbidden);
- `LastGood`: a translator writes down which version of an object stands in for one that cannot be used.

A table is built from a cluster only when every announced kind has its marker: nothing is ever built from half a
cluster. What a later release's watcher says besides in announcements and markers is passed over.
"""

import re
from datetime import datetime
from enum import StrEnum
from functools import lru_cache
from typing import Any, Literal, NamedTuple, TypeVar

import msgspec
from pydantic import AwareDatetime, BaseModel, ConfigDict

from headgate.common.errors import DecodeError
from headgate.common.resources import JsonObject, ObjectRef

STREAM = "HEADGATE_DELTAS"
DELTA_PREFIX = "headgate.delta"
SYNC_PREFIX = "headgate.synced"
CLUSTER_PREFIX = "headgate.cluster"
LAST_GOOD_PREFIX = "headgate.lastgood"

MAX_DEPTH = 100
"""Objects and lists in each other in one object."""
_EMPTY_TOKEN = "=-"
_PLAIN = re.compile(r"[A-Za-z0-9_/-]+")
_UNSAFE = re.compile(rb"[^A-Za-z0-9_/-]")
_ESCAPE = re.compile(r"=([0-9A-F]{2})")
_set_attribute = object.__setattr__


def escape_token(text: str) -> str:
    """Make any text one token of a NATS subject, reversibly.

    Letters, digits, `_`, `/` and `-` stay; every other byte of the UTF-8 form becomes `=XX`. The empty text becomes
    `=-`, which no escape produces.
    """
    return text if _PLAIN.fullmatch(text) else _escape_token(text)


@lru_cache(maxsize=4096)
def _escape_token(text: str) -> str:
    """Escape what has to be: groups and clusters above all, which few objects have to themselves."""
    if not text:
        return _EMPTY_TOKEN
    return _UNSAFE.sub(lambda found: b"=%02X" % found[0][0], text.encode()).decode()


def unescape_token(token: str) -> str:
    """Undo `escape_token`.

    Raises:
        DecodeError: the token was not made by `escape_token`.
    """
    return _unescape_token(token) if "=" in token else token


@lru_cache(maxsize=4096)
def _unescape_token(token: str) -> str:
    """Undo what `_escape_token` does."""
    if token == _EMPTY_TOKEN:
        return ""
    raw = _ESCAPE.sub(lambda found: chr(int(found[1], 16)), token)
    try:
        return raw.encode("latin-1").decode()
    except UnicodeError as error:
        raise DecodeError(f"{token!r} is not an escaped token") from error


def delta_subject(ref: ObjectRef) -> str:
    """Subject of an object's deltas: `headgate.delta.<cluster>.<group>.<resource>.<namespace>.<name>`."""
    cluster, group, resource, namespace, name = ref
    return f"{_kind_subject(cluster, group, resource)}.{escape_token(namespace)}.{escape_token(name)}"


@lru_cache(maxsize=4096)
def _kind_subject(cluster: str, group: str, resource: str) -> str:
    """Begin the subjects of a kind's objects, of which a list has thousands."""
    return ".".join((DELTA_PREFIX, *map(escape_token, (cluster, group, resource))))


def last_good_subject(ref: ObjectRef, table: str) -> str:
    """Subject of what is written down of an object's last good version in a table."""
    return ".".join((LAST_GOOD_PREFIX, *map(escape_token, (table, *ref))))


def parse_delta_subject(subject: str) -> ObjectRef:
    """Return the object that a delta's subject names.

    Raises:
        DecodeError: the subject is not one of `delta_subject`.
    """
    of_kind, dot, name = subject.rpartition(".")
    of_kind, _, namespace = of_kind.rpartition(".")
    kind = _parse_kind_subject(of_kind) if dot else None
    if kind is None:
        raise DecodeError(f"{subject!r} is not a subject of {DELTA_PREFIX}")
    cluster, group, resource = kind
    return ObjectRef(cluster, group, resource, unescape_token(namespace), unescape_token(name))


@lru_cache(maxsize=4096)
def _parse_kind_subject(begin: str) -> tuple[str, str, str] | None:
    """Return cluster, group and plural of subjects that begin like this; None if it is not a beginning of such."""
    tokens = begin.removeprefix(f"{DELTA_PREFIX}.").split(".")
    if len(tokens) != 3 or not begin.startswith(f"{DELTA_PREFIX}."):
        return None
    cluster, group, resource = map(unescape_token, tokens)
    return cluster, group, resource


def parse_last_good_subject(subject: str) -> tuple[str, ObjectRef]:
    """Return the table and the object that a record's subject names.

    Raises:
        DecodeError: the subject is not one of `last_good_subject`.
    """
    prefix, *tokens = subject.removeprefix(LAST_GOOD_PREFIX).split(".")
    if prefix or len(tokens) != len(ObjectRef._fields) + 1 or not subject.startswith(LAST_GOOD_PREFIX):
        raise DecodeError(f"{subject!r} is not a subject of {LAST_GOOD_PREFIX}")
    table, *ref = map(unescape_token, tokens)
    return table, ObjectRef(*ref)


def sync_subject(cluster: str, group: str, resource: str) -> str:
    """Subject of the marker that one kind of one cluster is completely listed."""
    return ".".join((SYNC_PREFIX, *map(escape_token, (cluster, group, resource))))


def cluster_subject(cluster: str) -> str:
    """Subject of a cluster's announcement."""
    return f"{CLUSTER_PREFIX}.{escape_token(cluster)}"


def is_too_deep(value: JsonObject, encoded: bytes = b"") -> bool:
    """Whether an object is nested deeper than anything that is meant: many who read it do so by recursion.

    Args:
        value: the object.
        encoded: the same in JSON, where that is at hand: to count brackets is next to nothing, and mostly enough.
    """
    if encoded and encoded.count(b"[") + encoded.count(b"{") <= MAX_DEPTH:
        return False
    level: list[Any] = [value]
    for _ in range(MAX_DEPTH):
        inner: list[Any] = []
        for each in level:
            for member in each.values() if type(each) is dict else each:
                kind = type(member)
                # `isinstance` takes twice as long, and decoders make no other types.
                if kind is dict or kind is list:
                    inner.append(member)
        if not inner:
            return False
        level = inner
    return True


class Operation(StrEnum):
    """What happened to the object."""

    APPLY = "apply"
    DELETE = "delete"


class Author(NamedTuple):
    """Who changed an object last, as far as is known."""

    name: str
    """The field manager (`kubectl-edit`, `argocd-controller`), or the file that the object stands in."""
    at: datetime | None = None
    """When, as the API server noted it."""


_Model = TypeVar("_Model", bound=BaseModel)


def trusted(model: type[_Model], fields: dict[str, Any]) -> _Model:
    """Make a model of values that are known to be right: of all fields, in their order.

    Validation takes four times as long, and `model_construct` three times.
    """
    made: _Model = object.__new__(model)
    _set_attribute(made, "__dict__", fields)
    _set_attribute(made, "__pydantic_fields_set__", set(fields))
    _set_attribute(made, "__pydantic_extra__", None)
    _set_attribute(made, "__pydantic_private__", None)
    return made


class Delta(BaseModel):
    """One change of one object."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    ref: ObjectRef
    operation: Operation
    uid: str
    resource_version: str
    """Opaque: compared for equality only."""
    observed_at: datetime
    """When the watcher saw the change."""
    object: JsonObject | None = None
    """The whole object, without managedFields and last-applied; None for a deletion."""
    digest: str = ""
    """Of the content without its version: tells a version that differs in nothing. Empty for a deletion, and for what
    is secret."""
    author: Author | None = None
    """None for deletions, whose author no API server names."""
    sequence: int = 0
    """Position in the log; 0 until it is read from there."""
    traceparent: str | None = None
    """W3C trace context of the change."""

    @classmethod
    def trusted(
        cls,
        *,
        ref: ObjectRef,
        operation: Operation,
        uid: str,
        resource_version: str,
        observed_at: datetime,
        object: JsonObject | None,
        digest: str,
        author: Author | None,
        traceparent: str | None,
        sequence: int = 0,
    ) -> "Delta":
        """Make a delta of values that are known to be right; `model_construct` takes three times as long."""
        fields = {
            "ref": ref,
            "operation": operation,
            "uid": uid,
            "resource_version": resource_version,
            "observed_at": observed_at,
            "object": object,
            "digest": digest,
            "author": author,
            "sequence": sequence,
            "traceparent": traceparent,
        }
        return trusted(cls, fields)

    @property
    def message_id(self) -> str:
        """Identity for the log's deduplication: two watchers of one cluster say the same thing once."""
        return f"{self.ref.cluster}/{self.uid}/{self.resource_version}/{self.operation}"

    @property
    def body(self) -> bytes:
        """The object in JSON; empty for a deletion."""
        return b"" if self.object is None else msgspec.json.encode(self.object)


class EncodedDelta(NamedTuple):
    """A delta as a watcher has it, which keeps objects in JSON: they are sent without being decoded.

    The fields are those of `Delta`, but for `body`.
    """

    ref: ObjectRef
    operation: Operation
    uid: str
    resource_version: str
    observed_at: datetime
    body: bytes = b""
    """The whole object in JSON; empty for a deletion."""
    digest: str = ""
    author: Author | None = None
    traceparent: str | None = None

    @property
    def message_id(self) -> str:
        """As `Delta` has it."""
        return f"{self.ref.cluster}/{self.uid}/{self.resource_version}/{self.operation}"

    def decoded(self) -> Delta:
        """Return the delta with its object; nothing is validated, as every value is the watcher's own."""
        return Delta.trusted(
            ref=self.ref,
            operation=self.operation,
            uid=self.uid,
            resource_version=self.resource_version,
            observed_at=self.observed_at,
            object=msgspec.json.decode(self.body) if self.body else None,
            digest=self.digest,
            author=self.author,
            traceparent=self.traceparent,
        )


AnyDelta = Delta | EncodedDelta
"""What the log is given; it gives `Delta` back."""


def as_delta(delta: AnyDelta) -> Delta:
    """Return a delta with its object decoded."""
    return delta if isinstance(delta, Delta) else delta.decoded()


class SyncState(StrEnum):
    """How the initial list of a kind ended."""

    SYNCED = "synced"
    ABSENT = "absent"
    """The API server does not know the kind."""
    FORBIDDEN = "forbidden"
    """The watcher's credentials may not list the kind."""


class KindName(BaseModel):
    """Group and plural of a kind, as in `ResourceKind`."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    group: str
    resource: str


class ClusterAnnouncement(BaseModel):
    """What a watcher is going to send for its cluster."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    cluster: str
    source: Literal["kubernetes", "manifests"]
    instance: str
    kinds: tuple[KindName, ...]
    announced_at: AwareDatetime
    heard_at: AwareDatetime | None = None
    """When the source last said anything: the API server answered, or a watch was alive. None: not yet."""
    away_since: AwareDatetime | None = None
    """When the API server began to give no answer at all; None: it answers."""
    unpublished: int = 0
    """Objects whose present state is not in the log."""
    unpublished_since: AwareDatetime | None = None
    """When the oldest of these changes was seen."""
    troubles: tuple[str, ...] = ()
    """What went wrong with the API server within the last minute: reading, or writing statuses and Events."""
    sequence: int = 0
    """Position in the log; 0 until it is read from there."""


class SyncMarker(BaseModel):
    """The initial list of one kind of one cluster is in the log before this message."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    cluster: str
    kind: KindName
    state: SyncState = SyncState.SYNCED
    message: str = ""
    """For `absent` and `forbidden`: what the API server said; for `synced`: which objects are missing, and why."""
    at: AwareDatetime
    sequence: int = 0


class GoodVersion(BaseModel):
    """A version of an object that had no errors of its own, as far as translation reads it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    uid: str
    resource_version: str
    object: JsonObject
    sequence: int
    """Of its delta."""


class LastGood(BaseModel):
    """What stands in, in one table, for a version of an object that has errors of its own.

    Written by the table's translators, all of which come to the same: the log keeps a few versions of an object, and
    the last good one may be older than that. Tables may differ in what they take for an error, as their gateways may
    have different plugins.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    table: str = "default"
    ref: ObjectRef
    refused: int
    """Sequence of the delta whose version has errors; 0: the object has none any more, or is gone."""
    good: GoodVersion | None = None
    """The version that stands in for it; None: none was good."""
    sequence: int = 0
    """Position in the log; 0 until it is read from there."""


LogMessage = Delta | ClusterAnnouncement | SyncMarker | LastGood
"""Everything that the delta log carries."""


class LogPlace(NamedTuple):
    """One message of one log. Its sequence alone is no proof: a log that went back counts on from a smaller number."""

    incarnation: str
    """Which log it is of, as in `LogPosition`."""
    sequence: int
    stored_at_us: int
    """When it was stored, in microseconds since 1970."""
