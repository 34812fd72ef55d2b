"""Says to the delta log what a watcher would say, without one: so that a change begins with its publication."""

import asyncio
import itertools
import threading
import time
from concurrent.futures import Future
from datetime import UTC, datetime
from types import TracebackType

import yaml

from headgate.common.bus.connection import Bus
from headgate.common.deltas import Delta, Operation
from headgate.common.resources import ENDPOINT_SLICE, INGRESS, ObjectRef, ResourceKind
from headgate.common.stores.nats.jetstream import Upkeep
from headgate.common.stores.nats.log import NatsDeltaLogWriter, delta_stream

CLUSTER = "local"
"""What `headgate up` calls the cluster of its manifests."""
_KINDS = {kind.kind: kind for kind in (INGRESS, ENDPOINT_SLICE)}
_versions = itertools.count(1)


def delta_of(document: str) -> Delta:
    """An object applied as a manifest says, in a version of its own."""
    manifest = yaml.load(document, yaml.CSafeLoader)
    kind: ResourceKind = _KINDS[manifest["kind"]]
    metadata = manifest["metadata"]
    version = f"{time.time_ns()}-{next(_versions)}"
    metadata["uid"], metadata["resourceVersion"] = f"bench-{metadata['name']}", version
    return Delta(
        ref=ObjectRef(CLUSTER, kind.group, kind.resource, metadata["namespace"], metadata["name"]),
        operation=Operation.APPLY,
        uid=metadata["uid"],
        resource_version=version,
        observed_at=datetime.now(UTC),
        object=manifest,
    )


async def connect(nats_url: str) -> tuple[Bus, NatsDeltaLogWriter]:
    """Return a connection, and the log's writer on it."""
    bus = await Bus.connect(nats_url, name="bench", wait_s=10.0)
    return bus, NatsDeltaLogWriter(delta_stream(bus, Upkeep(makes_streams=False)))


class LogWriter:
    """Publishes from a thread of its own while the context lasts."""

    def __init__(self, nats_url: str) -> None:
        self._url = nats_url
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="log writer", daemon=True)

    def __enter__(self) -> "LogWriter":
        self._thread.start()
        self._bus, self._writer = asyncio.run_coroutine_threadsafe(connect(self._url), self._loop).result(20)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        asyncio.run_coroutine_threadsafe(self._bus.close(), self._loop).result(20)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def publish(self, delta: Delta) -> "Future[float]":
        """Publish; the result is the monotonic time at which the log had it on disk."""
        return asyncio.run_coroutine_threadsafe(self._publish(delta), self._loop)

    async def _publish(self, delta: Delta) -> float:
        await self._writer.append(delta)
        return time.monotonic()
