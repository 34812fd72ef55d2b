"""Pods as backends, where the cluster has nodes: their addresses come from its own controllers."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from cluster.facts import Facts
from cluster.pods import PORT, backend, backends, is_ready
from cluster.serving import apply_ingress, serving
from fakes.kubernetes.real import RealCluster, eventually


async def is_reached(address: str) -> bool:
    try:
        async with asyncio.timeout(5):
            _, writer = await asyncio.open_connection(address, PORT)
    except (OSError, TimeoutError):
        return False
    writer.close()
    return True


async def test_pods_take_traffic_while_they_are_ready(cluster: RealCluster, facts: Facts, tmp_path: Path) -> None:
    if not facts.nodes:
        pytest.skip("the cluster has no node that runs pods")
    await cluster.apply(backends("web"))
    await cluster.apply(backend("red", "web"))
    await eventually(lambda: is_ready(cluster, "red"))
    if not await is_reached((await cluster.get("pods", "red"))["status"]["podIP"]):
        pytest.skip("pods cannot be reached from this machine, on which the gateway runs")
    host = await apply_ingress(cluster, "pods")
    async with serving(cluster, tmp_path) as stack:
        await stack.wait_for_answer(host, "/", name="red")
        await cluster.apply(backend("blue", "web"))
        await stack.wait_for_answer(host, "/", name="blue", within_s=90)
        await cluster.delete("pods", "red")
        await eventually(lambda: only_blue(stack, host))
        assert {(await stack.get(host, "/")).json["name"] for _ in range(10)} == {"blue"}
        await cluster.delete("pods", "blue")
        await stack.wait_for_answer(host, "/", 503, within_s=90)


async def only_blue(stack: Any, host: str) -> bool:
    names = set()
    for _ in range(10):
        answer = await stack.get(host, "/")
        names.add(answer.json["name"] if answer.status == 200 else str(answer.status))
    return names == {"blue"}
