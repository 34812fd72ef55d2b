"""What is written down of last good versions, in memory and on a real NATS server."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from fakes.stores.nats import real_bus
from fakes.translator.deltas import applied, deleted, ref_of, service
from headgate.common.deltas import Delta, GoodVersion, LastGood, LogMessage, delta_subject, last_good_subject
from headgate.common.stores import DeltaLogReader, LogReplay
from headgate.common.stores.memory.stores import MemoryStores
from headgate.common.stores.nats import NatsStores
from headgate.common.stores.nats.following import read_all
from headgate.common.stores.nats.log import delta_stream

REF = ref_of(service())


@asynccontextmanager
async def memory() -> AsyncIterator[Any]:
    yield MemoryStores()


@asynccontextmanager
async def nats() -> AsyncIterator[Any]:
    async with real_bus() as (_, bus):
        yield await NatsStores.open(bus)


@pytest.fixture(params=[memory, nats], ids=lambda param: str(param.__name__))
async def stores(request: pytest.FixtureRequest) -> AsyncIterator[Any]:
    async with request.param() as opened:
        yield opened


async def say(stores: Any, *ports: int) -> list[int]:
    return [await stores.log_writer.append(applied(service(port=port))) for port in ports]


async def replayed(reader: DeltaLogReader) -> list[LogMessage]:
    """What somebody hears who begins now."""
    last, found = 0, []
    async with asyncio.timeout(30):
        async for batch in reader.follow():
            if isinstance(batch, LogReplay):
                last = batch.position.last_sequence
                continue
            found += batch
            if found[-1].sequence >= last:
                return found
    raise AssertionError


async def test_a_message_of_a_history_that_cannot_be_read_is_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    async with nats() as stores:
        (sequence,) = await say(stores, 1)
        await stores.bus.js.publish(delta_subject(REF), b"{")
        assert [one.sequence for one in (await stores.last_good.histories([REF]))[REF]] == [sequence]
    assert "a message of the log cannot be read" in caplog.text


async def test_the_history_is_what_the_log_still_has_oldest_first(stores: Any) -> None:
    sequences = await say(stores, 1, 2, 3)
    await stores.log_writer.append(deleted(service()))
    other = ref_of(service("other"))
    found = await stores.last_good.histories([REF, other])
    assert [delta.sequence for delta in found[REF]][:3] == sequences
    assert [delta.object is None for delta in found[REF]] == [False, False, False, True]
    assert list(found[other]) == []


async def test_many_histories_are_read_at_once(stores: Any) -> None:
    refs = [ref_of(service(f"s{number}")) for number in range(250)]
    for ref in refs:
        await stores.log_writer.append(applied(service(ref.name)))
    found = await stores.last_good.histories(refs)
    assert {ref: [delta.ref for delta in deltas] for ref, deltas in found.items()} == {ref: [ref] for ref in refs}


def record(refused: int, good: int = 0, port: int = 1) -> LastGood:
    version = GoodVersion(uid="u", resource_version="é.1", object=service(port=port), sequence=good)
    return LastGood(ref=REF, refused=refused, good=version if good else None)


async def records(stores: Any) -> list[LastGood]:
    return [message for message in await replayed(stores.log_reader) if isinstance(message, LastGood)]


async def test_whoever_follows_the_log_hears_of_a_record_after_the_version_that_it_is_about(stores: Any) -> None:
    good, bad = await say(stores, 1, 0)
    await stores.last_good.write(record(bad, good))
    delta, said = await replayed(stores.log_reader)
    assert isinstance(delta, Delta)
    assert isinstance(said, LastGood)
    assert said.sequence > delta.sequence == bad
    assert said.model_copy(update={"sequence": 0}) == record(bad, good)


async def test_a_record_says_also_that_nothing_was_good(stores: Any) -> None:
    (bad,) = await say(stores, 0)
    await stores.last_good.write(record(bad))
    assert [(said.refused, said.good) for said in await records(stores)] == [(bad, None)]


async def test_a_record_takes_the_place_of_the_one_before(stores: Any) -> None:
    for refused in range(1, 4):
        await stores.last_good.write(record(refused, 1))
    assert [said.refused for said in await records(stores)] == [3]


async def test_a_record_that_there_is_nothing_to_say_can_be_followed_by_another_one(stores: Any) -> None:
    for said in (record(3, 1), record(0), record(3, 1), record(0), record(7, 5, port=5)):
        await stores.last_good.write(said)
    (last,) = await records(stores)
    assert last.model_copy(update={"sequence": 0}) == record(7, 5, port=5)


async def test_nothing_is_left_in_nats_of_what_there_is_nothing_to_say_about() -> None:
    async with nats() as stores:
        await stores.last_good.write(record(3, 1))
        await stores.last_good.write(record(0))
        assert [
            message.data for message in await read_all(delta_stream(stores.bus), [last_good_subject(REF, "default")])
        ] == [b'{"refused":0,"good":null}']
