"""What the stores on NATS survive: crashes, logs that were lost or restored, lost messages, a server that is late."""

import asyncio
import logging
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Any, TypeVar

import pytest
from nats.errors import FlushTimeoutError
from nats.protocol.parser import Parser
from prometheus_client import REGISTRY

from fakes.stores.faulty_nats import BOUND_S, delta, insist, recorded
from fakes.stores.nats import lose_store, real_bus, real_nats
from headgate.cli.up.embedded_nats import EmbeddedNats
from headgate.common.bus.connection import Bus
from headgate.common.bus.direct import Receive
from headgate.common.errors import StoreUnavailable
from headgate.common.stores import LogBatch, LogReplay
from headgate.common.stores.nats import NatsStores
from headgate.common.stores.nats.following import SILENCE_S

Item = TypeVar("Item")


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


async def test_messages_lost_on_the_way_are_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    subscribe, losses = Bus.subscribe_directly, iter(range(40))

    async def leaky(self: Bus, subject: str, receive: Receive) -> object:
        def lose_some(*message: Any) -> None:
            if next(losses, 1) % 2:
                receive(*message)

        return await subscribe(self, subject, lose_some)

    monkeypatch.setattr(Bus, "subscribe_directly", leaky)
    async with recorded() as (_, stores, recorder):
        await stores.log_writer.append_all([delta(f"n{n}") for n in range(100)])
        await recorder.until(lambda: len(recorder.versions) == 100)
    assert next(losses, None) is None


def renewals() -> float:
    return REGISTRY.get_sample_value("headgate_follower_renewals_total", {"stream": "HEADGATE_DELTAS"}) or 0.0


async def test_messages_dropped_by_our_own_client_have_all_read_again(caplog: pytest.LogCaptureFixture) -> None:
    async def sleep(_message: object) -> None:
        await asyncio.sleep(60)

    async with recorded() as (_, stores, recorder):
        before = renewals()
        await stores.bus.subscribe("news", sleep, messages=2, size=1000)
        for _ in range(10):
            await stores.bus.publish("news", b"x")
        await recorder.until(lambda: renewals() > before)
        await stores.log_writer.append(delta("web"))
        await recorder.until(lambda: recorder.versions == {"web": "1"})
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
                bus._requests.end()  # noqa: SLF001 - a real connection breaks in some other turn
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
