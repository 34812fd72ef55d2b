"""Tables that are rolled out: who serves what, what follows at once, what makes the fleet go back; in memory."""

from datetime import UTC, datetime
from typing import Any

import pytest

from fakes.translator.deltas import deleted, endpoint_slice, ingress, service
from fakes.translator.fleet import fleet_of
from fakes.translator.leadership import Seat
from fakes.translator.loop import has_published_all, idle, manifest_of, running, snapshots_of, table_of, version_of
from fakes.translator.rolling import (
    BASE,
    GATEWAYS,
    NEW,
    OLD,
    TO_NEW,
    backend_in,
    begun,
    endpoints_in,
    held_back,
    next_of,
    rolling,
    rollout_of,
    say,
    until_everywhere,
    until_rollout,
)
from fakes.waiting import until
from headgate.common.snapshot import RolloutMove, RolloutPhase
from headgate.common.status import ConditionType
from headgate.common.stores.memory.stores import MemoryStores
from headgate.common.table import Upstream
from headgate.operations.changing.pinning import TablePins
from headgate.operations.changing.rollout_control import RolloutControl
from headgate.operations.committing.manual import ChangeRequest
from headgate.operations.errors import NothingToDo
from headgate.translator.leading import feeds
from headgate.translator.leading import output as output_module
from headgate.translator.status import poster as status_poster

WISH = ChangeRequest("ann@laptop", datetime(2026, 1, 1, tzinfo=UTC), "looks wrong")


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds, "LOOK_AROUND_S", 0.02)
    monkeypatch.setattr(status_poster, "QUIET_S", 0.01)


async def test_a_changed_route_goes_to_some_replicas_first() -> None:
    stores = MemoryStores()
    async with rolling(stores) as (_, fleet):
        before = version_of(stores)
        rollout = await begun(stores, fleet)
        assert fleet.next == list(rollout.replicas)
        assert len(rollout.replicas) == 1
        assert (rollout.base, rollout.target, rollout.begun) == (before, version_of(stores), version_of(stores))
        assert rollout.changed["hosts"].names == ("a.example",)
        assert backend_in(await table_of(stores)) == OLD
        assert backend_in(await next_of(stores)) == NEW


async def test_a_change_that_does_no_harm_reaches_all_in_steps_and_history_names_each() -> None:
    stores = MemoryStores()
    async with rolling(stores, window_s=1.0) as (_, fleet):
        first = await begun(stores, fleet)
        second = await until_rollout(stores, lambda found: found.step == 1)
        assert set(first.replicas) < set(second.replicas)
        assert len(second.replicas) == 2
        done = await until_everywhere(stores)
        assert backend_in(await table_of(stores)) == NEW
        assert [cause.operation for cause in done.causes] == [RolloutMove.DONE]
        assert "errors 0.0% of" in done.causes[0].note
        assert done.changed["hosts"].names == ("a.example",)
        manifests = [
            await stores.snapshots.get_manifest("default", one) for one in await stores.snapshots.versions("default")
        ]
    operations = [cause.operation for manifest in manifests for cause in manifest.causes if cause.kind == "Table"]
    assert operations == [RolloutMove.BEGUN, RolloutMove.STEPPED, RolloutMove.DONE]
    assert [manifest.is_routine for manifest in manifests[1:]] == [False, True, False]


async def test_errors_on_the_chosen_replica_take_the_fleet_back_at_once(caplog: pytest.LogCaptureFixture) -> None:
    stores = MemoryStores()
    async with rolling(stores) as (_, fleet):
        for gateway in fleet.gateways.values():
            gateway.errors_of_next = 42
        rollout = await begun(stores, fleet)
        [chosen] = rollout.replicas
        held = await until_rollout(stores, lambda found: found.phase is RolloutPhase.HELD)
        await until(lambda: not fleet.next)
        assert (
            held.reason
            == f"errors 4.2% of 1,000 requests, against 0.0% of 3,000 (a.example; {chosen} against 3 others)"
        )
        assert backend_in(await table_of(stores)) == OLD
        [cause] = (await manifest_of(stores)).causes
        assert (cause.operation, cause.note) == (RolloutMove.WENT_BACK, held.reason)
    assert ("WARNING", held.reason) in [(record.levelname, getattr(record, "note", "")) for record in caplog.records]


async def test_slow_answers_take_the_fleet_back_too() -> None:
    stores = MemoryStores()
    async with rolling(stores) as (_, fleet):
        for gateway in fleet.gateways.values():
            gateway.slow_of_next = 300
        await begun(stores, fleet)
        held = await until_rollout(stores, lambda found: found.phase is RolloutPhase.HELD)
    assert held.reason.startswith("95th percentile of the time to answer more than a minute of 1,000 requests")


async def test_too_few_requests_let_a_step_pass_and_say_so() -> None:
    stores = MemoryStores()
    async with rolling(stores, window_s=1.0) as (_, fleet):
        for gateway in fleet.gateways.values():
            gateway.requests, gateway.errors_of_next = 10, 10
        await begun(stores, fleet)
        done = await until_everywhere(stores)
    assert "too few requests to judge by" in done.causes[0].note


async def test_endpoints_never_wait() -> None:
    stores = MemoryStores()
    async with rolling(stores) as (translator, fleet):
        await begun(stores, fleet)
        await say(stores, endpoint_slice("new", "10.0.0.7"), endpoint_slice("old", "10.0.0.8"))
        await until(lambda: has_published_all(stores, translator))
        assert endpoints_in(await table_of(stores), OLD) == ["10.0.0.8"]
        assert endpoints_in(await next_of(stores), NEW) == ["10.0.0.7"]
        manifest = await manifest_of(stores)
        assert manifest.rollout is not None
        assert manifest.rollout.target < manifest.version
        assert manifest.is_routine


async def test_a_revision_of_endpoints_alone_is_not_staged() -> None:
    stores = MemoryStores()
    async with rolling(stores) as (translator, _):
        await say(stores, endpoint_slice("old", "10.0.0.8"))
        await idle(stores, translator)
        assert await rollout_of(stores) is None
        assert endpoints_in(await table_of(stores), OLD) == ["10.0.0.8"]


async def test_what_changes_meanwhile_waits_and_is_rolled_out_together() -> None:
    stores = MemoryStores()
    async with rolling(stores, window_s=1.0) as (_, fleet):
        first = await begun(stores, fleet)
        await say(stores, ingress("more", host="b.example", service="new"))
        await say(stores, ingress("most", host="c.example", service="new"))
        second = await until_rollout(stores, lambda found: found.target != first.target)
        assert "b.example" not in await table_of(stores)
        assert {"b.example", "c.example"} <= set(await next_of(stores))
        assert second.base == first.target
        manifest = await manifest_of(stores)
        assert [cause.operation for cause in manifest.causes if cause.kind == "Table"][:2] == [
            RolloutMove.DONE,
            RolloutMove.BEGUN,
        ]
        await until_everywhere(stores)
        assert "c.example" in await table_of(stores)


async def test_a_change_that_is_undone_ends_its_rollout() -> None:
    stores = MemoryStores()
    async with rolling(stores) as (_, fleet):
        await begun(stores, fleet)
        await say(stores, BASE[-1])
        manifest = await until_everywhere(stores)
        assert manifest.causes[-1].operation == RolloutMove.WITHDRAWN
        assert backend_in(await table_of(stores)) == OLD


async def test_a_table_that_did_harm_is_held_until_it_is_another() -> None:
    stores = MemoryStores()
    async with rolling(stores) as (translator, fleet):
        held = await held_back(stores, fleet)
        await say(stores, endpoint_slice("new", "10.0.0.9"))
        await idle(stores, translator)
        assert await rollout_of(stores) == held.model_copy(
            update={
                "next": (await manifest_of(stores)).rollout.next,  # type: ignore[union-attr]
                "live": (await manifest_of(stores)).live,
                "waiting": (await manifest_of(stores)).rollout.waiting,  # type: ignore[union-attr]
            }
        )
        for gateway in fleet.gateways.values():
            gateway.errors_of_next = 0
        await say(stores, ingress("web", host="a.example", path="/new", service="new"))
        again = await until_rollout(stores, lambda found: found.phase is RolloutPhase.STEPPING)
        assert again.base == held.base
        assert again.reason == ""


async def test_a_person_promotes_what_was_held() -> None:
    stores = MemoryStores()
    async with rolling(stores) as (translator, fleet):
        await held_back(stores, fleet)
        control = RolloutControl(stores.snapshots, "default", None)
        manifest = await control.promote(WISH)
        assert (manifest.rollout, manifest.causes[0].by) == (None, "ann@laptop")
        assert backend_in(await table_of(stores)) == NEW
        await say(stores, endpoint_slice("new", "10.0.0.9"))
        await idle(stores, translator)
        assert await rollout_of(stores) is None
        with pytest.raises(NothingToDo):
            await control.promote(WISH)


async def test_a_person_takes_a_table_back() -> None:
    stores = MemoryStores()
    async with rolling(stores) as (translator, fleet):
        await begun(stores, fleet)
        control = RolloutControl(stores.snapshots, "default", None)
        manifest = await control.go_back(WISH)
        assert manifest.rollout is not None
        assert (manifest.rollout.phase, manifest.rollout.by, manifest.rollout.reason) == (
            RolloutPhase.HELD,
            "ann@laptop",
            "looks wrong",
        )
        await until(lambda: not fleet.next)
        await say(stores, endpoint_slice("old", "10.0.0.9"))
        await idle(stores, translator)
        assert endpoints_in(await table_of(stores), OLD) == ["10.0.0.9"]
        with pytest.raises(NothingToDo):
            await control.go_back(WISH)


async def test_a_pin_ends_a_rollout_and_unpinning_serves_the_live_table_at_once() -> None:
    stores = MemoryStores()
    async with rolling(stores) as (translator, fleet):
        rollout = await begun(stores, fleet)
        target = await stores.snapshots.get_manifest("default", rollout.base)
        pins = TablePins(stores.snapshots, "default", None)
        done = await pins.pin(target, WISH)
        assert done.manifest.rollout is None
        await until(lambda: translator.output.serving.pin)
        await until(lambda: not fleet.next)
        await pins.unpin(WISH)
        assert backend_in(await table_of(stores)) == NEW
        await idle(stores, translator)
        assert await rollout_of(stores) is None


async def test_another_translator_goes_on_with_a_rollout() -> None:
    stores = MemoryStores()
    one, other = Seat(is_leader=True), Seat()
    settings = {"rollout_shares": [25.0], "rollout_window_s": 3600.0}
    async with rolling(stores, leadership=one, **settings) as (_, fleet):
        rollout = await begun(stores, fleet)
        async with running(stores, leadership=other, **settings) as second:
            await until(lambda: second.readiness() is None)
            one.lose()
            other.take()
            await say(stores, endpoint_slice("new", "10.0.0.7"))
            await idle(stores, second)
            assert endpoints_in(await next_of(stores), NEW) == ["10.0.0.7"]
            now = await rollout_of(stores)
            assert now is not None
            assert (now.target, now.begun, now.replicas) == (rollout.target, rollout.begun, rollout.replicas)
            fleet[now.replicas[0]].errors_of_next = 500
            await until_rollout(stores, lambda found: found.phase is RolloutPhase.HELD)


async def test_a_translator_that_starts_stages_what_it_makes_otherwise() -> None:
    stores = MemoryStores()
    async with rolling(stores):
        pass
    await say(stores, TO_NEW)
    settings = {"rollout_shares": [25.0], "rollout_window_s": 3600.0}
    async with fleet_of(stores.snapshots, stores.heartbeats, *GATEWAYS), running(stores, **settings):
        await until_rollout(stores, lambda found: found.phase is RolloutPhase.STEPPING)
        assert backend_in(await table_of(stores)) == OLD


async def test_with_one_replica_a_table_changes_at_once() -> None:
    stores = MemoryStores()
    async with rolling(stores, "g1") as (translator, _):
        await say(stores, TO_NEW)
        await idle(stores, translator)
        assert await rollout_of(stores) is None
        assert backend_in(await table_of(stores)) == NEW


async def test_without_shares_a_table_changes_at_once() -> None:
    stores = MemoryStores()
    async with rolling(stores, rollout_shares=[]) as (translator, _):
        await say(stores, TO_NEW)
        await idle(stores, translator)
        assert await rollout_of(stores) is None
        assert backend_in(await table_of(stores)) == NEW


async def test_a_lost_store_gets_a_held_table_back() -> None:
    stores = MemoryStores()
    async with rolling(stores) as (translator, fleet):
        held = await held_back(stores, fleet)
        await idle(stores, translator)
        snapshots_of(stores).lose()
        await until(lambda: version_of(stores))
        found = await rollout_of(stores)
        assert found is not None
        assert (found.phase, found.reason) == (RolloutPhase.HELD, held.reason)
        assert backend_in(await table_of(stores)) == OLD


async def test_a_service_that_refuses_requests_does_so_in_the_next_table_and_in_no_other() -> None:
    stores = MemoryStores()
    bad = service("bad")
    bad["metadata"]["annotations"] = {
        "headgate.dev/backend-tls-verify": "true",
        "headgate.dev/backend-protocol": "http",
    }
    async with rolling(stores) as (translator, _):
        await say(stores, bad, endpoint_slice("bad", "10.0.0.3"), ingress("web", host="a.example", service="bad"))
        await until_rollout(stores, lambda found: found.phase is RolloutPhase.STEPPING)
        await say(stores, endpoint_slice("bad", "10.0.0.4"), endpoint_slice("old", "10.0.0.8"))
        await until(lambda: has_published_all(stores, translator))
        entry = (await next_of(stores))["a/default/bad:80"]
        assert isinstance(entry, Upstream)
        assert "refuses requests" in (entry.unavailable or "")
        assert endpoints_in(await table_of(stores), OLD) == ["10.0.0.8"]


async def test_rollouts_that_are_turned_off_end_with_the_live_table() -> None:
    stores = MemoryStores()
    async with rolling(stores) as (_, fleet):
        await held_back(stores, fleet)
    async with running(stores):
        manifest = await until_everywhere(stores)
    assert manifest.causes[-1].note == "rollouts are turned off"
    assert backend_in(await table_of(stores)) == NEW


async def test_the_revision_that_all_serve_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output_module, "GARBAGE_INTERVAL_S", 0.0)
    stores = MemoryStores()
    async with rolling(stores, keep_revisions=1) as (translator, fleet):
        rollout = await begun(stores, fleet)
        for number in range(5):
            await say(stores, ingress(f"i{number}", host=f"h{number}.example"))
            await until(lambda: not translator.inputs.causes.count)
        await until(lambda: len(stores.snapshots.manifests) < 4)
        assert rollout.base in await stores.snapshots.versions("default")
        assert backend_in(await next_of(stores)) == NEW


async def test_an_object_says_where_it_is_rolled_out_why_it_went_back_and_when_all_serve_it() -> None:
    stores = MemoryStores()

    def said() -> tuple[str, str]:
        board: Any = stores.statuses
        conditions = [one for _, each in board.updates.values() if each.ref.name == "web" for one in each.conditions]
        programmed = [one for one in conditions if one.type is ConditionType.PROGRAMMED]
        return (programmed[0].reason, programmed[0].message) if programmed else ("", "")

    async with rolling(stores) as (_, fleet):
        await until(lambda: said()[0] == "Programmed")
        rollout = await begun(stores, fleet)
        [chosen] = rollout.replicas
        await until(lambda: said()[0] == "RollingOut")
        assert said()[1] == f"revision {rollout.target} goes to 1 of 4 replicas first: {chosen}"
        fleet[chosen].errors_of_next = 500
        await until(lambda: said()[0] == "HeldBack")
        assert "errors 50.0% of 1,000 requests" in said()[1]
        await RolloutControl(stores.snapshots, "default", None).promote(WISH)
        await until(lambda: said()[0] == "Programmed")


async def test_a_table_that_becomes_empty_is_rolled_out_too_and_committed_once() -> None:
    stores = MemoryStores()
    async with rolling(stores) as (translator, _):
        await stores.log_writer.append(deleted(BASE[-1]))
        rollout = await until_rollout(stores, lambda found: found.phase is RolloutPhase.STEPPING)
        assert "a.example" in await table_of(stores)
        assert await next_of(stores) == {}
        for _ in range(3):
            seen = translator.output.surroundings
            await until(lambda seen=seen: translator.output.surroundings is not seen and translator.schedule.is_empty)
        assert version_of(stores) == rollout.target
