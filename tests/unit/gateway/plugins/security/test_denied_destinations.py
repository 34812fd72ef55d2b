"""Servers that no plugin may ask, whatever it speaks: nothing connects, and the plugin says why it could not."""

import asyncio
import contextlib
import gc
import warnings
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web

from fakes.gateway.ports import free_port
from fakes.gateway.streams import serving, udp_server
from fakes.kubernetes.forbidden import forbidden, without
from fakes.peers.kafka_broker import kafka_broker
from fakes.stores.redis import real_redis
from fakes.virtual_time import in_virtual_time
from fakes.waiting import until
from headgate.common.errors import StoreUnavailable
from headgate.common.plugins.authentication.openid_session import SessionRedisConfig
from headgate.common.plugins.observability.loggers import KafkaLoggerConfig
from headgate.common.stores.redis.counters import RedisCounters
from headgate.common.stores.redis.target import CountersTarget, RedisTarget, Server
from headgate.gateway.net.dialling import Dialler
from headgate.gateway.plugins.built_in.observability import batches
from headgate.gateway.plugins.built_in.observability.batched_logger import send_datagrams, send_stream
from headgate.gateway.plugins.built_in.observability.kafka.cluster import KafkaCluster
from headgate.gateway.plugins.interface import PluginServices, Request, no_upstreams
from headgate.gateway.plugins.kit.calls import CallFailed, Proxy, call_url, make_client
from headgate.gateway.plugins.redis.counters import CountersDirectory
from headgate.gateway.plugins.redis.sessions import SessionsDirectory
from headgate.gateway.plugins.runtime.host import PluginHost
from unit.gateway.plugins.observability.test_loggers import Closed, logged
from unit.gateway.plugins.people import basic, consumer, directory
from unit.gateway.plugins.running import asked, chain, exchanged, request, unsealed
from unit.gateway.plugins.service import running

DENIED = "of the setting denied_destinations"


@contextlib.asynccontextmanager
async def client_services(dialler: Dialler) -> AsyncIterator[PluginServices]:
    """What plugins are given whose HTTP client asks a dialler."""
    client = make_client(dialler)
    try:
        yield PluginServices(http=lambda: client, dialler=dialler)
    finally:
        await client.close()


def told(caplog: pytest.LogCaptureFixture) -> str:
    """Reasons that were logged."""
    return str([getattr(record, "reason", "") for record in caplog.records])


def loopback_denied() -> Dialler:
    return without("127.0.0.0/8", "::1/128")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]"])
@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_the_http_client_of_plugins_connects_to_no_denied_address(scheme: str, host: str) -> None:
    async with forbidden() as server, client_services(loopback_denied()) as services:
        with pytest.raises(CallFailed, match=DENIED):
            await call_url(services, f"{scheme}://{host}:{server.port}/", Request(), timeout_s=30, max_body=10)


async def test_neither_does_it_to_a_denied_proxy() -> None:
    async with forbidden() as server, client_services(loopback_denied()) as services:
        proxy = Proxy(f"http://127.0.0.1:{server.port}")
        for url in ("http://web.example/", "https://web.example/"):
            with pytest.raises(CallFailed, match=DENIED):
                await call_url(services, url, Request(), timeout_s=30, max_body=10, proxy=proxy)


async def test_the_gateway_itself_gets_its_own_pages_wherever_they_are() -> None:
    async with running(lambda seen: web.Response(text="metrics")) as service:
        host = PluginHost(unsealed, no_upstreams, dialler=loopback_denied())
        assert (await host.fetch_own(f"{service.url}/metrics")).status == 200
        await host.close()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_loggers_send_nothing_to_a_denied_address(host: str) -> None:
    async with forbidden() as server:
        for tls in (False, True):
            with pytest.raises(OSError, match=DENIED):
                await send_stream(loopback_denied(), host, server.port, b"x", timeout_s=30, tls=tls)
    async with udp_server() as receiver:
        with pytest.raises(OSError, match=DENIED):
            await send_datagrams(loopback_denied(), host, receiver.port, [b"x"], timeout_s=30)
        await asyncio.sleep(0)
        assert receiver.received.empty()


@pytest.mark.parametrize(
    ("name", "config"),
    [
        ("http-logger", {"uri": "http://127.0.0.1:{port}/"}),
        ("tcp-logger", {"host": "127.0.0.1"}),
        ("syslog", {"host": "127.0.0.1"}),
        ("syslog", {"host": "127.0.0.1", "sock_type": "udp"}),
        ("udp-logger", {"host": "127.0.0.1"}),
        ("kafka-logger", {"brokers": [{"host": "127.0.0.1"}], "kafka_topic": "logs"}),
    ],
)
async def test_a_logger_says_why_its_entries_are_lost(
    name: str, config: dict[str, Any], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "CLOSE_S", 60.0)
    async with forbidden() as server, client_services(loopback_denied()) as services:
        config = {key: value.format(port=server.port) if key == "uri" else value for key, value in config.items()}
        if "host" in config:
            config["port"] = server.port
        for broker in config.get("brokers", ()):
            broker["port"] = server.port
        closed = Closed(http=services.http, dialler=services.dialler)
        await logged(name, {**config, "max_retry_count": 0}, closed)
        await closed.close()
    assert DENIED in caplog.text


async def test_an_ldap_server_at_a_denied_address_is_not_asked(caplog: pytest.LogCaptureFixture) -> None:
    people = directory(consumer("jack", ("ldap-auth", {"user_dn": "cn=jack,dc=x"})))
    async with forbidden() as server:
        services = PluginServices(consumers=people, dialler=loopback_denied())
        for scheme in ("ldap", "ldaps"):
            told = {"ldap_uri": f"{scheme}://localhost:{server.port}", "base_dn": "dc=x"}
            answer = await asked(chain(("ldap-auth", told), services=services), request("/", [basic("jack", "secret")]))
            assert answer is not None
            assert answer.status == 503
    assert DENIED in caplog.text


@pytest.mark.parametrize(
    "place",
    [
        {"policy": "redis", "redis_host": "127.0.0.1"},
        {"policy": "redis", "redis_host": "127.0.0.1", "redis_ssl": True},
        {"policy": "redis-sentinel", "redis_sentinels": [{"host": "127.0.0.1"}], "redis_master_name": "m"},
        {"policy": "redis-cluster", "redis_cluster_nodes": ["127.0.0.1"], "redis_cluster_name": "c"},
        {"policy": "redis-cluster", "redis_cluster_nodes": ["127.0.0.1"], "redis_cluster_name": "c"}
        | {"redis_cluster_ssl": True},
    ],
)
@in_virtual_time
async def test_limits_count_in_no_redis_at_a_denied_address(place: dict[str, Any]) -> None:
    async with forbidden() as server:
        place = {**place, "redis_timeout": 5000}
        if "redis_host" in place:
            place["redis_port"] = server.port
        for sentinel in place.get("redis_sentinels", ()):
            sentinel["port"] = server.port
        if "redis_cluster_nodes" in place:
            place["redis_cluster_nodes"] = [f"127.0.0.1:{server.port}"]
        directory = CountersDirectory(loopback_denied())
        limit = {"count": 1, "time_window": 60, **place}
        plugins = chain(("limit-count", limit), services=PluginServices(find_counters=directory.find))
        assert (await exchanged(plugins, request())).status == 500
        await directory.close()


@in_virtual_time
async def test_sessions_are_kept_in_no_redis_at_a_denied_address(caplog: pytest.LogCaptureFixture) -> None:
    async with forbidden() as server:
        sessions = SessionsDirectory(loopback_denied())
        held = sessions.find(SessionRedisConfig(host="127.0.0.1", port=server.port))
        with pytest.raises(StoreUnavailable):
            await held.link.get("key")
        await sessions.close()
    assert DENIED in told(caplog)


@in_virtual_time
async def test_a_sentinel_leads_to_no_primary_at_a_denied_address(caplog: pytest.LogCaptureFixture) -> None:
    """It is the Sentinels who say where the primary is."""

    async def tell(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        words = [b"flags", b"master", b"config-epoch", b"1", b"ip", b"127.0.0.2", b"port", b"%d" % server.port]
        answer = b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in words)
        while data := await reader.read(4096):
            writer.write(answer if b"SENTINEL" in data else b"+OK\r\n")
        writer.close()

    async with forbidden("127.0.0.2") as server, serving(tell) as sentinel:
        target = RedisTarget((Server("127.0.0.1", sentinel),), service="m")
        counters = RedisCounters(CountersTarget(target, timeout_s=5.0), without("127.0.0.2").dial)
        with pytest.raises(StoreUnavailable):
            await counters.pour("key", 1, 1)
        await counters.close()
    assert DENIED in told(caplog)


async def test_a_cluster_of_redis_leads_to_no_node_at_a_denied_address() -> None:
    """It is the nodes that say where the others are."""
    options = ("cluster-enabled yes", f"cluster-port {free_port()}", "cluster-announce-ip 127.0.0.2")
    async with real_redis(*options) as server:
        await server.ask("CLUSTER", "ADDSLOTSRANGE", 0, 16383)

        async def is_a_cluster() -> bool:
            return b"cluster_state:ok" in await server.ask("CLUSTER", "INFO")

        await until(is_a_cluster)
        target = CountersTarget(server.target, is_cluster=True, timeout_s=20.0)
        counters = RedisCounters(target, without("127.0.0.2").dial)
        with pytest.raises(StoreUnavailable, match=DENIED):
            await counters.pour("key", 1, 1)
        await counters.close()
        with warnings.catch_warnings():
            # redis-py forgets the connection by which it asked for the nodes, where these have other addresses.
            warnings.simplefilter("ignore", ResourceWarning)
            del counters
            gc.collect()


async def test_a_broker_leads_a_logger_to_no_denied_address(caplog: pytest.LogCaptureFixture) -> None:
    """It is the brokers who say where the others are."""

    async with forbidden("127.0.0.2") as server, kafka_broker(advertised=("127.0.0.2", server.port)) as broker:
        config = KafkaLoggerConfig(brokers=[{"host": "127.0.0.1", "port": broker.port}], kafka_topic="logs", timeout=2)
        cluster = KafkaCluster(config, without("127.0.0.2"))
        with pytest.raises(OSError, match="not ready"):
            await cluster.send("logs", b"x", None)
        await cluster.close()
        assert broker.accepted
    assert DENIED in caplog.text
