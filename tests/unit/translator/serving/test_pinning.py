"""Pinned tables: what stays, what follows, and what a pin survives; over stores in memory."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.translator.deltas import applied, deleted, endpoint_slice, ingress, service
from fakes.translator.leadership import Seat
from fakes.translator.loop import (
    KINDS,
    announce,
    fill,
    idle,
    manifest_of,
    mark,
    running,
    snapshots_of,
    table_of,
    version_of,
)
from fakes.waiting import until
from headgate.common.errors import NotFound
from headgate.common.snapshot import Manifest, Pointer, Version
from headgate.common.stores.memory.snapshots import MemorySnapshotStore
from headgate.common.stores.memory.stores import MemoryStores
from headgate.common.table import Upstream
from headgate.common.table.upstream_key import UpstreamKey
from headgate.operations.changing.pinning import Pinned, TablePins
from headgate.operations.committing.manual import ChangeRequest
from headgate.operations.errors import NothingToDo
from headgate.translator.fragments.upstream_refs import RefusalRef, ResourceRef, ServicePortRef
from headgate.translator.leading import feeds
from headgate.translator.leading import output as output_module
from headgate.translator.loop import TranslatorLoop
from headgate.translator.status import poster as status_poster

WISH = ChangeRequest("ann@laptop", datetime(2026, 1, 1, tzinfo=UTC), "bad deploy")
OLD, NEW = "a/default/old:80", "a/default/new:80"


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds, "LOOK_AROUND_S", 0.02)
    monkeypatch.setattr(status_poster, "QUIET_S", 0.01)


async def say(stores: MemoryStores, *manifests: Any) -> None:
    for manifest in manifests:
        await stores.log_writer.append(applied(manifest))


async def roll_back(stores: MemoryStores, version: Version, **options: Any) -> Pinned:
    target = await stores.snapshots.get_manifest("default", version)
    return await TablePins(stores.snapshots, "default", None).pin(target, WISH, **options)


async def unpin(stores: MemoryStores) -> Manifest:
    return await TablePins(stores.snapshots, "default", None).unpin(WISH)


@asynccontextmanager
async def changed(stores: MemoryStores, **settings: Any) -> AsyncIterator[tuple[TranslatorLoop, Version]]:
    """Serve `a.example` from Service `old`, then change it to `new`; yields the version before the change."""
    await fill(
        stores,
        *(service(name) for name in ("old", "new")),
        endpoint_slice("old", "10.0.0.1"),
        endpoint_slice("new", "10.0.0.2"),
        ingress("web", host="a.example", service="old"),
    )
    async with running(stores, **settings) as translator:
        before = await until(lambda: version_of(stores))
        await say(stores, ingress("web", host="a.example", service="new"))
        await until(lambda: version_of(stores) != before)
        await idle(stores, translator)
        yield translator, before


async def endpoints_of(stores: MemoryStores, key: str) -> list[str]:
    entry = (await table_of(stores)).get(key)
    assert isinstance(entry, Upstream)
    return [endpoint.address for endpoint in entry.endpoints]


async def backend_of(stores: MemoryStores) -> str:
    return (await table_of(stores))["a.example"].routes[0].backends[0].upstream  # type: ignore[union-attr]


async def test_a_rollback_serves_the_old_routes_and_changes_wait() -> None:
    stores = MemoryStores()
    async with changed(stores) as (translator, before):
        await roll_back(stores, before)
        assert await backend_of(stores) == OLD
        await say(stores, ingress("more", host="b.example", service="new"))
        await idle(stores, translator)
        assert await backend_of(stores) == OLD
        assert "b.example" not in await table_of(stores)


async def test_what_waits_is_in_history_with_its_cause() -> None:
    stores = MemoryStores()
    async with changed(stores) as (translator, before):
        await roll_back(stores, before)
        await idle(stores, translator)
        await say(stores, ingress("more", host="b.example", service="new"))
        await idle(stores, translator)
        manifest = await manifest_of(stores)
    assert [cause.name for cause in manifest.causes] == ["more"]
    assert manifest.changed == {}
    assert manifest.pin is not None
    assert manifest.pin.waiting["hosts"].names == ("b.example",)
    assert not manifest.is_routine


async def test_the_rollback_itself_is_a_revision_with_who_and_why() -> None:
    stores = MemoryStores()
    async with changed(stores) as (_, before):
        done = await roll_back(stores, before)
    [cause] = done.manifest.causes
    assert (cause.operation, cause.kind, cause.by, cause.at) == ("rollback", "Table", WISH.by, WISH.at)
    assert cause.note == f"to {before}: bad deploy"
    assert done.manifest.changed["hosts"].names == ("a.example",)
    assert done.manifest.pin is not None
    assert (done.manifest.pin.version, done.manifest.pin.reason) == (before, "bad deploy")


async def test_endpoints_of_today_are_followed_also_where_no_live_route_asks_for_them() -> None:
    stores = MemoryStores()
    async with changed(stores) as (translator, before):
        await say(stores, endpoint_slice("old", "10.0.0.7"))  # nobody refers to it now
        await idle(stores, translator)
        done = await roll_back(stores, before)
        assert done.unknown == (OLD,)
        await until(lambda: version_of(stores) != done.manifest.version)
        assert await endpoints_of(stores, OLD) == ["10.0.0.7"]
        await say(stores, endpoint_slice("old", "10.0.0.8"))
        await idle(stores, translator)
        assert await endpoints_of(stores, OLD) == ["10.0.0.8"]


async def test_what_both_revisions_name_has_the_endpoints_of_today_from_the_first_moment() -> None:
    stores = MemoryStores()
    await fill(stores, service(), endpoint_slice("web", "10.0.0.1"), ingress("web", host="a.example"))
    async with running(stores):
        before = await until(lambda: version_of(stores))
        await say(stores, endpoint_slice("web", "10.0.0.9"))
        await until(lambda: version_of(stores) != before)
    done = await roll_back(stores, before)  # and nobody translates
    assert done.unknown == ()
    assert await endpoints_of(stores, "a/default/web:80") == ["10.0.0.9"]


async def test_a_frozen_pin_keeps_the_endpoints_too() -> None:
    stores = MemoryStores()
    async with changed(stores) as (translator, before):
        await roll_back(stores, before, is_frozen=True)
        await say(stores, endpoint_slice("old", "10.0.0.8"))
        await idle(stores, translator)
        assert await endpoints_of(stores, OLD) == ["10.0.0.1"]
        old = await stores.snapshots.get_manifest("default", before)
        assert (await manifest_of(stores)).chunks == old.chunks


async def test_a_service_that_is_gone_answers_503_and_not_from_addresses_that_others_may_have() -> None:
    stores = MemoryStores()
    async with changed(stores) as (translator, before):
        await stores.log_writer.append(deleted(service("old")))
        await idle(stores, translator)
        done = await roll_back(stores, before)
        await until(lambda: version_of(stores) != done.manifest.version)
        entry = (await table_of(stores))[OLD]
    assert isinstance(entry, Upstream)
    assert (entry.endpoints, entry.unavailable) == ((), "Service default/old not found")


async def test_policies_are_those_of_the_old_revision() -> None:
    stores = MemoryStores()
    async with changed(stores) as (translator, before):
        broken = service("old")
        broken["metadata"]["annotations"] = {"headgate.dev/load-balance": "nonsense"}
        await say(stores, broken)
        await idle(stores, translator)
        await roll_back(stores, before)
        await until(lambda: translator.output.serving.pin)
        await idle(stores, translator)
        entry = (await table_of(stores))[OLD]
    assert isinstance(entry, Upstream)
    assert [endpoint.address for endpoint in entry.endpoints] == ["10.0.0.1"]
    assert entry.unavailable is None


async def test_unpinning_serves_what_the_log_says_now() -> None:
    stores = MemoryStores()
    async with changed(stores) as (translator, before):
        await roll_back(stores, before)
        await say(stores, ingress("more", host="b.example", service="new"))
        await idle(stores, translator)
        manifest = await unpin(stores)
        assert manifest.pin is None
        assert manifest.causes[0].note == f"from {before}: bad deploy"
        assert {"a.example", "b.example"} <= set(await table_of(stores))
        assert await backend_of(stores) == NEW
        await say(stores, ingress("web", host="a.example", service="old"))
        await idle(stores, translator)
        assert await backend_of(stores) == OLD


async def test_a_pin_survives_the_translator_and_needs_none() -> None:
    stores = MemoryStores()
    async with changed(stores) as (_, before):
        pass
    await roll_back(stores, before)
    assert await backend_of(stores) == OLD
    async with running(stores) as translator:
        await until(lambda: translator.readiness() is None)
        await say(stores, endpoint_slice("old", "10.0.0.8"), ingress("more", host="b.example", service="new"))
        await idle(stores, translator)
        assert (await backend_of(stores), await endpoints_of(stores, OLD)) == (OLD, ["10.0.0.8"])
        manifest = await manifest_of(stores)
        assert manifest.pin is not None
        assert manifest.pin.version == before
    assert (await unpin(stores)).pin is None
    assert "b.example" in await table_of(stores)


async def test_a_second_translator_takes_the_pin_over() -> None:
    stores = MemoryStores()
    async with changed(stores) as (first, before), running(stores) as second:
        await until(lambda: second.readiness() is None)
        await roll_back(stores, before)
        await until(lambda: first.output.serving.pin and second.output.serving.pin)
        await say(stores, endpoint_slice("old", "10.0.0.8"), ingress("more", host="b.example"))
        await idle(stores, first, second)
        assert (await backend_of(stores), await endpoints_of(stores, OLD)) == (OLD, ["10.0.0.8"])
        await unpin(stores)
        await until(lambda: not first.output.serving.pin and not second.output.serving.pin)
        assert await backend_of(stores) == NEW


async def test_a_lost_store_gets_the_pinned_table_back() -> None:
    stores = MemoryStores()
    async with changed(stores) as (translator, before):
        await roll_back(stores, before)
        await until(lambda: translator.output.serving.pin)
        await idle(stores, translator)
        snapshots_of(stores).lose()
        found = await until(lambda: version_of(stores))
        assert found.epoch > before.epoch
        assert await backend_of(stores) == OLD
        assert (await unpin(stores)).pin is None
        assert await backend_of(stores) == NEW


async def test_a_pin_that_no_watch_announces_is_seen_by_looking(monkeypatch: pytest.MonkeyPatch) -> None:
    async def announce_nothing(_store: MemorySnapshotStore, _table: str) -> AsyncIterator[Pointer]:
        await asyncio.Event().wait()
        yield  # type: ignore[misc]

    monkeypatch.setattr(MemorySnapshotStore, "follow", announce_nothing)
    stores = MemoryStores()
    async with changed(stores) as (translator, before):
        await roll_back(stores, before)
        await until(lambda: translator.output.serving.pin)


async def test_a_store_from_before_the_pin_does_not_unpin() -> None:
    stores = MemoryStores()
    async with changed(stores) as (translator, before):
        snapshots = snapshots_of(stores)
        earlier = await snapshots.read_pointer("default")
        assert earlier is not None
        await roll_back(stores, before)
        await until(lambda: translator.output.serving.pin)
        await idle(stores, translator)
        snapshots.pointers["default"] = earlier  # as a backup has it
        await until(lambda: version_of(stores).epoch > before.epoch)  # type: ignore[union-attr]
        assert await backend_of(stores) == OLD


async def test_a_pin_that_the_store_lost_with_the_leading_translator_is_known_to_the_other() -> None:
    stores, one, other = MemoryStores(), Seat(is_leader=True), Seat()
    async with changed(stores, leadership=one) as (first, before), running(stores, leadership=other) as second:
        await until(lambda: second.readiness() is None)
        snapshots = snapshots_of(stores)
        earlier = await snapshots.read_pointer("default")
        assert earlier is not None
        await roll_back(stores, before)
        await until(lambda: first.output.serving.pin and second.output.serving.pin)
        await idle(stores, first)
        one.lose()
        snapshots.pointers["default"] = earlier  # as a backup has it
        other.take()
        await until(lambda: version_of(stores).epoch > before.epoch)  # type: ignore[union-attr]
        assert await backend_of(stores) == OLD


async def test_a_lost_log_leaves_the_pinned_table_alone() -> None:
    stores = MemoryStores()
    async with changed(stores) as (translator, before):
        await roll_back(stores, before)
        await until(lambda: translator.output.serving.pin)
        await idle(stores, translator)
        stores.log.lose()
        await announce(stores)
        await say(stores, service("old"), endpoint_slice("old", "10.0.0.8"))
        await mark(stores, *KINDS)
        await idle(stores, translator)
        assert (await backend_of(stores), await endpoints_of(stores, OLD)) == (OLD, ["10.0.0.8"])


async def test_a_pinned_table_can_be_pinned_to_another_revision() -> None:
    stores = MemoryStores()
    async with changed(stores) as (translator, before):
        after = version_of(stores)
        assert after is not None
        await roll_back(stores, before)
        await until(lambda: translator.output.serving.pin)
        await roll_back(stores, after)
        await say(stores, endpoint_slice("new", "10.0.0.5"))
        await idle(stores, translator)
        assert (await backend_of(stores), await endpoints_of(stores, NEW)) == (NEW, ["10.0.0.5"])
        with pytest.raises(NothingToDo):
            await roll_back(stores, after)


async def test_the_revision_that_a_table_is_pinned_to_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output_module, "GARBAGE_INTERVAL_S", 0.0)
    stores = MemoryStores()
    async with changed(stores) as (_, before):
        await roll_back(stores, before)
    async with running(stores, keep_revisions=1) as translator:
        for number in range(3):
            await say(stores, ingress(f"i{number}", host=f"h{number}.example"))
            await idle(stores, translator)
        await until(lambda: len(stores.snapshots.manifests) < 4)
    assert before in await stores.snapshots.versions("default")


async def test_a_table_that_is_not_pinned_cannot_be_unpinned() -> None:
    stores = MemoryStores()
    with pytest.raises(NotFound):
        await unpin(stores)
    async with changed(stores):
        with pytest.raises(NothingToDo):
            await unpin(stores)


NAMES = st.from_regex(r"[a-z]([-a-z0-9]{0,5}[a-z0-9])?", fullmatch=True)
PORTS = st.integers(1, 65535) | NAMES


@given(NAMES, NAMES, NAMES, PORTS, st.sampled_from(["", "tcp", "udp", "tls"]))
def test_a_service_port_is_read_back_from_its_key(
    cluster: str, namespace: str, name: str, port: int | str, stream: Any
) -> None:
    ref = ServicePortRef(cluster, namespace, name, port, stream)
    key = UpstreamKey.parse(ref.key)
    assert (ServicePortRef.of_key(key), str(key)) == (ref, ref.key)


def test_keys_of_other_upstreams_are_no_service_ports() -> None:
    others = (ResourceRef("a", "b", "x.io", "Bucket", "tls"), RefusalRef("a", "Ingress", "b", "c", "why"))
    assert [ServicePortRef.of_key(UpstreamKey.parse(other.key)) for other in others] == [None, None]
    assert [str(UpstreamKey.parse(other.key)) for other in others] == [other.key for other in others]
