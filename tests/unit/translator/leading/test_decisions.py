"""What people decided of clusters, after the log that they decided it in was lost or went back."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from fakes.translator.deltas import endpoint_slice, ingress, service
from fakes.translator.loop import fill, idle, manifest_of, running, table_of, version_of
from fakes.waiting import until
from headgate.common.clusters import ClusterSettings, Decision, Drain, read_settings
from headgate.common.deltas import Delta, Operation
from headgate.common.errors import NotPermitted
from headgate.common.resources import CLUSTER
from headgate.common.stores import DeltaSelection
from headgate.common.stores.memory.log import MemoryDeltaLog
from headgate.common.stores.memory.stores import MemoryStores
from headgate.common.stores.reading import read_entries
from headgate.common.table import Upstream
from headgate.operations.changing.pinning import TablePins
from headgate.operations.committing.manual import ChangeRequest
from headgate.translator.leading.decisions import Decisions
from headgate.translator.loop import TranslatorLoop

NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)
DRAINED = ClusterSettings(drained=Drain(by="ada", at=NOW, reason="upgrade"))
KEY = "a/default/web:80"
BASE = (ingress("web", host="a.example"), service(), endpoint_slice("web", "10.0.0.1"))


def decided(settings: ClusterSettings, minutes: int = 0) -> Decision:
    return Decision.make(settings, "ada", NOW + timedelta(minutes=minutes))


async def decide(stores: MemoryStores, settings: ClusterSettings, minutes: int = 0) -> None:
    await stores.log_writer.append(decided(settings, minutes).as_delta("a"))


async def logged_in(stores: MemoryStores, cluster: str) -> Delta | None:
    """Return what the log says last of a cluster."""
    selection = DeltaSelection(cluster, ((CLUSTER.group, CLUSTER.resource),))
    found = [each.delta async for batch in stores.log_reader.read_after(selection, 0) for each in batch]
    return found[-1] if found else None


async def settings_in(stores: MemoryStores, cluster: str) -> ClusterSettings | None:
    logged = await logged_in(stores, cluster)
    return read_settings(logged.object or {}) if logged else None


async def idle_again(stores: MemoryStores, translator: TranslatorLoop) -> None:
    """Wait until the log that was made anew is read and published."""
    await until(lambda: translator.inputs.intake.incarnation == str(stores.log.incarnation))
    await idle(stores, translator)


async def until_decided(stores: MemoryStores, wanted: ClusterSettings) -> None:
    async with asyncio.timeout(5):
        while await settings_in(stores, "a") != wanted:  # noqa: ASYNC110 - the log has no event for one object
            await asyncio.sleep(0.002)


async def test_a_decision_that_changes_no_route_is_published_at_once_and_not_by_the_next_leader() -> None:
    stores = MemoryStores()
    await fill(stores, *BASE)
    nothing = (
        decided(ClusterSettings()).as_delta("a").model_copy(update={"operation": Operation.DELETE, "object": None})
    )
    async with running(stores) as translator:
        await idle(stores, translator)
        await stores.log_writer.append(nothing)
        await idle(stores, translator)
        assert [*(await manifest_of(stores)).decisions] == ["a"]


async def is_drained(stores: MemoryStores) -> bool:
    upstream = (await table_of(stores))[KEY]
    assert isinstance(upstream, Upstream)
    return not upstream.endpoints[0].ready


async def test_a_revision_carries_what_is_decided_though_nothing_else_changes() -> None:
    stores = MemoryStores()
    async with running(stores) as translator:
        await fill(stores, ingress("web", host="a.example"))
        await idle(stores, translator)
        before = version_of(stores)
        await decide(stores, ClusterSettings(weight=3))
        await until(lambda: version_of(stores) != before)
    assert (await manifest_of(stores)).decisions == {"a": decided(ClusterSettings(weight=3))}


@pytest.mark.parametrize("is_store_lost", [False, True])
async def test_a_running_translator_writes_decisions_into_a_log_that_was_lost(is_store_lost: bool) -> None:
    stores = MemoryStores()
    async with running(stores, recovery_wait_s=0) as translator:
        await decide(stores, DRAINED)
        await fill(stores, *BASE)
        await idle(stores, translator)
        stores.log.lose()
        if is_store_lost:
            stores.snapshots.lose()
        await fill(stores, *BASE)
        await until_decided(stores, DRAINED)
        await idle_again(stores, translator)
        assert await is_drained(stores)
        assert "a" in (await manifest_of(stores)).decisions


async def test_a_translator_that_begins_finds_them_in_the_published_revision() -> None:
    stores = MemoryStores()
    async with running(stores) as translator:
        await decide(stores, DRAINED)
        await fill(stores, *BASE)
        await idle(stores, translator)
    stores.log.lose()
    await fill(stores, *BASE)
    async with running(stores) as translator:
        await until_decided(stores, DRAINED)
        await idle_again(stores, translator)
        assert await is_drained(stores)


async def test_a_pin_and_its_end_leave_decisions_where_they_are() -> None:
    stores, request = MemoryStores(), ChangeRequest("ann", NOW)
    async with running(stores) as translator:
        await decide(stores, DRAINED)
        await fill(stores, *BASE)
        await idle(stores, translator)
    pins = TablePins(stores.snapshots, "default", None)
    pinned = await pins.pin(await manifest_of(stores), request)
    assert pinned.manifest.decisions == {"a": decided(DRAINED)}
    assert (await pins.unpin(request)).decisions == {"a": decided(DRAINED)}


async def test_no_revision_in_between_gives_a_drained_cluster_requests() -> None:
    stores = MemoryStores()
    async with running(stores) as translator:
        await decide(stores, DRAINED)
        await fill(stores, *BASE)
        await idle(stores, translator)
        stores.log.lose()
        await fill(stores, *BASE, endpoint_slice("web", "10.0.0.2"))
        await until_decided(stores, DRAINED)
        await idle_again(stores, translator)
    for version in await stores.snapshots.versions("default"):
        manifest = await stores.snapshots.get_manifest("default", version)
        entries = await read_entries(stores.snapshots, manifest.chunks)
        endpoints = [each for entry in entries if isinstance(entry, Upstream) for each in entry.endpoints]
        assert not any(endpoint.ready for endpoint in endpoints)


async def test_what_is_decided_anew_after_the_loss_counts() -> None:
    stores = MemoryStores()
    async with running(stores) as translator:
        await decide(stores, DRAINED)
        await fill(stores, *BASE)
        await idle(stores, translator)
        stores.log.lose()
        await decide(stores, ClusterSettings(weight=7), minutes=1)
        await fill(stores, *BASE)
        await idle_again(stores, translator)
        assert await settings_in(stores, "a") == ClusterSettings(weight=7)
        assert not await is_drained(stores)


async def test_an_older_decision_in_a_log_that_went_back_gives_way_to_the_newer_one() -> None:
    stores = MemoryStores()
    await decide(stores, ClusterSettings(), minutes=-1)
    there = await logged_in(stores, "a")
    assert there is not None
    logged = {"a": there}
    decisions = Decisions(stores.log_writer)
    decisions.learn(logged, {"a": decided(DRAINED)})
    assert await decisions.write_back("log", logged)
    assert await settings_in(stores, "a") == DRAINED


async def test_what_somebody_else_writes_back_first_is_awaited_from_the_log() -> None:
    stores = MemoryStores()
    decisions = Decisions(stores.log_writer)
    decisions.learn({}, {"a": decided(DRAINED)})
    await decide(stores, ClusterSettings(), minutes=1)
    assert await decisions.write_back("log", {})
    assert await settings_in(stores, "a") == ClusterSettings()


async def test_a_decision_that_the_log_refuses_is_tried_once_and_gone_on_without(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Refusing(MemoryDeltaLog):
        async def append(self, delta: Delta, expected_last: int | None = None) -> int:
            raise NotPermitted("not us")

    decisions = Decisions(Refusing())
    decisions.learn({}, {"a": decided(DRAINED)})
    for _ in range(2):
        assert not await decisions.write_back("log", {})
    assert caplog.text.count("is not written into it") == 1
