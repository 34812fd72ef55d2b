"""What the loop posts, over stores in memory."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from fakes.translator.deltas import applied, deleted, ingress, service
from fakes.translator.loop import (
    fill,
    heartbeat,
    idle,
    running,
)
from fakes.waiting import until
from headgate.common.errors import StoreError, StoreUnavailable
from headgate.common.service.tasks import cancel
from headgate.common.snapshot import Pointer
from headgate.common.status import StatusUpdate
from headgate.common.stores.memory.stores import MemoryStores
from headgate.translator.leading import feeds, output
from headgate.translator.loop import TranslatorLoop
from headgate.translator.status import poster as status_poster
from headgate.translator.status import statuses as statuses_module


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds, "LOOK_AROUND_S", 0.02)
    monkeypatch.setattr(status_poster, "QUIET_S", 0.01)


def posted(stores: MemoryStores) -> dict[str, StatusUpdate]:
    updates = stores.statuses.updates.values()  # type: ignore[attr-defined]
    return {update.ref.name: update for _, update in updates}


async def post_another(stores: MemoryStores, translator: TranslatorLoop) -> None:
    """Have a status posted once: by then it is known what was posted before this translator began."""
    await stores.log_writer.append(applied(ingress("another", host="another.example", service="nowhere")))
    await until(lambda: "another" in posted(stores))
    await idle(stores, translator)


async def test_statuses_wait_for_a_board_that_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status_poster, "FIRST_PAUSE_S", 0.01)
    stores = MemoryStores()
    post, failures = stores.statuses.post, iter(range(3))

    async def fail_at_first(*updates: StatusUpdate) -> Sequence[bytes | StoreError]:
        if next(failures, None) is not None:
            raise StoreUnavailable("away")
        return await post(*updates)

    monkeypatch.setattr(stores.statuses, "post", fail_at_first)
    await fill(stores, ingress("one", host="a.example"), ingress("two", host="b.example"))
    async with running(stores):
        await until(lambda: posted(stores).keys() >= {"one", "two"})


async def test_a_class_that_changed_while_the_log_was_lost_disowns_its_objects() -> None:
    stores = MemoryStores()
    await fill(stores, ingress("web", host="a.example"))
    async with running(stores) as translator:
        await until(lambda: posted(stores).get("web"))
        await idle(stores, translator)
        stores.log.lose()
        await fill(stores, ingress("web", host="a.example", class_name="other"))
        await until(lambda: not posted(stores)["web"].is_accepted)


async def test_statuses_name_addresses_and_problems_and_come_once() -> None:
    stores = MemoryStores()
    await stores.heartbeats.beat(heartbeat(None, "192.0.2.1", "edge.example"))
    await fill(stores, ingress("web", host="a.example", service="gone"))
    async with running(stores):
        update = await until(lambda: posted(stores).get("web"))
    assert update.is_accepted
    assert [(each.ip, each.hostname) for each in update.addresses] == [("192.0.2.1", None), (None, "edge.example")]
    assert [event.reason for event in update.events] == ["Accepted", "ServiceNotFound"]
    count = stores.statuses.sequence  # type: ignore[attr-defined]
    async with running(stores) as translator:
        await post_another(stores, translator)
        assert stores.statuses.sequence == count + 1  # type: ignore[attr-defined]


async def test_new_addresses_reach_the_statuses() -> None:
    stores = MemoryStores()
    await fill(stores, ingress("web", host="a.example"))
    async with running(stores):
        before = await until(lambda: posted(stores).get("web"))
        await stores.heartbeats.beat(heartbeat(None, "192.0.2.7"))
        update = await until(lambda: (found := posted(stores)["web"]).addresses and found)
    assert update.addresses[0].ip == "192.0.2.7"
    assert update.events == before.events


async def test_an_object_that_is_no_longer_ours_has_its_addresses_taken_back() -> None:
    stores = MemoryStores()
    await fill(stores, ingress("web", host="a.example"))
    async with running(stores, publish_addresses=["192.0.2.1"]):
        await until(lambda: posted(stores).get("web"))
    await stores.log_writer.append(applied(ingress("web", host="a.example", class_name="other")))
    async with running(stores, publish_addresses=["192.0.2.1"]):
        update = await until(lambda: not (found := posted(stores)["web"]).is_accepted and found)
    assert (update.addresses, update.problems) == ((), ())


async def test_an_object_of_another_class_never_gets_a_status() -> None:
    stores = MemoryStores()
    await fill(stores, ingress("web", host="a.example"), ingress("other", host="o.example", class_name="other"))
    async with running(stores) as translator:
        await until(lambda: "web" in posted(stores))
        await idle(stores, translator)
        assert "other" not in posted(stores)


async def test_nothing_is_wrong_any_more_with_a_deleted_object() -> None:
    stores = MemoryStores()
    web = ingress("web", host="a.example", service="gone")
    await fill(stores, web)
    async with running(stores, publish_addresses=["192.0.2.1"]) as translator:
        assert (await until(lambda: posted(stores).get("web"))).problems
        await stores.log_writer.append(deleted(web))
        update = await until(lambda: not (found := posted(stores)["web"]).problems and found)
        await idle(stores, translator)
    assert (update.is_accepted, update.addresses, update.events) == (False, None, ())


async def test_an_object_deleted_while_nobody_translated_is_forgotten_once() -> None:
    stores = MemoryStores()
    web = ingress("web", host="a.example", service="gone")
    await fill(stores, web)
    async with running(stores):
        await until(lambda: posted(stores).get("web"))
    await stores.log_writer.append(deleted(web))
    async with running(stores):
        await until(lambda: not posted(stores)["web"].problems)
    count = stores.statuses.sequence  # type: ignore[attr-defined]
    async with running(stores) as translator:
        await post_another(stores, translator)
        assert stores.statuses.sequence == count + 1  # type: ignore[attr-defined]


async def test_an_object_that_comes_back_is_told_of_anew() -> None:
    stores = MemoryStores()
    web = ingress("web", host="a.example", service="gone")
    await fill(stores, web)
    async with running(stores):
        await until(lambda: posted(stores).get("web"))
        await stores.log_writer.append(deleted(web))
        await until(lambda: not posted(stores)["web"].problems)
        await stores.log_writer.append(applied(web))
        update = await until(lambda: (found := posted(stores)["web"]).problems and found)
    assert [event.reason for event in update.events] == ["Accepted", "ServiceNotFound"]


async def test_changes_that_never_pause_hold_up_no_status_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statuses_module, "SLICE_S", 0.0)
    names = [f"i{number}" for number in range(statuses_module.FEW + 8)]
    stores = MemoryStores()
    await fill(stores, *(ingress(name, host=f"{name}.example") for name in names))
    await stores.log_writer.append(applied(ingress("busy", host="busy.example", service="busy")))
    commit = stores.snapshots.commit

    async def commit_slowly(*arguments: Any) -> Pointer:
        await asyncio.sleep(0.01)  # more changes come meanwhile
        return await commit(*arguments)

    async def change_for_ever() -> None:
        for port in range(1, 60_000):
            await stores.log_writer.append(applied(service("busy", port=port)))
            await asyncio.sleep(0.001)

    monkeypatch.setattr(stores.snapshots, "commit", commit_slowly)
    changing = asyncio.create_task(change_for_ever())
    try:
        async with running(stores):
            await until(lambda: posted(stores).keys() >= set(names), within_s=8)
    finally:
        await cancel(changing)


async def test_the_statuses_of_many_objects_wait_until_gateways_have_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "MANY", 40)
    stores = MemoryStores()
    await stores.heartbeats.beat(heartbeat(None))
    await fill(stores, *(ingress(f"web-{number}", host=f"{number}.example") for number in range(60)))
    async with running(stores) as translator:
        await until(lambda: translator.readiness() is None)
        await asyncio.sleep(0.2)
        assert posted(stores) == {}
        await stores.heartbeats.beat(heartbeat(translator.output.publisher.version))
        await until(lambda: len(posted(stores)) == 60)


async def test_the_statuses_of_many_objects_do_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "MANY", 40)
    monkeypatch.setattr(output, "GATEWAYS_FIRST_S", 0.3)
    stores = MemoryStores()
    await stores.heartbeats.beat(heartbeat(None))
    await fill(stores, *(ingress(f"web-{number}", host=f"{number}.example") for number in range(60)))
    async with running(stores):
        await until(lambda: len(posted(stores)) == 60)
