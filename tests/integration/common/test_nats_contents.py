"""Many chunks by one request to a real NATS server, and what happens where it does not answer such a request."""

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from fakes.stores.cancelling import Moment, NotReached, cancelled_at
from fakes.stores.nats import real_bus, real_nats
from fakes.stores.nats_servers import NatsServer
from headgate.common.bus.connection import Bus
from headgate.common.errors import DecodeError, NotFound, StoreUnavailable
from headgate.common.snapshot import Chunk, ChunkName, digest_of
from headgate.common.stores.nats import NatsStores
from headgate.common.stores.nats.jetstream import OURS, Stream
from headgate.common.stores.nats.keys import TABLES_BUCKET, chunk_key
from headgate.common.stores.nats.snapshots import NatsSnapshotStore, bucket_config
from headgate.common.stores.reading import read_chunks

MANY = "$JS.API.DIRECT.GET.KV_HEADGATE_TABLES"
COUNT = 40


def made(count: int = COUNT, size: int = 100) -> list[Chunk]:
    contents = [random.Random(seed).randbytes(size) for seed in range(count)]
    return [Chunk("hosts", "", digest_of(content), content) for content in contents]


def names_of(chunks: Sequence[Chunk]) -> list[ChunkName]:
    return [chunk.name for chunk in chunks]


@asynccontextmanager
async def filled(bus: Bus, chunks: Sequence[Chunk]) -> AsyncIterator[NatsSnapshotStore]:
    stores = await NatsStores.open(bus)
    await stores.snapshots.put_chunks(chunks)
    yield NatsSnapshotStore(Stream(bus, bucket_config(TABLES_BUCKET, "Tables"), OURS))


async def requests_of(bus: Bus, store: NatsSnapshotStore, chunks: Sequence[Chunk]) -> int:
    """Read chunks; return how many requests that took."""
    before = bus.nc.stats["out_msgs"]
    assert await read_chunks(store, names_of(chunks)) == chunks
    return int(bus.nc.stats["out_msgs"] - before)


@asynccontextmanager
async def configured(folder: Path, config: str) -> AsyncIterator[tuple[NatsServer, Bus]]:
    """A server with further configuration, and a user of it."""
    config += f'\njetstream: {{ store_dir: "{folder}" }}\n'
    async with NatsServer(folder, config) as server:
        bus = await Bus.connect(f"nats://test:test@127.0.0.1:{server.port}", name="test")
        try:
            yield server, bus
        finally:
            await bus.close()


async def test_many_chunks_are_one_request() -> None:
    chunks = made(32)
    async with real_bus() as (_, bus), filled(bus, chunks) as store:
        assert await requests_of(bus, store, chunks) == 1
        assert await requests_of(bus, store, chunks[:1]) == 1


async def test_more_subjects_than_one_request_may_have_are_several() -> None:
    chunks = made(1500, size=20)
    async with real_bus() as (_, bus), filled(bus, chunks) as store:
        before = bus.nc.stats["out_msgs"]
        assert len(await store.get_chunks(names_of(chunks))) == 1500
        assert bus.nc.stats["out_msgs"] - before == 2


async def test_more_than_the_answers_to_one_request_may_hold_are_several() -> None:
    chunks = made(12, size=800_000)
    async with real_bus() as (_, bus), filled(bus, chunks) as store:
        assert await requests_of(bus, store, chunks) == 2


async def test_a_missing_chunk_is_asked_for_alone_and_named() -> None:
    chunks = made()
    async with real_bus() as (_, bus), filled(bus, chunks[1:]) as store:
        before = bus.nc.stats["out_msgs"]
        with pytest.raises(NotFound, match=chunks[0].digest[:12]):
            await store.get_chunks(names_of(chunks))
        assert bus.nc.stats["out_msgs"] - before == 3  # the last one to the leader
        with pytest.raises(NotFound):
            await store.get_chunks(names_of(chunks[:1]) * 2)


async def test_a_damaged_chunk_among_many_is_named() -> None:
    chunks = made()
    async with real_bus() as (_, bus), filled(bus, chunks) as store:
        await bus.js.publish(chunk_key(chunks[7].digest), b"damaged")
        with pytest.raises(DecodeError):
            await read_chunks(store, names_of(chunks))
        assert await read_chunks(store, names_of(chunks[8:])) == chunks[8:]


async def test_without_the_stream_no_chunk_is_there() -> None:
    chunks = made()
    async with real_bus() as (_, bus), filled(bus, chunks) as store:
        await bus.js.delete_stream(f"KV_{TABLES_BUCKET}")
        with pytest.raises(NotFound):
            await store.get_chunks(names_of(chunks))


async def test_a_stream_without_direct_gets_gives_chunks_by_its_leader() -> None:
    chunks = made()
    async with real_bus() as (_, bus), filled(bus, chunks) as store:
        config = (await bus.js.stream_info(f"KV_{TABLES_BUCKET}")).config
        await bus.js.update_stream(config.evolve(allow_direct=False))
        assert await read_chunks(store, names_of(chunks)) == chunks
        await bus.js.update_stream(config)
        assert await requests_of(bus, store, chunks[:32]) == 1


async def test_rights_of_before_there_were_such_requests_are_enough(tmp_path: Path) -> None:
    chunks = made(20)
    rights = f'{{ publish: {{ deny: ["{MANY}"] }} }}'
    config = f"authorization: {{ users: [{{ user: test, password: test, permissions: {rights} }}] }}"
    async with configured(tmp_path, config) as (_, bus), filled(bus, chunks) as store:
        assert await requests_of(bus, store, chunks) == 1 + 20
        assert await requests_of(bus, store, chunks) == 20  # not asked for in vain again


async def test_a_server_that_does_not_know_such_requests_is_asked_for_each(tmp_path: Path) -> None:
    # It refuses them as servers before 2.11 do: a request for one subject has no body.
    chunks, mappings = made(20), f'mappings: {{ "{MANY}": "{MANY}.{chunk_key("0" * 64)}" }}'
    async with configured(tmp_path, mappings) as (server, bus), filled(bus, chunks) as store:
        assert await requests_of(bus, store, chunks) == 1 + 20
        assert await requests_of(bus, store, chunks) == 20
        connected = asyncio.Event()
        bus.on_reconnect(connected.set)
        await server.kill()
        await server.start()
        async with asyncio.timeout(30):
            await connected.wait()
        assert await requests_of(bus, store, chunks) == 1 + 20  # it may be a newer one


async def test_a_request_for_many_without_an_answer_costs_one_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headgate.common.stores.nats.contents.LOOK_S", 0.2)
    chunks, mappings = made(20), f'mappings: {{ "{MANY}": "silent" }}'
    async with configured(tmp_path, mappings) as (_, bus), filled(bus, chunks) as store:
        await bus.nc.subscribe("silent")
        assert await requests_of(bus, store, chunks) == 1 + 20
        assert await requests_of(bus, store, chunks) == 20


async def test_a_server_that_went_away_makes_the_store_unavailable() -> None:
    chunks = made()
    async with real_nats() as (server, url):
        bus = await Bus.connect(url, name="test")
        async with filled(bus, chunks) as store:
            await server.kill()
            with pytest.raises(StoreUnavailable):
                await store.get_chunks(names_of(chunks))
        await bus.close()


def own_tasks() -> set["asyncio.Task[object]"]:
    """Tasks other than those of the client's subscriptions, which it keeps."""
    return {task for task in asyncio.all_tasks() if "_wait_for_msgs" not in repr(task.get_coro())}


@pytest.mark.parametrize("moment", Moment)
async def test_a_caller_that_is_cancelled_at_any_await_leaves_nothing_behind(moment: Moment) -> None:
    chunks = made()
    async with real_bus() as (_, bus), filled(bus, chunks[1:]) as store:
        for number in range(1, 50):
            before = own_tasks()
            task = asyncio.create_task(cancelled_at(number, moment, store.get_chunks(names_of(chunks))))
            [outcome] = await asyncio.gather(task, return_exceptions=True)
            assert own_tasks() <= before
            assert await read_chunks(store, names_of(chunks[1:])) == chunks[1:]
            if isinstance(outcome, NotFound | NotReached):
                break
            assert isinstance(outcome, asyncio.CancelledError)
        assert number > 2
