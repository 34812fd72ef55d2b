"""The stores on one link to Redis.

async with open_tables(parse_redis_url("redis://127.0.0.1:6379"), "gateway a/0") as tables:
    async for pointer in tables.snapshots.follow("default"): ...
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from headgate.common.errors import StoreUnavailable
from headgate.common.stores.collecting import CHUNK_GRACE_S
from headgate.common.stores.redis.heartbeats import RedisHeartbeatBoard
from headgate.common.stores.redis.leases import RedisLeaseBoard
from headgate.common.stores.redis.link import RedisLink
from headgate.common.stores.redis.snapshots import RedisSnapshotStore
from headgate.common.stores.redis.target import RedisTarget
from headgate.common.stores.redis.traffic import RedisTrafficBoard
from headgate.common.stores.tables import TableStores


def tables_on(link: RedisLink, *, chunk_grace_s: float = CHUNK_GRACE_S) -> TableStores:
    """Return the stores; nothing has to be made before they are used.

    Args:
        link: the connection.
        chunk_grace_s: how long a chunk that nothing names is kept.
    """
    return TableStores(
        RedisSnapshotStore(link, chunk_grace_s),
        RedisHeartbeatBoard(link),
        RedisLeaseBoard(link),
        RedisTrafficBoard(link),
    )


@asynccontextmanager
async def open_tables(target: RedisTarget, name: str, wait_s: float | None = None) -> AsyncIterator[TableStores]:
    """Connect, and close on exit.

    Args:
        target: where Redis is.
        name: of this process, shown by `CLIENT LIST`.
        wait_s: seconds to wait for the connection; None: as long as it takes.

    Raises:
        StoreUnavailable: not connected in time; says why.
    """
    link = await RedisLink.connect(target, name=name, wait_s=wait_s)
    try:
        if wait_s is not None and (trouble := link.readiness()) is not None:
            raise StoreUnavailable(trouble)
        yield tables_on(link)
    finally:
        await link.close()
