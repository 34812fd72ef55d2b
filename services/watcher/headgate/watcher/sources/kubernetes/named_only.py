"""Lets pass, of Secrets and ConfigMaps, what other objects name; the rest leaves the watcher for nowhere.

All of them are watched, as which ones are named changes at any time and no selector says it; values of those that are
not named are not kept. One that an object begins to name is asked for by its name, and reported before that object, so
that its route is never translated without it. One that is named no more is reported as deleted.

Nothing is said of them before it is known what all kinds name: a list without them would say that they are gone.

Rejected: a watch for each one by its name, a connection each in clusters with thousands; and keeping all values in
memory for the moment that one is named.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress

from headgate.common.deltas import SyncState
from headgate.common.resources import JsonObject, ResourceKind
from headgate.common.resources.references import Referent
from headgate.watcher.errors import Forbidden, WatcherError
from headgate.watcher.sources import Applied, Deleted, Listed, SourceEvent, Unavailable
from headgate.watcher.sources.kubernetes.references import References, place_of

MAX_FOUND = 32
"""More objects than these are not asked for one by one: their kind is listed again."""
FIND_S = 1.0
"""What names an object waits for its answer for so long; then the kind is listed again."""
PAUSE_S = 5.0
"""After a failure nothing is asked for one by one for so long: events of other kinds would wait each time."""
_KEPT = frozenset({"name", "namespace", "uid", "resourceVersion"})

_log = logging.getLogger(__name__)

KindObject = tuple[ResourceKind, JsonObject]
Find = Callable[[ResourceKind, Referent], Awaitable[Sequence[JsonObject]]]
"""Asks the API server for one object; none where there is none."""


class NamedOnly:
    """Takes the events of a cluster, and returns what is reported of them."""

    def __init__(
        self,
        kinds: Sequence[ResourceKind],
        narrowed: Sequence[ResourceKind],
        references: References,
        find: Find,
        relist: Callable[[ResourceKind], bool],
        passes: Callable[[ResourceKind, JsonObject], bool],
    ) -> None:
        """Begin with nothing.

        Args:
            kinds: all that are reported on.
            narrowed: those of which only what is named passes.
            references: what is named.
            find: asks for an object that is named from now on.
            relist: has a kind listed again.
            passes: whether an object passes without being named.
        """
        self._references, self._find, self._relist, self._passes = references, find, relist, passes
        self._narrowed = {kind.resource: kind for kind in narrowed}
        self._awaited = {kind for kind in kinds if kind.references and kind not in narrowed} if narrowed else set()
        """Kinds of which it is not known yet what they name."""
        self._unread: dict[ResourceKind, Unavailable] = {}
        """Kinds that may not be read: what they name is not known."""
        self._begun: set[ResourceKind] = set()
        """Narrowed kinds of which something was said: what is named before is in their first list."""
        self._held: dict[ResourceKind, list[SourceEvent]] = {}
        self._passed: dict[Referent, JsonObject] = {}
        """What is reported: bookkeeping, of which a deletion is made."""
        self._paused_until = float("-inf")

    async def take(self, event: SourceEvent) -> list[SourceEvent]:
        """Return what is reported, in order."""
        if event.kind in self._narrowed.values():
            if self._awaited:
                self._held.setdefault(event.kind, []).append(event)
                return []
            return await self._take_narrowed(event)
        if not (self._narrowed and event.kind.references):
            return [event]
        change = self._references.note(event)
        self._note_readable(event)
        if self._awaited:
            return [event]
        released = [one for held in self._take_held() for one in await self._take_narrowed(held)]
        found = [] if released else await self._find_all(change.added)
        return [*found, event, *self._withdraw(change.removed), *released]

    def _take_held(self) -> list[SourceEvent]:
        held, self._held = self._held, {}
        return [event for events in held.values() for event in events]

    def _note_readable(self, event: SourceEvent) -> None:
        match event:
            case Unavailable(kind, SyncState.FORBIDDEN):
                if kind in self._awaited:
                    self._unread[kind] = event
                self._awaited.discard(kind)
            case Listed(kind) | Unavailable(kind):
                self._awaited.discard(kind)
                if self._unread.pop(kind, None) and not self._unread:
                    for narrowed in self._narrowed.values():
                        self._relist(narrowed)

    # What is narrowed

    async def _take_narrowed(self, event: SourceEvent) -> list[SourceEvent]:
        """Return what passes of an event, and what a ConfigMap that passes names."""
        self._begun.add(event.kind)
        change = self._references.note(event)
        passing = list(self._narrow(event))
        found = await self._find_all(change.added)
        ordered = [*passing, *found] if isinstance(event, Listed) else [*found, *passing]
        return [*ordered, *self._withdraw(change.removed)]

    def _narrow(self, event: SourceEvent) -> Iterator[SourceEvent]:
        match event:
            case Listed(kind, objects):
                self._passed = {one: kept for one, kept in self._passed.items() if one.resource != kind.resource}
                yield from self._listed(kind, [one for one in objects if self._note_passing(kind, one)])
            case Applied(kind, manifest):
                was_reported = self._referent(kind, manifest) in self._passed
                if self._note_passing(kind, manifest):
                    yield event
                elif was_reported:  # such as a Secret whose type was one that passes
                    yield Deleted(kind, self._passed.pop(self._referent(kind, manifest)))
            case Deleted(kind, manifest):
                if self._passed.pop(self._referent(kind, manifest), None) is not None:
                    yield event
            case Unavailable():
                yield event

    def _listed(self, kind: ResourceKind, objects: Sequence[JsonObject]) -> Iterator[SourceEvent]:
        """Report a list; while some kind may not be read, without saying that all others are gone."""
        if not self._unread:
            yield Listed(kind, objects)
            return
        names = ", ".join(sorted(map(str, self._unread)))
        yield Unavailable(kind, SyncState.FORBIDDEN, f"which {kind} are named is not known: {names} cannot be read")
        yield from (Applied(kind, one) for one in objects)

    def _note_passing(self, kind: ResourceKind, manifest: JsonObject) -> bool:
        referent = self._referent(kind, manifest)
        if not (self._passes(kind, manifest) or self._references.names(referent)):
            return False
        metadata = {name: value for name, value in manifest["metadata"].items() if name in _KEPT}
        self._passed[referent] = {
            **{name: manifest[name] for name in ("apiVersion", "kind", "type") if name in manifest},
            "metadata": metadata,
        }
        return True

    @staticmethod
    def _referent(kind: ResourceKind, manifest: JsonObject) -> Referent:
        return Referent(kind.resource, *place_of(manifest))

    # What is named from now on, and what is named no more

    async def _find_all(self, added: frozenset[Referent]) -> list[SourceEvent]:
        begun = {kind.resource for kind in self._begun}
        wanted = sorted(one for one in added if one.resource in begun and one not in self._passed)
        found: list[SourceEvent] = []
        for position, one in enumerate(wanted):
            if len(wanted) > MAX_FOUND or _now() < self._paused_until:
                for resource in {left.resource for left in wanted[position:]}:
                    self._relist(self._narrowed[resource])
                break
            found += await self._find_one(one)
        return found

    async def find_unreported(self, kind: ResourceKind, manifest: JsonObject) -> list[KindObject]:
        """Return what an object names and is not reported yet, as far as the API server says it soon."""
        named = sorted(one for one in self._references.read(kind, manifest) if one not in self._passed)
        wanted = [one for one in named if one.resource in self._narrowed][:MAX_FOUND]
        found: list[KindObject] = []
        with suppress(TimeoutError, WatcherError):  # what is not found is not there, for who asks
            async with asyncio.timeout(FIND_S):
                for one in wanted:
                    narrowed = self._narrowed[one.resource]
                    found += ((narrowed, each) for each in await self._find(narrowed, one))
        return found

    async def _find_one(self, referent: Referent) -> list[SourceEvent]:
        kind = self._narrowed[referent.resource]
        try:
            async with asyncio.timeout(FIND_S):
                objects = await self._find(kind, referent)
        except (TimeoutError, WatcherError) as error:
            _log.debug("%s %s/%s: %s; listing again", *referent, error)
            if not isinstance(error, Forbidden):  # which is said at once, and of one namespace perhaps
                self._paused_until = _now() + PAUSE_S
            self._relist(kind)
            return []
        return [Applied(kind, one) for one in objects if self._note_passing(kind, one)]

    def _withdraw(self, removed: frozenset[Referent]) -> Iterator[SourceEvent]:
        for referent in sorted(removed):
            kept = self._passed.get(referent)
            if kept is not None and not self._passes(kind := self._narrowed[referent.resource], kept):
                del self._passed[referent]
                yield Deleted(kind, kept)


def _now() -> float:
    return asyncio.get_running_loop().time()
