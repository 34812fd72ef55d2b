"""A fleet that serves one route, from a translator that rolls its tables out."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fakes.translator.deltas import applied, endpoint_slice, ingress, service
from fakes.translator.fleet import FakeFleet, fleet_of
from fakes.translator.loop import (
    fill,
    manifest_of,
    running,
    snapshots_of,
    version_of,
)
from fakes.waiting import until
from headgate.common.snapshot import Manifest, Rollout, RolloutPhase
from headgate.common.stores.memory.stores import MemoryStores
from headgate.common.stores.reading import read_entries
from headgate.common.table import TableEntry, Upstream, entry_key
from headgate.translator.loop import TranslatorLoop

OLD, NEW = "a/default/old:80", "a/default/new:80"
GATEWAYS = ("g1", "g2", "g3", "g4")
BASE = (
    service("old"),
    service("new"),
    endpoint_slice("old", "10.0.0.1"),
    endpoint_slice("new", "10.0.0.2"),
    ingress("web", host="a.example", service="old"),
)
TO_NEW = ingress("web", host="a.example", service="new")


@asynccontextmanager
async def rolling(
    stores: MemoryStores, *replicas: str, window_s: float = 3600.0, **settings: Any
) -> AsyncIterator[tuple[TranslatorLoop, FakeFleet]]:
    """Serve `a.example` from Service `old` on some replicas; steps last until a test says otherwise."""
    await fill(stores, *BASE)
    settings = {"rollout_shares": [25.0, 50.0], "rollout_window_s": window_s, **settings}
    async with (
        fleet_of(stores.snapshots, stores.heartbeats, *(replicas or GATEWAYS)) as fleet,
        running(stores, **settings) as translator,
    ):
        await until(lambda: all(gateway.manifest for gateway in fleet.gateways.values()))
        await until(
            lambda: (
                translator.output.surroundings
                and len(translator.output.surroundings.heartbeats) == len(fleet.gateways)
                and all(beat.version for beat in translator.output.surroundings.heartbeats)
            )
        )
        yield translator, fleet


async def say(stores: MemoryStores, *manifests: Any) -> None:
    for manifest in manifests:
        await stores.log_writer.append(applied(manifest))


async def rollout_of(stores: MemoryStores) -> Rollout | None:
    return (await manifest_of(stores)).rollout


async def until_rollout(stores: MemoryStores, is_reached: Any) -> Rollout:
    found: list[Manifest] = []

    def check() -> bool:
        version = version_of(stores)
        assert version is not None
        manifest = Manifest.decode(snapshots_of(stores).manifests["default", version])
        found[:] = [manifest]
        return manifest.rollout is not None and bool(is_reached(manifest.rollout))

    await until(check)
    assert found[0].rollout is not None
    return found[0].rollout


async def until_everywhere(stores: MemoryStores) -> Manifest:
    def check() -> Manifest | None:
        version = version_of(stores)
        assert version is not None
        manifest = Manifest.decode(snapshots_of(stores).manifests["default", version])
        return manifest if manifest.rollout is None else None

    return await until(check)  # type: ignore[no-any-return]


async def next_of(stores: MemoryStores) -> dict[str, TableEntry]:
    rollout = await rollout_of(stores)
    assert rollout is not None
    return {entry_key(entry): entry for entry in await read_entries(stores.snapshots, rollout.next)}


def backend_in(table: dict[str, TableEntry], host: str = "a.example") -> str:
    return table[host].routes[0].backends[0].upstream  # type: ignore[union-attr]


def endpoints_in(table: dict[str, TableEntry], key: str) -> list[str]:
    entry = table[key]
    assert isinstance(entry, Upstream)
    return [endpoint.address for endpoint in entry.endpoints]


async def begun(stores: MemoryStores, fleet: FakeFleet) -> Rollout:
    """Change the backend, and wait until the first replica serves that."""
    await say(stores, TO_NEW)
    rollout = await until_rollout(stores, lambda found: found.phase is RolloutPhase.STEPPING)
    await until(lambda: fleet.next)
    return rollout


async def held_back(stores: MemoryStores, fleet: FakeFleet) -> Rollout:
    for gateway in fleet.gateways.values():
        gateway.errors_of_next = 500
    await begun(stores, fleet)
    return await until_rollout(stores, lambda found: found.phase is RolloutPhase.HELD)
