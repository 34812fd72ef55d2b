"""How the kinds of each cluster stand: read, awaited, absent or forbidden, as the watchers marked them in the log."""

from collections.abc import Iterable, Sequence
from typing import Literal, TypeVar

from pydantic import BaseModel, ConfigDict

from headgate.common.bus.connection import Bus
from headgate.common.deltas import CLUSTER_PREFIX, SYNC_PREFIX, ClusterAnnouncement, SyncMarker, SyncState
from headgate.common.errors import DecodeError
from headgate.common.problems import Problem, Severity
from headgate.common.resources import INGRESS_CLASS, NAMESPACE
from headgate.common.stores.nats.encoding import decode_message
from headgate.common.stores.nats.following import read_last
from headgate.common.stores.nats.jetstream import Upkeep
from headgate.common.stores.nats.log import delta_stream

_DISPENSABLE = {(kind.group, kind.resource) for kind in (INGRESS_CLASS, NAMESPACE)}
"""Cluster-scoped: who has Roles only may not read them, and everything else works."""

M = TypeVar("M", ClusterAnnouncement, SyncMarker)


class KindState(BaseModel):
    """How one kind of one cluster stands."""

    model_config = ConfigDict(frozen=True)

    cluster: str
    group: str
    resource: str
    state: SyncState | Literal["awaited"]
    """`awaited`: announced, and not completely listed since the log exists."""
    message: str = ""
    """Why it is not read; for one that is read, which of its objects are not published."""

    @property
    def name(self) -> str:
        """As kubectl names it."""
        return f"{self.resource}.{self.group}" if self.group else self.resource


async def read_kinds(bus: Bus) -> list[KindState]:
    """Return all kinds of all clusters that were announced.

    Raises:
        StoreUnavailable: no answer.
    """
    announcements = await _read(bus, f"{CLUSTER_PREFIX}.>", ClusterAnnouncement)
    markers = await _read(bus, f"{SYNC_PREFIX}.>", SyncMarker)
    return kinds_of(announcements, markers)


async def _read(bus: Bus, pattern: str, wanted: type[M]) -> list[M]:
    found: list[M] = []
    for message in await read_last(delta_stream(bus, Upkeep(makes_streams=False)), pattern):
        try:
            decoded = decode_message(message.subject, message.sequence, message.headers, message.data)
        except DecodeError:
            continue  # of another release; the services log it
        if isinstance(decoded, wanted):
            found.append(decoded)
    return found


def kinds_of(announcements: Iterable[ClusterAnnouncement], markers: Iterable[SyncMarker]) -> list[KindState]:
    """Bring together what was announced and what was marked."""
    marked = {(marker.cluster, marker.kind): marker for marker in markers}
    found = []
    for announcement in announcements:
        for kind in announcement.kinds:
            marker = marked.get((announcement.cluster, kind))
            found.append(
                KindState(
                    cluster=announcement.cluster,
                    group=kind.group,
                    resource=kind.resource,
                    state=marker.state if marker else "awaited",
                    message=marker.message if marker else "",
                )
            )
    return sorted(found, key=lambda one: (one.cluster, one.name))


def kind_problems(kinds: Sequence[KindState]) -> list[tuple[str, Problem]]:
    """Return what is wrong, each with the kind or cluster that it is about."""
    found: list[tuple[str, Problem]] = []
    for kind in kinds:
        what = f"{kind.name} of {kind.cluster}"
        if kind.state is SyncState.FORBIDDEN:
            is_dispensable = (kind.group, kind.resource) in _DISPENSABLE
            severity = Severity.WARNING if is_dispensable else Severity.ERROR
            found.append((what, Problem(severity=severity, reason="Forbidden", message=kind.message)))
        elif kind.state is SyncState.SYNCED and kind.message:
            found.append((what, Problem(reason="NotPublished", message=kind.message)))
    for cluster in sorted({kind.cluster for kind in kinds if kind.state == "awaited"}):
        awaited = ", ".join(kind.name for kind in kinds if (kind.cluster, kind.state) == (cluster, "awaited"))
        message = f"not completely read yet, and nothing of it is served before: {awaited}"
        found.append((f"cluster {cluster}", Problem(reason="NotListed", message=message)))
    return found
