"""Reading the log's state on a real server: what was read stays, whatever interrupts."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest

from fakes.stores.nats import lose_store, real_bus
from fakes.waiting import until
from headgate.common.bus.connection import Bus
from headgate.common.deltas import Delta, Operation
from headgate.common.errors import StoreUnavailable
from headgate.common.resources import ObjectRef
from headgate.common.stores.nats import NatsStores
from headgate.common.stores.nats.following import SILENCE_S, Interrupted, Message, OrderedConsumer, Patience

COUNT = 2000


def delta(name: str, version: str = "1") -> Delta:
    return Delta(
        ref=ObjectRef("c1", "", "services", "default", name),
        operation=Operation.APPLY,
        uid=f"uid-{name}",
        resource_version=version,
        observed_at=datetime.now(UTC),
        object={"metadata": {"name": name}},
    )


class Interruptions:
    """Interrupts each consumer after one batch, and counts what all of them handed out."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.messages = 0
        self.is_on = True
        inner = OrderedConsumer.read

        async def read(consumer: OrderedConsumer, after: int | None) -> AsyncIterator[list[Message]]:
            is_first = True
            async for batch in inner(consumer, after):
                if self.is_on and not is_first:
                    raise Interrupted("a test wants it")
                is_first = False
                self.messages += len(batch)
                yield batch

        monkeypatch.setattr(OrderedConsumer, "read", read)


async def read_at_last(stores: NatsStores) -> tuple[int, int]:
    """Return how many readings it took, and how many objects there are."""
    for attempt in range(1, 100):
        try:
            return attempt, len(await stores.log_writer.read_state("c1"))
        except StoreUnavailable:
            continue
    raise AssertionError("never read to the end")


async def test_a_reading_that_is_always_interrupted_comes_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    async with real_bus() as (_, bus):
        stores = await NatsStores.open(bus)
        await stores.log_writer.append_all([delta(f"n{number}") for number in range(COUNT)])
        seen = Interruptions(monkeypatch)
        attempts, found = await read_at_last(stores)
        assert (found, seen.messages) == (COUNT, COUNT)
        assert attempts > 2


async def test_it_goes_on_over_another_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    async with real_bus() as (server, bus):
        stores = await NatsStores.open(bus)
        await stores.log_writer.append_all([delta(f"n{number}") for number in range(COUNT)])
        seen = Interruptions(monkeypatch)
        with pytest.raises(StoreUnavailable):
            await stores.log_writer.read_state("c1")
        begun = seen.messages
        seen.is_on = False
        await server.kill()
        await server.start()
        await _reconnected(bus)
        assert (await read_at_last(stores))[1] == COUNT
        assert 0 < begun < seen.messages == COUNT


async def _reconnected(bus: Bus) -> None:
    await until(lambda: bus.is_connected)


async def test_a_second_reading_asks_for_what_came_since_only(monkeypatch: pytest.MonkeyPatch) -> None:
    async with real_bus() as (_, bus):
        stores = await NatsStores.open(bus)
        log = stores.log_writer
        await log.append_all([delta(f"n{number}") for number in range(50)])
        await log.read_state("c1")
        seen = Interruptions(monkeypatch)
        seen.is_on = False
        assert len(await log.read_state("c1")) == 50
        last = await log.append(delta("n7", "2"))
        state = await log.read_state("c1")
        assert (seen.messages, len(state), state[delta("n7").ref].sequence) == (1, 50, last)


async def test_a_log_that_was_lost_is_read_from_its_beginning() -> None:
    async with real_bus() as (server, bus):
        stores = await NatsStores.open(bus)
        await stores.log_writer.append_all([delta(f"old{number}") for number in range(50)])
        await stores.log_writer.read_state("c1")
        await lose_store(server)
        await _reconnected(bus)
        assert await stores.log_writer.read_state("c1") == {}
        await stores.log_writer.append_all([delta(f"new{number}") for number in range(60)])
        assert {ref.name[:3] for ref in await stores.log_writer.read_state("c1")} == {"new"}


async def test_what_somebody_removed_is_missed_once_it_is_forgotten_here() -> None:
    async with real_bus() as (_, bus):
        stores = await NatsStores.open(bus)
        log = stores.log_writer
        await log.append_all([delta("one"), delta("two")])
        await log.read_state("c1")
        await bus.request("$JS.API.STREAM.PURGE.HEADGATE_DELTAS", b'{"filter": "headgate.delta.c1.*.*.*.one"}')
        log.forget_state("c1")
        assert {ref.name for ref in await log.read_state("c1")} == {"two"}


def test_silence_is_borne_for_longer_each_time_until_something_comes() -> None:
    patience, borne = Patience(), []
    for _ in range(5):
        borne.append(patience.silence_s / SILENCE_S)
        patience.run_out()
    patience.renew()
    assert (borne, patience.silence_s) == ([1, 2, 4, 8, 8], SILENCE_S)


async def test_requests_get_longer_when_several_were_not_answered_in_time() -> None:
    async with real_bus() as (_, bus):
        stores = await NatsStores.open(bus)
        given: list[float] = []
        ask = bus.request

        async def slow(subject: str, payload: bytes = b"", **options: object) -> object:
            given.append(float(options["timeout_s"]))  # type: ignore[arg-type]
            if len(given) <= 4:
                raise TimeoutError
            return await ask(subject, payload, **options)  # type: ignore[arg-type]

        bus.request = slow  # type: ignore[method-assign,assignment]
        for _ in range(6):
            try:
                await stores.log_reader.position()
            except StoreUnavailable:
                continue
        first = given[0]
        assert [one / first for one in given[:5]] == [1, 1, 2, 4, 8]
        assert given[6] == first
