"""Two translators that follow one log make the same bytes, however they take it in and whoever of them leads."""

import asyncio
from collections import deque
from contextlib import AsyncExitStack
from typing import Any, NamedTuple
from unittest.mock import patch

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fakes.translator.deltas import applied, deleted
from fakes.translator.leadership import Seat
from fakes.translator.loop import digests_of, fill, idle, manifest_of, running
from fakes.translator.translating import Follower, ListedLog
from headgate.common.deltas import Delta, LastGood
from headgate.common.stores.memory.stores import MemoryStores
from headgate.translator.leading import feeds
from headgate.translator.loop import TranslatorLoop
from headgate.translator.status import poster as status_poster
from unit.translator.world.test_incremental import STEPS

MANY = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
FEW = settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])


class Pace(NamedTuple):
    """What one of them does after a message was logged."""

    takes: int
    """Messages that it takes in, of those that it has not taken yet."""
    settles: bool


class Reader:
    """A translation behind a queue."""

    def __init__(self, log: ListedLog) -> None:
        self.follower = Follower(log)
        self.queue: deque[Delta | LastGood] = deque()

    def go(self, pace: Pace) -> None:
        for _ in range(min(pace.takes, len(self.queue))):
            self.follower.take(self.queue.popleft())
        if pace.settles:
            self.follower.settle()

    def catch_up(self) -> None:
        self.go(Pace(len(self.queue), settles=True))


class Pair:
    """Two readers of one log; the one that leads writes records of last good versions."""

    def __init__(self, history: int) -> None:
        self.log = ListedLog(history)
        self.readers = Reader(self.log), Reader(self.log)

    def say(self, message: Delta | LastGood) -> None:
        for reader in self.readers:
            reader.queue.append(message)

    def write_records(self, leader: int) -> None:
        world = self.readers[leader].follower.translation.world
        for ref in list(world.tracker.unwritten):
            if (record := world.record(ref)) is not None:
                self.say(self.log.write(record))

    def catch_up(self, leader: int) -> None:
        for reader in self.readers:
            reader.catch_up()
        self.write_records(leader)
        for reader in self.readers:
            reader.catch_up()


PACES = st.builds(Pace, st.integers(0, 5), st.booleans())
TURNS = st.lists(st.tuples(STEPS, PACES, PACES, st.integers(0, 1)), max_size=40)


def tell(pair: Pair, history: list[Any]) -> None:
    leader = 0
    for (manifest, cluster, operation, _), *paces, leader in history:
        delta = applied(manifest, cluster) if operation == "apply" else deleted(manifest, cluster)
        pair.say(pair.log.append(delta))
        for reader, pace in zip(pair.readers, paces, strict=True):
            reader.go(pace)
        if paces[leader].settles:
            pair.write_records(leader)
    pair.catch_up(leader)


@MANY
@given(TURNS, st.sampled_from([2, 50]))
def test_two_that_follow_from_the_beginning_agree_at_every_pace(history: list[Any], kept: int) -> None:
    pair = Pair(kept)
    tell(pair, history)
    one, other = (reader.follower for reader in pair.readers)
    assert one.image == other.image
    assert one.conditions == other.conditions


@MANY
@given(TURNS)
def test_one_that_begins_when_all_is_said_agrees_with_both(history: list[Any]) -> None:
    pair = Pair(history=50)
    tell(pair, history)
    late = Follower(pair.log)
    late.replay()
    assert late.image == pair.readers[0].follower.image == pair.readers[1].follower.image


@FEW
@given(st.lists(st.tuples(STEPS, st.sampled_from(["one", "other", "stay", "pause"])), max_size=15))
def test_two_loops_agree_whoever_leads_and_takeovers_publish_nothing(history: list[Any]) -> None:
    asyncio.run(_lead_by_turns(history))


async def _lead_by_turns(history: list[Any]) -> None:
    stores, seats = MemoryStores(), (Seat(is_leader=True), Seat())
    with patch.object(feeds, "LOOK_AROUND_S", 0.02), patch.object(status_poster, "QUIET_S", 0.005):
        for cluster in ("a", "b"):
            await fill(stores, cluster=cluster)
        async with AsyncExitStack() as stack:
            loops = [await stack.enter_async_context(running(stores, leadership=seat)) for seat in seats]
            for (manifest, cluster, operation, _), turn in history:
                delta = applied(manifest, cluster) if operation == "apply" else deleted(manifest, cluster)
                await stores.log_writer.append(delta)
                if turn in ("one", "other"):
                    _give(seats, turn == "other")
                elif turn == "pause":
                    await asyncio.sleep(0.01)
            await idle(stores, *loops)
            before = await manifest_of(stores)
            assert _digests(loops[0]) == _digests(loops[1]) == [name.digest for name in before.chunks]
            _give(seats, seats[0].is_leader)
            await asyncio.sleep(0.03)
            await idle(stores, *loops)
            assert await manifest_of(stores) == before


def _give(seats: tuple[Seat, Seat], place: int) -> None:
    if not seats[place].is_leader:
        seats[not place].lose()
        seats[place].take()


def _digests(translator: TranslatorLoop) -> list[str]:
    """Digests of what it published last, or would publish."""
    return digests_of(translator)
