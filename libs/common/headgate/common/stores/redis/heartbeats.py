"""Who serves what, in Redis: a hash of the announcements, and a sorted set of when each worker was last heard of.

Both are one step of a script, and the time is the server's: the clocks of gateways need not agree.
"""

import logging
from collections.abc import Sequence

from headgate.common.deltas import escape_token
from headgate.common.heartbeats import TTL_S, Heartbeat
from headgate.common.stores.redis.link import RedisLink, Script

_log = logging.getLogger(__name__)

GATEWAYS, SEEN = "{headgate}:gateways", "{headgate}:gateways:seen"
TTL_MS = int(TTL_S * 1000)

_BEAT = Script("""
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
for _, silent in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now - ARGV[3])) do
  redis.call('HDEL', KEYS[1], silent)
  redis.call('ZREM', KEYS[2], silent)
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('ZADD', KEYS[2], now, ARGV[1])
return 1
""")


class RedisHeartbeatBoard:
    """`HeartbeatBoard` on Redis."""

    def __init__(self, link: RedisLink) -> None:
        self._link = link

    async def beat(self, heartbeat: Heartbeat) -> None:
        """Announce a worker, and forget those that fell silent."""
        await self._link.run(_BEAT, [GATEWAYS, SEEN], _member(heartbeat), heartbeat.encode(), TTL_MS)

    async def remove(self, heartbeat: Heartbeat) -> None:
        """Take a worker's announcement back."""
        await self._link.ask("ZREM", SEEN, _member(heartbeat))
        await self._link.ask("HDEL", GATEWAYS, _member(heartbeat))

    async def live(self) -> Sequence[Heartbeat]:
        """Return the announcements that have not expired, sorted by replica and worker."""
        seconds, microseconds = await self._link.ask("TIME")
        oldest = int(seconds) * 1000 + int(microseconds) // 1000 - TTL_MS
        members = await self._link.ask("ZRANGEBYSCORE", SEEN, f"({oldest}", "+inf")
        if not members:
            return []
        found = []
        for member, stored in zip(members, await self._link.ask("HMGET", GATEWAYS, *members), strict=True):
            if stored is None:
                continue  # taken back between the two questions
            try:
                found.append(Heartbeat.model_validate_json(stored))
            except ValueError as error:
                _log.error("a heartbeat cannot be read", extra={"member": member.decode(), "reason": str(error)})
        return sorted(found, key=lambda heartbeat: (heartbeat.replica, heartbeat.worker))


def _member(heartbeat: Heartbeat) -> str:
    return ".".join((*map(escape_token, (heartbeat.table, heartbeat.replica)), str(heartbeat.worker)))
