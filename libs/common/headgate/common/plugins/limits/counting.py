"""Where limits keep their counts: with each gateway, or in a Redis that all gateways share."""

from typing import Literal, Self

from pydantic import Field, model_validator

from headgate.common.plugins.config import PluginConfig, SecretText

_NEEDED = {
    "redis": ("redis_host",),
    "redis-cluster": ("redis_cluster_nodes", "redis_cluster_name"),
    "redis-sentinel": ("redis_sentinels", "redis_master_name"),
}


class SentinelAddress(PluginConfig):
    """One Sentinel."""

    host: str = Field(min_length=1)
    port: int = Field(default=26379, ge=1, le=65535)


class CountingConfig(PluginConfig):
    """Fields of all limits about where the counts are."""

    policy: Literal["local", "redis", "redis-cluster", "redis-sentinel"] = "local"
    """`local`: each gateway counts for itself, over its workers. With the others all gateways count together."""
    allow_degradation: bool = False
    """Let requests pass while Redis cannot be asked; otherwise they are answered with 500."""
    redis_host: str | None = Field(default=None, min_length=2)
    """With `redis`."""
    redis_port: int = Field(default=6379, ge=1, le=65535)
    redis_username: str | None = Field(default=None, min_length=1)
    redis_password: SecretText | None = None
    redis_database: int = Field(default=0, ge=0)
    """Not with `redis-cluster`."""
    redis_timeout: int = Field(default=1000, ge=1)
    """Milliseconds to wait for an answer."""
    redis_ssl: bool = False
    redis_ssl_verify: bool = False
    """Check the server's certificate."""
    redis_ssl_ca: str | None = Field(default=None, min_length=1)
    """Authorities instead of the system's, PEM; with all policies."""
    redis_ssl_certificate: str | None = Field(default=None, min_length=1)
    """Certificate for servers that ask for one, PEM, with its chain."""
    redis_ssl_key: SecretText | None = None
    redis_cluster_nodes: tuple[str, ...] = ()
    """With `redis-cluster`: `host:port` of some nodes; the others are found."""
    redis_cluster_name: str | None = Field(default=None, min_length=1)
    """Taken for compatibility, and required as there."""
    redis_cluster_ssl: bool = False
    redis_cluster_ssl_verify: bool = False
    redis_sentinels: tuple[SentinelAddress, ...] = ()
    """With `redis-sentinel`."""
    redis_master_name: str | None = Field(default=None, min_length=1)
    """With `redis-sentinel`: what the Sentinels call the primary."""
    redis_role: Literal["master", "slave"] = "master"
    """Taken for compatibility: counts are always kept on the primary."""
    sentinel_username: str | None = None
    sentinel_password: SecretText | None = None
    redis_keepalive_timeout: int = Field(default=10000, ge=1000)
    """This and the two that follow are taken for compatibility: one connection is kept for all."""
    redis_keepalive_pool: int = Field(default=100, ge=1)
    sync_interval: float = -1
    """Taken for compatibility: every request is counted at once, so that all gateways together keep to the limit."""

    @model_validator(mode="after")
    def _check_policy(self) -> Self:
        missing = [name for name in _NEEDED.get(self.policy, ()) if not getattr(self, name)]
        if missing:
            raise ValueError(f"policy {self.policy} needs {' and '.join(missing)}")
        for node in self.redis_cluster_nodes:
            host, _, port = node.rpartition(":")
            if not host or not port.isdecimal() or not 0 < int(port) < 65536:
                raise ValueError(f"redis_cluster_nodes: {node[:80]!r} is not host:port")
        return self
