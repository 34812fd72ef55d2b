"""One table that two gateways hold by halves, made of manifests by a translator, through changes."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from fakes.gateway.ports import free_ports
from fakes.stack import Stack, running_service
from headgate.common.table.shards import Shard

SHARDS = (Shard(0, 2), Shard(1, 2))
TABLE = "--table=halves"


def ingress(name: str, port: int, host: str = "") -> str:
    return f"""
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {{name: {name}, namespace: default}}
spec:
  rules:
    - host: "{host or f"{name}.example"}"
      http:
        paths:
          - {{path: /, pathType: Prefix, backend: {{service: {{name: {name}, port: {{number: 80}}}}}}}}
---
apiVersion: v1
kind: Service
metadata: {{name: {name}, namespace: default}}
spec: {{ports: [{{port: 80, targetPort: {port}}}]}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {{name: {name}-1, namespace: default, labels: {{kubernetes.io/service-name: {name}}}}}
addressType: IPv4
endpoints: [{{addresses: [127.0.0.1], conditions: {{ready: true}}}}]
ports: [{{port: {port}, protocol: TCP}}]
"""


def shard_of(host: str) -> int:
    return next(shard.number for shard in SHARDS if shard.has_name(host.encode()))


def name_of(shard: int, start: int = 0) -> str:
    return next(f"n{number}" for number in range(start, 1000) if shard_of(f"n{number}.example") == shard)


@asynccontextmanager
async def half(stack: Stack, shard: Shard) -> AsyncIterator[int]:
    """Run a gateway of a shard; give its port."""
    port, secure = free_ports(2)
    flags = (f"--shard={shard}", f"--instance=half-{shard.number}", "--allowed-destinations=127.0.0.0/8")
    async with running_service(stack, "gateway", TABLE, *flags, f"--http-port={port}", f"--https-port={secure}"):
        yield port


async def until(session: aiohttp.ClientSession, port: int, host: str, expected: object) -> None:
    """Wait until a gateway answers for a host with a status, or by a backend of this name."""
    found: object = None
    async with asyncio.timeout(60):
        while found != expected:
            try:
                async with session.get(f"http://127.0.0.1:{port}/", headers={"Host": host}) as answer:
                    found = (await answer.json())["name"] if answer.status == 200 else answer.status
            except aiohttp.ClientError as error:
                found = error
            await asyncio.sleep(0.05)


async def headgate(stack: Stack, *arguments: str) -> Any:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "headgate.cli", *arguments, f"--data-dir={stack.data_dir}"),
        stdout=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(60):
        printed, _ = await process.communicate()
    return json.loads(printed or b"[]")  # nothing, but a line of what is wrong, where no status is known yet


async def programmed(stack: Stack, name: str, reason: str) -> None:
    """Wait until the object's status says in the table whether all gateways serve it."""
    found: object = None
    async with asyncio.timeout(60):
        while found != reason:
            said = await headgate(stack, "status", "--json", f"ingress/default/{name}")
            conditions = [each for one in said if one["table"] == "halves" for each in one["conditions"]]
            found = next((each["reason"] for each in conditions if each["type"] == "Programmed"), None)


@pytest.mark.parametrize("layout", ["--sharded", "--no-sharded"])
async def test_halves_of_a_table_follow_its_changes(tmp_path: Path, layout: str) -> None:
    low, high, later = name_of(0), name_of(1), name_of(1, 500)
    red, blue = free_ports(2)
    (tmp_path / "low.yaml").write_text(ingress(low, red))
    (tmp_path / "high.yaml").write_text(ingress(high, red))
    demo = [f"--demo-backend=red={red}", f"--demo-backend=blue={blue}"]
    async with (
        Stack(manifests=tmp_path, extra=demo) as stack,
        aiohttp.ClientSession() as session,
        running_service(stack, "translator", TABLE, layout, "--instance=halves"),
        half(stack, SHARDS[0]) as lower,
    ):
        await until(session, lower, f"{low}.example", "red")
        await until(session, lower, f"{high}.example", 421)
        # The other half has no gateway: that is said of the table, and of what is new in it.
        status = await headgate(stack, "status", "--json", TABLE)
        assert [one["reason"] for one in status["problems"] if one["what"] == "table halves"] == ["ShardWithoutGateway"]
        assert not status["is_well"]
        await programmed(stack, high, "ShardWithoutGateway")
        async with half(stack, SHARDS[1]) as upper:
            await until(session, upper, f"{high}.example", "red")
            await until(session, upper, f"{low}.example", 421)
            await programmed(stack, high, "Programmed")
            await programmed(stack, low, "Programmed")
            # Endpoints change, hosts come and go; each is served where its name is, and nowhere else.
            (tmp_path / "high.yaml").write_text(ingress(high, blue))
            await until(session, upper, f"{high}.example", "blue")
            (tmp_path / "later.yaml").write_text(ingress(later, blue))
            await until(session, upper, f"{later}.example", "blue")
            await until(session, lower, f"{later}.example", 421)
            await programmed(stack, later, "Programmed")
            # A wildcard takes what has no host of its own, in both halves.
            (tmp_path / "wild.yaml").write_text(ingress("wild", red, "*.example"))
            others = [f"{name_of(shard, 700)}.example" for shard in (0, 1)]
            for port, own, other in ((lower, *others), (upper, *reversed(others))):
                await until(session, port, own, "red")
                await until(session, port, other, 421)
            await until(session, upper, f"{later}.example", "blue")
            (tmp_path / "later.yaml").unlink()
            await until(session, upper, f"{later}.example", "red")
            status = await headgate(stack, "status", "--json", TABLE)
            assert {one["shard"] for one in status["gateways"]} == {"0/2", "1/2"}
            assert status["is_well"]
