"""`headgate up --store redis://`: tables and heartbeats are in Redis, and traffic does not need it."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from fakes.command import headgate
from fakes.gateway.process import GatewayProcess, commit
from fakes.gateway.table import host, upstream
from fakes.peers.echo import EchoServer
from fakes.stack import Stack
from fakes.stores.redis import RedisServer, eventually, linked, real_redis
from fakes.translator.manifests import ingress, service, write
from headgate.common.stores.redis.stores import tables_on
from headgate.common.table import Endpoint
from headgate.common.table_image import TableImage

HOST = "web.example"


async def status_of(stack: Stack, *flags: str) -> Any:
    answer = await headgate("status", f"--data-dir={stack.data_dir}", "--json", *flags, code=None)
    assert answer.code in (0, 1), answer
    return answer.json


async def test_changes_reach_traffic_over_redis_and_outlast_its_restart(tmp_path: Path) -> None:
    folder = tmp_path / "manifests"
    folder.mkdir()
    async with EchoServer("red") as red, EchoServer("blue") as blue, real_redis("appendonly yes") as redis:
        write(folder, "web.yaml", ingress("web", HOST, "web"), service("web", red.port))
        async with Stack(manifests=folder, extra=[f"--store={redis.url}"]) as stack:
            await stack.wait_for_answer(HOST, "/", name="red")
            first = (await status_of(stack))["published"]["version"]
            assert await redis.ask("HGET", "{headgate}:pointer:default", "version") == b"%d.%d" % tuple(first)
            await redis.kill()
            assert (await stack.get(HOST, "/")).status == 200
            assert (
                f"redis://127.0.0.1:{redis.port}"
                in (await headgate("routes", f"--data-dir={stack.data_dir}", code=3)).err
            )
            await redis.start()
            write(folder, "web.yaml", ingress("web", HOST, "web"), service("web", blue.port))
            await stack.wait_for_answer(HOST, "/", name="blue")
            report = await status_of(stack)
            assert report["published"]["version"] > first
            assert [beat["replica"] for beat in report["gateways"]]
            # The tables of NATS are others, and empty.
            assert (await status_of(stack, "--store=nats"))["published"] is None
            await redis.ask("FLUSHALL")
            await eventually(lambda: is_published_after(redis, report["published"]["version"]))
            assert (await stack.get(HOST, "/")).json["name"] == "blue"


async def is_published_after(redis: RedisServer, version: list[int]) -> bool:
    stored = await redis.ask("HGET", "{headgate}:pointer:default", "version")
    return stored is not None and [int(part) for part in stored.split(b".")] > version


async def test_a_store_that_is_none_is_refused_before_anything_starts(tmp_path: Path) -> None:
    flags = (f"--manifests={tmp_path}", "--store=http://x", f"--data-dir={tmp_path}")
    assert "--store: must be redis://" in (await headgate("up", *flags, code=2)).err


@pytest.mark.parametrize("workers", [1, 2])
async def test_a_gateway_with_its_tables_in_redis_needs_no_nats(tmp_path: Path, workers: int) -> None:
    flags = (f"--workers={workers}", "--instance=gw")
    async with EchoServer("red") as red, real_redis() as redis, linked(redis.target) as link:
        tables = tables_on(link)
        backend = upstream("up", Endpoint(address="127.0.0.1", port=red.port))
        await commit(tables.snapshots, TableImage([host("foo.com"), backend]), (1, 1))
        async with GatewayProcess(tmp_path / "gw", "nats://127.0.0.1:1", f"--store={redis.url}", *flags) as gateway:
            await gateway.ready()
            assert (await gateway.get())["name"] == "red"
            async with asyncio.timeout(30):
                while len(await tables.heartbeats.live()) < workers:  # noqa: ASYNC110 - heartbeats have no event
                    await asyncio.sleep(0.05)
            assert await gateway.stop() == 0
            assert await tables.heartbeats.live() == []
