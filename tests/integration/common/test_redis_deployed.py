"""Three Redis servers and three Sentinels on the files of `deploy/redis/`, with TLS and users: lost and restarted."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from fakes.stores.redis import eventually, has_tls, linked
from fakes.stores.redis_deployed import SERVICE, DeployedRedis, DeployedServer, deployed_redis
from fakes.waiting import until
from headgate.common.errors import Conflict, StoreUnavailable
from headgate.common.heartbeats import Heartbeat
from headgate.common.service.tasks import cancel
from headgate.common.snapshot import Version
from headgate.common.stores.redis.stores import tables_on
from headgate.common.stores.redis.target import Login
from headgate.common.stores.tables import TableStores
from headgate.common.table import VirtualHost
from headgate.common.table_image import TableImage
from headgate.operations.committing.publisher import Draft, TablePublisher
from headgate.operations.committing.retention import Retention

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not has_tls(), reason="this redis-server was built without TLS"),
]
BOUND_S = 60.0


async def publish(tables: TableStores, host: str) -> Version:
    """Publish as a translator does that was just started: again and again until it is done."""
    publisher = TablePublisher(tables.snapshots, "default", Retention(10))
    async with asyncio.timeout(BOUND_S):
        while True:
            try:
                version = await publisher.publish(Draft(TableImage([VirtualHost(host=host, routes=())]).chunks()))
            except (Conflict, StoreUnavailable):
                await asyncio.sleep(0.05)
            else:
                assert version is not None
                return version


async def follow(tables: TableStores, seen: list[Version]) -> None:
    async for pointer in tables.snapshots.follow("default"):
        seen.append(pointer.version)


async def primary_of(deployed: DeployedRedis) -> DeployedServer:
    [primary] = [each for each in deployed.servers if (await deployed.replication(each))["role"] == "master"]
    return primary


async def test_a_failover_and_restarts_leave_versions_in_order(tmp_path: Path) -> None:
    async with (
        deployed_redis(tmp_path) as deployed,
        linked(deployed.target("translator")) as writing,
        linked(deployed.target("gateway")) as reading,
    ):
        tables, gateway, seen = tables_on(writing), tables_on(reading), list[Version]()
        following = asyncio.create_task(follow(gateway, seen))
        first = await publish(tables, "a.example")
        lost = deployed.servers[0]
        await lost.kill()
        second = await publish(tables, "b.example")
        assert second.epoch > first.epoch
        # Its file was written before the failover, the others' since: each starts on what it finds there.
        await lost.start()
        await eventually(lambda: deployed.is_replica(lost), BOUND_S)
        chosen = await primary_of(deployed)
        await chosen.kill()
        await chosen.start()
        third = await publish(tables, "c.example")
        assert third.epoch > second.epoch
        assert second in await tables.snapshots.versions("default")  # the file of what was written holds it
        await until(lambda: seen[-1:] == [third])
        assert seen == sorted(seen)
        await gateway.heartbeats.beat(
            Heartbeat(replica="g", worker=0, table="default", version=third, at=datetime.now(UTC))
        )
        assert [beat.version for beat in await tables.heartbeats.live()] == [third]
        await cancel(following)
        await check_sentinels(deployed)


async def test_passwords_are_exchanged_without_a_restart(tmp_path: Path) -> None:
    async with deployed_redis(tmp_path) as deployed, linked(deployed.target("translator")) as writing:
        old, new = deployed.target("gateway"), replace(deployed.target("gateway"), login=Login("gateway", "new-one"))
        async with linked(old) as reading:
            tables, gateway, seen = tables_on(writing), tables_on(reading), list[Version]()
            following = asyncio.create_task(follow(gateway, seen))
            await publish(tables, "a.example")
            deployed.replace_users(">gateway-password", ">gateway-password >new-one")
            await deployed.load_users()
            second = await publish(tables, "b.example")
            await until(lambda: seen[-1:] == [second])  # with the old password still
            await cancel(following)
        async with linked(new) as reading:
            deployed.replace_users(" >gateway-password", "")
            await deployed.load_users()
            following = asyncio.create_task(follow(tables_on(reading), seen))
            third = await publish(tables, "c.example")
            await until(lambda: seen[-1:] == [third])
            await cancel(following)
        for server in deployed.servers:
            assert await deployed.ask(server, new.login, "INFO", "replication")
            with pytest.raises(StoreUnavailable, match="invalid username-password"):
                await deployed.ask(server, old.login, "INFO", "replication")
        assert third.epoch == second.epoch  # no server was started again or failed over
        await check_reloader(deployed)


async def check_reloader(deployed: DeployedRedis) -> None:
    """Whoever may have the users read again may do nothing else, and nobody else may."""
    server, reloader = deployed.servers[0], Login("reloader", "reloader-password")
    for words in (
        ("ACL", "LIST"),
        ("ACL", "SETUSER", "reloader", "+@all"),
        ("ACL", "SAVE"),
        ("CONFIG", "GET", "*"),
        ("INFO",),
        ("HGET", "{headgate}:chunks", "a"),
    ):
        with pytest.raises(StoreUnavailable, match="no permissions"):
            await deployed.ask(server, reloader, *words)
    for user in ("translator", "reader", "operator", "sentinel", "replica"):
        with pytest.raises(StoreUnavailable, match="no permissions"):
            await deployed.ask(server, Login(user, f"{user}-password"), "ACL", "LOAD")


async def check_sentinels(deployed: DeployedRedis) -> None:
    """Whoever may ask the Sentinels may do nothing else there, and nobody without a login asks."""
    asker, sentinel = deployed.target("").sentinel_login, deployed.sentinels[0]
    for words in (
        ("SENTINEL", "FAILOVER", SERVICE),
        ("SENTINEL", "REMOVE", SERVICE),
        ("SENTINEL", "SET", SERVICE, "quorum", "1"),
    ):
        with pytest.raises(StoreUnavailable, match="no permissions"):
            await deployed.ask(sentinel, asker, *words)
    with pytest.raises(StoreUnavailable, match="Authentication required"):
        await deployed.ask(sentinel, Login(), "SENTINEL", "MASTER", SERVICE)
