"""Limits, bounds and kept answers of a gateway with several workers, as processes: of all of them together."""

import asyncio
import os
import re
import signal
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from fakes.gateway.process import GatewayProcess, commit, open_stores
from fakes.gateway.table import ORIGIN, host, route
from fakes.waiting import until
from headgate.cli.up.embedded_nats import EmbeddedNats
from headgate.common.stores.nats import NatsStores
from headgate.common.table import CircuitBreaker, Endpoint, PluginUse, Upstream
from headgate.common.table_image import TableImage

WORKERS = 3


class Held:
    """An upstream that answers when it is told to."""

    def __init__(self) -> None:
        self.port = 0
        self.waiting = 0
        self.served = 0
        self.may_answer = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while await reader.readuntil(b"\r\n\r\n"):
                self.waiting += 1
                await self.may_answer.wait()
                self.waiting -= 1
                self.served += 1
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        writer.close()


@pytest.fixture
async def held() -> AsyncIterator[Held]:
    upstream = Held()
    server = await asyncio.start_server(upstream.serve, "127.0.0.1", 0)
    upstream.port = server.sockets[0].getsockname()[1]
    yield upstream
    upstream.may_answer.set()
    server.close()


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[EmbeddedNats]:
    running = EmbeddedNats(tmp_path / "nats")
    await running.start()
    yield running
    await running.stop()


@pytest.fixture
async def stores(broker: EmbeddedNats) -> AsyncIterator[NatsStores]:
    bus, opened = await open_stores(broker.url)
    yield opened
    await bus.close()


def plugin(name: str, **config: object) -> PluginUse:
    return PluginUse(name=name, config=config)


@asynccontextmanager
async def serving(
    tmp_path: Path,
    broker: EmbeddedNats,
    stores: NatsStores,
    held: Held,
    *flags: str,
    plugins: Mapping[str, PluginUse] = {},
    breaker: CircuitBreaker | None = None,
) -> AsyncIterator[GatewayProcess]:
    """A gateway with a route for each path that has a plugin, and `/` to an upstream with this breaker."""
    endpoints = (Endpoint(address="127.0.0.1", port=held.port),)
    routes = [
        route(path, "prefix", "plain").model_copy(update={"plugins": (use,)}) for path, use in plugins.items()
    ] + [route("/", "prefix", "up")]
    up = Upstream(key="up", endpoints=endpoints, circuit_breaker=breaker, provenance=ORIGIN)
    plain = Upstream(key="plain", endpoints=endpoints, provenance=ORIGIN)
    await commit(stores.snapshots, TableImage([host("foo.com", *routes), up, plain]), (1, 1))
    async with GatewayProcess(tmp_path / "data", broker.url, f"--workers={WORKERS}", *flags) as gateway:
        await gateway.ready()
        yield gateway


async def ask(gateway: GatewayProcess, path: str = "/", method: str = "GET") -> int:
    """The status of an answer on a connection of its own; 0 if it was closed without one."""
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", gateway.http_port)
        writer.write(f"{method} {path} HTTP/1.1\r\nHost: foo.com\r\nConnection: close\r\n\r\n".encode())
        head = await reader.read(100)
        writer.close()
    except ConnectionError:
        return 0
    return int(head.split()[1]) if head else 0


async def ask_at_once(gateway: GatewayProcess, held: Held, path: str = "/") -> "tuple[int, list[asyncio.Task[int]]]":
    """Have 30 requests under way; return how many were let through, and all."""
    asking = [asyncio.create_task(ask(gateway, path)) for _ in range(30)]
    await until(lambda: held.waiting + sum(task.done() for task in asking) == 30)
    return held.waiting, asking


async def by_worker(gateway: GatewayProcess) -> dict[str, int]:
    """How many requests each worker had."""
    counts: Counter[str] = Counter()
    for worker, count in re.findall(
        r'headgate_requests_total\{.*worker="(\d)"\} (\d+)', (await gateway.admin("/metrics"))[1]
    ):
        counts[worker] += int(count)
    return counts


async def test_limits_and_kept_answers_are_those_of_all_workers(
    tmp_path: Path, broker: EmbeddedNats, stores: NatsStores, held: Held
) -> None:
    held.may_answer.set()
    plugins = {
        "/fixed": plugin("limit-count", count=20, time_window=600),
        "/sliding": plugin("limit-count", count=20, time_window=86_400, window_type="sliding"),
        "/rate": plugin("limit-req", rate=0.001, burst=19, nodelay=True, key="remote_addr"),
        "/at-once": plugin("limit-count", count=100, time_window=600),
        "/cache": plugin("proxy-cache", cache_ttl=600),
    }
    async with serving(tmp_path, broker, stores, held, plugins=plugins) as gateway:
        for path in ("/fixed", "/sliding", "/rate"):
            assert Counter([await ask(gateway, path) for _ in range(60)]) == {200: 20, 503: 40}
        assert len(await by_worker(gateway)) == WORKERS
        statuses = Counter(await asyncio.gather(*(ask(gateway, "/at-once") for _ in range(300))))
        assert 100 <= statuses[200] <= 100 + 2 * (WORKERS - 1)
        before = held.served
        for _ in range(2):
            assert Counter([await ask(gateway, "/cache") for _ in range(30)]) == {200: 30}
            assert Counter([await ask(gateway, "/cache", "PURGE") for _ in range(10)]) == {200: 1, 404: 9}
        assert held.served - before == 2


async def test_requests_under_way_are_bounded_and_those_of_killed_workers_given_back(
    tmp_path: Path, broker: EmbeddedNats, stores: NatsStores, held: Held
) -> None:
    plugins = {"/conn": plugin("limit-conn", conn=6, burst=0, default_conn_delay=1, key="remote_addr")}
    breaker = CircuitBreaker(max_requests=5)
    async with serving(tmp_path, broker, stores, held, plugins=plugins, breaker=breaker) as gateway:
        # Of those that come in the same instant for the last place each worker may refuse one.
        let_through, asking = await ask_at_once(gateway, held)
        assert 5 - (WORKERS - 1) <= let_through <= 5
        held.may_answer.set()
        assert Counter(await asyncio.gather(*asking)) == {200: let_through, 503: 30 - let_through}
        held.may_answer.clear()
        let_through, asking = await ask_at_once(gateway, held, "/conn")
        assert 6 - (WORKERS - 1) <= let_through <= 6
        for pid in re.findall(r"worker started.*pid=(\d+)", gateway.log):
            os.kill(int(pid), signal.SIGKILL)
        await until(lambda: all(task.done() for task in asking))
        await until(lambda: len(re.findall("worker started", gateway.log)) == 2 * WORKERS)
        held.may_answer.set()
        await gateway.ready()
        assert [await ask(gateway, "/conn") for _ in range(12)] == [200] * 12


async def test_connections_of_a_client_are_bounded_over_all_workers(
    tmp_path: Path, broker: EmbeddedNats, stores: NatsStores, held: Held
) -> None:
    async with serving(tmp_path, broker, stores, held, "--max-connections-per-client=7") as gateway:
        let_through, asking = await ask_at_once(gateway, held)
        assert 7 - (WORKERS - 1) <= let_through <= 7
        held.may_answer.set()
        assert Counter(await asyncio.gather(*asking)) == {200: let_through, 0: 30 - let_through}
        assert await ask(gateway) == 200
