"""Counts that several processes share: windows, leaky buckets, and what is under way.

Each operation is one script on one key, which the server runs as one step by its own clock, so it is right for any
number of processes and in a cluster. One server, or the primary of some Sentinels, is spoken to over one connection for
all callers (`RedisLink`); a cluster through redis-py's client, which knows the slots.
"""

import asyncio
from typing import Any, Final, NamedTuple

from redis.asyncio.cluster import ClusterNode, RedisCluster
from redis.exceptions import NoScriptError, RedisError

from headgate.common.errors import StoreUnavailable
from headgate.common.stores.redis.link import RedisLink, Script
from headgate.common.stores.redis.target import CountersTarget, Dial, RedisTarget
from headgate.common.stores.redis.wire import Word, connection_class, reason_of

_NOW = """
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
"""
_FIXED: Final = Script(
    """
local limit, window = tonumber(ARGV[1]), tonumber(ARGV[2])
local left_ms = redis.call('PTTL', KEYS[1])
if left_ms < 0 then
    redis.call('SET', KEYS[1], 1, 'PX', window)
    return {1, limit - 1, window}
end
local count = tonumber(redis.call('GET', KEYS[1]))
if count >= limit then
    return {0, 0, left_ms}
end
return {1, limit - redis.call('INCR', KEYS[1]), left_ms}
"""
)
_SLIDING: Final = Script(
    _NOW
    + """
local limit, window = tonumber(ARGV[1]), tonumber(ARGV[2])
local current = math.floor(now / window)
local kept = redis.call('HMGET', KEYS[1], 'window', 'count', 'before')
local count, before = tonumber(kept[2]) or 0, tonumber(kept[3]) or 0
local known = tonumber(kept[1])
if known == current - 1 then
    before, count = count, 0
elseif known ~= current then
    before, count = 0, 0
end
local used = before * (1 - (now - current * window) / window) + count
local left_ms = (current + 1) * window - now
if used + 1 > limit then
    return {0, 0, left_ms}
end
redis.call('HSET', KEYS[1], 'window', current, 'count', count + 1, 'before', before)
redis.call('PEXPIRE', KEYS[1], 2 * window)
return {1, math.floor(limit - used - 1), left_ms}
"""
)
_LOOK: Final = Script(
    """
local left_ms = redis.call('PTTL', KEYS[1])
if left_ms < 0 then
    return {0, 0}
end
return {tonumber(redis.call('GET', KEYS[1])), left_ms}
"""
)
_ADD: Final = Script(
    """
if redis.call('PTTL', KEYS[1]) < 0 then
    redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
else
    redis.call('INCRBY', KEYS[1], ARGV[1])
end
return 0
"""
)
_POUR: Final = Script(
    _NOW
    + """
local rate, burst = tonumber(ARGV[1]), tonumber(ARGV[2])
local kept = redis.call('HMGET', KEYS[1], 'excess', 'at')
local excess = 0
if kept[1] then
    excess = math.max(tonumber(kept[1]) - rate * (now - tonumber(kept[2])) / 1000 + 1, 0)
end
if excess > burst then
    return {0, tostring(excess)}
end
redis.call('HSET', KEYS[1], 'excess', tostring(excess), 'at', now)
redis.call('PEXPIRE', KEYS[1], math.ceil((excess + 1) / rate * 1000))
return {1, tostring(excess)}
"""
)
_ENTER: Final = Script(
    _NOW
    + """
redis.call('ZREMRANGEBYSCORE', KEYS[1], 0, now)
local count = redis.call('ZCARD', KEYS[1]) + 1
if count > tonumber(ARGV[1]) then
    return {0, count}
end
redis.call('ZADD', KEYS[1], now + tonumber(ARGV[2]), ARGV[3])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return {1, count}
"""
)
_LEAVE: Final = Script("return redis.call('ZREM', KEYS[1], ARGV[1])")


class Counted(NamedTuple):
    """What became of one request in its window."""

    is_within: bool
    left: int
    """Requests that the window still takes."""
    reset_s: float
    """Seconds until the window ends."""


class RedisCounters:
    """Counts in Redis. The connection is made with the first of them.

    All methods raise StoreError if Redis does not answer in time, or refuses.
    """

    def __init__(self, target: CountersTarget, dial_by: Dial | None = None) -> None:
        self._target = target
        self._dial_by = dial_by
        self._link: asyncio.Future[RedisLink] | None = None
        self._cluster: RedisCluster | None = None

    async def count(self, key: str, limit: int, window_s: float, *, is_sliding: bool) -> Counted:
        """Count one request in the window of a key, unless the window is full."""
        script = _SLIDING if is_sliding else _FIXED
        is_within, left, left_ms = await self._run(script, key, limit, max(1, round(window_s * 1000)))
        return Counted(bool(is_within), left, left_ms / 1000)

    async def look(self, key: str) -> tuple[int, float]:
        """Return what was added in the window of a key, and the seconds until it ends; 0 if there is no window."""
        added, left_ms = await self._run(_LOOK, key)
        return int(added), left_ms / 1000

    async def add(self, key: str, amount: int, window_s: float) -> None:
        """Add to the window of a key, which begins with the first amount."""
        await self._run(_ADD, key, amount, max(1, round(window_s * 1000)))

    async def pour(self, key: str, rate: float, burst: float) -> tuple[float, bool]:
        """Count one request in a bucket that empties at a rate: requests before it, and whether it fits."""
        is_within, excess = await self._run(_POUR, key, repr(rate), repr(burst))
        return float(excess), bool(is_within)

    async def enter(self, key: str, limit: int, ttl_s: float, member: str) -> int | None:
        """Count what begins, until it ends or `ttl_s` is over: how many there are, None if there are `limit`."""
        is_within, count = await self._run(_ENTER, key, limit, round(ttl_s * 1000), member)
        return int(count) if is_within else None

    async def leave(self, key: str, member: str) -> None:
        """Count what ends."""
        await self._run(_LEAVE, key, member)

    async def close(self) -> None:
        """Close the connections."""
        if self._link is not None:
            await (await self._link).close()
        if self._cluster is not None:
            await self._cluster.aclose()

    async def _run(self, script: Script, key: str, *arguments: Word) -> Any:
        try:
            async with asyncio.timeout(self._target.timeout_s):
                if self._target.is_cluster:
                    return await self._run_in_cluster(script, key, *arguments)
                return await (await self._linked()).run(script, [key], *arguments)
        except TimeoutError as error:
            raise StoreUnavailable(f"{self._target.target} did not answer in {self._target.timeout_s:g} s") from error

    async def _linked(self) -> RedisLink:
        if self._link is None:
            target, wait_s = self._target.target, self._target.timeout_s
            opening = RedisLink.connect(
                target, name="headgate-limits", wait_s=wait_s, is_store=False, dial_by=self._dial_by
            )
            self._link = asyncio.ensure_future(opening)
        return await asyncio.shield(self._link)

    async def _run_in_cluster(self, script: Script, key: str, *arguments: Word) -> Any:
        if self._cluster is None:
            self._cluster = _make_cluster(self._target.target, self._dial_by)
        try:
            try:
                return await self._cluster.execute_command("EVALSHA", script.digest, 1, key, *arguments)
            except NoScriptError:
                return await self._cluster.execute_command("EVAL", script.text, 1, key, *arguments)
        except (RedisError, OSError) as error:
            raise StoreUnavailable(f"{self._target.target}: {reason_of(error)}") from error


def _make_cluster(target: RedisTarget, dial_by: Dial | None) -> RedisCluster:
    options: dict[str, Any] = {}
    if target.is_tls:
        options = {"ssl": True, "ssl_cert_reqs": "required" if target.is_verified else "none"}
        options["ssl_check_hostname"] = target.is_verified
    cluster = RedisCluster(
        startup_nodes=[ClusterNode(server.host, server.port) for server in target.servers],
        username=target.login.user or None,
        password=target.login.password or None,
        **options,
    )
    # There is no argument for it. No node is connected to yet, and those that are found later are made of the same.
    make = cluster.connection_kwargs["connection_class"] = connection_class(target, dial_by)
    for node in cluster.nodes_manager.startup_nodes.values():
        node.connection_class = make  # type: ignore[assignment]  # it is only called
    return cluster
