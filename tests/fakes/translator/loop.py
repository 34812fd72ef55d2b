"""The translator's loop over stores in memory, and short ways to fill its log and to look at what it made."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

from fakes.translator.deltas import applied
from fakes.waiting import until
from headgate.common.deltas import ClusterAnnouncement, KindName, SyncMarker
from headgate.common.heartbeats import Heartbeat
from headgate.common.leadership.leadership import Leadership
from headgate.common.snapshot import Manifest, Version
from headgate.common.stores.memory.snapshots import MemorySnapshotStore
from headgate.common.stores.memory.stores import MemoryStores
from headgate.common.stores.reading import read_entries
from headgate.common.table import TableEntry, entry_key
from headgate.translator.leading.log_confirmation import AskWatchers
from headgate.translator.leading.stores import Stores
from headgate.translator.loop import TranslatorLoop
from headgate.translator.settings import TranslatorSettings

NOW = datetime(2024, 1, 1, tzinfo=UTC)
INGRESSES, SERVICES = KindName(group="networking.k8s.io", resource="ingresses"), KindName(group="", resource="services")
KINDS = (INGRESSES, SERVICES)


def settings(**values: Any) -> TranslatorSettings:
    return TranslatorSettings(debounce_ms=values.pop("debounce_ms", 0), **values)


@asynccontextmanager
async def running(
    stores: MemoryStores,
    *,
    leadership: Leadership | None = None,
    ask_watchers: AskWatchers | None = None,
    **values: Any,
) -> AsyncIterator[TranslatorLoop]:
    parts = Stores(
        *(stores.log_reader, stores.last_good, stores.snapshots, stores.statuses, stores.heartbeats),
        ask_watchers=ask_watchers,
        log_writer=stores.log_writer,
    )
    translator = TranslatorLoop(parts, settings(**values), leadership)
    task = asyncio.create_task(translator.run())
    try:
        yield translator
    finally:
        task.cancel()
        await asyncio.wait({task})
        if not task.cancelled():
            task.result()


async def announce(stores: MemoryStores, cluster: str = "a") -> None:
    await stores.log_writer.announce(
        ClusterAnnouncement(cluster=cluster, source="manifests", instance="w", kinds=KINDS, announced_at=NOW)
    )


async def mark(stores: MemoryStores, *kinds: KindName, cluster: str = "a") -> None:
    for kind in kinds:
        await stores.log_writer.mark_synced(SyncMarker(cluster=cluster, kind=kind, at=NOW))


async def fill(stores: MemoryStores, *manifests: Any, cluster: str = "a") -> None:
    await announce(stores, cluster)
    for manifest in manifests:
        await stores.log_writer.append(applied(manifest, cluster))
    await mark(stores, *KINDS, cluster=cluster)


async def idle(stores: MemoryStores, *translators: TranslatorLoop) -> None:
    """Wait until everything in the log is read and published, and statuses are posted by whoever leads."""
    await until(
        lambda: all(each.inputs.intake.sequence == stores.log.last_sequence and each.is_idle for each in translators)
    )


def digests_of(translator: TranslatorLoop) -> list[str]:
    """Return the digests of the table that a translator would publish."""
    return [chunk.digest for chunk in translator.output.draft(translator.translation, translator.inputs).chunks]


def has_published_all(stores: MemoryStores, translator: TranslatorLoop) -> bool:
    """Whether everything in the log was read, and is in a revision."""
    is_read = translator.inputs.intake.sequence == stores.log.last_sequence
    return is_read and not translator.inputs.causes.count


def version_of(stores: MemoryStores) -> Version | None:
    pointer = snapshots_of(stores).pointers.get("default")
    return pointer.version if pointer else None


def snapshots_of(stores: MemoryStores) -> MemorySnapshotStore:
    assert isinstance(stores.snapshots, MemorySnapshotStore)
    return stores.snapshots


async def manifest_of(stores: MemoryStores) -> Manifest:
    version = version_of(stores)
    assert version is not None
    return await stores.snapshots.get_manifest("default", version)


async def table_of(stores: MemoryStores) -> dict[str, TableEntry]:
    manifest = await manifest_of(stores)
    return {entry_key(entry): entry for entry in await read_entries(stores.snapshots, manifest.chunks)}


def heartbeat(version: Version | None, *addresses: str) -> Heartbeat:
    return Heartbeat(replica="g", worker=0, table="default", version=version, addresses=addresses, at=NOW)
