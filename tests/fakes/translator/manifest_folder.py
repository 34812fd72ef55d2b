"""A folder of manifests that is followed, and the world that its events make.

async with following(tmp_path) as folder:
    folder.write("a.yaml", service("x"))
    await folder.until({"x": 80})
"""

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from fakes.waiting import until
from headgate.common.resources import JsonObject, ResourceKind
from headgate.common.service.tasks import cancel
from headgate.watcher.sources import Applied, Deleted, Listed, ListPage, ReadyPage, SourceEvent
from headgate.watcher.sources.manifests.source import ManifestSource


def service(name: str, port: int = 80) -> str:
    """Return a document with a Service of one port."""
    return f"---\napiVersion: v1\nkind: Service\nmetadata: {{name: {name}}}\nspec: {{ports: [{{port: {port}}}]}}\n"


class FollowedFolder:
    """The folder, its source, and what the source said so far."""

    def __init__(self, folder: Path, rescan_s: float, only: str) -> None:
        self.path = folder
        self.source = ManifestSource([folder / only], "a", folder.parent / "data", rescan_s=rescan_s)
        self.events: list[SourceEvent] = []
        self._objects: dict[tuple[str, str], Any] = {}
        self._pages: dict[ResourceKind, list[JsonObject]] = {}

    @property
    def ports(self) -> dict[str, int]:
        """Port of each Service, by name."""
        return {
            name: one["spec"]["ports"][0]["port"] for (kind, name), one in self._objects.items() if kind == "Service"
        }

    @property
    def listed(self) -> int:
        """How many lists the source ended."""
        return sum(isinstance(event, Listed) for event in self.events)

    @property
    def reasons(self) -> list[str]:
        """What the source complains of."""
        return [problem.problem.reason for problem in self.source.problems]

    def write(self, name: str, text: str | bytes) -> None:
        """Write a file in place."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)

    def replace(self, name: str, text: str) -> None:
        """Write a file as careful editors do: beside it, then rename."""
        draft = self.path / f".{name}.new"
        draft.write_text(text)
        os.replace(draft, self.path / name)

    async def until(self, ports: Mapping[str, int]) -> None:
        """Wait until the Services are exactly these."""
        await until(lambda: self.ports == ports)

    async def until_reasons(self, *reasons: str) -> None:
        """Wait until exactly these complaints stand."""
        await until(lambda: self.reasons == list(reasons))

    async def settle(self) -> None:
        """Wait until everything that happened so far was seen: a change made after it was."""
        name = f"zz-{len(self.events)}"
        self.write(f"{name}.yaml", service(name))
        await until(lambda: name in self.ports)
        (self.path / f"{name}.yaml").unlink()
        await until(lambda: name not in self.ports)

    async def follow(self) -> None:
        """Take in the source's events for ever; pages of a list become one `Listed`."""
        async with aclosing(self.source.events()) as events:  # type: ignore[type-var]
            async for event in events:
                if isinstance(event, ListPage):
                    self._pages.setdefault(event.kind, []).extend(event.objects)
                    continue
                if isinstance(event, ReadyPage):
                    manifests = [msgspec.json.decode(one.content) for one in event.objects]
                    self._pages.setdefault(event.kind, []).extend(manifests)
                    continue
                if isinstance(event, Listed):
                    event = Listed(event.kind, [*self._pages.pop(event.kind, ()), *event.objects])
                self.events.append(event)
                self._note(event)

    def _note(self, event: SourceEvent) -> None:
        match event:
            case Listed(kind, objects):
                self._objects = {key: one for key, one in self._objects.items() if key[0] != kind.kind}
                self._objects |= {(kind.kind, one["metadata"]["name"]): one for one in objects}
            case Applied(kind, manifest):
                self._objects[kind.kind, manifest["metadata"]["name"]] = manifest
            case Deleted(kind, manifest):
                self._objects.pop((kind.kind, manifest["metadata"]["name"]))


@asynccontextmanager
async def following(
    tmp_path: Path, files: Mapping[str, str] | None = None, *, rescan_s: float = 30.0, only: str = ""
) -> AsyncIterator[FollowedFolder]:
    """Follow a folder that holds some files, or only one of these; it was listed when this returns."""
    folder = FollowedFolder(tmp_path / "manifests", rescan_s, only)
    folder.path.mkdir(exist_ok=True)
    for name, text in (files or {}).items():
        folder.write(name, text)
    task = asyncio.create_task(folder.follow())
    try:
        await until(lambda: task.done() or folder.listed >= len(folder.source.kinds))
        yield folder
        assert not task.done(), task.result()
    finally:
        await cancel(task)
