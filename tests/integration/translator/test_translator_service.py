"""The translator as a process on a real NATS server."""

import asyncio
import re
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import aiohttp
import pytest

from fakes.gateway.ports import free_ports
from fakes.service_process import running_service
from fakes.stores.chunks import content_of
from fakes.stores.nats import lose_store, real_bus
from fakes.translator.deltas import applied, endpoint_slice, ingress, ref_of, service
from fakes.waiting import until
from headgate.cli.up.embedded_nats import EmbeddedNats
from headgate.common.deltas import ClusterAnnouncement, KindName, SyncMarker, last_good_subject
from headgate.common.errors import StoreError
from headgate.common.snapshot import Manifest, Version, decode_chunk
from headgate.common.stores.nats import NatsStores
from headgate.common.stores.nats.log import delta_stream
from headgate.common.table import VirtualHost, entry_key

BOUND_S = 30.0
KIND = KindName(group="networking.k8s.io", resource="ingresses")
T = TypeVar("T")
Broker = tuple[EmbeddedNats, NatsStores]


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    async with real_bus() as (server, bus):
        yield server, await NatsStores.open(bus)


def translator(
    server: EmbeddedNats, folder: Path, *flags: str
) -> AbstractAsyncContextManager[asyncio.subprocess.Process]:
    own = (f"--nats-url={server.url}", f"--data-dir={folder}")
    return running_service("translator", *own, *flags, log=folder / "translator.log")


async def eventually(ask: Callable[[], Awaitable[T | None]]) -> T:
    """Return the first answer that is not empty; a store that is away now answers later."""
    found: T = await until(ask, BOUND_S, despite=(StoreError,))
    return found


async def say(stores: NatsStores, manifests: Sequence[Any], *, everything: bool = False) -> None:
    """Append to the log, as a watcher does."""
    if everything:
        await announce(stores)
    for manifest in manifests:
        await stores.log_writer.append(applied(manifest))
    if everything:
        await stores.log_writer.mark_synced(SyncMarker(cluster="a", kind=KIND, at=datetime.now(UTC)))


async def announce(stores: NatsStores) -> None:
    now = datetime.now(UTC)
    await stores.log_writer.announce(
        ClusterAnnouncement(cluster="a", source="manifests", instance="w", kinds=(KIND,), announced_at=now)
    )


async def manifest_of(stores: NatsStores) -> Manifest | None:
    pointer = await stores.snapshots.read_pointer("default")
    return await stores.snapshots.get_manifest("default", pointer.version) if pointer else None


async def keys_of(stores: NatsStores) -> set[str]:
    manifest = await manifest_of(stores)
    names = manifest.chunks if manifest else ()
    contents = [(name, await content_of(stores.snapshots, name)) for name in names]
    return {entry_key(entry) for name, content in contents for entry in decode_chunk(name.kind, content)}


async def serves(stores: NatsStores, *keys: str) -> None:
    async def ask() -> bool:
        return set(keys) <= await keys_of(stores)

    await eventually(ask)


async def test_a_log_becomes_a_table_and_a_change_a_revision(tmp_path: Path, broker: Broker) -> None:
    server, stores = broker
    async with translator(server, tmp_path) as process:
        await say(stores, [ingress("web", host="a.example"), service()], everything=True)
        await serves(stores, "a.example", "a/default/web:80")
        before = await manifest_of(stores)
        await say(stores, [endpoint_slice("web", "10.0.0.1")])
        after = await eventually(lambda: _newer(stores, before.version if before else Version(0, 0)))
        assert before is not None
        assert after.version == Version(before.version.epoch, before.version.revision + 1)
        assert [cause.kind for cause in after.causes] == ["EndpointSlice"]
        process.terminate()
        assert await process.wait() == 0


async def _newer(stores: NatsStores, version: Version) -> Manifest | None:
    manifest = await manifest_of(stores)
    return manifest if manifest and manifest.version > version else None


async def test_a_killed_translator_goes_on_where_it_was(tmp_path: Path, broker: Broker) -> None:
    server, stores = broker
    await say(stores, [ingress("web", host="a.example")], everything=True)
    async with translator(server, tmp_path) as process:
        await serves(stores, "a.example")
        process.send_signal(signal.SIGKILL)
        await process.wait()
    await say(stores, [ingress("new", host="new.example")])
    async with translator(server, tmp_path):
        await serves(stores, "a.example", "new.example")
    manifest = await manifest_of(stores)
    assert manifest is not None
    assert manifest.version.revision == 2


async def test_a_restarted_bus_brings_the_next_change(tmp_path: Path, broker: Broker) -> None:
    server, stores = broker
    async with translator(server, tmp_path):
        await say(stores, [ingress("web", host="a.example")], everything=True)
        await serves(stores, "a.example")
        await server.kill()
        await server.start()

        async def change() -> bool:
            await say(stores, [ingress("new", host="new.example")])
            return True

        await eventually(change)
        await serves(stores, "a.example", "new.example")


async def test_a_lost_bus_gets_the_table_back_under_a_new_epoch(tmp_path: Path, broker: Broker) -> None:
    server, stores = broker
    async with translator(server, tmp_path):
        await say(stores, [ingress("web", host="a.example")], everything=True)
        await serves(stores, "a.example")
        before = await manifest_of(stores)
        await lose_store(server)

        async def relist() -> bool:
            await say(stores, [ingress("web", host="a.example"), service()], everything=True)
            return True

        await eventually(relist)
        await serves(stores, "a.example")
        after = await manifest_of(stores)
    assert before is not None
    assert after is not None
    assert after.version.epoch > before.version.epoch


async def test_two_translators_agree(tmp_path: Path, broker: Broker) -> None:
    server, stores = broker
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    async with translator(server, tmp_path / "one"), translator(server, tmp_path / "two"):
        await say(stores, [ingress("web", host="h.example")], everything=True)
        for number in range(10):
            await say(stores, [ingress(f"i{number}", host=f"h{number}.example")])
        await serves(stores, *(f"h{number}.example" for number in range(10)))
        manifest = await manifest_of(stores)
    assert manifest is not None
    assert manifest.version.revision <= 11
    versions = await stores.snapshots.versions("default")
    assert len({version.epoch for version in versions}) == 1


async def test_readiness_and_metrics_tell_how_it_stands(tmp_path: Path, broker: Broker) -> None:
    server, stores = broker
    port = free_ports(1)[0]
    async with translator(server, tmp_path, f"--admin-port={port}"), aiohttp.ClientSession() as session:

        async def get(path: str) -> tuple[int, str]:
            try:
                async with session.get(f"http://127.0.0.1:{port}{path}") as answer:
                    return answer.status, await answer.text()
            except aiohttp.ClientConnectionError:
                return 0, ""

        async def is_waiting() -> bool:
            return "(a: " in (await get("/readyz"))[1]

        async def is_ready() -> bool:
            return (await get("/readyz"))[0] == 200

        await eventually(is_ready)  # there is no cluster yet
        await announce(stores)
        await eventually(is_waiting)
        await say(stores, [ingress("web", host="a.example")], everything=True)
        await eventually(is_ready)

        async def is_measured() -> bool:
            return 'headgate_translator_objects_with_problems{severity="error"} 1.0' in (await get("/metrics"))[1]

        await eventually(is_measured)  # a moment after it is published
        metrics = (await get("/metrics"))[1]
    assert re.search(r'^headgate_translator_objects\{resource="ingresses"\} 1.0$', metrics, re.M)
    assert re.search(r"^headgate_translator_revision 1.0$", metrics, re.M)


async def test_a_wrong_setting_ends_it_with_one_line(tmp_path: Path, broker: Broker) -> None:
    async with translator(broker[0], tmp_path, "--keep-revisions=none") as process:
        assert await process.wait() == 2
    lines = (tmp_path / "translator.log").read_text().splitlines()
    assert len(lines) == 1
    assert "keep_revisions" in lines[0]


async def paths_of(stores: NatsStores, host: str) -> list[str]:
    manifest = await manifest_of(stores)
    names = manifest.chunks if manifest else ()
    entries = [entry for name in names for entry in decode_chunk(name.kind, await content_of(stores.snapshots, name))]
    found = next((entry for entry in entries if isinstance(entry, VirtualHost) and entry.host == host), None)
    return [route.path.value for route in found.routes] if found else []


async def test_a_translator_that_was_killed_finds_the_last_good_version_of_an_object_again(
    tmp_path: Path, broker: Broker
) -> None:
    server, stores = broker
    await say(stores, [ingress("web", host="a.example", path="/good")], everything=True)
    async with translator(server, tmp_path):
        await serves(stores, "a.example")
        for number in range(12):
            await say(stores, [ingress("web", host="a.example", path=f"bad{number}")])
        await say(stores, [ingress("new", host="new.example")])
        await serves(stores, "new.example")

        async def is_written() -> bool:
            record = await stream.last(last_good_subject(ref_of(ingress("web")), "default"))
            return record is not None and b"/good" in record.data

        stream = delta_stream(stores.bus)
        await eventually(is_written)
    await say(stores, [ingress("web", host="a.example", path="worse"), ingress("newer", host="newer.example")])
    async with translator(server, tmp_path):
        await serves(stores, "newer.example")
    assert await paths_of(stores, "a.example") == ["/good"]
