"""What the stores on Redis survive of odd contents and of collections of garbage meanwhile."""

import asyncio
import itertools
import random
from contextlib import aclosing
from typing import Any

import pytest

from fakes.stores.chunks import content_of
from fakes.stores.faulty_redis import BOUND_S, NOW, chunk, commit, manifest, name_of, running
from fakes.stores.redis import linked, real_tables
from headgate.common.errors import (
    Conflict,
    DecodeError,
    NotFound,
    StoreError,
    StoreUnavailable,
    TooLarge,
)
from headgate.common.heartbeats import Heartbeat
from headgate.common.snapshot import ENTRY_LIMIT, Chunk, Version, digest_of
from headgate.common.stores.redis import heartbeats
from headgate.common.stores.redis.snapshots import RedisSnapshotStore
from headgate.common.stores.redis.stores import tables_on

_DOOMS, _DROPS = 2, 3
"""Scripts that a collection runs, behind that which lists the chunks: it has just read what manifests name."""

# --- collecting


async def test_a_commit_whose_chunk_was_collected_meanwhile_is_a_conflict() -> None:
    async with running() as (_, link, store):
        first = await commit(store, Version(1, 1), None)
        await store.put_chunks([chunk("new")])
        assert await RedisSnapshotStore(link, chunk_grace_s=0.0).collect_garbage("default", []) == 1
        with pytest.raises(Conflict, match="not in the store"):
            await store.commit(manifest(Version(1, 2), chunk("new")), first)
        await store.put_chunks([chunk("new")])
        assert await store.commit(manifest(Version(1, 2), chunk("new")), first)


@pytest.mark.parametrize("late", [_DOOMS, _DROPS])
async def test_a_chunk_that_is_named_while_garbage_is_sought_stays(late: int, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running() as (server, _, store), linked(server.target) as link:
        first = await commit(store, Version(1, 1), None)
        await store.put_chunks([chunk("new")])
        collector = RedisSnapshotStore(link, chunk_grace_s=0.0)
        run, turns = link.run, itertools.count(1)

        async def run_late(*given: Any) -> Any:
            if next(turns) == late:
                await store.commit(manifest(Version(1, 2), chunk("new")), first)
            return await run(*given)

        monkeypatch.setattr(link, "run", run_late)
        assert await collector.collect_garbage("default", []) == 0
        assert await content_of(store, name_of(chunk("new"))) == chunk("new").content


async def test_a_chunk_that_is_named_between_two_collectors_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """One dooms it and looks whether it is named, it is committed, and another dooms it again."""
    async with running() as (server, _, store), linked(server.target) as early, linked(server.target) as late:
        first = await commit(store, Version(1, 1), None)
        await store.put_chunks([chunk("new")])
        is_named, is_dropping = asyncio.Event(), asyncio.Event()
        run_early, early_turns, run_late, late_turns = early.run, itertools.count(1), late.run, itertools.count(1)
        others: list[asyncio.Task[int]] = []

        async def run_first(*given: Any) -> Any:
            if next(early_turns) == _DROPS:
                others.append(asyncio.create_task(RedisSnapshotStore(late, 0.0).collect_garbage("default", [])))
                await is_dropping.wait()
            return await run_early(*given)

        async def run_second(*given: Any) -> Any:
            turn = next(late_turns)
            if turn == _DOOMS:
                await store.commit(manifest(Version(1, 2), chunk("new")), first)
            elif turn == _DROPS:
                is_dropping.set()
                await is_named.wait()
            return await run_late(*given)

        monkeypatch.setattr(early, "run", run_first)
        monkeypatch.setattr(late, "run", run_second)
        assert await RedisSnapshotStore(early, 0.0).collect_garbage("default", []) == 0
        is_named.set()
        assert await others[0] == 0
        assert await content_of(store, name_of(chunk("new"))) == chunk("new").content


@pytest.mark.parametrize("counts_on_it", ["missing", "put_chunks"])
async def test_a_chunk_that_somebody_counts_on_while_garbage_is_sought_stays(
    counts_on_it: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running() as (server, _, store), linked(server.target) as link:
        await store.put_chunks([chunk("new")])
        collector = RedisSnapshotStore(link, chunk_grace_s=0.0)
        run, turns = link.run, itertools.count(1)

        async def run_late(*given: Any) -> Any:
            if next(turns) == _DROPS:
                wanted = chunk("new")
                await (store.missing([wanted.digest]) if counts_on_it == "missing" else store.put_chunks([wanted]))
            return await run(*given)

        monkeypatch.setattr(link, "run", run_late)
        assert await collector.collect_garbage("default", []) == 0
        assert await content_of(store, name_of(chunk("new"))) == chunk("new").content


async def test_garbage_waits_for_a_grace_period() -> None:
    async with real_tables(chunk_grace_s=60) as tables:
        await tables.snapshots.put_chunks([chunk("for a commit under way")])
        assert await tables.snapshots.collect_garbage("default", []) == 0
        assert await tables.snapshots.collect_garbage("default", []) == 0


async def test_nothing_is_collected_while_a_manifest_cannot_be_read() -> None:
    async with running() as (server, _, store):
        await commit(store, Version(1, 1), None)
        await server.ask("HSET", "{headgate}:manifests:default", "1.1", "damaged")
        with pytest.raises(StoreError, match=r"1\.1"):
            await store.collect_garbage("default", [])
        assert await store.missing([chunk("1.1").digest]) == set()


async def test_a_chunk_that_no_reader_would_take_is_refused() -> None:
    content = b"x" * (ENTRY_LIMIT + 1)
    async with running() as (_, _, store):
        with pytest.raises(TooLarge, match="at most"):
            await store.put_chunks([chunk("fine"), Chunk("hosts", "", digest_of(content), content)])
        assert await store.missing([chunk("fine").digest]) == {chunk("fine").digest}


async def test_chunks_of_many_megabytes_are_stored_and_read() -> None:
    contents = [random.Random(seed).randbytes(400_000) for seed in range(12)]
    chunks = [Chunk("hosts", "", digest_of(content), content) for content in contents]
    async with running() as (_, _, store):
        await store.put_chunks(chunks)
        assert await asyncio.gather(*(content_of(store, name_of(each)) for each in chunks)) == contents


# --- odd contents


async def test_damaged_contents_are_named_and_harm_nothing_else(caplog: pytest.LogCaptureFixture) -> None:
    async with running() as (server, link, store):
        board = tables_on(link).heartbeats
        await board.beat(Heartbeat(replica="good", worker=0, table="default", version=None, at=NOW))
        await board.beat(Heartbeat(replica="bad", worker=0, table="default", version=None, at=NOW))
        await server.ask("HSET", "{headgate}:gateways", "default.bad.0", "{")
        await server.ask("HSET", "{headgate}:chunks", chunk("a").digest, "{")
        assert [beat.replica for beat in await board.live()] == ["good"]
        with pytest.raises(DecodeError):
            await content_of(store, name_of(chunk("a")))
    assert "a heartbeat cannot be read" in caplog.text


async def test_a_damaged_pointer_is_mended_by_the_next_commit(caplog: pytest.LogCaptureFixture) -> None:
    async with running() as (server, _, store):
        await server.ask("HSET", "{headgate}:pointer:other", "json", "{")
        assert await store.read_pointer("other") is None
        first = await commit(store, Version(1, 1), None)
        await server.ask("HSET", "{headgate}:pointer:default", "json", "{")
        found = await store.read_pointer("default")
        assert found is not None
        assert (found.version, found.manifest_digest) == (first.version, first.manifest_digest)
        second = await commit(store, Version(1, 2), found)
        assert await store.read_pointer("default") == second
    assert "a pointer cannot be read" in caplog.text


@pytest.mark.parametrize("name", ["x.1", "1", "1.-2", b"\xff.1"], ids=["word", "short", "negative", "bytes"])
async def test_what_stands_for_a_version_and_is_none_counts_as_nothing(
    name: str | bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async with running() as (server, _, store):
        await commit(store, Version(1, 1), None)
        await server.ask("HSET", "{headgate}:manifests:default", name, "{")
        assert await store.versions("default") == [Version(1, 1)]
        await server.ask("HSET", "{headgate}:pointer:default", "json", "{", "version", name)
        assert await store.read_pointer("default") is None
    assert "a manifest's key cannot be read" in caplog.text


async def test_a_damaged_notice_makes_readers_read(caplog: pytest.LogCaptureFixture) -> None:
    async with running() as (server, _, store):
        first = await commit(store, Version(1, 1), None)
        unheard = first.model_copy(update={"version": Version(1, 2)})
        async with asyncio.timeout(BOUND_S), aclosing(store.follow("default")) as found:  # type: ignore[type-var]
            assert await anext(found) == first
            await server.ask("HSET", "{headgate}:pointer:default", "json", unheard.model_dump_json())
            await server.ask("XADD", "{headgate}:news:default", "*", "pointer", "{")
            assert await anext(found) == unheard


async def test_a_key_of_another_kind_is_an_error_that_says_so() -> None:
    async with running() as (server, _, store):
        await server.ask("SET", "{headgate}:chunks", "somebody else's")
        with pytest.raises(StoreError, match="WRONGTYPE"):
            await store.put_chunks([chunk("a")])
        with pytest.raises(StoreError, match="WRONGTYPE"):
            await commit(store, Version(1, 1), None)


async def test_a_full_server_is_unavailable_and_not_broken() -> None:
    async with running() as (server, _, store):
        await server.ask("CONFIG", "SET", "maxmemory", "1")
        with pytest.raises(StoreUnavailable, match="OOM"):
            await store.put_chunks([chunk("a")])
        with pytest.raises(NotFound):
            await content_of(store, name_of(chunk("a")))


async def test_announcements_expire_by_the_servers_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeats, "TTL_MS", 100)
    async with running() as (server, link, _):
        board = tables_on(link).heartbeats
        await board.beat(Heartbeat(replica="silent", worker=0, table="default", version=None, at=NOW))
        async with asyncio.timeout(BOUND_S):
            while await board.live():  # noqa: ASYNC110 - expiry has no event
                await asyncio.sleep(0.02)
        await board.beat(Heartbeat(replica="loud", worker=0, table="default", version=None, at=NOW))
        assert await server.ask("HKEYS", "{headgate}:gateways") == [b"default.loud.0"]
