"""Which Secrets and ConfigMaps the objects of a cluster name; pure.

A reference counts as long as one object has it. What ConfigMaps name counts for those that the settings name, and only
these: the keys of any other ConfigMap may be anything.
"""

from collections import Counter
from collections.abc import Collection, Iterable
from typing import NamedTuple

from headgate.common.resources import CONFIG_MAP, JsonObject, ResourceKind
from headgate.common.resources.references import Referent, find_referents
from headgate.watcher.sources import Applied, Deleted, Listed, SourceEvent

_Place = tuple[str, str]
"""Namespace and name."""


class NamedChange(NamedTuple):
    """What an event changed in what is named."""

    added: frozenset[Referent]
    removed: frozenset[Referent]


class References:
    """What the objects of each kind name."""

    def __init__(self, nginx_prefix: str, always: Collection[Referent]) -> None:
        """Begin with nothing but what the settings name."""
        self._prefix = nginx_prefix
        self._always = frozenset(always)
        self._by_object: dict[ResourceKind, dict[_Place, frozenset[Referent]]] = {}
        self._uses: Counter[Referent] = Counter(self._always)

    def names(self, referent: Referent) -> bool:
        """Whether an object or the settings name this one."""
        return referent in self._uses

    def note(self, event: SourceEvent) -> NamedChange:
        """Take in what objects of a kind name by now."""
        before = self._by_object.setdefault(event.kind, {})
        match event:
            case Listed(kind, objects):
                found = ((place_of(one), self.read(kind, one)) for one in objects)
                after = {place: named for place, named in found if named}
                self._by_object[kind] = after
                return self._count(before.values(), after.values())
            case Applied(kind, manifest):
                named, place = self.read(kind, manifest), place_of(manifest)
                old = before.pop(place, frozenset())
                if named:
                    before[place] = named
                return self._count([old], [named])
            case Deleted(_, manifest):
                return self._count([before.pop(place_of(manifest), frozenset())], [])
            case _:
                return NamedChange(frozenset(), frozenset())

    def read(self, kind: ResourceKind, manifest: JsonObject) -> frozenset[Referent]:
        """Return what an object names."""
        if kind is CONFIG_MAP and Referent(kind.resource, *place_of(manifest)) not in self._always:
            return frozenset()
        return find_referents(kind.references, manifest, self._prefix)

    def _count(self, old: Iterable[frozenset[Referent]], new: Iterable[frozenset[Referent]]) -> NamedChange:
        change: Counter[Referent] = Counter()
        for named in new:
            change.update(named)
        for named in old:
            change.subtract(named)
        added, removed = set(), set()
        for referent, count in change.items():
            uses = self._uses[referent] + count
            if uses == count > 0:
                added.add(referent)
            if uses > 0:
                self._uses[referent] = uses
            elif count:
                del self._uses[referent]
                removed.add(referent)
        return NamedChange(frozenset(added), frozenset(removed))


def place_of(manifest: JsonObject) -> _Place:
    """Return an object's namespace and name."""
    metadata = manifest["metadata"]
    return metadata.get("namespace", ""), metadata["name"]
