"""Examples of Apache APISIX' documentation whose counts are in Redis: one ApisixRoute on two gateways."""

from typing import Any

from fakes.gateway.served import HOST
from fakes.stores.redis import real_redis
from fakes.translator.apisix import route, rule
from fakes.translator.applied import world


async def test_a_limit_with_delayed_synchronization_counts_each_request_at_once() -> None:
    async with real_redis() as redis, world("one") as first, world("one") as second:
        await redis.ask("CONFIG", "SET", "requirepass", "p@ssw0rd")
        use: dict[str, Any] = {
            "count": 6,
            "time_window": 600,
            "rejected_code": 429,
            "key": "remote_addr",
            "policy": "redis",
            "redis_host": "127.0.0.1",
            "redis_port": redis.port,
            "redis_password": "p@ssw0rd",
            "redis_database": 1,
            "redis_timeout": 5000,
            "sync_interval": 599,
        }
        plugins = [{"name": "limit-count", "enable": True, "config": use}]
        manifest = route(rule(hosts=[HOST], backends=[{"serviceName": "one", "servicePort": 80}], plugins=plugins))
        for gateway in (first, second):
            gateway.proxy.apply(manifest)
            assert gateway.proxy.errors(manifest) == []
        answers = [await gateway.proxy.get() for gateway in (first, second) * 4]
    assert [answer.status for answer in answers] == [200] * 6 + [429] * 2
    assert [answer["x-ratelimit-remaining"] for answer in answers] == ["5", "4", "3", "2", "1", "0", "0", "0"]
