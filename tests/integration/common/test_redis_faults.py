"""What the stores on Redis survive: restarts, lost data, a server that hangs, callers that leave."""

import asyncio
import itertools
import logging
import random
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Any

import pytest

from fakes.stores.cancelling import Moment, NotReached, cancelled_at
from fakes.stores.chunks import content_of
from fakes.stores.faulty_redis import BOUND_S, chunk, commit, manifest, name_of, running
from fakes.stores.redis import linked, real_redis
from fakes.waiting import until
from headgate.common.errors import (
    Conflict,
    HistoryBroken,
    StoreUnavailable,
)
from headgate.common.service.tasks import cancel
from headgate.common.snapshot import Pointer, Version
from headgate.common.stores import pointers
from headgate.common.stores.redis import link as link_module
from headgate.common.stores.redis import wire
from headgate.common.stores.redis.link import RedisLink
from headgate.common.stores.redis.snapshots import RedisSnapshotStore
from headgate.common.stores.redis.stores import tables_on
from headgate.common.stores.redis.target import RedisTarget, parse_redis_url

ON_DISK = ("appendonly yes", "appendfsync always")
"""With `everysec` a server that is killed loses what it could not write while the disk was busy."""


async def insist(operation: Callable[[], Awaitable[Pointer]]) -> Pointer:
    """Repeat while the store is away, as services do."""
    async with asyncio.timeout(BOUND_S):
        while True:
            try:
                return await operation()
            except StoreUnavailable:
                await asyncio.sleep(0.02)


# --- restarts and losses


async def test_followers_go_on_after_a_crash_and_see_the_next_commit() -> None:
    async with running(*ON_DISK) as (server, _, store):
        first = await commit(store, Version(1, 1), None)
        async with asyncio.timeout(BOUND_S), aclosing(store.follow("default")) as pointers:  # type: ignore[type-var]
            assert await anext(pointers) == first
            await server.kill()
            await server.start()
            second = await insist(lambda: commit(store, Version(2, 1), first))
            assert await anext(pointers) == second


async def test_after_a_restart_only_a_greater_epoch_is_accepted() -> None:
    async with running(*ON_DISK) as (server, _, store):
        first = await commit(store, Version(1, 7), None)
        await server.kill()
        await server.start()
        with pytest.raises(HistoryBroken):
            await insist(lambda: commit(store, Version(1, 8), first))
        assert await store.read_pointer("default") == first
        assert await store.versions("default") == [Version(1, 7)]
        second = await commit(store, Version(2, 1), first)
        assert await commit(store, Version(2, 2), second)


async def test_a_lost_store_is_filled_again_and_followers_hear_of_it() -> None:
    async with running() as (server, _, store):
        first = await commit(store, Version(1, 7), None)
        async with asyncio.timeout(BOUND_S), aclosing(store.follow("default")) as pointers:  # type: ignore[type-var]
            assert await anext(pointers) == first
            await server.kill()
            await server.start()
            second = await insist(lambda: commit(store, Version(2, 1), None))
            assert await anext(pointers) == second
        assert await store.missing([chunk("1.7").digest]) == {chunk("1.7").digest}


async def test_a_script_that_the_server_forgot_is_sent_again() -> None:
    async with running() as (server, _, store):
        first = await commit(store, Version(1, 1), None)
        await server.ask("SCRIPT", "FLUSH")
        assert await commit(store, Version(1, 2), first)


async def test_a_change_without_a_notice_is_found_by_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pointers, "POLL_S", 0.1)
    async with running() as (server, _, store):
        first = await commit(store, Version(1, 1), None)
        unheard = first.model_copy(update={"version": Version(1, 2)})
        async with asyncio.timeout(BOUND_S), aclosing(store.follow("default")) as found:  # type: ignore[type-var]
            assert await anext(found) == first
            await server.ask("HSET", "{headgate}:pointer:default", "json", unheard.model_dump_json())
            assert await anext(found) == unheard


async def test_a_notice_comes_long_before_the_pointer_would_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pointers, "POLL_S", 3600)
    async with running() as (_, _, store):
        pointer = await commit(store, Version(1, 1), None)
        async with asyncio.timeout(BOUND_S), aclosing(store.follow("default")) as found:  # type: ignore[type-var]
            for revision in range(2, 30):
                assert await anext(found) == pointer
                pointer = await commit(store, Version(1, revision), pointer)


async def test_a_follower_that_leaves_leaves_no_connection_behind() -> None:
    async with running() as (server, _, store):
        await commit(store, Version(1, 1), None)
        async with aclosing(store.follow("default")) as pointers:  # type: ignore[type-var]
            await anext(pointers)
        async with asyncio.timeout(BOUND_S):
            while (await server.ask("CLIENT", "LIST")).count(b"name=test") > 1:  # noqa: ASYNC110 - has no event
                await asyncio.sleep(0.01)


# --- callers that leave


async def test_callers_that_leave_take_no_other_callers_answer() -> None:
    chunks = [chunk(f"{number}" * 200) for number in range(100)]
    chance = random.Random(7)
    async with running() as (_, _, store):
        await store.put_chunks(chunks)
        for _ in range(20):
            tasks = {each.digest: asyncio.create_task(content_of(store, name_of(each))) for each in chunks}
            for _ in range(chance.randrange(12)):
                await asyncio.sleep(0)
            leaving = {digest for digest in tasks if chance.random() < 0.4}
            for digest in leaving:
                tasks[digest].cancel()
            await asyncio.wait(tasks.values())
            for each in chunks:
                if each.digest not in leaving:
                    assert tasks[each.digest].result() == each.content
        assert await store.read_pointer("default") is None


async def test_a_commit_whose_caller_left_is_made_as_a_whole() -> None:
    async with running() as (_, _, store):
        first = await commit(store, Version(1, 1), None)
        leaving = asyncio.create_task(store.commit(manifest(Version(1, 2)), first))
        await asyncio.sleep(0)
        leaving.cancel()
        await asyncio.wait([leaving])
        # Whether it was carried out or not: repeating it says so.
        second = await store.commit(manifest(Version(1, 2)), first)
        assert await store.read_pointer("default") == second


async def read_and_commit(store: RedisSnapshotStore) -> None:
    await store.missing([chunk("a").digest])
    await store.put_chunks([chunk("a"), chunk("b")])
    expected = await store.read_pointer("default")
    revision = expected.version.revision + 1 if expected else 1
    await store.commit(manifest(Version(1, revision), chunk("a")), expected)
    async with aclosing(store.follow("default")) as pointers:  # type: ignore[type-var]
        assert (await anext(pointers)).version >= Version(1, revision)


@pytest.mark.parametrize("moment", Moment)
async def test_a_caller_that_is_cancelled_at_any_await_leaves_everything_in_order(moment: Moment) -> None:
    async with running() as (server, link, store):
        await store.put_chunks([chunk("kept")])
        session = link.session
        for number in itertools.count(1):
            task = asyncio.create_task(cancelled_at(number, moment, read_and_commit(store)))
            [outcome] = await asyncio.gather(task, return_exceptions=True)
            assert await content_of(store, name_of(chunk("kept"))) == chunk("kept").content
            if isinstance(outcome, NotReached):
                break
            assert isinstance(outcome, asyncio.CancelledError)
        assert number > 5
        assert link.session == session, "a cancellation cost the connection"
        async with asyncio.timeout(BOUND_S):
            while (await server.ask("CLIENT", "LIST")).count(b"name=test") > 1:  # noqa: ASYNC110 - has no event
                await asyncio.sleep(0.01)


async def commit_always(store: RedisSnapshotStore) -> None:
    pointer = None
    for revision in itertools.count(1):
        pointer = await store.commit(manifest(Version(1, revision)), pointer)


async def listen(target: RedisTarget) -> None:
    link = await RedisLink.connect(target, name="listening")
    try:
        # The task of `follow` that listens: cancelled itself, and not with the one that awaits it.
        await RedisSnapshotStore(link)._watch("default", lambda _: None)  # noqa: SLF001
    finally:
        await link.close()


@pytest.mark.parametrize("moment", Moment)
async def test_a_cancellation_at_any_await_ends_a_listener(moment: Moment) -> None:
    async with running() as (server, _, store):
        committing = asyncio.create_task(commit_always(store))
        for number in range(1, 30):
            task = asyncio.create_task(cancelled_at(number, moment, listen(server.target)))
            await asyncio.wait([task], timeout=BOUND_S)
            assert task.cancelled(), f"await {number}: {task}"
        await cancel(committing)
        async with asyncio.timeout(BOUND_S):
            while b"name=listening" in await server.ask("CLIENT", "LIST"):  # noqa: ASYNC110 - has no event
                await asyncio.sleep(0.01)


# --- the link


async def test_stores_say_that_they_are_unavailable_while_the_server_is_down() -> None:
    async with running() as (server, link, store):
        await server.kill()
        await until(lambda: not link.is_connected)
        with pytest.raises(StoreUnavailable):
            await store.read_pointer("default")
        with pytest.raises(StoreUnavailable):
            await store.put_chunks([chunk("a")])
        with pytest.raises(StoreUnavailable):
            await tables_on(link).heartbeats.live()
        assert str(server.port) in str(link.readiness())


async def test_an_outage_is_two_lines_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    async with running() as (server, link, _):
        await server.kill()
        await until(lambda: "no connection" in caplog.text)
        await server.start()
        await until(lambda: link.is_connected)
        assert link.readiness() is None
    lines = [record.message for record in caplog.records if record.name.startswith("headgate")]
    assert lines == ["no connection to Redis, trying on", "connected to Redis"]


async def test_a_server_that_hangs_is_left_and_found_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "SILENCE_S", 1.0)
    async with running() as (server, _, store):
        first = await commit(store, Version(1, 1), None)
        server.suspend()
        with pytest.raises(StoreUnavailable, match="no answer"):
            await store.read_pointer("default")
        server.resume()
        assert await insist(lambda: commit(store, Version(1, 2), first))


async def test_a_server_that_comes_later_is_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    async with real_redis() as server:
        await server.kill()
        connecting = asyncio.create_task(RedisLink.connect(server.target, name="early"))
        await until(lambda: "no connection to Redis" in caplog.text)
        await server.start()
        async with asyncio.timeout(BOUND_S):
            link = await connecting
        assert link.is_connected
        await link.close()


async def test_whoever_does_not_want_to_wait_need_not(caplog: pytest.LogCaptureFixture) -> None:
    link = await RedisLink.connect(parse_redis_url("redis://127.0.0.1:1"), name="hasty", wait_s=0.05)
    try:
        assert not link.is_connected
        assert "127.0.0.1:1" in str(link.readiness())
    finally:
        await link.close()


async def test_waiting_for_a_server_can_be_cancelled() -> None:
    connecting = asyncio.create_task(RedisLink.connect(parse_redis_url("redis://127.0.0.1:1"), name="patient"))
    await asyncio.sleep(0.05)
    connecting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await connecting


async def test_a_replica_is_not_taken_for_the_store(caplog: pytest.LogCaptureFixture) -> None:
    async with real_redis() as server, real_redis(f"replicaof 127.0.0.1 {server.port}") as replica:
        link = await RedisLink.connect(replica.target, name="test", wait_s=0.5)
        try:
            await until(lambda: "is a replica" in str(link.readiness()))
        finally:
            await link.close()


async def test_a_primary_that_is_demoted_is_left_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link_module, "LOOK_S", 3600)
    async with real_redis() as other, running() as (server, link, store):
        await server.ask("REPLICAOF", "127.0.0.1", other.port)
        with pytest.raises(StoreUnavailable):
            await store.put_chunks([chunk("a")])
        await until(lambda: not link.is_connected)
        await server.ask("REPLICAOF", "NO", "ONE")
        await until(lambda: link.is_connected)
        await store.put_chunks([chunk("a")])


async def test_a_promotion_while_connected_is_another_history() -> None:
    async with real_redis() as other, running() as (server, _, store):
        first = await commit(store, Version(1, 1), None)
        await server.ask("REPLICAOF", "127.0.0.1", other.port)
        await server.ask("REPLICAOF", "NO", "ONE")
        # The data is that of before, as the other server was not reached yet; nobody can know that.
        with pytest.raises((HistoryBroken, Conflict)):
            await insist(lambda: commit(store, Version(1, 2), first))


async def test_a_wrong_password_is_named_and_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    async with real_redis() as server:
        wrong = parse_redis_url(f"redis://somebody:wrong@127.0.0.1:{server.port}")
        link = await RedisLink.connect(wrong, name="test", wait_s=0.3)
        try:
            await until(lambda: "invalid username-password" in str(link.readiness()))
            assert "wrong@" not in caplog.text
            await server.ask("ACL", "SETUSER", "somebody", "on", ">wrong", "~*", "+@all")
            await until(lambda: link.is_connected)
        finally:
            await link.close()


async def test_a_mistake_of_ours_is_not_the_end_of_reconnecting(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    mistakes = ["a mistake"]

    async def mistaken(*given: Any, **more: Any) -> wire.Wire:
        if mistakes:
            raise ZeroDivisionError(mistakes.pop())
        return await wire.dial(*given, **more)

    monkeypatch.setattr(link_module, "dial", mistaken)
    async with running() as (_, link, _):
        assert link.is_connected
    assert "not foreseen" in caplog.text


async def test_a_process_may_have_any_name() -> None:
    async with real_redis() as server:
        link = await RedisLink.connect(server.target, name="gätewáy\nof the house", wait_s=5)
        try:
            assert link.is_connected
            assert b"name=g-tew-y-of-the-house" in await server.ask("CLIENT", "LIST")
        finally:
            await link.close()


async def test_databases_are_apart() -> None:
    async with real_redis() as server:
        targets = [RedisTarget(server.target.servers, database=database) for database in (0, 3)]
        async with linked(targets[0]) as one, linked(targets[1]) as other:
            await commit(RedisSnapshotStore(one), Version(1, 1), None)
            assert await RedisSnapshotStore(other).read_pointer("default") is None
            async with asyncio.timeout(BOUND_S):
                async with aclosing(RedisSnapshotStore(other).follow("default")) as pointers:  # type: ignore[type-var]
                    waiting = asyncio.ensure_future(anext(pointers))
                    committed = await commit(RedisSnapshotStore(other), Version(5, 1), None)
                    assert await waiting == committed
