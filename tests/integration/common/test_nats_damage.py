"""What the stores on NATS survive of lost buckets, damaged contents, and streams that are not as ours."""

import asyncio
import logging
from contextlib import aclosing

import pytest

from fakes.stores.faulty_nats import BOUND_S, NOW, delta, insist, recorded
from fakes.stores.nats import lose_store, real_bus
from headgate.common.bus.connection import Bus
from headgate.common.errors import StoreError, TooLarge
from headgate.common.heartbeats import TTL_S, Heartbeat
from headgate.common.resources import ObjectRef
from headgate.common.snapshot import Chunk, Manifest, Pointer, Version, digest_of
from headgate.common.status import STATUS_STREAM, StatusUpdate, status_subject
from headgate.common.stores import LogBatch
from headgate.common.stores.nats import FOR_GATEWAYS, NatsStores, Upkeep, boards
from headgate.common.stores.nats.encoding import encode_delta


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
        config = (await bus.js.stream_info("HEADGATE_DELTAS")).config
        await bus.js.delete_stream("HEADGATE_DELTAS")
        await bus.js.add_stream(config.evolve(allow_atomic=False))
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
    monkeypatch.setattr("headgate.common.stores.nats.USUAL_WAIT_S", 0.2)
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


async def stored_chunks(bus: Bus) -> set[str]:
    """Return the digests of the chunks that the server has."""
    info = await bus.js.stream_info("KV_HEADGATE_TABLES", subjects_filter="$KV.HEADGATE_TABLES.chunk.*")
    return {subject.rsplit(".", 1)[1] for subject in info.state.subjects or ()}


async def test_a_chunk_that_was_said_to_be_there_is_not_dropped_by_a_collection_under_way() -> None:
    async with real_bus() as (_, bus):
        snapshots = (await NatsStores.open(bus, chunk_grace_s=0)).snapshots
        chunks = {made.digest: made for made in (chunk(f"{number}.example") for number in range(200))}
        await snapshots.put_chunks(list(chunks.values()))
        collecting = asyncio.create_task(snapshots.collect_garbage("default", []))
        while len(await stored_chunks(bus)) == len(chunks):  # noqa: ASYNC110 - a store tells nobody
            await asyncio.sleep(0.001)
        missing = await snapshots.missing(chunks.keys())
        assert 0 < len(missing) < len(chunks)
        assert await collecting == len(missing)
        assert await stored_chunks(bus) == chunks.keys() - missing


async def test_heartbeats_are_announced_again_after_the_bucket_was_lost() -> None:
    async with real_bus() as (server, bus):
        stores = await NatsStores.open(bus)
        beat = Heartbeat(replica="gw", worker=0, table="default", version=None, at=NOW)
        await lose_store(server)
        await insist(lambda: stores.heartbeats.beat(beat))
        assert await stores.heartbeats.live() == [beat]


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
