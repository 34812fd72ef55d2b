"""Where objects come from: the seam between the sources and the publisher.

A source reports what it sees and interprets nothing. `Listed` is complete, so that a follower can find out by
comparison what is gone; `Applied` and `Deleted` are changes since then. A source may report `Listed` again at any
time (a watch that broke, an expired version, a restored store): the publisher sends only what differs.

Rejected: sources that publish differences themselves. Only the log knows what was published before a restart.
"""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from headgate.common.deltas import Author, SyncState
from headgate.common.resources import JsonObject, ObjectRef, ResourceKind


@dataclass(frozen=True, slots=True)
class ListPage:
    """Some objects of a list that goes on: it ends with a `Listed` that has the others."""

    kind: ResourceKind
    objects: Sequence[JsonObject]
    """Each complete, with `apiVersion` and `kind`."""


class ReadyObject(Protocol):
    """An object as it stands in a delta: published, with nothing to seal, not too large and not too deep."""

    @property
    def ref(self) -> ObjectRef:
        """Which object it is."""
        ...

    @property
    def uid(self) -> str:
        """As in its metadata."""
        ...

    @property
    def version(self) -> str:
        """As in its metadata."""
        ...

    @property
    def digest(self) -> bytes:
        """Of the content without its version."""
        ...

    @property
    def content(self) -> bytes:
        """The stripped object in JSON, as `encode` makes it."""
        ...

    @property
    def author(self) -> Author | None:
        """Who changed it."""
        ...


@dataclass(frozen=True, slots=True)
class ReadyPage:
    """Like a `ListPage`, from a source that makes objects ready where it reads them, in other processes."""

    kind: ResourceKind
    objects: Sequence[ReadyObject]


@dataclass(frozen=True, slots=True)
class Listed:
    """The complete present state of one kind, with the pages that came before; what is in none of them is gone."""

    kind: ResourceKind
    objects: Sequence[JsonObject]
    """Each complete, with `apiVersion` and `kind`."""


@dataclass(frozen=True, slots=True)
class Applied:
    """An object was created or changed."""

    kind: ResourceKind
    object: JsonObject
    """Complete, with `apiVersion` and `kind`."""
    traceparent: str | None = None
    """W3C trace context of the change."""


@dataclass(frozen=True, slots=True)
class Deleted:
    """An object is gone."""

    kind: ResourceKind
    object: JsonObject
    """Its last known state."""


@dataclass(frozen=True, slots=True)
class Unavailable:
    """A kind cannot be read now; the source tries again slowly, and a `Listed` follows once it can."""

    kind: ResourceKind
    state: SyncState
    """`absent` or `forbidden`."""
    message: str
    """What the API server said, and where it helps, what would be right."""


SourceEvent = ListPage | ReadyPage | Listed | Applied | Deleted | Unavailable


class Source(Protocol):
    """Something that objects are read from, for as long as the watcher runs."""

    kinds: Sequence[ResourceKind]
    """What it reports on; each gets at least one `Listed` or `Unavailable`."""

    @property
    def heard_at(self) -> datetime | None:
        """When what is read last gave a sign of life; None: not yet."""
        ...

    @property
    def away_since(self) -> datetime | None:
        """When what is read began to give no answer; None: it answers, or cannot be away."""
        ...

    def events(self) -> AsyncIterator[SourceEvent]:
        """Yield what is seen, for ever; never raises because of the API server or the disk."""
        ...
