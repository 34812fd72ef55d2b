"""Follows a source and keeps what a publisher would know."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, Self

from fakes.kubernetes.api import FakeKubernetes
from headgate.common.resources import (
    APISIX_KINDS,
    DEFINITION,
    ENDPOINT_SLICE,
    ENDPOINTS,
    GATEWAY_KINDS,
    INGRESS,
    INGRESS_CLASS,
    LEGACY_INGRESS,
    NAMESPACE,
    OLDER_TRAEFIK_KINDS,
    PLUGIN,
    SECRET,
    SERVICE,
    SERVICE_EXPORT,
    SERVICE_IMPORT,
    TRAEFIK_KINDS,
    ResourceKind,
)
from headgate.watcher.sources import Applied, Deleted, Listed, Source, SourceEvent, Unavailable
from headgate.watcher.sources.kubernetes.source import KubernetesScope, KubernetesSource

CUSTOM_KINDS = (PLUGIN, *GATEWAY_KINDS, *APISIX_KINDS, *TRAEFIK_KINDS, *OLDER_TRAEFIK_KINDS)
"""Kinds that a cluster has only if their definitions are installed."""
JsonObject = dict[str, Any]
_Key = tuple[str, str]


class Following:
    """All events of a source so far, and the state that they make.

    async with Following(source) as seen:
        await seen.until(lambda: seen.names(SERVICE) == {"web"})
    """

    def __init__(self, source: Source) -> None:
        self.log: list[SourceEvent] = []
        self.state: dict[ResourceKind, dict[_Key, JsonObject]] = {}
        self.unavailable: dict[ResourceKind, Unavailable] = {}
        self.source = source
        self._news = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._follow())
        return self

    async def __aexit__(self, *reason: object) -> None:
        assert self._task is not None
        self._task.cancel()
        await asyncio.wait([self._task])

    async def until(self, condition: Callable[[], bool], within_s: float = 20.0) -> None:
        """Wait until a condition holds; it is looked at after every event and every quarter of a second."""
        assert self._task is not None
        async with asyncio.timeout(within_s):
            while not condition():
                self._news.clear()
                try:
                    async with asyncio.timeout(0.25):
                        await self._news.wait()
                except TimeoutError:
                    if self._task.done():
                        self._task.result()

    def names(self, kind: ResourceKind) -> set[str]:
        """Return the names of the objects of a kind; empty also when nothing is known."""
        return {name for _, name in self.state.get(kind, {})}

    def listed(self, kind: ResourceKind) -> list[Listed]:
        """Return the complete states of a kind that were reported."""
        return [event for event in self.log if isinstance(event, Listed) and event.kind == kind]

    async def _follow(self) -> None:
        events = self.source.events()
        try:
            async for event in events:
                self.log.append(event)
                self._apply(event)
                self._news.set()
        finally:
            await events.aclose()  # type: ignore[attr-defined]

    def _apply(self, event: SourceEvent) -> None:
        held = self.state.setdefault(event.kind, {})
        match event:
            case Listed():
                self.state[event.kind] = {_key(item): item for item in event.objects}
                self.unavailable.pop(event.kind, None)
            case Applied():
                held[_key(event.object)] = event.object
            case Deleted():
                held.pop(_key(event.object), None)
            case Unavailable():
                self.unavailable[event.kind] = event


def follow_kinds(api: FakeKubernetes, tmp_path: Path, scope: KubernetesScope | None = None, seed: int = 7) -> Following:
    """Follow a fake server's kinds; a seed draws the same delays again."""
    config = api.write_kubeconfig(tmp_path / "config")
    return Following(KubernetesSource(scope or KubernetesScope(), config, rng=Random(seed)))


def settled(seen: Following, *kinds: ResourceKind) -> bool:
    """Whether each kind was listed or found unavailable."""
    common = (INGRESS, INGRESS_CLASS, SERVICE, ENDPOINT_SLICE, ENDPOINTS, NAMESPACE, SECRET, LEGACY_INGRESS)
    wanted = kinds or (*common, SERVICE_EXPORT, SERVICE_IMPORT, DEFINITION, *CUSTOM_KINDS)
    return set(wanted) <= {event.kind for event in seen.log if isinstance(event, Listed | Unavailable)}


def _key(item: JsonObject) -> _Key:
    return item["metadata"].get("namespace", ""), item["metadata"]["name"]
