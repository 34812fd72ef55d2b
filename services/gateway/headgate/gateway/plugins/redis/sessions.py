"""The sessions that gateways share in Redis: one connection for all plugins of a worker that name the same Redis."""

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from headgate.common.plugins.authentication.openid_session import SessionRedisConfig
from headgate.common.stores.redis.target import Dial, Login, RedisTarget, Server
from headgate.gateway.net.dialling import UNBOUNDED, Dialler
from headgate.gateway.plugins.redis.links import HeldLink, SharedLinks

if TYPE_CHECKING:
    from headgate.common.stores.redis.values import RedisValues


class SessionsTarget(NamedTuple):
    """Where sessions are kept, and how long an answer may take."""

    target: RedisTarget
    timeout_s: float


class SessionsDirectory:
    """All connections to such Redis servers of one worker."""

    def __init__(self, dialler: Dialler = UNBOUNDED) -> None:
        self._links: SharedLinks[SessionsTarget, RedisValues] = SharedLinks(partial(_make_values, dialler.dial))

    def find(self, config: SessionRedisConfig) -> "HeldLink[RedisValues]":
        """Return the connection to a Redis."""
        password = "" if config.password is None else config.password.reveal()
        target = RedisTarget(
            (Server(config.host, config.port),),
            database=config.database,
            is_tls=config.ssl,
            is_verified=config.ssl_verify,
            login=Login(config.username or "", password),
        )
        return self._links.find(SessionsTarget(target, config.timeout_s))

    @property
    def is_idle(self) -> bool:
        """Nothing is open or being closed."""
        return self._links.is_idle

    async def close(self) -> None:
        """Close all."""
        await self._links.close()


def _make_values(dial_by: Dial, target: SessionsTarget) -> "RedisValues":
    # Imported for those who need it: it costs 7 MB and 0.1 s, once, mostly with a worker's first table.
    from headgate.common.stores.redis.values import RedisValues

    return RedisValues(target.target, target.timeout_s, dial_by)
