"""Middlewares that keep requests out, as `basic-auth`, `ip-restriction` and `limit-req` say them."""

from typing import Any, Final

from headgate.common.plugins.authentication.basic_auth import BasicAuthConfig
from headgate.common.plugins.authentication.digest_auth import DigestAuthConfig
from headgate.common.plugins.client_address import ClientAddressConfig
from headgate.common.plugins.limits.limits import LimitConnConfig, LimitReqConfig
from headgate.common.plugins.limits.workflow import WorkflowConfig
from headgate.common.plugins.security.ip_restriction import IpRestrictionConfig
from headgate.common.sealing import ClusterValue, SealedSecret
from headgate.common.table import PluginUse
from headgate.translator.dialects.traefik.middlewares.client_tls import read_client_tls
from headgate.translator.dialects.traefik.middlewares.making import Making, Unfollowed
from headgate.translator.dialects.traefik.models.guards import (
    InFlightRequests,
    IpAllowList,
    IpStrategy,
    IpWhiteList,
    PasswordAuth,
    RateLimit,
    Redis,
    SourceCriterion,
)

_TOO_MANY: Final = {"actions": [["return", {"code": 429}]]}
_REALM: Final = "traefik"
_NAME_AND_PASSWORD: Final = ("username", "password")
"""Elements of a Secret of type kubernetes.io/basic-auth."""
_MAX_DELAY_S: Final = 0.5
"""That a request waits for where less than one comes in a second."""
_REDIS_TIMEOUT_S: Final = 3.0


def basic_auth(written: PasswordAuth, making: Making) -> tuple[PluginUse, ...]:
    """Ask for names and passwords of a Secret: a file of htpasswd under any key, or one `username` and `password`."""
    config = BasicAuthConfig(
        realm=written.realm or _REALM,
        hide_credentials=written.remove_header,
        user_header=written.header_field or None,
        skip_invalid=True,
    )
    held = making.find_secret("secret", written.secret)
    if held is None:
        return ()
    use = PluginUse.of(config)
    if held.values.keys() == set(_NAME_AND_PASSWORD):
        secrets = {f"users.0.{name}": held.values[name].of(making.cluster) for name in _NAME_AND_PASSWORD}
        return (use.model_copy(update={"config": {**use.config, "users": [{}]}, "secrets": secrets}),)
    return (use.model_copy(update={"secrets": {"htpasswd": _only_value(held, written, making)}}),)


def digest_auth(written: PasswordAuth, making: Making) -> tuple[PluginUse, ...]:
    """Ask for a name and a digest of a password, by a file of htdigest under any key."""
    held = making.find_secret("secret", written.secret)
    if held is None:
        return ()
    realm = written.realm or _REALM
    config: dict[str, Any] = {"realm": realm, "hide_credentials": written.remove_header, "skip_invalid": True}
    if written.header_field:
        config["user_header"] = written.header_field
    plugin = DigestAuthConfig.plugin
    return (PluginUse(name=plugin, config=config, secrets={"htdigest": _only_value(held, written, making)}),)


def _only_value(held: SealedSecret, written: PasswordAuth, making: Making) -> ClusterValue:
    """Return the only element of a Secret, a file of users."""
    if len(held.values) != 1:
        message = (
            f"Secret {making.namespace}/{written.secret} must have one element, a file of users, but has "
            f"{', '.join(sorted(held.values)) or 'none'}"
        )
        raise Unfollowed("InvalidSecret", "secret", message)
    (value,) = held.values.values()
    return value.of(making.cluster)


def ip_allow_list(written: IpWhiteList, making: Making) -> tuple[PluginUse, ...]:
    """Admit some networks only."""
    if not written.source_range:
        raise Unfollowed("Required", "sourceRange", "must have at least one network: without one all are refused")
    status = written.reject_status_code if isinstance(written, IpAllowList) else 403
    config = IpRestrictionConfig(
        whitelist=written.source_range,
        response_code=status,
        message="Forbidden",
        client=_client(written.ip_strategy),
    )
    return (PluginUse.of(config),)


def _client(written: IpStrategy | None) -> ClientAddressConfig | None:
    """Return which address stands for a client; None: the one that trusted proxies name."""
    if written is None:
        return None
    if written.depth:
        return ClientAddressConfig(depth=written.depth, ipv6_subnet=written.ipv6_subnet)
    if written.excluded_ips:
        return ClientAddressConfig(excluded=written.excluded_ips)
    return ClientAddressConfig(ipv6_subnet=written.ipv6_subnet) if written.ipv6_subnet is not None else None


def rate_limit(written: RateLimit, making: Making) -> tuple[PluginUse, ...]:
    """Bound the rate of requests."""
    period = written.period or 1.0
    if period < 0:
        raise Unfollowed("InvalidValue", "period", "must be longer than 0")
    key = _key(written.source_criterion)
    if not written.average:
        return ()
    rate = written.average / period
    told: dict[str, Any] = {
        "rate": rate,
        "burst": max(written.burst if written.burst is not None else 1, 1) - 1,
        "max_delay": _MAX_DELAY_S if rate < 1 else 1 / (2 * int(rate)),
        "rejected_code": 429,
        **key,
    }
    secrets: dict[str, ClusterValue] = {}
    if written.redis is not None:
        tls, key = _redis_tls(written.redis, making)
        told |= _redis(written.redis) | tls
        told["group"] = f"{making.namespace}/{making.name}"
        secrets = _login(written.redis, making) | key
    use = PluginUse.of(LimitReqConfig.model_validate(told))
    return (use.model_copy(update={"secrets": secrets}),)


def _redis(written: Redis) -> dict[str, Any]:
    """Return where counts are shared."""
    tls = written.tls
    if not written.endpoints:
        raise Unfollowed("Required", "redis.endpoints", "must have an address, such as redis:6379")
    servers = [_server(text) for text in written.endpoints]
    timeout = written.read_timeout if written.read_timeout and written.read_timeout > 0 else _REDIS_TIMEOUT_S
    told: dict[str, Any] = {"redis_timeout": max(int(timeout * 1000), 1)}
    verify = tls is not None and not tls.insecure_skip_verify
    if len(servers) > 1:
        told |= {"policy": "redis-cluster", "redis_cluster_name": "traefik", "redis_cluster_nodes": written.endpoints}
        return told | {"redis_cluster_ssl": tls is not None, "redis_cluster_ssl_verify": verify}
    ((host, port),) = servers
    told |= {"policy": "redis", "redis_host": host, "redis_port": port, "redis_database": written.db}
    return told | {"redis_ssl": tls is not None, "redis_ssl_verify": verify}


def _redis_tls(written: Redis, making: Making) -> tuple[dict[str, Any], dict[str, ClusterValue]]:
    """Return whom Redis is known by, and what it knows us by; the second with the key."""
    if written.tls is None:
        return {}, {}
    ours = read_client_tls(written.tls, "redis.tls", making)
    told = {"redis_ssl_ca": ours.authorities_pem or None, "redis_ssl_certificate": ours.chain_pem or None}
    return told, {} if ours.key is None else {"redis_ssl_key": ours.key}


def _server(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not (port.isascii() and port.isdecimal() and 0 < int(port) < 65536):
        raise Unfollowed("InvalidValue", "redis.endpoints", f"must be host:port, such as redis:6379: {text[:80]!r}")
    return host.strip("[]"), int(port)


def _login(written: Redis, making: Making) -> dict[str, ClusterValue]:
    """Return name and password of a Secret, as far as it has them."""
    held = making.find_secret("redis.secret", written.secret) if written.secret else None
    values = held.values if held is not None else {}
    given = {"redis_username": values.get("username"), "redis_password": values.get("password")}
    return {place: value.of(making.cluster) for place, value in given.items() if value is not None}


def in_flight_requests(written: InFlightRequests, making: Making) -> tuple[PluginUse, ...]:
    """Bound the requests at once, of a host if nothing else is said."""
    if not written.amount:
        return (PluginUse.of(WorkflowConfig.model_validate({"rules": [_TOO_MANY]})),)
    key = _key(written.source_criterion) or {"key": "host"}
    return (PluginUse.of(LimitConnConfig(conn=written.amount, burst=0, rejected_code=429, **key)),)


def _key(written: SourceCriterion | None) -> dict[str, Any]:
    """Return what requests are counted by."""
    if written is None:
        return {}
    given = (written.ip_strategy is not None, bool(written.request_header_name), written.request_host)
    if sum(given) > 1:
        raise Unfollowed("InvalidValue", "sourceCriterion", "must be one criterion, but has several")
    if written.request_host:
        return {"key": "host"}
    if written.request_header_name:
        return {"key": f"http_{written.request_header_name.lower().replace('-', '_')}"}
    client = _client(written.ip_strategy)
    return {"client": client} if client is not None else {}
