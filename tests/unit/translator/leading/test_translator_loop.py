"""The loop over stores in memory: when it publishes, and how it comes back."""

import asyncio
import time
from datetime import timedelta
from typing import Any

import pytest

from fakes.translator.deltas import applied, deleted, endpoint_slice, ingress, service
from fakes.translator.late_log import behind
from fakes.translator.loop import (
    INGRESSES,
    KINDS,
    NOW,
    SERVICES,
    announce,
    fill,
    heartbeat,
    idle,
    manifest_of,
    mark,
    running,
    snapshots_of,
    table_of,
    version_of,
)
from fakes.waiting import until
from headgate.common.clusters import ClusterSettings, Decision, Removal
from headgate.common.errors import StoreUnavailable
from headgate.common.snapshot import SCHEMA, Version
from headgate.common.stores.memory.stores import MemoryStores
from headgate.translator.leading import feeds
from headgate.translator.status import poster as status_poster


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds, "LOOK_AROUND_S", 0.02)
    monkeypatch.setattr(status_poster, "QUIET_S", 0.01)


async def test_a_complete_cluster_becomes_a_table() -> None:
    stores = MemoryStores()
    await fill(stores, ingress("web", host="a.example"), service(), endpoint_slice("web", "10.0.0.1"))
    async with running(stores) as translator:
        await until(lambda: translator.readiness() is None)
        assert set(await table_of(stores)) == {"a.example", "a/default/web:80"}


async def test_nothing_is_published_before_every_kind_is_synced() -> None:
    stores = MemoryStores()
    await announce(stores)
    await stores.log_writer.append(applied(ingress("web", host="a.example")))
    await mark(stores, INGRESSES)
    async with running(stores) as translator:
        await until(lambda: "services" in (translator.readiness() or ""))
        assert version_of(stores) is None
        await mark(stores, SERVICES)
        await until(lambda: version_of(stores))


async def test_an_incomplete_cluster_is_left_out_and_others_go_on() -> None:
    stores = MemoryStores()
    await fill(stores, ingress("web", host="a.example"), cluster="a")
    await announce(stores, "b")
    await stores.log_writer.append(applied(ingress("half", host="b.example"), "b"))
    async with running(stores):
        await until(lambda: version_of(stores))
        assert "b.example" not in await table_of(stores)
        await mark(stores, *KINDS, cluster="b")
        await until(lambda: version_of(stores).revision == 2)  # type: ignore[union-attr]
        assert "b.example" in await table_of(stores)


async def test_a_revision_names_its_causes_inputs_and_parent() -> None:
    stores = MemoryStores()
    await fill(stores, ingress("web", host="a.example"), service())
    async with running(stores):
        first = await until(lambda: version_of(stores))
        sequence = await stores.log_writer.append(applied(endpoint_slice("web", "10.0.0.9")))
        await until(lambda: version_of(stores) != first)
        manifest = await manifest_of(stores)
    assert [(cause.kind, cause.name, cause.operation) for cause in manifest.causes] == [
        ("EndpointSlice", "web-1", "apply")
    ]
    assert (manifest.parent, manifest.cause_count, manifest.inputs) == (first, 1, {"a": sequence})


async def test_a_change_that_changes_nothing_is_not_published() -> None:
    stores = MemoryStores()
    await fill(stores, ingress("web", host="a.example"))
    async with running(stores) as translator:
        first = await until(lambda: version_of(stores))
        await stores.log_writer.append(applied({**ingress("web", host="a.example"), "status": {"loadBalancer": {}}}))
        await stores.log_writer.append(applied(service("unused")))
        await idle(stores, translator)
        assert version_of(stores) == first


async def test_a_restarted_translator_finds_its_table_and_keeps_the_revision() -> None:
    stores = MemoryStores()
    await fill(stores, ingress("web", host="a.example"))
    async with running(stores):
        first = await until(lambda: version_of(stores))
    async with running(stores) as translator:
        await until(lambda: translator.readiness() is None)
        assert version_of(stores) == first


async def test_two_translators_make_one_history() -> None:
    stores = MemoryStores()
    await fill(stores, ingress("web", host="a.example"), service())
    async with running(stores) as one, running(stores) as other:
        await until(lambda: one.readiness() is None and other.readiness() is None)
        for number in range(5):
            await stores.log_writer.append(applied(ingress(f"i{number}", host=f"h{number}.example")))
        await idle(stores, one, other)
        assert len(await table_of(stores)) == 7
        assert version_of(stores).revision <= 7  # type: ignore[union-attr]


async def test_a_lost_log_keeps_the_table_until_its_clusters_are_back() -> None:
    stores = MemoryStores()
    await fill(stores, ingress("web", host="a.example"), cluster="a")
    await fill(stores, ingress("web", host="b.example"), cluster="b")
    async with running(stores) as translator:
        first = await until(lambda: version_of(stores))
        stores.log.lose()
        await fill(stores, ingress("web", host="a2.example"), cluster="a")
        await until(
            lambda: (
                "b" in (translator.inputs.obstacle(leads=translator.leads) or "") and translator.inputs.intake.sequence
            )
        )
        assert version_of(stores) == first
        assert translator.readiness() is None
        await fill(stores, ingress("web", host="b.example"), cluster="b")
        await until(lambda: version_of(stores) != first)
        assert {"a2.example", "b.example"} <= set(await table_of(stores))


async def test_a_restart_with_a_lost_log_waits_for_the_published_clusters() -> None:
    stores = MemoryStores()
    await fill(stores, ingress("web", host="a.example"), cluster="a")
    await fill(stores, ingress("web", host="b.example"), cluster="b")
    async with running(stores):
        await until(lambda: version_of(stores))
    stores.log.lose()
    await fill(stores, ingress("web", host="a.example"), cluster="a")
    async with running(stores) as translator:
        await until(lambda: "not listed yet: b" in (translator.readiness() or ""))
    async with running(stores, forget_clusters=["b"]) as translator:
        await until(lambda: translator.readiness() is None)
        assert "b.example" not in await table_of(stores)


async def test_a_revision_of_a_later_release_is_followed_by_one_of_this() -> None:
    stores = MemoryStores()
    await fill(stores, ingress("web", host="a.example"))
    async with running(stores):
        first = await until(lambda: version_of(stores))
    later = (await manifest_of(stores)).model_copy(
        update={"schema_version": SCHEMA + 1, "version": Version(first.epoch, 2)}
    )
    await stores.snapshots.commit(later, await stores.snapshots.read_pointer("default"))
    async with running(stores):
        await until(lambda: version_of(stores) == Version(first.epoch, 3))
        assert "a.example" in await table_of(stores)


async def test_a_restart_waits_for_no_cluster_that_was_removed_meanwhile() -> None:
    stores = MemoryStores()
    await fill(stores, ingress("web", host="a.example"), cluster="a")
    gone = ingress("web", host="b.example")
    await fill(stores, gone, cluster="b")
    async with running(stores):
        await until(lambda: version_of(stores))
    await stores.log_writer.append(deleted(gone, "b"))
    removal = Removal(by="ada", at=NOW + timedelta(hours=1))
    decision = Decision.make(ClusterSettings(removed=removal), "ada", removal.at)
    await stores.log_writer.append(decision.as_delta("b"))
    async with running(stores) as translator:
        await until(lambda: translator.readiness() is None)
        assert set(await table_of(stores)) == {"a.example", "a/default/web:80"}
        assert (translator.inputs.clusters, [*(await manifest_of(stores)).inputs]) == ({"a", "b"}, ["a"])
    stores.log.lose()
    await fill(stores, ingress("web", host="a2.example"), cluster="a")
    async with running(stores) as translator:
        await until(lambda: translator.readiness() is None)
        assert "a2.example" in await table_of(stores)
        await announce(stores, "b")  # written before it was removed, and so no sign of life
        await mark(stores, *KINDS, cluster="b")
        await idle(stores, translator)
        assert [*(await manifest_of(stores)).inputs] == ["a"]


async def test_a_lost_store_gets_the_table_back_under_a_new_epoch() -> None:
    stores = MemoryStores()
    await fill(stores, ingress("web", host="a.example"))
    async with running(stores):
        first = await until(lambda: version_of(stores))
        snapshots_of(stores).lose()
        found = await until(lambda: version_of(stores))
        assert found.epoch > first.epoch
        assert "a.example" in await table_of(stores)


async def test_before_the_first_cluster_there_is_nothing_to_wait_for() -> None:
    stores = MemoryStores()
    async with running(stores) as translator:
        await until(lambda: translator.awaits_first_cluster)
        await announce(stores)
        await until(lambda: not translator.awaits_first_cluster)
        assert translator.readiness() is not None


async def test_a_log_that_was_lost_is_not_taken_for_a_new_one() -> None:
    stores = MemoryStores()
    await stores.heartbeats.beat(heartbeat(Version(7, 3)))
    async with running(stores) as translator:
        await until(lambda: translator.inputs.intake.is_replayed)
        assert not translator.awaits_first_cluster
    stores = MemoryStores()
    await fill(stores, ingress("web", host="a.example"))
    async with running(stores):
        await until(lambda: version_of(stores))
    stores.log.lose()
    async with running(stores) as translator:
        await until(lambda: translator.inputs.intake.is_replayed)
        assert not translator.awaits_first_cluster


async def test_a_store_behind_the_gateways_gets_a_new_epoch() -> None:
    stores = MemoryStores()
    await fill(stores, ingress("web", host="a.example"))
    async with running(stores):
        first = await until(lambda: version_of(stores))
        await stores.heartbeats.beat(heartbeat(Version(first.epoch + 1000, 7)))
        await until(lambda: version_of(stores) != first)
        assert version_of(stores) == Version(first.epoch + 1001, 1)


async def test_after_the_loss_of_everything_further_clusters_are_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    stores = MemoryStores()
    await stores.heartbeats.beat(heartbeat(Version(5, 5)))
    await fill(stores, ingress("web", host="a.example"), cluster="a")
    async with running(stores, recovery_wait_s=0.2):
        await until(lambda: "waiting for all of its clusters" in caplog.text)
        await fill(stores, ingress("web", host="b.example"), cluster="b")
        await until(lambda: version_of(stores))
        assert {"a.example", "b.example"} <= set(await table_of(stores))


async def test_a_store_that_is_away_loses_no_change(monkeypatch: pytest.MonkeyPatch) -> None:
    stores = MemoryStores()
    await fill(stores, ingress("web", host="a.example"))
    async with running(stores):
        first = await until(lambda: version_of(stores))
        failures = 0
        commit = stores.snapshots.commit

        async def fail_twice(*args: Any) -> Any:
            nonlocal failures
            failures += 1
            if failures <= 2:
                raise StoreUnavailable("away")
            return await commit(*args)

        monkeypatch.setattr(stores.snapshots, "commit", fail_twice)
        await stores.log_writer.append(applied(ingress("new", host="new.example")))
        await until(lambda: version_of(stores) != first)
        assert "new.example" in await table_of(stores)
        assert (await manifest_of(stores)).causes[0].name == "new"


async def test_a_translator_that_is_behind_stands_back_until_it_has_read_the_log() -> None:
    stores = MemoryStores()
    late = behind(stores)
    await fill(stores, ingress("web", host="a.example"))
    async with running(stores) as translator:
        await until(lambda: version_of(stores))
        await idle(stores, translator)
        ours = await manifest_of(stores)
        foreign = ours.model_copy(update={"version": Version(ours.version.epoch, 2), "chunks": ()})
        late.flows.clear()
        await stores.log_writer.append(applied(ingress("new", host="new.example")))
        await stores.snapshots.commit(foreign, await stores.snapshots.read_pointer("default"))
        await until(lambda: "read more of the log" in (translator.inputs.obstacle(leads=True) or ""))
        late.flows.set()
        await idle(stores, translator)
        assert {"a.example", "new.example"} <= set(await table_of(stores))
        assert version_of(stores) == Version(ours.version.epoch, 3)


async def test_a_deleted_object_leaves_the_table() -> None:
    stores = MemoryStores()
    web = ingress("web", host="a.example")
    await fill(stores, web, service())
    async with running(stores):
        first = await until(lambda: version_of(stores))
        await stores.log_writer.append(deleted(web))
        await until(lambda: version_of(stores) != first)
        assert await table_of(stores) == {}


async def test_a_burst_goes_out_as_a_few_revisions() -> None:
    stores = MemoryStores()
    await fill(stores, ingress("web", host="a.example"))
    async with running(stores, debounce_ms=500) as translator:
        await until(lambda: version_of(stores))
        began = time.monotonic()
        for number in range(30):
            await stores.log_writer.append(applied(ingress(f"i{number}", host=f"h{number}.example")))
            await asyncio.sleep(0)
        await idle(stores, translator)
        rests = (time.monotonic() - began) / 0.05
        assert len(await table_of(stores)) == 32
        assert version_of(stores).revision <= 2 + rests  # type: ignore[union-attr]


async def test_the_trace_of_the_first_cause_goes_on_in_the_manifest() -> None:
    stores = MemoryStores()
    await fill(stores, ingress("web", host="a.example"))
    trace = "0af7651916cd43dd8448eb211c80319c"
    async with running(stores):
        first = await until(lambda: version_of(stores))
        await stores.log_writer.append(applied(service(), traceparent=f"00-{trace}-b7ad6b7169203331-01"))
        await until(lambda: version_of(stores) != first)
        assert trace in str((await manifest_of(stores)).traceparent)
