"""What one cluster has, as its source reports it: what should be in the log, and which kinds are complete.

Takes in and never waits for the log; the sender looks at the ledger, and at the markers that are due.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import TypeVar

from nacl.public import PublicKey

from headgate.common.deltas import MAX_DEPTH, Author, KindName, SyncMarker, SyncState, is_too_deep
from headgate.common.errors import SealingError
from headgate.common.problems import Problem
from headgate.common.resources import JsonObject, ObjectRef, ResourceKind
from headgate.common.sealing import Sealer
from headgate.watcher.metrics import REFUSED
from headgate.watcher.objects.preparing import (
    MAX_OBJECT_BYTES,
    encode,
    is_published,
    is_sealed,
    managing_author,
    prepare_stripped,
    strip,
)
from headgate.watcher.publishing.ledger import Gone, Ledger, PreparedObject, content_digest
from headgate.watcher.sources import (
    Applied,
    Deleted,
    Listed,
    ListPage,
    ReadyObject,
    ReadyPage,
    SourceEvent,
    Unavailable,
)

SHOWN_REFUSALS = 3
"""Named in a marker; the admin site names all."""
_TOGETHER = 256

_log = logging.getLogger(__name__)

T = TypeVar("T")
AuthorOf = Callable[[ObjectRef, JsonObject], Author | None]


class Intake:
    """The objects of one cluster as they are now."""

    def __init__(
        self,
        kinds: Sequence[ResourceKind],
        cluster: str,
        recipients: Sequence[PublicKey],
        author_of: AuthorOf | None,
        wake: Callable[[], None],
        *,
        others_write: bool = False,
    ) -> None:
        """Begin with nothing.

        Args:
            kinds: what is read.
            cluster: name that the objects get in the log.
            recipients: public keys of the gateways, to which Secrets are sealed.
            author_of: says who changed an object; its managedFields by default.
            wake: called when a marker is due that no event brought.
            others_write: whether another watcher may publish the same cluster.
        """
        self._cluster, self._sealer = cluster, Sealer(cluster, recipients)
        self._author_of = author_of or (lambda _, manifest: managing_author(manifest))
        self._wake = wake
        self._kinds = {(kind.group, kind.resource): kind for kind in kinds}
        self._refused: dict[ObjectRef, Problem] = {}
        self._paged: dict[ResourceKind, set[ObjectRef]] = {}
        """What the pages had of a list that goes on."""
        self.ledger = Ledger(kinds, others_write=others_write)
        self.marks: dict[ResourceKind, SyncMarker] = {}
        """The last marker of each kind that was listed, or cannot be."""
        self.due: set[ResourceKind] = set()
        """Kinds whose marker is to be sent."""
        self.doubtful: set[ResourceKind] = set()
        """Kinds of which not everything is said before they are listed again."""
        self.was_listed = False
        """Whether a list came since the sender looked last."""
        self.listing: ResourceKind | None = None
        """The kind of which a list is being taken in."""

    def unlisted(self) -> list[ResourceKind]:
        """Return the kinds of which nothing was heard yet."""
        return [kind for kind in self._kinds.values() if kind not in self.marks]

    @property
    def refused(self) -> Sequence[tuple[ObjectRef, Problem]]:
        """Objects that cannot be published; what was published of them before stays in force."""
        return tuple(self._refused.items())

    def kind_of(self, name: tuple[str, str]) -> ResourceKind | None:
        """Return the kind of a group and plural; None if it is not read."""
        return self._kinds.get(name)

    async def note(self, event: SourceEvent) -> None:
        """Take in what the source reports."""
        match event:
            case Applied(kind, manifest, traceparent):
                self._want(kind, manifest, traceparent)
            case Deleted(kind, manifest):
                self._drop(kind, manifest)
            case ListPage(kind, objects):
                await self._note_page(kind, objects, self._want_listed)
            case ReadyPage(kind, objects):
                await self._note_page(kind, objects, self._want_ready)
            case Listed(kind, objects):
                await self._note_list(kind, objects)
            case Unavailable(kind, state, message):
                self.doubtful.discard(kind)
                self._paged.pop(kind, None)
                if state is SyncState.ABSENT:
                    self.ledger.complete(kind, ())
                self._mark(kind, state, message)

    async def _note_page(
        self, kind: ResourceKind, objects: Sequence[T], want: Callable[[ResourceKind, Sequence[T]], Iterable[ObjectRef]]
    ) -> None:
        refs = self._paged.setdefault(kind, set())
        self.listing = kind  # the sender may come by while this lets others run
        for start in range(0, len(objects), _TOGETHER):
            if start:
                await asyncio.sleep(0)
            refs.update(want(kind, objects[start : start + _TOGETHER]))
        self.was_listed, self.listing = True, None

    def _want_listed(self, kind: ResourceKind, objects: Sequence[JsonObject]) -> Iterable[ObjectRef]:
        return [self._ref(kind, manifest) for manifest in objects if self._want(kind, manifest, None)]

    def _want_ready(self, _: ResourceKind, objects: Sequence[ReadyObject]) -> Iterable[ObjectRef]:
        now = _now()
        for one in objects:
            ref = one.ref
            self._accept(ref)
            self.ledger.want(ref, PreparedObject(one.uid, one.version, one.digest, one.content, now, author=one.author))
        return [one.ref for one in objects]

    async def _note_list(self, kind: ResourceKind, objects: Sequence[JsonObject]) -> None:
        await self._note_page(kind, objects, self._want_listed)
        refs = self._paged.pop(kind)
        self.ledger.complete(kind, refs)
        self.doubtful.discard(kind)
        for gone in [ref for ref in self._refused if self._kind_of(ref) == kind and ref not in refs]:
            del self._refused[gone]
        self._mark(kind, SyncState.SYNCED, self._refusals(kind))

    def _mark(self, kind: ResourceKind, state: SyncState, message: str) -> None:
        name = KindName(group=kind.group, resource=kind.resource)
        self.marks[kind] = SyncMarker(cluster=self._cluster, kind=name, state=state, message=message, at=_now())
        self.due.add(kind)

    def _want(self, kind: ResourceKind, manifest: JsonObject, traceparent: str | None) -> bool:
        """Note an object's present state; return False if an object like it is not published."""
        ref = self._ref(kind, manifest)
        if not is_published(kind, manifest):
            self._drop(kind, manifest)
            return False
        if is_too_deep(manifest):
            message = f"objects and lists in it are nested deeper than {MAX_DEPTH}"
            self.refuse(ref, Problem(reason="TooDeep", message=message))
            return True
        stripped = strip(kind, manifest)
        digest = content_digest(stripped)
        before = self.ledger.wanted(ref)
        uid = str(manifest["metadata"].get("uid", ""))
        if before and (before.uid, before.digest) == (uid, digest):
            self._accept(ref)
            return True  # before anything is sealed again: that takes as long as all the rest
        body = self._encode(kind, ref, stripped)
        if body is not None:
            version = self._version(kind, manifest)
            author = self._author_of(ref, manifest)
            wanted = PreparedObject(uid, version, digest, body, _now(), traceparent, author, is_secret=is_sealed(kind))
            self.ledger.want(ref, wanted)
        return True

    def _encode(self, kind: ResourceKind, ref: ObjectRef, stripped: JsonObject) -> bytes | None:
        try:
            body = encode(prepare_stripped(kind, stripped, self._sealer))
        except SealingError as error:
            self.refuse(ref, Problem(reason="NotSealed", message=str(error)))
            return None
        if len(body) > MAX_OBJECT_BYTES:
            message = f"{len(body)} bytes as JSON; the bus carries objects of up to {MAX_OBJECT_BYTES} bytes"
            self.refuse(ref, Problem(reason="TooLarge", message=message))
            return None
        self._accept(ref)
        return body

    def _accept(self, ref: ObjectRef) -> None:
        if self._refused.pop(ref, None):
            self._mark_refusals(ref)

    def refuse(self, ref: ObjectRef, problem: Problem) -> None:
        """Note that an object cannot be published; the marker of its kind says so."""
        if self._refused.get(ref) != problem:
            _log.error("an object is not published", extra={"object": str(ref), "reason": str(problem)})
            REFUSED.labels(ref.resource, problem.reason).inc()
            self._refused[ref] = problem
            self._mark_refusals(ref)

    def _mark_refusals(self, ref: ObjectRef) -> None:
        """Mark the kind again, so that readers of the log see what is missing; a list is marked at its end."""
        kind = self._kind_of(ref)
        before = self.marks.get(kind)
        if before and before.state is SyncState.SYNCED and kind != self.listing:
            self._mark(kind, SyncState.SYNCED, self._refusals(kind))
            self._wake()

    def _kind_of(self, ref: ObjectRef) -> ResourceKind:
        return self._kinds[ref.group, ref.resource]

    def _refusals(self, kind: ResourceKind) -> str:
        refused = [(ref, problem) for ref, problem in self._refused.items() if self._kind_of(ref) == kind]
        named = [f"{ref.namespace}/{ref.name}: {problem}" for ref, problem in refused[:SHOWN_REFUSALS]]
        more = [f"and {len(refused) - len(named)} more"] if len(refused) > len(named) else []
        return "; ".join(["not published: " + "; ".join(named), *more]) if named else ""

    def _drop(self, kind: ResourceKind, manifest: JsonObject) -> None:
        ref = self._ref(kind, manifest)
        self._accept(ref)
        uid = manifest["metadata"].get("uid") if is_published(kind, manifest) else None
        self.ledger.drop(ref, uid, Gone(self._version(kind, manifest), _now()))

    def _ref(self, kind: ResourceKind, manifest: JsonObject) -> ObjectRef:
        metadata = manifest["metadata"]
        namespace = metadata.get("namespace", "") if kind.namespaced else ""
        return ObjectRef(self._cluster, kind.group, kind.resource, namespace, metadata["name"])

    def _version(self, kind: ResourceKind, manifest: JsonObject) -> str:
        """Return the object's version; one with secrets says how they are sealed: to other keys, they are again."""
        version = str(manifest["metadata"].get("resourceVersion", ""))
        return f"{version}-{self._sealer.id}" if is_sealed(kind) else version


def _now() -> datetime:
    return datetime.now(UTC)
