"""How one object stands, in every cluster that has it and every table it is in.

What was written about it is on the status board; which replicas serve it is asked now.
"""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from headgate.common.heartbeats import Heartbeat
from headgate.common.problems import Severity
from headgate.common.resources import ALL_KINDS, Kinds, StatusShape
from headgate.common.snapshot import Version
from headgate.common.status import StatusUpdate
from headgate.common.stores.opening import Stores
from headgate.common.table import DEFAULT_TABLE
from headgate.common.table.shards import missing_shards
from headgate.operations.errors import InvalidRequest
from headgate.operations.status.kinds import read_kinds


@dataclass(frozen=True)
class ObjectName:
    """An object as people name it."""

    kind: str
    """In lower case: `ingress`."""
    namespace: str
    name: str
    kinds: Kinds = field(default=ALL_KINDS, compare=False)

    def is_meant(self, update: StatusUpdate) -> bool:
        """Whether a status is this object's, in whatever cluster."""
        ref = update.ref
        kind = self.kinds.find(ref.group, ref.resource)
        is_of_kind = kind is not None and kind.kind.lower() == self.kind
        return is_of_kind and (ref.namespace, ref.name) == (self.namespace, self.name)

    def __str__(self) -> str:
        return f"{self.kind}/{self.namespace}/{self.name}"


def parse_object(text: str, kinds: Kinds = ALL_KINDS) -> ObjectName:
    """Read `ingress/NAMESPACE/NAME`, or `ingress/NAME` in the namespace `default`.

    Raises:
        InvalidRequest: says what would be right.
    """
    called, *rest = text.split("/")
    known = [kind for kind in kinds if kind.status is not StatusShape.NONE]
    kind = next((kind.kind.lower() for kind in known if kind.is_called(called)), None)
    if kind is None or len(rest) not in (1, 2) or not all(rest):
        raise InvalidRequest(
            f"{text!r} names no object: write KIND/NAMESPACE/NAME, such as ingress/default/web; "
            f"KIND is one of {', '.join(sorted({kind.kind.lower() for kind in known}))}"
        )
    namespace, name = rest if len(rest) == 2 else ("default", rest[0])
    return ObjectName(kind, namespace, name, kinds)


@dataclass(frozen=True)
class Served:
    """Which live replicas serve what is in the table of an object."""

    by: tuple[str, ...]
    not_by: tuple[str, ...]
    missing: tuple[str, ...] = ()
    """Shards of the table that no replica serves."""

    @classmethod
    def of(cls, revision: Version | None, heartbeats: Iterable[Heartbeat]) -> "Served":
        """Compare the object's revision with the one whose routes each worker serves."""
        versions: dict[str, list[Version | None]] = {}
        shards = []
        for beat in heartbeats:
            versions.setdefault(beat.replica, []).append(beat.served)
            shards.append(beat.part)
        has = {
            name: revision is not None and all(version is not None and version >= revision for version in found)
            for name, found in sorted(versions.items())
        }
        return cls(
            tuple(name for name, is_served in has.items() if is_served),
            tuple(name for name, is_served in has.items() if not is_served),
            tuple(map(str, missing_shards(shards))),
        )


async def read_object(stores: Stores, name: ObjectName) -> tuple[list[StatusUpdate], list[Heartbeat]]:
    """Return what was written about an object, and the workers that live.

    Raises:
        StoreUnavailable: no answer.
    """
    clusters = sorted({kind.cluster for kind in await read_kinds(stores.bus)})
    boards = await asyncio.gather(*(stores.statuses.read(cluster) for cluster in clusters))
    found = [update for board in boards for update in board if name.is_meant(update)]
    return present_only(found), [*await stores.heartbeats.live()]


def present_only(updates: Iterable[StatusUpdate]) -> list[StatusUpdate]:
    """Leave out tables that have let an object go, unless all have; in order of cluster and table."""
    ordered = sorted(updates, key=lambda update: (update.ref, update.table != DEFAULT_TABLE, update.table))
    speaking = {update.ref for update in ordered if update.conditions}
    return [update for update in ordered if update.conditions or update.ref not in speaking]


def served_of(update: StatusUpdate, heartbeats: Iterable[Heartbeat]) -> Served:
    """Return which replicas of its table serve what an update says of an object."""
    return Served.of(update.revision, (beat for beat in heartbeats if beat.table == update.table))


def is_well(updates: Iterable[StatusUpdate], heartbeats: Sequence[Heartbeat]) -> bool:
    """Whether an object is served as it is written, everywhere."""
    return all(
        not (served := served_of(update, heartbeats)).not_by
        and not served.missing
        and not any(problem.severity is Severity.ERROR for problem in update.problems)
        and update.is_accepted
        for update in updates
    )


def as_document(updates: Iterable[StatusUpdate], heartbeats: Sequence[Heartbeat]) -> list[dict[str, Any]]:
    """Return how an object stands as JSON data, an element for each cluster and table."""
    documents = []
    for update in updates:
        served = served_of(update, heartbeats)
        known = update.model_dump(mode="json", exclude={"traceparent", "content"})
        shown = {"served_by": list(served.by), "not_served_by": list(served.not_by)}
        documents.append(known | shown | ({"missing_shards": list(served.missing)} if served.missing else {}))
    return documents
