"""Chunks and commits on a Redis server that suffers."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

from fakes.stores.redis import RedisServer, linked, real_redis
from headgate.common.snapshot import Chunk, ChunkName, Manifest, Pointer, Version, digest_of
from headgate.common.stores import SnapshotStore
from headgate.common.stores.redis.link import RedisLink
from headgate.common.stores.redis.snapshots import RedisSnapshotStore

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)

BOUND_S = 30.0


def chunk(text: str) -> Chunk:
    content = f'["{text}"]'.encode()
    return Chunk("hosts", "", digest_of(content), content)


def name_of(item: Chunk) -> ChunkName:
    return ChunkName(kind=item.kind, prefix=item.prefix, digest=item.digest)


def manifest(version: Version, *chunks: Chunk) -> Manifest:
    return Manifest(table="default", version=version, created_at=NOW, chunks=tuple(map(name_of, chunks)))


async def commit(store: SnapshotStore, version: Version, expected: Pointer | None) -> Pointer:
    used = chunk(str(version))
    await store.put_chunks([used])
    return await store.commit(manifest(version, used), expected)


@asynccontextmanager
async def running(*options: str) -> AsyncIterator[tuple[RedisServer, RedisLink, RedisSnapshotStore]]:
    async with real_redis(*options) as server, linked(server.target) as link:
        yield server, link, RedisSnapshotStore(link, chunk_grace_s=0.0)
