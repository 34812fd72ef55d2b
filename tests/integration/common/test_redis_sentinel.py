"""Failovers with real Sentinels: no version is given twice, none goes back, and everybody finds the new primary."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography.x509 import IPAddress

from fakes.gateway.tls import Authority
from fakes.stores.redis import SERVICE, WatchedPair, eventually, has_tls, linked, watched_pair
from fakes.waiting import until
from headgate.common.errors import Conflict, StoreUnavailable
from headgate.common.service.tasks import cancel
from headgate.common.snapshot import Pointer, Version
from headgate.common.stores.redis.link import RedisLink
from headgate.common.stores.redis.sentinels import Sentinels
from headgate.common.stores.redis.stores import tables_on
from headgate.common.stores.redis.target import RedisTarget, Server
from headgate.common.stores.tables import TableStores
from headgate.common.table import VirtualHost
from headgate.common.table_image import TableImage
from headgate.operations.committing.publisher import Draft, TablePublisher
from headgate.operations.committing.retention import Retention

BOUND_S = 30.0


def draft(host: str) -> Draft:
    return Draft(TableImage([VirtualHost(host=host, routes=())]).chunks())


def translator(tables: TableStores) -> TablePublisher:
    """One that was just started, and knows nothing but the store."""
    return TablePublisher(tables.snapshots, "default", Retention(10))


async def publish(publisher: TablePublisher, host: str) -> Version:
    """Publish as the translator's loop does: again and again until it is done."""
    async with asyncio.timeout(BOUND_S):
        while True:
            try:
                version = await publisher.publish(draft(host))
            except (Conflict, StoreUnavailable):
                await asyncio.sleep(0.02)
            else:
                assert version is not None
                return version


class Reader:
    """A gateway's rule: only what is greater is taken."""

    def __init__(self, link: RedisLink) -> None:
        self.link = link
        self.taken: list[Pointer] = []
        self.digests: dict[Version, set[str]] = {}
        """Of every version that was heard of, taken or not."""

    @property
    def version(self) -> Version:
        return self.taken[-1].version if self.taken else Version(0, 0)

    async def follow(self, tables: TableStores) -> None:
        async for pointer in tables.snapshots.follow("default"):
            self.digests.setdefault(pointer.version, set()).add(pointer.manifest_digest)
            if pointer.version > self.version:
                self.taken.append(pointer)


@asynccontextmanager
async def read(pair: WatchedPair) -> AsyncIterator[tuple[TableStores, Reader]]:
    async with linked(pair.target) as link:
        reader = Reader(link)
        task = asyncio.create_task(reader.follow(tables_on(link)))
        try:
            yield tables_on(link), reader
        finally:
            await cancel(task)
    assert all(len(digests) == 1 for digests in reader.digests.values()), "a version stood for two tables"


async def test_a_failover_that_loses_the_last_write_gives_its_version_to_no_other_table() -> None:
    async with watched_pair() as pair, read(pair) as (tables, reader):
        old = translator(tables)
        await publish(old, "a.example")
        replicated = await publish(old, "b.example")
        await eventually(lambda: has_version(pair, replicated))
        await pair.cut_replication()
        lost = await publish(old, "c.example")
        await until(lambda: reader.version == lost)
        await pair.kill_primary()
        await until(lambda: has_left(reader.link, pair))
        # The one that takes over has not heard of what was lost: neither from the store nor from gateways.
        new = translator(tables)
        published = await publish(new, "d.example")
        assert published.epoch > lost.epoch
        await until(lambda: reader.version == published)
        # The one of before is told that it lost, and goes on from there.
        again = await publish(old, "e.example")
        assert again == Version(published.epoch, 2)
        await until(lambda: reader.version == again)


async def has_version(pair: WatchedPair, version: Version) -> bool:
    stored = await pair.replica.ask("HGET", "{headgate}:pointer:default", "version")
    return stored == str(version).encode()


def has_left(link: RedisLink, pair: WatchedPair) -> bool:
    return link.is_connected and link.primary == Server("127.0.0.1", pair.replica.port)


async def test_a_planned_failover_under_a_stream_of_changes_leaves_versions_in_order() -> None:
    async with watched_pair() as pair, read(pair) as (tables, reader), read(pair) as (_, other):
        publishers = [translator(tables), translator(tables)]
        published = [await publish(publishers[number % 2], f"{number}.example") for number in range(30)]
        await pair.sentinels[0].ask("SENTINEL", "FAILOVER", SERVICE)
        number = len(published)
        while not has_left(reader.link, pair):
            published.append(await publish(publishers[number % 2], f"{number}.example"))
            number += 1
        published += [await publish(publishers[n % 2], f"{n}.example") for n in range(number, number + 30)]
        await until(lambda: reader.version == other.version == published[-1])
    assert published == sorted(set(published))
    assert published[-1].epoch > published[0].epoch


async def test_a_sentinel_that_was_cut_off_is_not_believed_and_without_any_the_primary_is_kept() -> None:
    async with watched_pair() as pair, linked(pair.target) as link:
        before = Server("127.0.0.1", pair.primary.port)
        assert link.primary == before
        stale = pair.sentinels[0]
        stale.suspend()
        await pair.kill_primary()
        await until(lambda: link.is_connected and link.primary != before)
        stale.resume()
        sentinels = Sentinels(pair.target)
        try:
            assert await sentinels.primary() == link.primary
        finally:
            await sentinels.close()
        session = link.session
        for sentinel in pair.sentinels:
            await sentinel.kill()
        await asyncio.sleep(2.5)  # the link looks for the primary every two seconds
        assert link.is_connected
        assert link.session == session
        with pytest.raises(StoreUnavailable, match="no Sentinel tells"):
            await Sentinels(pair.target).primary()


async def test_a_primary_that_comes_back_is_no_primary_any_more() -> None:
    async with watched_pair() as pair, read(pair) as (tables, reader):
        ours = translator(tables)
        await publish(ours, "a.example")
        await pair.cut_replication()
        await publish(ours, "lost.example")
        await pair.kill_primary()
        await until(lambda: has_left(reader.link, pair))
        kept = await publish(ours, "b.example")
        await pair.primary.start()
        await eventually(lambda: is_replica(pair))
        assert has_left(reader.link, pair)
        pointer = await tables.snapshots.read_pointer("default")
        assert pointer is not None
        assert pointer.version == kept == reader.version


async def is_replica(pair: WatchedPair) -> bool:
    return b"role:slave" in await pair.primary.ask("INFO", "replication")


@pytest.mark.skipif(not has_tls(), reason="this redis-server was built without TLS")
async def test_sentinels_and_servers_are_spoken_to_over_tls(tmp_path: Path) -> None:
    authority = Authority()
    chain, key = authority.issue("redis.test", IPAddress(ip_address("127.0.0.1"))).write(tmp_path)
    ca = tmp_path / "ca.pem"
    ca.write_bytes(authority.pem)
    options = (f"tls-cert-file {chain}", f"tls-key-file {key}", f"tls-ca-cert-file {ca}", "tls-replication yes")
    target = RedisTarget((), is_tls=True, ca_file=ca, certificate_file=chain, key_file=key)
    async with watched_pair(options, target) as pair, read(pair) as (tables, reader):
        ours = translator(tables)
        first = await publish(ours, "a.example")
        await pair.kill_primary()
        second = await publish(ours, "b.example")
        assert second > first
        await until(lambda: reader.version == second)
