"""The snapshot store and the heartbeats on Redis 7 or newer, or Valkey; one server, or a primary with Sentinels.

    stores = await RedisStores.connect(parse_redis_url("redis://127.0.0.1:6379"), name="gateway a/0")
    async for pointer in stores.snapshots.follow("default"): ...

The delta log and the statuses stay on NATS: between watchers and translators it is there anyway, and a gateway needs
neither. So a gateway with this store needs no NATS at all.
"""

from headgate.common.stores import HeartbeatBoard, SnapshotStore
from headgate.common.stores.collecting import CHUNK_GRACE_S
from headgate.common.stores.redis.heartbeats import RedisHeartbeatBoard
from headgate.common.stores.redis.link import RedisLink
from headgate.common.stores.redis.snapshots import RedisSnapshotStore
from headgate.common.stores.redis.target import RedisTarget, parse_redis_url

__all__ = ["RedisStores", "RedisTarget", "parse_redis_url"]


class RedisStores:
    """The stores on one link."""

    snapshots: SnapshotStore
    heartbeats: HeartbeatBoard

    def __init__(self, link: RedisLink, *, chunk_grace_s: float = CHUNK_GRACE_S) -> None:
        """Describe the stores; nothing has to be made before they are used."""
        self.link = link
        self.snapshots = RedisSnapshotStore(link, chunk_grace_s)
        self.heartbeats = RedisHeartbeatBoard(link)

    @classmethod
    async def connect(cls, target: RedisTarget, *, name: str, wait_s: float | None = None) -> "RedisStores":
        """Return the stores, connected unless `wait_s` (seconds; None: as long as it takes) ran out."""
        return cls(await RedisLink.connect(target, name=name, wait_s=wait_s))

    async def close(self) -> None:
        """Close for good."""
        await self.link.close()
