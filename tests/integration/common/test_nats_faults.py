"""What the stores on NATS survive: crashes, lost stores, dropped messages, a server that is late."""

import asyncio
import logging
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import pytest
from nats.aio.client import Client
from nats.errors import FlushTimeoutError
from nats.protocol.parser import Parser

from fakes.stores.nats import lose_store, real_bus, real_nats
from headgate.cli.up.embedded_nats import EmbeddedNats
from headgate.common.bus.connection import Bus
from headgate.common.deltas import Delta, LogMessage, Operation
from headgate.common.errors import StoreError, StoreUnavailable, TooLarge
from headgate.common.heartbeats import TTL_S, Heartbeat
from headgate.common.resources import ObjectRef
from headgate.common.snapshot import Chunk, Manifest, Pointer, Version, digest_of
from headgate.common.status import STATUS_STREAM, StatusUpdate, status_subject
from headgate.common.stores import LogBatch, LogReplay
from headgate.common.stores.nats import FOR_GATEWAYS, NatsStores, Upkeep, boards
from headgate.common.stores.nats.encoding import encode_delta
from headgate.common.stores.nats.following import SILENCE_S
from headgate.common.stores.nats.log import delta_stream

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
BOUND_S = 30.0
Item = TypeVar("Item")


def delta(name: str, version: str = "1", size: int = 0) -> Delta:
    return Delta(
        ref=ObjectRef("c1", "", "services", "default", name),
        operation=Operation.APPLY,
        uid=f"uid-{name}",
        resource_version=version,
        observed_at=NOW,
        object={"metadata": {"name": name}, "filler": "x" * size},
    )


async def insist(operation: Callable[[], Awaitable[object]]) -> None:
    """Repeat while the store is away, as services do."""
    async with asyncio.timeout(BOUND_S):
        while True:
            try:
                await operation()
            except StoreUnavailable:
                await asyncio.sleep(0.02)
            else:
                return


class LogRecorder:
    """Follows the log and keeps what a translator would know."""

    def __init__(self, stores: NatsStores) -> None:
        self._stores = stores
        self.replays: list[LogReplay] = []
        self.versions: dict[str, str] = {}
        self.sequences: list[int] = []
        self._changed = asyncio.Condition()

    async def run(self) -> None:
        async with aclosing(self._stores.log_reader.follow()) as log:  # type: ignore[type-var]
            async for item in log:
                async with self._changed:
                    self._take(item)
                    self._changed.notify_all()

    def _take(self, item: Sequence[LogMessage] | LogReplay) -> None:
        if isinstance(item, LogReplay):
            self.replays.append(item)
            self.versions.clear()
            self.sequences.clear()
            return
        for message in item:
            assert isinstance(message, Delta)
            self.versions[message.ref.name] = message.resource_version
            self.sequences.append(message.sequence)

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(BOUND_S), self._changed:
            await self._changed.wait_for(condition)


@asynccontextmanager
async def recorded() -> AsyncIterator[tuple[EmbeddedNats, NatsStores, LogRecorder]]:
    async with real_bus() as (server, bus):
        stores = await NatsStores.open(bus)
        recorder = LogRecorder(stores)
        task = asyncio.create_task(recorder.run())
        try:
            await recorder.until(lambda: bool(recorder.replays))
            yield server, stores, recorder
        finally:
            task.cancel()
            await asyncio.wait([task])


async def test_a_crash_of_the_server_loses_nothing_and_followers_go_on() -> None:
    async with recorded() as (server, stores, recorder):
        for number in range(20):
            await insist(lambda n=number: stores.log_writer.append(delta(f"n{n}")))  # type: ignore[misc]
            if number in {5, 12}:
                await server.kill()
                await server.start()
        await recorder.until(lambda: len(recorder.versions) == 20)
        assert len(recorder.replays) == 1
        assert recorder.sequences == sorted(recorder.sequences)


async def test_confirmed_deltas_are_there_after_a_crash_in_the_middle_of_a_bulk() -> None:
    async with real_bus() as (server, bus):
        stores = await NatsStores.open(bus)
        await stores.log_writer.append(delta("confirmed"))
        bulk = asyncio.create_task(stores.log_writer.append_all([delta(f"n{n}", size=500) for n in range(5000)]))
        await asyncio.sleep(0)
        await server.kill()
        with pytest.raises(StoreUnavailable):
            await bulk
        await server.start()
        await insist(lambda: stores.log_writer.append_all([delta(f"n{n}", size=500) for n in range(5000)]))
        assert len(await stores.log_writer.read_state("c1")) == 5001


async def test_a_lost_store_is_a_replay_of_the_new_log() -> None:
    async with recorded() as (server, stores, recorder):
        await stores.log_writer.append_all([delta(f"old{n}") for n in range(50)])
        await recorder.until(lambda: len(recorder.versions) == 50)
        await lose_store(server)
        await recorder.until(lambda: len(recorder.replays) == 2)
        assert recorder.replays[0].position.incarnation != recorder.replays[1].position.incarnation
        assert not recorder.replays[1].went_back
        await insist(lambda: stores.log_writer.append(delta("new")))
        await recorder.until(lambda: recorder.versions == {"new": "1"})


async def test_a_stream_that_is_deleted_while_connected_is_made_again() -> None:
    async with recorded() as (_, stores, recorder):
        await stores.log_writer.append(delta("old"))
        await recorder.until(lambda: "old" in recorder.versions)
        await stores.bus.js.delete_stream("HEADGATE_DELTAS")
        await insist(lambda: stores.log_writer.append(delta("new")))
        await recorder.until(lambda: recorder.versions == {"new": "1"})
        assert len(recorder.replays) == 2


async def test_a_log_that_was_restored_from_a_backup_is_replayed(tmp_path: Path) -> None:
    async with recorded() as (server, stores, recorder):
        store, backup = server.store_dir / "jetstream", tmp_path / "backup"
        await stores.log_writer.append(delta("web", "1"))
        await server.stop()
        shutil.copytree(store, backup)
        await server.start()
        await insist(lambda: stores.log_writer.append(delta("web", "2")))
        await recorder.until(lambda: recorder.versions == {"web": "2"})
        await server.stop()
        shutil.rmtree(store)
        shutil.copytree(backup, store)
        await server.start()
        # The same incarnation, and sequence 2 is taken again, by another message.
        await insist(lambda: stores.log_writer.append(delta("other")))
        await recorder.until(lambda: recorder.versions == {"web": "1", "other": "1"})
        assert len({replay.position.incarnation for replay in recorder.replays}) == 1
        assert [replay.went_back for replay in recorder.replays] == [False, True]


async def next_of(log: AsyncIterator[object], kind: type[Item]) -> Item:
    async with asyncio.timeout(BOUND_S):
        return await anext(item async for item in log if isinstance(item, kind))


async def test_a_reader_that_starts_on_a_restored_log_knows_it_by_what_was_read_before(tmp_path: Path) -> None:
    async with real_bus() as (server, bus):
        stores = await NatsStores.open(bus)
        reader, store, backup = stores.log_reader, server.store_dir / "jetstream", tmp_path / "backup"
        await stores.log_writer.append(delta("web", "1"))
        async with aclosing(reader.follow()) as log:  # type: ignore[type-var]
            kept = (await next_of(log, LogBatch)).last
        await server.stop()
        shutil.copytree(store, backup)
        await server.start()
        await insist(lambda: stores.log_writer.append(delta("web", "2")))
        async with aclosing(reader.follow(kept)) as log:  # type: ignore[type-var]
            assert not (await next_of(log, LogReplay)).went_back
            lost = (await next_of(log, LogBatch)).last
        await server.stop()
        shutil.rmtree(store)
        shutil.copytree(backup, store)
        await server.start()
        await insist(lambda: reader.went_back(lost))
        assert await reader.went_back(lost)
        for number in range(3):  # the sequence is taken again, by another message
            await insist(lambda n=number: stores.log_writer.append(delta(f"other{n}")))  # type: ignore[misc]
        for place, went_back in ((kept, False), (lost, True)):
            assert await reader.went_back(place) is went_back
            async with aclosing(reader.follow(place)) as log:  # type: ignore[type-var]
                assert (await next_of(log, LogReplay)).went_back is went_back


async def test_a_log_that_was_made_anew_and_then_replaced_by_its_backup_went_back(tmp_path: Path) -> None:
    async with recorded() as (server, stores, recorder):
        store, backup = server.store_dir / "jetstream", tmp_path / "backup"
        await stores.log_writer.append(delta("web"))
        await server.stop()
        shutil.copytree(store, backup)
        await lose_store(server)
        await insist(lambda: stores.log_writer.append(delta("new")))
        await recorder.until(lambda: recorder.versions == {"new": "1"})
        await server.stop()
        shutil.rmtree(store)
        shutil.copytree(backup, store)
        await server.start()
        await recorder.until(lambda: recorder.versions == {"web": "1"})
        assert [replay.went_back for replay in recorder.replays] == [False, False, True]


async def test_a_consumer_that_the_server_lost_is_replaced() -> None:
    async with recorded() as (_, stores, recorder):
        [consumer] = await stores.bus.js.consumers_info("HEADGATE_DELTAS")
        await stores.bus.js.delete_consumer("HEADGATE_DELTAS", consumer.name)
        await stores.log_writer.append(delta("web"))
        await recorder.until(lambda: recorder.versions == {"web": "1"})


async def test_messages_dropped_by_our_own_client_are_read_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    subscribe = Client.subscribe

    async def narrow(self: Client, subject: str, **options: Any) -> object:
        if "pending_msgs_limit" in options:
            options["pending_msgs_limit"] = 10
        return await subscribe(self, subject, **options)

    monkeypatch.setattr(Client, "subscribe", narrow)
    async with recorded() as (_, stores, recorder):
        await stores.log_writer.append_all([delta(f"n{n}") for n in range(100)])
        await recorder.until(lambda: len(recorder.versions) == 100)
    assert "messages were dropped on our side" in caplog.text


async def test_a_server_that_hangs_and_comes_back_loses_nothing() -> None:
    async with recorded() as (server, stores, recorder):
        server.process.send_signal(signal.SIGSTOP)
        appending = asyncio.create_task(stores.log_writer.append(delta("web")))
        await asyncio.sleep(SILENCE_S + 0.5)  # longer than a follower believes in its consumer
        server.process.send_signal(signal.SIGCONT)
        await appending
        await recorder.until(lambda: recorder.versions == {"web": "1"})


@pytest.mark.slow
async def test_a_client_whose_read_loop_died_recovers(monkeypatch: pytest.MonkeyPatch) -> None:
    async with recorded() as (_, stores, recorder):
        with monkeypatch.context() as patch:
            patch.setattr(Parser, "parse", broken_parse)
            with pytest.raises(FlushTimeoutError):
                await stores.bus.nc.flush(timeout=1)  # the answer ends the loop; nats-py goes on as connected
        assert stores.bus.is_connected
        await insist(lambda: stores.log_writer.append(delta("web")))
        await recorder.until(lambda: recorder.versions == {"web": "1"})


async def broken_parse(self: Parser, data: bytes = b"") -> None:
    raise ValueError("as for an acknowledgement of a future version")


async def test_a_follower_that_leaves_leaves_no_consumer_behind() -> None:
    async with real_bus() as (_, bus):
        stores = await NatsStores.open(bus)
        async with aclosing(stores.log_reader.follow()) as log:  # type: ignore[type-var]
            await anext(log)
        async with asyncio.timeout(BOUND_S):
            while await bus.js.consumers_info("HEADGATE_DELTAS"):  # noqa: ASYNC110 - the server's state has no event
                await asyncio.sleep(0.01)


async def test_a_message_that_is_no_delta_is_skipped(caplog: pytest.LogCaptureFixture) -> None:
    async with recorded() as (_, stores, recorder):
        for subject in ("headgate.delta.not.enough", "headgate.delta.c1.=-.services.ns.n", "headgate.synced.c1"):
            await stores.bus.js.publish(subject, b"\xff")
        await stores.log_writer.append(delta("web"))
        await recorder.until(lambda: recorder.versions == {"web": "1"})
    assert caplog.text.count("a message of the log cannot be read") == 3


async def test_what_of_the_own_cluster_cannot_be_read_is_told_and_counts_as_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with real_bus() as (_, bus):
        stores = await NatsStores.open(bus)
        await bus.js.publish("headgate.cluster.c1", b"{")
        assert await stores.log_reader.announcement("c1") is None
        await stores.log_writer.append(delta("web"))
        message = encode_delta(delta("other"))
        await bus.js.publish("headgate.delta.c1.=-.services.ns.=FF", message.payload, headers=dict(message.headers))
        assert [ref.name for ref in await stores.log_writer.read_state("c1")] == ["web"]
    assert caplog.text.count("a message of the log cannot be read") == 2


async def test_a_replay_ends_also_where_the_last_message_cannot_be_read() -> None:
    async with recorded() as (_, stores, recorder):
        await stores.log_writer.append(delta("web"))
        await recorder.until(lambda: recorder.versions == {"web": "1"})
        last = (await stores.bus.js.publish("headgate.cluster.c1", b"{")).seq
        async with asyncio.timeout(BOUND_S), aclosing(stores.log_reader.follow()) as log:  # type: ignore[type-var]
            async for item in log:
                if isinstance(item, LogBatch) and item.last.sequence == last:
                    break


async def test_an_object_that_is_too_large_is_refused_by_name_and_harms_no_other() -> None:
    async with real_bus() as (_, bus):
        stores = await NatsStores.open(bus)
        with pytest.raises(TooLarge, match=r"huge.*1,048,576"):
            await stores.log_writer.append(delta("huge", size=1_100_000))
        just_over = delta("over", size=1_048_576 - 50)
        sequences = await stores.log_writer.append_all([delta("a"), just_over, delta("b")])
        assert [bool(sequence) for sequence in sequences] == [True, False, True]
        assert {ref.name for ref in await stores.log_writer.read_state("c1")} == {"a", "b"}
        assert bus.nc.stats["reconnects"] == 0


async def test_a_server_without_batches_gets_messages_one_by_one() -> None:
    async with real_bus() as (_, bus):
        stores = await NatsStores.open(bus)
        await bus.js.delete_stream("HEADGATE_DELTAS")
        stream = delta_stream(bus)
        stream._config["allow_atomic"] = False
        await stream.ensure()
        sequences = await stores.log_writer.append_all([delta(f"n{n}") for n in range(500)])
        assert list(sequences) == list(range(1, 501))


async def test_an_existing_stream_is_brought_to_our_configuration_and_keeps_the_rest_of_its_own(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    async with real_bus() as (_, bus):
        await bus.js.add_stream(name="HEADGATE_DELTAS", subjects=["headgate.delta.>"], max_bytes=10**9)
        for _ in range(2):
            await NatsStores.open(bus)
        info = await bus.js.stream_info("HEADGATE_DELTAS")
        assert (info.config.max_msgs_per_subject, info.config.max_bytes) == (8, 10**9)
    assert caplog.messages.count("a stream was changed") == 1


async def test_a_stream_that_cannot_be_changed_serves_as_it_is(caplog: pytest.LogCaptureFixture) -> None:
    async with real_bus() as (_, bus):
        await NatsStores.open(bus)
        for _ in range(2):
            stores = await NatsStores.open(bus, upkeep=Upkeep(replicas=3))
        await stores.log_writer.append(delta("web"))
        await stores.ensure()
    [reason] = {getattr(one, "reason", "") for one in caplog.records if one.message.startswith("a stream keeps")}
    assert "replicas > 1 not supported in non-clustered mode" in reason


async def test_who_does_not_make_streams_waits_for_who_does(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "headgate")
    async with real_bus() as (_, bus):
        opening = asyncio.create_task(NatsStores.open(bus, upkeep=Upkeep(makes_streams=False), needs=FOR_GATEWAYS))
        async with asyncio.timeout(BOUND_S):
            while "waiting for JetStream" not in caplog.text:  # noqa: ASYNC110 - a log has no event
                await asyncio.sleep(0.01)
            await commit(await NatsStores.open(bus), Version(1, 1), None)
            stores = await opening
        assert await stores.snapshots.read_pointer("default") is not None
    assert ("INFO", "stream KV_HEADGATE_TABLES is missing: the translator makes it") in [
        (one.levelname, getattr(one, "reason", "")) for one in caplog.records
    ]


async def test_a_long_wait_for_streams_is_a_warning(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headgate.common.stores.nats._USUAL_WAIT_S", 0.2)
    caplog.set_level(logging.INFO, "headgate")
    async with real_bus() as (_, bus):
        opening = asyncio.create_task(NatsStores.open(bus, upkeep=Upkeep(makes_streams=False), needs=FOR_GATEWAYS))
        async with asyncio.timeout(BOUND_S):
            while "WARNING" not in caplog.text:  # noqa: ASYNC110 - a log has no event
                await asyncio.sleep(0.01)
        opening.cancel()
    told = [one.levelname for one in caplog.records if one.message == "waiting for JetStream"]
    assert (told[0], told[-1]) == ("INFO", "WARNING")


# --- snapshots


def chunk(text: str) -> Chunk:
    content = f'["{text}"]'.encode()
    return Chunk("hosts", "", digest_of(content), content)


async def commit(stores: NatsStores, version: Version, expected: Pointer | None) -> Pointer:
    used = chunk(str(version))
    await stores.snapshots.put_chunks([used])
    manifest = Manifest(
        table="default",
        version=version,
        created_at=NOW,
        chunks=({"kind": used.kind, "prefix": used.prefix, "digest": used.digest},),  # type: ignore[arg-type]
    )
    return await stores.snapshots.commit(manifest, expected)


async def test_pointer_followers_go_on_after_a_crash_and_see_the_next_commit() -> None:
    async with real_bus() as (server, bus):
        stores = await NatsStores.open(bus)
        first = await commit(stores, Version(1, 1), None)
        async with asyncio.timeout(BOUND_S), aclosing(stores.snapshots.follow("default")) as pointers:  # type: ignore[type-var]
            assert await anext(pointers) == first
            await server.kill()
            await server.start()
            await insist(lambda: commit(stores, Version(1, 2), first))
            assert (await anext(pointers)).version == Version(1, 2)


async def test_a_lost_bucket_is_made_again_by_the_next_commit_and_followers_hear_of_it() -> None:
    async with real_bus() as (_, bus):
        stores = await NatsStores.open(bus)
        first = await commit(stores, Version(1, 7), None)
        async with asyncio.timeout(BOUND_S), aclosing(stores.snapshots.follow("default")) as pointers:  # type: ignore[type-var]
            assert await anext(pointers) == first
            await bus.js.delete_stream("KV_HEADGATE_TABLES")
            assert await stores.snapshots.read_pointer("default") is None
            assert await stores.snapshots.missing([chunk("1.7").digest]) == {chunk("1.7").digest}
            second = await commit(stores, Version(2, 1), None)
            assert await anext(pointers) == second


async def test_a_lost_store_is_made_again_by_the_next_commit() -> None:
    async with real_bus() as (server, bus):
        stores = await NatsStores.open(bus)
        await commit(stores, Version(1, 7), None)
        await lose_store(server)
        await insist(lambda: commit(stores, Version(2, 1), None))
        pointer = await stores.snapshots.read_pointer("default")
        assert pointer is not None
        assert pointer.version == Version(2, 1)


async def test_a_damaged_pointer_is_found_again_by_its_manifest_and_mended_by_the_next_commit() -> None:
    async with real_bus() as (_, bus):
        stores = await NatsStores.open(bus)
        first = await commit(stores, Version(1, 9), None)
        second = await commit(stores, Version(1, 10), first)
        await bus.js.publish("$KV.HEADGATE_TABLES.pointer.default", b'{"type": "something else"}')
        assert await stores.snapshots.read_pointer("default") == second
        third = await commit(stores, Version(1, 11), second)
        async with aclosing(stores.snapshots.follow("default")) as pointers:  # type: ignore[type-var]
            assert await anext(pointers) == third


async def test_a_damaged_manifest_is_passed_over_and_keeps_chunks_from_being_dropped() -> None:
    async with real_bus() as (_, bus):
        stores = await NatsStores.open(bus)
        first = await commit(stores, Version(1, 9), None)
        for subject in ("pointer.default", "manifest.default.2.1"):
            await bus.js.publish(f"$KV.HEADGATE_TABLES.{subject}", b"{}")
        assert await stores.snapshots.read_pointer("default") == first
        with pytest.raises(
            StoreError, match=r"no chunk is dropped while \$KV\.HEADGATE_TABLES\.manifest\.default\.2\.1"
        ):
            await stores.snapshots.collect_garbage("default", [])


async def test_garbage_waits_for_a_grace_period() -> None:
    async with real_bus() as (_, bus):
        stores = await NatsStores.open(bus, chunk_grace_s=60)
        await stores.snapshots.put_chunks([chunk("for a commit under way")])
        assert await stores.snapshots.collect_garbage("default", []) == 0
        assert await stores.snapshots.collect_garbage("default", []) == 0


async def test_a_chunk_that_was_said_to_be_there_is_not_dropped_by_a_collection_under_way() -> None:
    async with real_bus() as (_, bus):
        snapshots = (await NatsStores.open(bus, chunk_grace_s=0)).snapshots
        chunks = {made.digest: made for made in (chunk(f"{number}.example") for number in range(200))}
        await snapshots.put_chunks(list(chunks.values()))
        collecting = asyncio.create_task(snapshots.collect_garbage("default", []))
        while len(await snapshots._chunks()) == len(chunks):  # noqa: ASYNC110 - a store tells nobody
            await asyncio.sleep(0.001)
        missing = await snapshots.missing(chunks.keys())
        assert 0 < len(missing) < len(chunks)
        assert await collecting == len(missing)
        assert await snapshots._chunks() == chunks.keys() - missing


async def test_heartbeats_are_announced_again_after_the_bucket_was_lost() -> None:
    async with real_bus() as (server, bus):
        stores = await NatsStores.open(bus)
        beat = Heartbeat(replica="gw", worker=0, table="default", version=None, at=NOW)
        await lose_store(server)
        await insist(lambda: stores.heartbeats.beat(beat))
        assert await stores.heartbeats.live() == [beat]


# --- the bus


async def test_stores_say_that_they_are_unavailable_while_the_server_is_down() -> None:
    async with real_bus() as (server, bus):
        stores = await NatsStores.open(bus)
        await server.kill()
        async with asyncio.timeout(BOUND_S):
            with pytest.raises(StoreUnavailable):
                await stores.snapshots.read_pointer("default")
            with pytest.raises(StoreUnavailable):
                await stores.log_writer.append(delta("web"))
            with pytest.raises(StoreUnavailable):
                await stores.heartbeats.live()
        assert bus.readiness() is not None


async def test_a_request_under_way_fails_at_once_when_the_connection_breaks() -> None:
    async with real_bus() as (server, bus):
        await bus.nc.subscribe("silent")
        started = asyncio.get_running_loop().time()
        request = asyncio.create_task(bus.request("silent", timeout_s=4 * BOUND_S))
        await bus.nc.flush()
        await server.kill()
        with pytest.raises(TimeoutError):
            await request
        assert asyncio.get_running_loop().time() - started < BOUND_S


async def test_a_request_that_runs_out_as_the_connection_breaks_does_not_hinder_reconnecting() -> None:
    async with real_bus() as (_, bus):
        await bus.nc.subscribe("silent")
        request = asyncio.create_task(bus.request("silent", timeout_s=0.02))
        while not request.done():
            await asyncio.sleep(0)
            if request.cancelling():  # the very turn of the loop in which the time is up
                bus._requests.end()
        with pytest.raises(TimeoutError):
            await request


async def test_reconnection_is_told_once_and_the_log_has_two_lines(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    async with real_bus() as (server, bus):
        reconnected = asyncio.Event()
        bus.on_reconnect(reconnected.set)
        await server.kill()
        await server.start()
        async with asyncio.timeout(BOUND_S):
            await reconnected.wait()
        assert bus.readiness() is None
    lines = [record.message for record in caplog.records if record.name == "headgate.common.bus.connection"]
    assert lines == ["no connection to NATS, trying on", "connected to NATS"]
    assert "Traceback" not in caplog.text


async def test_a_client_that_was_closed_is_made_anew_with_its_followers() -> None:
    async with recorded() as (_, stores, recorder):
        before = stores.bus.nc
        await before.close()
        await insist(lambda: stores.log_writer.append(delta("web")))
        await recorder.until(lambda: recorder.versions == {"web": "1"})
        assert stores.bus.nc is not before


async def test_the_bus_waits_for_a_server_that_comes_later(caplog: pytest.LogCaptureFixture) -> None:
    with tempfile.TemporaryDirectory() as folder:
        server = EmbeddedNats(Path(folder))
        await server.start()
        await server.stop()
        connecting = asyncio.create_task(Bus.connect(server.url, name="early"))
        while "no connection to NATS" not in caplog.text:  # noqa: ASYNC110 - a log has no event
            await asyncio.sleep(0.01)
        await server.start()
        async with asyncio.timeout(BOUND_S):
            bus = await connecting
        assert bus.is_connected
        await bus.close()
        await server.stop()


async def test_the_bus_can_be_had_without_waiting() -> None:
    bus = await Bus.connect("nats://127.0.0.1:1", name="early", wait_s=0)
    assert not bus.is_connected
    with pytest.raises(StoreUnavailable):
        await NatsStores(bus).snapshots.read_pointer("default")
    await bus.close()


async def test_a_callback_that_fails_harms_no_other(caplog: pytest.LogCaptureFixture) -> None:
    async with real_bus() as (_, bus):
        called = asyncio.Event()

        def fail() -> None:
            raise RuntimeError("boom")

        async def succeed() -> None:
            called.set()

        bus.on_reconnect(fail)
        bus.on_reconnect(succeed)
        await bus.nc.force_reconnect()
        async with asyncio.timeout(BOUND_S):
            await called.wait()
    assert "a callback of the bus failed" in caplog.text


# --- the embedded server


async def test_the_embedded_server_keeps_port_and_store_over_a_restart() -> None:
    async with real_nats() as (server, url):
        bus = await Bus.connect(url, name="first")
        stores = await NatsStores.open(bus)
        await stores.log_writer.append(delta("web"))
        await server.stop()
        assert not server.is_running
        await server.start()
        assert server.url == url
        await insist(lambda: stores.log_writer.read_state("c1"))
        assert len(await stores.log_writer.read_state("c1")) == 1
        await bus.close()


async def test_two_embedded_servers_take_different_ports() -> None:
    async with real_nats() as (_, one), real_nats() as (_, other):
        assert one != other


async def test_announcements_of_workers_expire_on_the_server() -> None:
    async with real_bus() as (_, bus):
        await NatsStores.open(bus)
        info = await bus.js.stream_info("KV_HEADGATE_GATEWAYS")
        assert info.config.max_age == TTL_S


async def test_the_last_word_on_an_object_that_is_gone_expires_on_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boards, "FORGET_AFTER_S", 1)
    ref = ObjectRef("c1", "networking.k8s.io", "ingresses", "default", "gone")
    update = StatusUpdate(
        ref=ref, api_version="networking.k8s.io/v1", kind="Ingress", uid="u", is_accepted=True, at=NOW
    )
    async with real_bus() as (_, bus), asyncio.timeout(BOUND_S):
        stores = await NatsStores.open(bus)
        await stores.statuses.post(update)
        await stores.statuses.forget(update)
        while (await bus.js.stream_info(STATUS_STREAM)).state.messages:  # noqa: ASYNC110 - expiry has no event
            await asyncio.sleep(0.05)


async def test_what_is_said_where_another_table_speaks_is_not_heard() -> None:
    ref = ObjectRef("c1", "networking.k8s.io", "ingresses", "default", "web")
    update = StatusUpdate(
        ref=ref, api_version="networking.k8s.io/v1", kind="Ingress", uid="u", is_accepted=True, at=NOW
    )
    async with real_bus() as (_, bus), asyncio.timeout(BOUND_S):
        stores = await NatsStores.open(bus)
        await bus.js.publish(status_subject(ref, "tenant"), update.model_dump_json().encode())
        await stores.statuses.post(update.model_copy(update={"uid": "true"}))
        async with aclosing(stores.statuses.follow("c1")) as statuses:  # type: ignore[type-var]
            assert (await anext(statuses)).uid == "true"


async def test_what_a_damaged_board_or_pointer_holds_is_skipped(caplog: pytest.LogCaptureFixture) -> None:
    async with real_bus() as (_, bus):
        stores = await NatsStores.open(bus)
        for subject in (
            "headgate.status.c1.a.b.c.d",
            "$KV.HEADGATE_GATEWAYS.gw.0",
            "$KV.HEADGATE_TABLES.pointer.default",
        ):
            await bus.js.publish(subject, b"{")
        assert await stores.heartbeats.live() == []
        async with asyncio.timeout(BOUND_S):
            async with aclosing(stores.statuses.follow("c1")) as statuses:  # type: ignore[type-var]
                waiting = asyncio.ensure_future(anext(statuses))
                while "a status cannot be read" not in caplog.text:  # noqa: ASYNC110 - a log has no event
                    await asyncio.sleep(0.01)
                waiting.cancel()
                await asyncio.wait([waiting])
            async with aclosing(stores.snapshots.follow("default")) as pointers:  # type: ignore[type-var]
                waiting = asyncio.ensure_future(anext(pointers))
                while "a pointer cannot be read" not in caplog.text:  # noqa: ASYNC110 - a log has no event
                    await asyncio.sleep(0.01)
                waiting.cancel()
                await asyncio.wait([waiting])


async def test_a_key_that_names_no_version_is_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    async with real_bus() as (_, bus):
        stores = await NatsStores.open(bus)
        await commit(stores, Version(1, 1), None)
        await bus.js.publish("$KV.HEADGATE_TABLES.manifest.default.x.1", b"{")
        assert await stores.snapshots.versions("default") == [Version(1, 1)]
    assert "a manifest's key cannot be read" in caplog.text


async def test_deltas_of_a_duplicate_bulk_are_not_stored_again() -> None:
    async with real_bus() as (_, bus):
        stores = await NatsStores.open(bus)
        deltas = [delta(f"n{n}") for n in range(300)]
        first = await stores.log_writer.append_all(deltas)
        again = await stores.log_writer.append_all([*deltas, delta("new")])
        assert [*first, 301] == list(again)
