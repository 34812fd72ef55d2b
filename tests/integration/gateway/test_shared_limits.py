"""Limits of several gateways that count together, in real Redis servers."""

import asyncio
import gc
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from cryptography.x509 import IPAddress

from fakes.gateway.ports import free_port
from fakes.gateway.tls import Authority, SelfSigned
from fakes.stores.redis import RedisServer, Relay, eventually, real_redis, watched_pair
from fakes.waiting import until
from headgate.gateway.plugins.interface import PluginServices
from headgate.gateway.plugins.redis.counters import CountersDirectory
from headgate.gateway.plugins.runtime.chain import PluginChain
from unit.gateway.plugins.ai.provider import CHAT, fake_provider, says
from unit.gateway.plugins.ai.test_ai_proxy import CHAT_REQUEST, asking
from unit.gateway.plugins.running import asked, chain, exchanged, request

Config = dict[str, Any]


@asynccontextmanager
async def one_server() -> AsyncIterator[Config]:
    async with real_redis() as server:
        yield to_server(server)


def to_server(server: RedisServer, **more: Any) -> Config:
    return {"policy": "redis", "redis_host": "127.0.0.1", "redis_port": server.port, "redis_timeout": 5000, **more}


@asynccontextmanager
async def sentinels() -> AsyncIterator[Config]:
    async with watched_pair() as pair:
        servers = [{"host": "127.0.0.1", "port": each.port} for each in pair.sentinels]
        login = {"redis_username": "replica", "redis_password": "replica-password"}
        await pair.primary.ask("ACL", "SETUSER", "replica", "allcommands", "allkeys")
        names = {"redis_sentinels": servers, "redis_master_name": "tables", "redis_timeout": 5000}
        yield {"policy": "redis-sentinel", **names, **login}


@asynccontextmanager
async def cluster() -> AsyncIterator[Config]:
    async with real_redis("cluster-enabled yes", f"cluster-port {free_port()}") as server:
        await server.ask("CLUSTER", "ADDSLOTSRANGE", 0, 16383)

        async def is_ready() -> bool:
            return b"cluster_state:ok" in await server.ask("CLUSTER", "INFO")

        await eventually(is_ready)
        nodes = {"redis_cluster_nodes": [f"127.0.0.1:{server.port}"], "redis_cluster_name": "limits"}
        yield {"policy": "redis-cluster", **nodes, "redis_timeout": 5000}


KINDS: dict[str, Callable[[], AbstractAsyncContextManager[Config]]] = {
    "redis": one_server,
    "redis-sentinel": sentinels,
    "redis-cluster": cluster,
}


@asynccontextmanager
async def gateways(*uses: tuple[str, Config], count: int = 2, **given: Any) -> AsyncIterator[list[PluginChain]]:
    """Make the same plugins in several gateways."""
    directories = [CountersDirectory() for _ in range(count)]
    try:
        yield [chain(*uses, services=PluginServices(find_counters=each.find, **given)) for each in directories]
    finally:
        for each in directories:
            await each.close()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("window_type", ["fixed", "sliding"])
async def test_gateways_count_together(kind: str, window_type: str) -> None:
    async with KINDS[kind]() as place:
        limit = {"count": 3, "time_window": 600, "window_type": window_type, "rejected_code": 429, **place}
        async with gateways(("limit-count", limit)) as (one, other):
            responses = [await exchanged(plugins, request()) for plugins in (one, other, one, other)]
    assert [response.status for response in responses] == [200, 200, 200, 429]
    assert [response.headers.get("X-RateLimit-Remaining") for response in responses] == ["2", "1", "0", "0"]
    assert 0 < int(responses[-1].headers.get("X-RateLimit-Reset") or 0) <= 600


@pytest.mark.parametrize("kind", KINDS)
async def test_tokens_of_models_are_counted_together(kind: str) -> None:
    async with fake_provider(says(CHAT)) as server, KINDS[kind]() as place:
        limit = ("ai-rate-limiting", {"limit": 20, "time_window": 600, "rejected_code": 429, **place})
        proxy = ("ai-proxy", {"provider": "openai", "auth": {}, "override": {"endpoint": server.url}})

        async def answer(plugins: PluginChain) -> tuple[int, str | None]:
            given = asking(CHAT_REQUEST)
            response = await asked(plugins, given)
            assert response is not None
            plugins.on_response(given, response)
            await response.read_body(1 << 16)
            plugins.on_finish(given, response.status, 0.1)
            return response.status, response.headers.get("X-AI-RateLimit-Remaining-ai-proxy-openai")

        async with gateways(limit, proxy, http=server.services.http) as (one, other):
            assert await answer(one) == (200, "20")

            async def is_counted() -> bool:
                return (await answer(other))[0] == 429

            await eventually(is_counted)
            assert await answer(one) == (429, "0")


async def test_fixed_window_ends() -> None:
    async with (
        one_server() as place,
        gateways(("limit-count", {"count": 1, "time_window": 0.05, **place})) as [plugins, _],
    ):
        assert (await exchanged(plugins, request())).status == 200

        async def passes() -> bool:
            return (await exchanged(plugins, request())).status == 200

        await eventually(passes)


async def test_rates_are_kept_together_and_bursts_wait() -> None:
    async with one_server() as place:
        limit = {"rate": 0.01, "burst": 1, "nodelay": True, "key": "remote_addr", **place}
        async with gateways(("limit-req", limit)) as (one, other):
            statuses = [(await exchanged(plugins, request())).status for plugins in (one, other, one)]
    assert statuses == [200, 200, 503]


async def test_requests_wait_together_for_tokens() -> None:
    async with one_server() as place:
        limit = {"rate": 0.01, "burst": 1, "max_delay": 0.5, "rejected_code": 429, **place}
        async with gateways(("limit-req", limit)) as (one, other):
            found = [await exchanged(plugins, request()) for plugins in (one, other, one)]
    assert [response.status for response in found] == [200, 200, 429]
    assert found[2].headers.get("Retry-After") in ("99", "100")


async def test_requests_under_way_are_bounded_together_and_given_back() -> None:
    async with one_server() as place, gateways(("limit-conn", {"conn": 1, "key": "host", **place})) as (one, other):
        first = request()
        assert await asked(one, first) is None
        assert await asked(other, request()) is not None
        one.on_finish(first, 200, 0)

        async def is_free() -> bool:
            trial = request()
            refused = await asked(other, trial)
            other.on_finish(trial, 200, 0)
            return refused is None

        await eventually(is_free)


@pytest.mark.parametrize(("degrades", "status"), [(False, 500), (True, 200)])
async def test_limit_that_cannot_count_refuses_or_lets_pass(degrades: bool, status: int) -> None:
    async with real_redis() as server:
        limit = to_server(server, allow_degradation=degrades)
        uses = [
            ("limit-count", {"count": 1, "time_window": 60, **limit}),
            ("limit-req", {"rate": 1, "burst": 0, **limit}),
            ("limit-conn", {"conn": 1, **limit}),
        ]
        await server.kill()
        for use in uses:
            async with gateways((use[0], {**use[1], "redis_timeout": 50}), count=1) as [plugins]:
                assert (await exchanged(plugins, request())).status == status


async def test_counting_goes_on_when_the_server_is_back() -> None:
    async with real_redis() as server:
        limit = {"count": 100, "time_window": 60, **to_server(server)}
        async with gateways(("limit-count", limit), count=1) as [plugins]:
            assert (await exchanged(plugins, request())).status == 200
            await server.kill()
            await server.start()

            async def counts() -> bool:
                return (await exchanged(plugins, request())).status == 200

            await eventually(counts)


async def test_password_is_sent() -> None:
    async with real_redis() as server:
        await server.ask("ACL", "SETUSER", "limiter", "on", ">pass", "allcommands", "allkeys")
        login = {"redis_username": "limiter", "redis_password": "pass"}
        for more, status in ((login, 200), ({**login, "redis_password": "wrong"}, 500)):
            limit = {"count": 1, "time_window": 60, **to_server(server, **more), "redis_timeout": 3000}
            async with gateways(("limit-count", limit), count=1) as [plugins]:
                assert (await exchanged(plugins, request())).status == status


@pytest.mark.parametrize(("verifies", "status"), [(False, 200), (True, 500)])
async def test_certificate_is_only_checked_if_asked_for(verifies: bool, status: int) -> None:
    async with real_redis() as server, Relay(server.port, SelfSigned("redis.example").server_context()) as relay:
        tls = {"redis_ssl": True, "redis_ssl_verify": verifies, "redis_port": relay.port}
        limit = {"count": 1, "time_window": 60, **to_server(server), **tls}
        async with gateways(("limit-count", {**limit, "redis_timeout": 3000}), count=1) as [plugins]:
            assert (await exchanged(plugins, request())).status == status


def relayed(authority: Authority, folder: Path, *, asks: bool) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*authority.issue("redis", IPAddress(ip_address("127.0.0.1"))).write(folder))
    if asks:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=authority.pem.decode())
    return context


@pytest.mark.parametrize("is_cluster", [False, True])
@pytest.mark.parametrize(("trusted", "shown", "status"), [(0, 0, 200), (1, 0, 500), (0, 1, 500), (0, None, 500)])
async def test_authorities_and_a_certificate_of_its_own(
    tmp_path: Path, trusted: int, shown: int | None, status: int, is_cluster: bool
) -> None:
    authorities = Authority("right"), Authority("wrong")
    tls: Config = {"redis_ssl_ca": authorities[trusted].pem.decode()}
    if shown is not None:
        issued = authorities[shown].issue("gateway")
        tls |= {"redis_ssl_certificate": issued.chain_pem.decode(), "redis_ssl_key": issued.key_pem.decode()}
    options = ("cluster-enabled yes", f"cluster-port {free_port()}") if is_cluster else ()
    async with (
        real_redis(*options) as server,
        Relay(server.port, relayed(authorities[0], tmp_path, asks=True)) as relay,
    ):
        told = {"policy": "redis", "redis_host": "127.0.0.1", "redis_port": relay.port}
        told |= {"redis_ssl": True, "redis_ssl_verify": True}
        if is_cluster:
            await server.ask("CONFIG", "SET", "cluster-announce-port", relay.port)
            await server.ask("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
            told = {"policy": "redis-cluster", "redis_cluster_nodes": [f"127.0.0.1:{relay.port}"]}
            told |= {"redis_cluster_name": "limits", "redis_cluster_ssl": True, "redis_cluster_ssl_verify": True}

            async def is_ready() -> bool:
                return b"cluster_state:ok" in await server.ask("CLUSTER", "INFO")

            await eventually(is_ready)
        limit = {"count": 1, "time_window": 60, **told, **tls, "redis_timeout": 3000}
        async with gateways(("limit-count", limit), count=1) as [plugins]:
            assert (await exchanged(plugins, request())).status == status


async def test_connection_is_shared_and_closed_with_the_last_limit() -> None:
    async with real_redis() as server:
        directory = CountersDirectory()
        services = PluginServices(find_counters=directory.find)
        limit = {"count": 9, "time_window": 60, **to_server(server)}
        first = chain(("limit-count", limit), services=services, scope="one")
        second = chain(("limit-count", limit), services=services, scope="two")
        await asyncio.gather(*(asked(plugins, request()) for plugins in (first, second, first)))
        assert await connections(server) == 1
        del first, second, services
        gc.collect()
        await until(lambda: directory.is_idle)

        async def are_closed() -> bool:
            return await connections(server) == 0

        await eventually(are_closed)


async def connections(server: RedisServer) -> int:
    told: bytes = await server.ask("CLIENT", "LIST")
    return told.count(b"name=headgate-limits")
