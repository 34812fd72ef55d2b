"""When statuses are told: what is wrong at once, what is served when gateways serve it, and each thing once."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from fakes.translator.apisix import resource
from fakes.translator.deltas import applied, endpoint_slice, ingress, ingress_class, service
from fakes.translator.loop import fill, idle, running, version_of
from fakes.virtual_time import in_virtual_time
from fakes.waiting import until
from headgate.common.errors import StoreError, TooLarge
from headgate.common.heartbeats import Heartbeat
from headgate.common.snapshot import Version
from headgate.common.status import ConditionType, StatusCondition, StatusUpdate
from headgate.common.stores.memory.stores import MemoryStores
from headgate.translator.leading import feeds
from headgate.translator.status import poster as status_poster
from headgate.translator.status import statuses


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds, "LOOK_AROUND_S", 0.02)
    monkeypatch.setattr(feeds, "FIRST_LOOK_S", 0.005)
    monkeypatch.setattr(status_poster, "QUIET_S", 0.01)
    monkeypatch.setattr(status_poster, "BATCH", 16)


class Board:
    """Everything that is posted, in order."""

    def __init__(self, stores: MemoryStores, monkeypatch: pytest.MonkeyPatch) -> None:
        self.posted: list[StatusUpdate] = []
        post = stores.statuses.post

        async def note(*updates: StatusUpdate) -> Sequence[bytes | StoreError]:
            answers = await post(*updates)
            self.posted += (each for each, answer in zip(updates, answers, strict=True) if isinstance(answer, bytes))
            return answers

        monkeypatch.setattr(stores.statuses, "post", note)

    def of(self, name: str = "web") -> list[StatusUpdate]:
        return [update for update in self.posted if update.ref.name == name]

    def condition(self, which: ConditionType = ConditionType.PROGRAMMED) -> StatusCondition:
        return next(condition for condition in self.of()[-1].conditions if condition.type is which)


def web(path: str = "/", **extra: Any) -> Any:
    return ingress("web", host="a.example", path=path, **extra)


BEHIND = (service(), endpoint_slice("web", "10.0.0.1"))


async def serve(stores: MemoryStores, version: Version | None, replica: str = "g1", **changes: Any) -> None:
    await stores.heartbeats.beat(
        Heartbeat(replica=replica, worker=0, table="default", version=version, at=datetime.now(UTC), **changes)
    )


async def follow(stores: MemoryStores) -> None:
    """A gateway that serves every revision a moment after it came."""
    while True:
        await asyncio.sleep(0.01)
        await serve(stores, version_of(stores), addresses=("192.0.2.1",))


@in_virtual_time
async def test_an_object_that_is_all_right_is_told_of_once_when_gateways_serve_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stores = MemoryStores()
    board = Board(stores, monkeypatch)
    await fill(stores, *BEHIND, web())
    await serve(stores, Version(1, 1))
    async with running(stores, recovery_wait_s=0) as translator:
        await idle(stores, translator)
        await asyncio.sleep(0.1)
        assert board.of() == []
        await serve(stores, version_of(stores), addresses=("192.0.2.1",))
        await until(lambda: board.of())
        await asyncio.sleep(0.1)
    (update,) = board.of()
    assert board.condition().status == "True"
    assert update.revision == version_of(stores)
    assert update.addresses is not None
    assert [note.reason for note in update.events] == ["Accepted"]


async def test_the_addresses_that_a_gateway_proxy_says_are_told_in_place_of_the_gateways(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stores = MemoryStores()
    board = Board(stores, monkeypatch)
    proxy = resource("GatewayProxy", "proxy", {"statusAddress": ["192.0.2.7"]}, "v1alpha1")
    named = ingress_class("headgate")
    named["spec"]["parameters"] = {"apiGroup": "apisix.apache.org", "kind": "GatewayProxy", "name": "proxy"}
    await fill(stores, *BEHIND, web(class_name="headgate"), named, proxy)
    await serve(stores, None, addresses=("192.0.2.1",))
    async with running(stores, recovery_wait_s=0):
        await until(lambda: version_of(stores))
        await serve(stores, version_of(stores), addresses=("192.0.2.1",))
        await until(lambda: board.of())
        assert [one.ip for one in board.of()[-1].addresses or ()] == ["192.0.2.7"]
        proxy["spec"] = {"statusAddress": ["192.0.2.8"]}
        await fill(stores, proxy)
        await until(lambda: [one.ip for one in board.of()[-1].addresses or ()] == ["192.0.2.8"])


async def test_what_is_wrong_is_told_before_gateways_serve_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    stores = MemoryStores()
    board = Board(stores, monkeypatch)
    await fill(stores, web(service="gone"))
    await serve(stores, Version(1, 1))
    async with running(stores, recovery_wait_s=0):
        await until(lambda: board.of())
        assert (board.condition().status, board.condition().reason) == ("False", "Pending")
        assert board.condition(ConditionType.RESOLVED_REFS).reason == "ServiceNotFound"
        await serve(stores, version_of(stores))
        await until(lambda: len(board.of()) == 2)
    assert board.condition().status == "True"


async def test_a_replica_that_lags_is_told_of_after_some_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statuses, "PATIENCE_S", 0.2)
    stores = MemoryStores()
    board = Board(stores, monkeypatch)
    await fill(stores, *BEHIND, web())
    await serve(stores, Version(1, 1), "slow")
    async with running(stores, recovery_wait_s=0) as translator:
        await idle(stores, translator)
        await serve(stores, version_of(stores), "fast")
        await until(lambda: board.of())
        assert board.condition().message.endswith("is served by 1 of 2 replicas; not yet by slow")
        await serve(stores, version_of(stores), "slow")
        await until(lambda: board.condition().status == "True")
    assert len(board.of()) == 2


@pytest.mark.parametrize("replicas", [(), ("slow",)], ids=["no replica", "a replica that lags"])
@in_virtual_time
async def test_what_stays_as_it_was_told_is_not_looked_into_again(
    replicas: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(statuses, "PATIENCE_S", 0.05)
    looked: list[None] = []
    judge = statuses.judge
    monkeypatch.setattr(statuses, "judge", lambda *args: looked.append(None) or judge(*args))
    stores = MemoryStores()
    board = Board(stores, monkeypatch)
    await fill(stores, *BEHIND, web())
    for replica in replicas:
        await serve(stores, Version(1, 1), replica)
    async with running(stores, recovery_wait_s=0) as translator:
        await until(lambda: board.of())
        await idle(stores, translator)
        await asyncio.sleep(0.1)
        before = len(looked)
        await asyncio.sleep(0.2)  # ten looks around
        assert len(looked) == before
        await serve(stores, version_of(stores), "slow")
        await until(lambda: board.condition().status == "True")


@in_virtual_time
async def test_an_object_whose_status_waits_to_be_posted_is_not_looked_into_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked: list[None] = []
    judge = statuses.judge
    monkeypatch.setattr(statuses, "judge", lambda *args: looked.append(None) or judge(*args))
    stores = MemoryStores()
    board = Board(stores, monkeypatch)
    open_again = asyncio.Event()
    post = stores.statuses.post

    async def post_when_open(*updates: StatusUpdate) -> Sequence[bytes | StoreError]:
        await open_again.wait()
        return await post(*updates)

    more = [ingress(f"i{number}", host=f"h{number}.example") for number in range(2 * status_poster.BATCH)]
    await fill(stores, *BEHIND, web(), *more)
    async with running(stores, recovery_wait_s=0) as translator:
        await idle(stores, translator)
        monkeypatch.setattr(stores.statuses, "post", post_when_open)
        await serve(stores, version_of(stores))
        await until(lambda: translator.output.statuses.pending)
        before = len(looked)
        await asyncio.sleep(0.2)  # ten looks around
        assert len(looked) == before
        open_again.set()
        await until(lambda: board.condition().status == "True")


async def test_what_is_wrong_and_what_was_changed_last_goes_before_all_others(monkeypatch: pytest.MonkeyPatch) -> None:
    stores = MemoryStores()
    board = Board(stores, monkeypatch)
    slowly, post = asyncio.Event(), stores.statuses.post

    async def post_slowly(*updates: StatusUpdate) -> Sequence[bytes | StoreError]:
        await slowly.wait()
        await asyncio.sleep(0.001)
        return await post(*updates)

    monkeypatch.setattr(stores.statuses, "post", post_slowly)
    many = [ingress(f"i{number}", host=f"h{number}.example") for number in range(10 * status_poster.BATCH)]
    wrong = ingress("wrong", host="wrong.example", service="gone")
    await fill(stores, *BEHIND, *many, wrong)
    await serve(stores, Version(1, 1))
    following = asyncio.create_task(follow(stores))
    async with running(stores, recovery_wait_s=0) as translator:
        await until(lambda: translator.output.statuses.pending > len(many) // 2)
        await stores.log_writer.append(applied(ingress("late", host="late.example", service="gone")))
        revision = version_of(stores)
        await until(lambda: version_of(stores) != revision)
        await asyncio.sleep(0.05)
        slowly.set()
        await until(lambda: not translator.output.statuses.pending)
    following.cancel()
    names = [update.ref.name for update in board.posted]
    # The first turn was chosen before anything had come that is more urgent.
    assert max(names.index("wrong"), names.index("late")) < 3 * status_poster.BATCH
    assert len(names) > len(many)


async def test_a_change_elsewhere_is_no_news_of_an_object(monkeypatch: pytest.MonkeyPatch) -> None:
    stores = MemoryStores()
    board = Board(stores, monkeypatch)
    await fill(stores, *BEHIND, web())
    following = asyncio.create_task(follow(stores))
    async with running(stores, recovery_wait_s=0) as translator:
        await until(lambda: board.of() and board.condition().status == "True")
        count = len(board.of())
        for number in range(5):
            await stores.log_writer.append(applied(ingress(f"i{number}", host=f"h{number}.example")))
            await stores.log_writer.append(applied(endpoint_slice("web", f"10.0.1.{number}")))
            await idle(stores, translator)
        await until(lambda: board.of("i4"))
        assert len(board.of()) == count
    following.cancel()


@in_virtual_time
async def test_an_update_is_told_of_once_with_its_generation_and_revision(monkeypatch: pytest.MonkeyPatch) -> None:
    stores = MemoryStores()
    board = Board(stores, monkeypatch)
    await fill(stores, *BEHIND, web())
    following = asyncio.create_task(follow(stores))
    async with running(stores, recovery_wait_s=0):
        await until(lambda: board.of() and board.condition().status == "True")
        count, changed = len(board.of()), web("/new")
        changed["metadata"]["generation"] = 2
        await stores.log_writer.append(applied(changed))
        await until(lambda: board.of()[-1].generation == 2)
        await asyncio.sleep(0.1)
        assert len(board.of()) == count + 1
        assert board.of()[-1].revision == version_of(stores)
        assert board.condition().status == "True"
    following.cancel()


async def test_an_update_with_an_error_is_told_of_at_once_and_names_what_stays_in_force(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stores = MemoryStores()
    board = Board(stores, monkeypatch)
    await fill(stores, *BEHIND, web())
    following = asyncio.create_task(follow(stores))
    async with running(stores, recovery_wait_s=0):
        await until(lambda: board.of() and board.condition().status == "True")
        programmed = board.of()[-1].revision
        await stores.log_writer.append(applied(web("wrong")))
        await until(lambda: board.of()[-1].stand_in)
    following.cancel()
    update = board.of()[-1]
    accepted = board.condition(ConditionType.ACCEPTED)
    assert (accepted.status, accepted.reason) == ("False", "Invalid")
    assert (board.condition().status, update.revision) == ("True", programmed)
    assert [note.reason for note in update.events][-2:] == ["InvalidPath", "LastGoodServed"]
    assert update.last_error is not None
    assert update.last_error.reason == "InvalidPath"


@in_virtual_time
async def test_a_restart_tells_nothing_that_was_told(monkeypatch: pytest.MonkeyPatch) -> None:
    stores = MemoryStores()
    board = Board(stores, monkeypatch)
    await fill(stores, *BEHIND, web(), web("wrong"))
    following = asyncio.create_task(follow(stores))
    async with running(stores, recovery_wait_s=0):
        await until(lambda: board.of() and board.condition().status == "True")
    count = len(board.posted)
    async with running(stores, recovery_wait_s=0) as translator:
        await stores.log_writer.append(applied(ingress("other", host="b.example", service="gone")))
        await until(lambda: board.of("other"))
        await idle(stores, translator)
    following.cancel()
    assert len(board.posted) == count + len(board.of("other"))


async def test_a_change_made_while_nobody_translated_has_the_revision_that_brought_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stores = MemoryStores()
    board = Board(stores, monkeypatch)
    await fill(stores, *BEHIND, web())
    following = asyncio.create_task(follow(stores))
    async with running(stores, recovery_wait_s=0):
        await until(lambda: board.of() and board.condition().status == "True")
    before = board.of()[-1].revision
    await stores.log_writer.append(applied(web(annotations={"headgate.dev/match-methods": "GET"})))
    async with running(stores, recovery_wait_s=0):
        await until(lambda: board.of()[-1].revision != before)
    following.cancel()
    assert board.of()[-1].revision == version_of(stores)


async def test_a_replica_that_comes_back_with_an_old_table_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statuses, "PATIENCE_S", 0.1)
    stores = MemoryStores()
    board = Board(stores, monkeypatch)
    await fill(stores, *BEHIND, web())
    async with running(stores, recovery_wait_s=0) as translator:
        await idle(stores, translator)
        await serve(stores, version_of(stores))
        await until(lambda: board.of() and board.condition().status == "True")
        await serve(stores, Version(1, 1), "old")
        await until(lambda: board.condition().status == "False")
        assert "old" in board.condition().message
        await serve(stores, version_of(stores), "old")
        await until(lambda: board.condition().status == "True")


async def test_a_status_that_the_bus_does_not_take_holds_no_other_back(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    stores = MemoryStores()
    post = stores.statuses.post

    async def refuse_one(*updates: StatusUpdate) -> Sequence[bytes | StoreError]:
        await post(*(update for update in updates if update.ref.name != "web"))
        return [TooLarge("too large") if update.ref.name == "web" else update.encode() for update in updates]

    monkeypatch.setattr(stores.statuses, "post", refuse_one)
    board = Board(stores, monkeypatch)
    await fill(stores, web(), ingress("other", host="b.example"))
    async with running(stores, recovery_wait_s=0) as translator:
        await until(lambda: board.of("other"))
        await idle(stores, translator)
    assert "too large for the bus" in caplog.text


async def test_services_are_told_of_as_ingresses_are(monkeypatch: pytest.MonkeyPatch) -> None:
    stores = MemoryStores()
    board = Board(stores, monkeypatch)
    annotated = service()
    annotated["metadata"]["annotations"] = {"headgate.dev/load-balance": "random"}
    await fill(stores, annotated)
    async with running(stores, recovery_wait_s=0):
        await until(lambda: board.of())
        update = board.of()[-1]
        assert (update.kind, update.is_accepted) == ("Service", True)
        broken = {**annotated, "spec": {"ports": [{"port": 0}]}}
        await stores.log_writer.append(applied(broken))
        await until(lambda: board.of()[-1].stand_in)
    assert board.condition(ConditionType.ACCEPTED).reason == "Invalid"
    assert board.of()[-1].is_accepted


async def test_a_change_does_not_wait_until_all_objects_are_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statuses, "SLICE_S", 0.0)
    stores = MemoryStores()
    many = [ingress(f"i{number}", host=f"h{number}.example") for number in range(500)]
    await fill(stores, *BEHIND, *many)
    async with running(stores) as translator:
        output = translator.output
        first = await until(lambda: output.statuses.unjudged and version_of(stores))
        await stores.log_writer.append(applied(ingress("new", host="new.example")))
        await until(lambda: version_of(stores) != first)
        assert output.statuses.unjudged > 0
        await until(lambda: not output.statuses.pending)
        assert {update.ref.name for update in await stores.statuses.read("a")} > {f"i{n}" for n in range(500)}
