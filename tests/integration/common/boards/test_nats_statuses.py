"""Many statuses at once on JetStream: one write to the disk for all of them, and each with its own answer."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from fakes.stores.faulty_nats import BOUND_S
from fakes.stores.nats import real_bus
from fakes.waiting import until
from headgate.common.bus.connection import Bus
from headgate.common.errors import Conflict, TooLarge
from headgate.common.resources import ObjectRef
from headgate.common.status import STATUS_STREAM, StatusUpdate, status_subject
from headgate.common.stores.nats import NatsStores, boards, publishing
from headgate.common.stores.nats.jetstream import EXPECTED_LAST, Outgoing, Upkeep
from headgate.translator.status.desired import DesiredStatus
from headgate.translator.status.poster import StatusPoster

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
KIND: dict[str, Any] = {"api_version": "networking.k8s.io/v1", "kind": "Ingress", "uid": "u"}


def status(name: str, content: str = "") -> StatusUpdate:
    ref = ObjectRef("c1", "networking.k8s.io", "ingresses", "default", name)
    return StatusUpdate(ref=ref, is_accepted=True, content=content, at=NOW, **KIND)


def many(count: int = 40) -> list[StatusUpdate]:
    return [status(f"i{number:02}") for number in range(count)]


@pytest.fixture
async def bus() -> AsyncIterator[Bus]:
    async with real_bus() as (_, opened):
        yield opened


async def batches(bus: Bus, updates: Iterable[StatusUpdate]) -> set[str | None]:
    """Return in which batches statuses were stored; None for those that came alone."""
    stream = boards.status_stream(bus, Upkeep())
    found = [await stream.last(status_subject(update.ref, update.table)) for update in updates]
    assert all(found)
    return {stored.headers.get("Nats-Batch-Id") for stored in found if stored}


async def test_many_statuses_are_one_batch_and_few_come_alone(bus: Bus) -> None:
    stores = await NatsStores.open(bus)
    updates = many()
    assert await stores.statuses.post(*updates) == [update.encode() for update in updates]
    [batch] = await batches(bus, updates)
    assert batch is not None
    await stores.statuses.post(*updates[:3])
    assert await batches(bus, updates[:3]) == {None}
    assert [*await stores.statuses.read("c1")] == updates


async def test_a_batch_has_a_bound_of_bytes(bus: Bus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publishing, "GROUP_BYTES", 20 * 1000)
    stores = await NatsStores.open(bus)
    updates = [status(f"i{number:02}", "x" * 400) for number in range(60)]
    await stores.statuses.post(*updates)
    assert len(await batches(bus, updates)) == 3


async def test_a_status_that_is_too_large_holds_no_other_back(bus: Bus) -> None:
    stores = await NatsStores.open(bus)
    updates = many()
    updates[5] = status("i05", "x" * (bus.nc.max_payload + 1))
    answers = await stores.statuses.post(*updates)
    assert [number for number, answer in enumerate(answers) if isinstance(answer, TooLarge)] == [5]
    assert [update.ref.name for update in await stores.statuses.read("c1")] == [f"i{n:02}" for n in range(40) if n != 5]


async def test_a_message_that_is_refused_for_its_sequence_holds_no_other_back(bus: Bus) -> None:
    stream = boards.status_stream(bus, Upkeep())
    await stream.ensure()
    messages = [Outgoing(status_subject(each.ref, each.table), each.encode(), {EXPECTED_LAST: "0"}) for each in many()]
    await stream.publish(messages[7])
    refusals = await publishing.publish_each(stream, messages)
    assert [number for number, refusal in enumerate(refusals) if isinstance(refusal, Conflict)] == [7]
    assert len([refusal for refusal in refusals if refusal is None]) == 39
    assert (await stream.state()).messages == 40


async def test_a_stream_that_takes_no_batches_has_statuses_one_by_one(bus: Bus) -> None:
    stores = await NatsStores.open(bus)
    stream = boards.status_stream(bus, Upkeep())
    config = msgspec.json.decode((await bus.request(f"$JS.API.STREAM.INFO.{STATUS_STREAM}")).data)["config"]
    body = msgspec.json.encode(config | {"allow_atomic": False})
    assert b'"error"' not in (await bus.request(f"$JS.API.STREAM.UPDATE.{STATUS_STREAM}", body)).data
    assert all(isinstance(answer, bytes) for answer in await stores.statuses.post(*many()))
    assert await batches(bus, many()) == {None}
    await stream.ensure()  # as at the next start of a translator, after an upgrade
    await stores.statuses.post(*many())
    assert len(await batches(bus, many()) - {None}) == 1


async def test_many_objects_that_are_gone_expire_on_the_server(bus: Bus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boards, "FORGET_AFTER_S", 1)
    stores = await NatsStores.open(bus)
    await stores.statuses.post(*many())
    await stores.statuses.forget(*many())
    async with asyncio.timeout(BOUND_S):
        while (await bus.js.stream_info(STATUS_STREAM)).state.messages:  # noqa: ASYNC110 - expiry has no event
            await asyncio.sleep(0.05)


def desire(ref: ObjectRef, wish: str, _: DesiredStatus | None) -> DesiredStatus:
    known: dict[str, Any] = {**KIND, "generation": 1, "is_accepted": False, "revision": None}
    empty: dict[str, Any] = {"addresses": None, "withdrawn": (), "conditions": (), "stand_in": None, "problems": ()}
    return DesiredStatus(ref=ref, content=wish, **known, **empty)


async def take(_: Iterable[ObjectRef]) -> None:
    return


async def test_a_server_that_crashes_while_statuses_are_posted_has_all_in_the_end() -> None:
    async with real_bus() as (server, bus), asyncio.timeout(BOUND_S):
        stores = await NatsStores.open(bus)
        poster = StatusPoster(stores.statuses, "default", desire, take)
        poster.watch("c1")
        task = asyncio.create_task(poster.run())
        for update in many(2000):
            poster.want(update.ref, "new")
        await until(lambda: poster.pending < 2000)
        await server.kill()
        assert poster.pending
        await server.start()
        await until(lambda: not poster.pending, within_s=BOUND_S)
        assert {update.content for update in await stores.statuses.read("c1")} == {"new"}
        assert len(await stores.statuses.read("c1")) == 2000
        task.cancel()
        await asyncio.wait({task})
