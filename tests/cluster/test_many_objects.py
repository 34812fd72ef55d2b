"""Thousands of objects in a real cluster: lists in pages, and a namespace that is deleted with all of them."""

import asyncio
import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import pytest

from cluster.facts import Facts
from cluster.serving import CLASS, apply_service, plain, serving
from fakes.kubernetes.real import RealCluster, eventually
from fakes.peers.echo import EchoServer
from fakes.stack import Stack
from fakes.translator.deltas import ingress
from headgate.watcher.errors import Absent

COUNT = 2500
"""Five pages of 500."""
AT_ONCE = 16


async def test_all_are_served_and_go_with_their_namespace(cluster: RealCluster, facts: Facts, tmp_path: Path) -> None:
    async with EchoServer("one", cluster.address) as server:
        await apply_service(cluster, "web", server)
        names = iter([f"many-{number:04}" for number in range(COUNT)])
        await asyncio.gather(*(make(cluster, names) for _ in range(AT_ONCE)))
        async with serving(cluster, tmp_path) as stack:
            await stack.wait_for_answer(f"many-{COUNT - 1:04}.example", "/", name="one", within_s=240)
            await eventually(lambda: has_hosts(stack, COUNT), 240)
            if not facts.has_controllers:
                pytest.skip("the cluster has no controllers that would empty a deleted namespace")
            await cluster.request("DELETE", f"/api/v1/namespaces/{cluster.namespace}")
            await eventually(lambda: has_hosts(stack, 0), 240)
            await eventually(lambda: is_gone(cluster), 120)


async def make(cluster: RealCluster, names: Iterator[str]) -> None:
    for name in names:
        placed = cluster.place(plain(ingress(name, host=f"{name}.example", class_name=CLASS)))
        await cluster.request("POST", cluster.path_of(placed).rpartition("/")[0], placed)


async def has_hosts(stack: Stack, count: int) -> bool:
    """Ask the gateway how many hosts of ours its table has."""
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"http://127.0.0.1:{stack.admin_port}/table") as answer,
    ):
        hosts = json.loads(await answer.read())["hosts"]
    return sum(1 for host in hosts if host["host"].startswith("many-")) == count


async def is_gone(cluster: RealCluster) -> bool:
    with contextlib.suppress(Absent):
        await cluster.request("GET", f"/api/v1/namespaces/{cluster.namespace}")
        return False
    return True
