"""The counts that gateways share in Redis: one connection for all limits of a worker that name the same Redis."""

from functools import partial
from typing import TYPE_CHECKING

from headgate.common.plugins.limits.counting import CountingConfig
from headgate.common.secret import Secret
from headgate.common.stores.redis.target import CountersTarget, Dial, Login, RedisTarget, Server, TlsIdentity
from headgate.gateway.net.dialling import UNBOUNDED, Dialler
from headgate.gateway.plugins.redis.links import HeldLink, SharedLinks

if TYPE_CHECKING:
    from headgate.common.stores.redis.counters import RedisCounters


def counters_target(config: CountingConfig) -> CountersTarget | None:
    """Return where a limit's counts are; None: with each worker."""
    login = Login(config.redis_username or "", _revealed(config.redis_password))
    identity = TlsIdentity(
        config.redis_ssl_ca or "", config.redis_ssl_certificate or "", _revealed(config.redis_ssl_key)
    )
    database, timeout_s = config.redis_database, config.redis_timeout / 1000
    match config.policy:
        case "local":
            return None
        case "redis-cluster":
            nodes = (node.rpartition(":") for node in config.redis_cluster_nodes)
            servers = tuple(Server(host.strip("[]"), int(port)) for host, _, port in nodes)
            is_tls, is_verified = config.redis_cluster_ssl, config.redis_cluster_ssl_verify
            target = RedisTarget(servers, is_tls=is_tls, is_verified=is_verified, login=login, identity=identity)
            return CountersTarget(target, True, timeout_s)
        case "redis-sentinel":
            servers = tuple(Server(sentinel.host, sentinel.port) for sentinel in config.redis_sentinels)
            service, sentinel_login = config.redis_master_name or "", _sentinel_login(config)
        case "redis":
            servers = (Server(config.redis_host or "", config.redis_port),)
            service, sentinel_login = "", Login()
    target = RedisTarget(
        servers,
        service,
        database,
        is_tls=config.redis_ssl,
        is_verified=config.redis_ssl_verify,
        login=login,
        sentinel_login=sentinel_login,
        identity=identity,
    )
    return CountersTarget(target, False, timeout_s)


def _revealed(secret: Secret[str] | None) -> str:
    return "" if secret is None else secret.reveal()


def _sentinel_login(config: CountingConfig) -> Login:
    return Login(config.sentinel_username or "", _revealed(config.sentinel_password))


class SharedCounters:
    """What limits hold: counters whose connection is closed once no limit holds them any more."""

    __slots__ = ("_held", "add", "count", "enter", "leave", "look", "pour")

    def __init__(self, held: "HeldLink[RedisCounters]") -> None:
        self._held = held
        self.count = held.link.count
        self.enter = held.link.enter
        self.leave = held.link.leave
        self.pour = held.link.pour
        self.look = held.link.look
        self.add = held.link.add


class CountersDirectory:
    """All connections to such Redis servers of one worker."""

    def __init__(self, dialler: Dialler = UNBOUNDED) -> None:
        self._links: SharedLinks[CountersTarget, RedisCounters] = SharedLinks(partial(_make_counters, dialler.dial))

    def find(self, config: CountingConfig) -> SharedCounters | None:
        """Return the counters that a limit names; None: it counts by itself."""
        target = counters_target(config)
        return None if target is None else SharedCounters(self._links.find(target))

    @property
    def is_idle(self) -> bool:
        """Nothing is open or being closed."""
        return self._links.is_idle

    async def close(self) -> None:
        """Close all."""
        await self._links.close()


def _make_counters(dial_by: Dial, target: CountersTarget) -> "RedisCounters":
    # Imported for those who need it: it costs 7 MB and 0.1 s, once, mostly with a worker's first table.
    from headgate.common.stores.redis.counters import RedisCounters

    return RedisCounters(target, dial_by)
