"""A pair of translators as processes on a real NATS server, with tables there and in Redis: killed, stopped, ended."""

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pytest

from fakes.service_process import running_service
from fakes.stores.nats import real_bus
from fakes.stores.redis import linked, real_redis
from fakes.translator.deltas import applied, endpoint_slice, ingress, service
from fakes.waiting import until
from headgate.common.deltas import ClusterAnnouncement, KindName, SyncMarker
from headgate.common.leadership.leases import translator_lease
from headgate.common.snapshot import Manifest, Version
from headgate.common.stores.nats import NatsStores
from headgate.common.stores.redis.stores import tables_on
from headgate.common.stores.settings import ON_NATS
from headgate.common.stores.tables import TableStores

BOUND_S = 30.0
KIND = KindName(group="networking.k8s.io", resource="ingresses")
T = TypeVar("T")


class Pair(NamedTuple):
    stores: NatsStores
    tables: TableStores
    store: str
    """As a flag says where tables are."""
    processes: dict[str, asyncio.subprocess.Process]

    async def leader(self) -> str:
        """Return the name in the lease; empty if nobody has it."""
        stored = await self.tables.leases.read(translator_lease("default"))
        return stored.lease.holder if stored else ""

    async def until_led_by_another(self, than: str = "") -> str:
        async def ask() -> str:
            leader = await self.leader()
            return leader if leader != than else ""

        return await until(ask)

    async def say(self, *manifests: Any) -> None:
        for manifest in manifests:
            await self.stores.log_writer.append(applied(manifest))

    async def manifest(self) -> Manifest | None:
        pointer = await self.tables.snapshots.read_pointer("default")
        return await self.tables.snapshots.get_manifest("default", pointer.version) if pointer else None

    async def published(self, after: Version | None = None) -> Manifest:
        """Wait for a revision after another one."""

        async def ask() -> Manifest | None:
            manifest = await self.manifest()
            return manifest if manifest and (after is None or manifest.version > after) else None

        return await until(ask)


def translator(
    url: str, store: str, name: str, folder: Path
) -> AbstractAsyncContextManager[asyncio.subprocess.Process]:
    flags = (f"--nats-url={url}", f"--store={store}", f"--instance={name}", f"--data-dir={folder}", "--debounce-ms=0")
    return running_service("translator", *flags, log=folder / f"{name}.log")


@asynccontextmanager
async def tables_in(place: str, stores: NatsStores) -> AsyncIterator[tuple[str, TableStores]]:
    """The stores of tables, and the flag that says where they are."""
    if place == "nats":
        yield ON_NATS, TableStores(stores.snapshots, stores.heartbeats, stores.leases, stores.traffic)
    else:
        async with real_redis() as redis, linked(redis.target) as link:
            yield redis.url, tables_on(link)


@pytest.fixture(params=["nats", "redis"])
async def pair(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Pair]:
    """Two translators that have published a table."""
    async with real_bus() as (server, bus), AsyncExitStack() as stack:
        stores = await NatsStores.open(bus)
        store, tables = await stack.enter_async_context(tables_in(request.param, stores))
        processes = {
            name: await stack.enter_async_context(translator(server.url, store, name, tmp_path)) for name in "ab"
        }
        both = Pair(stores, tables, store, processes)
        now = datetime.now(UTC)
        await stores.log_writer.announce(
            ClusterAnnouncement(cluster="a", source="manifests", instance="w", kinds=(KIND,), announced_at=now)
        )
        await both.say(ingress("web", host="web.example"), service(), endpoint_slice("web", "10.0.0.1"))
        await stores.log_writer.mark_synced(SyncMarker(cluster="a", kind=KIND, at=now))
        await both.published()
        yield both


async def test_a_killed_translator_is_replaced_and_its_table_kept(pair: Pair) -> None:
    leader, before = await pair.until_led_by_another(), await pair.published()
    pair.processes[leader].kill()
    await pair.until_led_by_another(leader)
    await asyncio.sleep(0.5)
    assert await pair.manifest() == before
    await pair.say(endpoint_slice("web", "10.0.0.2"))
    after = await pair.published(before.version)
    assert after.version == Version(before.version.epoch, before.version.revision + 1)
    assert [cause.kind for cause in after.causes] == ["EndpointSlice"]


async def test_a_change_at_the_moment_of_the_kill_is_published_by_the_other(pair: Pair) -> None:
    leader, before = await pair.until_led_by_another(), await pair.published()
    pair.processes[leader].kill()
    await pair.say(endpoint_slice("web", "10.0.0.2"))
    after = await pair.published(before.version)
    assert after.version.epoch == before.version.epoch
    assert await pair.leader() != leader


async def test_one_that_is_asked_to_end_gives_the_lease_back(pair: Pair) -> None:
    leader = await pair.until_led_by_another()
    pair.processes[leader].terminate()
    assert await pair.processes[leader].wait() == 0
    successor = await pair.until_led_by_another(leader)
    stored = await pair.tables.leases.read(translator_lease("default"))
    assert {leader, successor} == {"a", "b"}
    assert stored is not None
    assert stored.lease.transitions >= 1


async def test_one_that_stood_still_does_no_harm_when_it_goes_on(pair: Pair) -> None:
    leader, before = await pair.until_led_by_another(), await pair.published()
    stopped = pair.processes[leader]
    stopped.send_signal(signal.SIGSTOP)
    await pair.say(endpoint_slice("web", "10.0.0.2"))
    versions = [before.version, (await pair.published(before.version)).version]
    await pair.say(ingress("new", host="new.example"))
    versions.append((await pair.published(versions[-1])).version)
    stopped.send_signal(signal.SIGCONT)
    for number in range(3, 8):
        await pair.say(endpoint_slice("web", f"10.0.0.{number}"))
        versions.append((await pair.published(versions[-1])).version)
    await asyncio.sleep(1.0)
    assert await pair.leader() != leader
    assert stopped.returncode is None
    assert [version.revision for version in versions] == list(range(1, len(versions) + 1))
    assert {version.epoch for version in versions} == {before.version.epoch}
    last = await pair.manifest()
    assert last is not None
    assert last.version == versions[-1]


async def test_leading_passes_on_when_the_first_comes_back(pair: Pair, tmp_path: Path) -> None:
    leader, before = await pair.until_led_by_another(), await pair.published()
    pair.processes[leader].kill()
    await pair.processes[leader].wait()
    successor = await pair.until_led_by_another(leader)
    async with translator(pair.stores.bus.address, pair.store, leader, tmp_path):
        await pair.say(ingress("new", host="new.example"))
        second = await pair.published(before.version)
        await asyncio.sleep(2.0)
        pair.processes[successor].terminate()
        assert await pair.until_led_by_another(successor) == leader
        await pair.say(ingress("newer", host="newer.example"))
        third = await pair.published(second.version)
    assert [each.version.revision for each in (before, second, third)] == [1, 2, 3]
