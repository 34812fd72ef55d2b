"""Several collections of one kind, such as its namespaces, reported as one.

A `Listed` says that what is not in it is gone, so there is one only when all namespaces are known. A namespace that we
may not read must not hold back the others, nor may its objects be taken for deleted: the kind is then reported as
unavailable, and what the other namespaces have as single changes.
"""

from collections.abc import Mapping, Sequence

from headgate.common.resources import JsonObject, ResourceKind
from headgate.watcher.sources import Applied, Deleted, Listed, SourceEvent, Unavailable
from headgate.watcher.sources.kubernetes.reflector import Emit

_Objects = Mapping[str, JsonObject]


class PartMerge:
    """Remembers the objects of each namespace; only there is a list of one of them comparable with what was."""

    def __init__(self, kind: ResourceKind, namespaces: Sequence[str], emit: Emit) -> None:
        """Merge these namespaces' events into `emit`."""
        self._kind = kind
        self._namespaces = namespaces
        self._emit = emit
        self._objects: dict[str, dict[str, JsonObject]] = {}
        self._refused: dict[str, Unavailable] = {}

    def sink(self, namespace: str) -> Emit:
        """Return where the events of one namespace go."""

        async def emit(event: SourceEvent) -> None:
            await self._take(namespace, event)

        return emit

    async def _take(self, namespace: str, event: SourceEvent) -> None:
        was_settled = self._is_settled()
        match event:
            case Listed():
                before = self._objects.get(namespace, {})
                self._objects[namespace] = {_name(item): item for item in event.objects}
                self._refused.pop(namespace, None)
                await self._report_listed(namespace, before, was_settled)
            case Unavailable():
                self._refused[namespace] = event
                await self._report_refused(was_settled)
            case Applied():
                self._objects.setdefault(namespace, {})[_name(event.object)] = event.object
                if was_settled:
                    await self._emit(event)
            case Deleted():
                self._objects.setdefault(namespace, {}).pop(_name(event.object), None)
                if was_settled:
                    await self._emit(event)

    def _is_settled(self) -> bool:
        return all(name in self._objects or name in self._refused for name in self._namespaces)

    async def _report_listed(self, namespace: str, before: _Objects, was_settled: bool) -> None:
        if not self._refused and self._is_settled():
            await self._emit(Listed(self._kind, [item for held in self._objects.values() for item in held.values()]))
        elif was_settled:
            await self._report_difference(before, self._objects[namespace])
        elif self._is_settled():
            await self._report_refused(was_settled)

    async def _report_refused(self, was_settled: bool) -> None:
        if not self._is_settled():
            return
        first = next(iter(self._refused.values()))
        names = ", ".join(sorted(self._refused))
        await self._emit(Unavailable(self._kind, first.state, f"namespaces {names}: {first.message}"))
        if not was_settled:
            for held in self._objects.values():
                await self._report_difference({}, held)

    async def _report_difference(self, before: _Objects, after: _Objects) -> None:
        for name, item in after.items():
            if before.get(name) != item:
                await self._emit(Applied(self._kind, item))
        for name in before.keys() - after.keys():
            await self._emit(Deleted(self._kind, before[name]))


def _name(item: JsonObject) -> str:
    name = item["metadata"]["name"]
    assert isinstance(name, str)
    return name
