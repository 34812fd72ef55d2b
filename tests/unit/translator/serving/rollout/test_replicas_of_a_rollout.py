"""Replicas of a rollout that come, leave, end, fall silent, or do not take the table."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from fakes.translator.rolling import (
    TO_NEW,
    begun,
    rolling,
    say,
    until_rollout,
)
from fakes.virtual_time import in_virtual_time
from fakes.waiting import until
from headgate.common.heartbeats import Heartbeat, Refusal
from headgate.common.snapshot import Rollout, RolloutPhase
from headgate.common.stores.memory.stores import MemoryStores
from headgate.translator.leading import feeds
from headgate.translator.serving.rollout import decision as rollouts
from headgate.translator.serving.rollout import observer as rollout_observer
from headgate.translator.serving.rollout.observer import Observation, Observer
from headgate.translator.status import poster as status_poster


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[set[str]]:
    """The replicas that reported the rollout, for each look of the observer."""
    looks: list[set[str]] = [set()]
    look = Observer.look

    def note(self: Observer, rollout: Rollout | None, beats: Sequence[Heartbeat], *rest: Any) -> Observation:
        looks.append(
            {beat.replica for beat in beats if rollout and beat.rollout and beat.rollout.step == rollout.begun}
        )
        return look(self, rollout, beats, *rest)

    monkeypatch.setattr(Observer, "look", note)
    return looks


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds, "LOOK_AROUND_S", 0.02)
    monkeypatch.setattr(status_poster, "QUIET_S", 0.01)


async def test_a_chosen_replica_that_leaves_is_no_fault_and_another_takes_its_place() -> None:
    stores = MemoryStores()
    async with rolling(stores) as (_, fleet):
        rollout = await begun(stores, fleet)
        [chosen] = rollout.replicas
        await fleet.remove(chosen)
        again = await until_rollout(stores, lambda found: chosen not in found.replicas)
        assert (len(again.replicas), again.ended, again.phase) == (1, (), RolloutPhase.STEPPING)
        assert again.begun > rollout.begun
        assert again.target == rollout.target


async def test_a_replica_that_comes_in_the_middle_serves_what_all_serve() -> None:
    stores = MemoryStores()
    async with rolling(stores) as (_, fleet):
        rollout = await begun(stores, fleet)
        fleet.add("g5")
        await until(lambda: fleet["g5"].manifest)
        assert fleet.next == list(rollout.replicas)


async def test_a_chosen_replica_that_ends_twice_takes_the_fleet_back(looks: list[set[str]]) -> None:
    stores = MemoryStores()
    async with rolling(stores) as (_, fleet):
        rollout = await begun(stores, fleet)
        [chosen] = rollout.replicas
        await until(lambda: chosen in looks[-1])
        fleet[chosen].started = datetime(2026, 1, 2, tzinfo=UTC)
        once = await until_rollout(stores, lambda found: found.ended)
        assert (once.ended, once.replicas, once.phase) == ((chosen,), (chosen,), RolloutPhase.STEPPING)
        fleet[chosen].started = datetime(2026, 1, 3, tzinfo=UTC)
        held = await until_rollout(stores, lambda found: found.phase is RolloutPhase.HELD)
        assert held.reason == f"{chosen} ended 2 times without a word after taking it"


async def test_a_chosen_replica_that_cannot_apply_the_table_takes_the_fleet_back_with_its_reason() -> None:
    stores = MemoryStores()
    async with rolling(stores) as (_, fleet):
        for gateway in fleet.gateways.values():
            gateway.refuses_next = True
        await say(stores, TO_NEW)
        rollout = await until_rollout(stores, lambda found: found.phase is RolloutPhase.STEPPING)
        [chosen] = rollout.replicas
        fleet[chosen].more["refusal"] = Refusal(version=rollout.begun, reason="chunk 12 cannot be compiled")
        held = await until_rollout(stores, lambda found: found.phase is RolloutPhase.HELD)
        assert held.reason == f"{chosen} cannot apply it: chunk 12 cannot be compiled"


async def test_a_chosen_replica_that_does_not_take_the_table_takes_the_fleet_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rollouts, "TAKING_S", 0.2)
    stores = MemoryStores()
    async with rolling(stores, window_s=1.0) as (_, fleet):
        for gateway in fleet.gateways.values():
            gateway.refuses_next = True
        await say(stores, TO_NEW)
        held = await until_rollout(stores, lambda found: found.phase is RolloutPhase.HELD)
        assert held.reason.endswith("did not take it within 1 s")


@in_virtual_time
async def test_a_chosen_replica_that_falls_silent_has_ended(
    monkeypatch: pytest.MonkeyPatch, looks: list[set[str]]
) -> None:
    monkeypatch.setattr(rollout_observer, "SILENT_S", 0.1)
    stores = MemoryStores()
    async with rolling(stores) as (_, fleet):
        rollout = await begun(stores, fleet)
        [chosen] = rollout.replicas
        await until(lambda: chosen in looks[-1])
        fleet[chosen].is_silent = True
        beat = fleet[chosen].beat()
        await asyncio.sleep(0.3)
        await stores.heartbeats.remove(beat)  # as its announcement expires
        found = await until_rollout(stores, lambda now: chosen not in now.replicas)
        assert found.ended == (chosen,)
