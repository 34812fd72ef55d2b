"""The watches that are open at the fake API server."""

import asyncio
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from fakes.kubernetes.faults import reset_connection
from fakes.kubernetes.store import ApiFault, Change, JsonObject, Resource, Store

BOOKMARK_S = 60.0
Matches = Callable[[JsonObject], bool]


@dataclass
class OpenWatch:
    """One client that watches."""

    store: Store
    resource: Resource
    api_version: str
    matches: Matches
    revision: int
    bookmarks: bool
    ends_at: float
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    breaks: str = ""
    """`end`, `reset`, `half` (half of the next event, then a reset) or `silence`."""

    async def serve(self, request: web.Request, initial: list[JsonObject], marks_end: bool) -> web.StreamResponse:
        answer = web.StreamResponse(headers={"Content-Type": "application/json"})
        answer.enable_chunked_encoding()
        await answer.prepare(request)
        for item in initial:
            await answer.write(self._line("ADDED", item))
        if marks_end:
            await answer.write(self._bookmark({"k8s.io/initial-events-end": "true"}))
        while await self._step(request, answer):
            pass
        return answer

    async def _step(self, request: web.Request, answer: web.StreamResponse) -> bool:
        """Wait for what is next and write it; returns whether the watch goes on."""
        await self._wait_for_news(answer)
        if self.breaks == "silence":
            await asyncio.Event().wait()
        lines = list(self._news())
        if self.breaks == "half" and lines:
            await answer.write(lines[0][: len(lines[0]) // 2])
        if self.breaks == "reset" or (self.breaks == "half" and lines):
            reset_connection(request)
            return False
        if lines:
            await answer.write(b"".join(lines))
        return self.breaks != "end" and asyncio.get_running_loop().time() < self.ends_at

    async def _wait_for_news(self, answer: web.StreamResponse) -> None:
        loop = asyncio.get_running_loop()
        while not self.changed.is_set():
            left_s = self.ends_at - loop.time()
            try:
                async with asyncio.timeout(min(BOOKMARK_S, max(left_s, 0))):
                    await self.changed.wait()
            except TimeoutError:
                if self.bookmarks and self.store.revision >= self.revision and self.breaks != "silence":
                    await answer.write(self._bookmark({}))
                if loop.time() >= self.ends_at:
                    return
        self.changed.clear()

    def _news(self) -> Iterator[bytes]:
        for change in list(self.store.since(self.revision, self.resource)):
            self.revision = change.revision
            if event := self._event(change):
                yield self._line(*event)

    def _event(self, change: Change) -> tuple[str, JsonObject] | None:
        """An object that begins or ceases to fit the selectors comes and goes for this client."""
        was = change.before is not None and self.matches(change.before)
        if change.after is not None and self.matches(change.after):
            return ("MODIFIED" if was else "ADDED"), change.after
        if was:
            assert change.before is not None
            version = {**change.before["metadata"], "resourceVersion": str(change.revision)}
            return "DELETED", {**change.before, "metadata": version}
        return None

    def _bookmark(self, annotations: dict[str, str]) -> bytes:
        metadata: dict[str, Any] = {"resourceVersion": str(self.store.revision), "creationTimestamp": None}
        if annotations:
            metadata["annotations"] = annotations
        return self._line("BOOKMARK", {"metadata": metadata})

    def _line(self, kind: str, item: JsonObject) -> bytes:
        head = {"kind": self.resource.kind, "apiVersion": self.api_version}
        whole = {**head, **{name: value for name, value in item.items() if name not in head}}
        return json.dumps({"type": kind, "object": whole}).encode() + b"\n"


def error_line(fault: ApiFault) -> bytes:
    return json.dumps({"type": "ERROR", "object": fault.body}).encode() + b"\n"
