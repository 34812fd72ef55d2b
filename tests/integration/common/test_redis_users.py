"""Every role with the rights of `deploy/redis/users.conf`, against a server that denies all else."""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from fakes.stores.chunks import content_of
from fakes.stores.redis import RedisServer, linked, real_redis, users
from fakes.traffic import of_route, summary
from fakes.waiting import until
from headgate.common.errors import NotPermitted, StoreError
from headgate.common.heartbeats import Heartbeat
from headgate.common.leadership.leases import Lease
from headgate.common.service.tasks import cancel
from headgate.common.snapshot import Chunk, ChunkName, Manifest, Version, digest_of
from headgate.common.stores.redis.link import RedisLink
from headgate.common.stores.redis.stores import tables_on
from headgate.common.stores.redis.target import Login
from headgate.common.stores.tables import TableStores
from headgate.common.traffic import Tap

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
ADMIN = Login("admin", "secret")
CONTENT = b'["a"]'
CHUNK = Chunk("hosts", "", digest_of(CONTENT), CONTENT)
NAME = ChunkName(kind="hosts", prefix="", digest=CHUNK.digest)
LEASE = Lease(holder="one", duration_s=2.0, acquired_at=NOW, renewed_at=NOW)
BEAT = Heartbeat(replica="gw", worker=0, table="default", version=None, at=NOW)


def manifest(revision: int) -> Manifest:
    return Manifest(table="default", version=Version(1, revision), created_at=NOW, chunks=(NAME,))


@asynccontextmanager
async def guarded() -> AsyncIterator[RedisServer]:
    async with real_redis() as server:
        await server.stop()
        server.options = (
            *users("default", "translator", "gateway", "reader", "operator"),
            f"user {ADMIN.user} on >{ADMIN.password} ~* &* +@all",
        )
        server.target = replace(server.target, login=ADMIN)
        await server.start()
        yield server


@asynccontextmanager
async def acting_as(server: RedisServer, role: str, database: int = 0) -> AsyncIterator[tuple[RedisLink, TableStores]]:
    login = Login(role, f"{role}-password")
    async with linked(replace(server.target, login=login, database=database)) as link:
        yield link, tables_on(link, chunk_grace_s=0.0)


async def publish(tables: TableStores, revision: int = 1) -> None:
    await tables.snapshots.put_chunks([CHUNK])
    expected = await tables.snapshots.read_pointer("default")
    await tables.snapshots.commit(manifest(revision), expected)


async def is_denied(attempt: Callable[[], Awaitable[object]]) -> None:
    with pytest.raises(NotPermitted):
        await attempt()


async def work_as_translator(server: RedisServer) -> None:
    async with acting_as(server, "translator", database=2) as (_, tables):
        for revision in (1, 2):
            await publish(tables, revision)
        assert await tables.snapshots.missing([CHUNK.digest]) == set()
        assert await tables.snapshots.versions("default") == [Version(1, 1), Version(1, 2)]
        assert await tables.snapshots.get_manifest("default", Version(1, 1)) == manifest(1)
        await tables.snapshots.put_chunks([Chunk("hosts", "", digest_of(b"[]"), b"[]")])
        assert await tables.snapshots.collect_garbage("default", [Version(1, 1)]) == 2
        async with acting_as(server, "gateway", database=2) as (_, gateway):
            await gateway.heartbeats.beat(BEAT)
        assert await tables.heartbeats.live() == [BEAT]
        taken = await tables.leases.write("translator.default", LEASE, None)
        assert await tables.leases.read("translator.default") == taken


async def work_as_gateway(server: RedisServer) -> None:
    async with acting_as(server, "translator", database=2) as (_, tables):
        await publish(tables)
        async with acting_as(server, "gateway", database=2) as (_, reading):
            async with aclosing(reading.snapshots.follow("default")) as pointers:  # type: ignore[type-var]
                assert (await anext(pointers)).version == Version(1, 1)
                await publish(tables, 2)
                assert (await anext(pointers)).version == Version(1, 2)
            assert await reading.snapshots.get_manifest("default", Version(1, 2)) == manifest(2)
            assert await content_of(reading.snapshots, NAME) == CONTENT
            await reading.heartbeats.beat(BEAT)
            await reading.heartbeats.beat(BEAT.model_copy(update={"replica": "other"}))
            assert len(await tables.heartbeats.live()) == 2
            await reading.traffic.tell(summary(of_route("a|r")))
            await reading.heartbeats.remove(BEAT)
            assert len(await tables.heartbeats.live()) == 1


async def tells(server: RedisServer) -> None:
    async with acting_as(server, "gateway") as (_, tables):
        while True:
            await tables.traffic.tell(summary(of_route("a|r")))
            await asyncio.sleep(0.01)


async def work_as_reader(server: RedisServer, role: str = "reader") -> None:
    async with acting_as(server, "translator", database=2) as (_, tables):
        await publish(tables)
    async with acting_as(server, "gateway", database=2) as (_, gateway):
        await gateway.heartbeats.beat(BEAT)
    async with acting_as(server, role, database=2) as (_, tables):
        pointer = await tables.snapshots.read_pointer("default")
        assert pointer is not None
        assert await tables.snapshots.versions("default") == [pointer.version]
        assert await tables.snapshots.get_manifest("default", pointer.version) == manifest(1)
        assert await content_of(tables.snapshots, NAME) == CONTENT
        assert await tables.heartbeats.live() == [BEAT]
        telling = asyncio.create_task(tells(server))
        try:
            async with aclosing(tables.traffic.listen("default")) as heard:
                assert await anext(heard) == summary(of_route("a|r"))
            await tables.traffic.tap("default", Tap("t"))
        finally:
            await cancel(telling)


async def work_as_operator(server: RedisServer) -> None:
    await work_as_reader(server, "operator")
    async with acting_as(server, "operator", database=2) as (_, tables):
        assert await tables.snapshots.missing([digest_of(b"none")]) == {digest_of(b"none")}
        await publish(tables, 2)
        assert await tables.snapshots.missing([CHUNK.digest]) == set()


WORK = {
    "translator": work_as_translator,
    "gateway": work_as_gateway,
    "reader": work_as_reader,
    "operator": work_as_operator,
}


def rights_of(role: str) -> list[str]:
    [line] = users(role)
    return re.findall(r" \+(\S+)", line)


async def is_missed(role: str, server: RedisServer, caplog: pytest.LogCaptureFixture) -> bool:
    """Tell whether a role cannot work, or says that it works in a worse way: unless it was done before it tried."""
    for _ in range(3):
        if not await is_completed(WORK[role](server)) or "notices are not heard" in caplog.text:
            return True
        await server.ask("FLUSHALL")
    return False


@pytest.mark.parametrize("role", WORK)
async def test_a_role_can_do_its_work_and_needs_every_right_for_it(role: str, caplog: pytest.LogCaptureFixture) -> None:
    async with guarded() as server:
        await WORK[role](server)
        assert "not heard" not in caplog.text
        for right in rights_of(role):
            await server.ask("FLUSHALL")
            await server.ask("SCRIPT", "FLUSH")
            await server.ask("ACL", "SETUSER", role, f"-{right}")
            assert await is_missed(role, server, caplog), f"a {role} does without {right}"
            caplog.clear()
            await server.ask("ACL", "SETUSER", role, f"+{right}")


async def is_completed(work: Awaitable[None]) -> bool:
    try:
        async with asyncio.timeout(1.0):
            await work
    except (StoreError, TimeoutError):
        return False
    return True


async def test_neither_gateway_nor_reader_can_change_a_table() -> None:
    async with guarded() as server:
        async with acting_as(server, "translator") as (_, tables):
            await publish(tables)
        for role in ("gateway", "reader"):
            async with acting_as(server, role) as (link, tables):
                await is_denied(lambda tables=tables: tables.snapshots.put_chunks([CHUNK]))  # type: ignore[misc]
                await is_denied(lambda tables=tables: publish(tables, 2))  # type: ignore[misc]
                await is_denied(lambda tables=tables: tables.leases.write("l", LEASE, None))  # type: ignore[misc]
                await is_denied(lambda link=link: link.ask("HSET", "{headgate}:pointer:default", "json", "{}"))  # type: ignore[misc]
                await is_denied(lambda link=link: link.ask("XADD", "{headgate}:news:default", "*", "a", "b"))  # type: ignore[misc]
                await is_denied(lambda link=link: link.ask("DEL", "{headgate}:chunks"))  # type: ignore[misc]


async def test_an_operator_publishes_but_neither_leads_nor_serves_nor_drops() -> None:
    async with guarded() as server:
        async with acting_as(server, "translator") as (_, tables):
            await publish(tables)
        async with acting_as(server, "operator") as (link, tables):
            await publish(tables, 2)
            await is_denied(lambda: tables.leases.write("l", LEASE, None))
            await is_denied(lambda: tables.heartbeats.beat(BEAT))
            await is_denied(lambda: tables.traffic.tell(summary(of_route("a|r"))))
            await is_denied(lambda: tables.snapshots.collect_garbage("default", [Version(1, 1)]))
            await is_denied(lambda: link.ask("DEL", "{headgate}:chunks"))


async def test_a_gateway_cannot_list_what_there_is() -> None:
    async with guarded() as server, acting_as(server, "gateway") as (link, tables):
        await is_denied(lambda: link.ask("HKEYS", "{headgate}:chunks"))
        await is_denied(lambda: link.ask("HGETALL", "{headgate}:chunks"))
        await is_denied(lambda: link.ask("KEYS", "*"))
        await is_denied(lambda: tables.snapshots.versions("default"))


@pytest.mark.parametrize("role", ["translator", "gateway", "reader", "operator"])
async def test_nobody_reaches_what_is_not_ours_or_governs_the_server(role: str) -> None:
    async with guarded() as server, acting_as(server, role) as (link, _):
        await is_denied(lambda: link.ask("HGET", "somebody:else", "field"))
        await is_denied(lambda: link.ask("CONFIG", "GET", "*"))
        await is_denied(lambda: link.ask("FLUSHALL"))
        await is_denied(lambda: link.ask("ACL", "LIST"))


async def test_without_a_login_there_is_nothing() -> None:
    async with guarded() as server:
        link = await RedisLink.connect(replace(server.target, login=Login()), name="test", wait_s=0.2)
        try:
            await until(lambda: "uthentication required" in str(link.readiness()))
        finally:
            await link.close()
