"""Two clusters behind one entrance: shared, weighed, drained, and one of them silent."""

import asyncio
from collections import Counter
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from fakes.command import headgate
from fakes.gateway.ports import free_ports
from fakes.service_process import running_service
from fakes.stack import Stack
from headgate.cli.up.data_dir import read_state

HOST = "shop.example"


def manifests(port: int, *, with_route: bool) -> str:
    route = f"""
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {{name: shop, namespace: default}}
spec:
  rules:
    - host: {HOST}
      http:
        paths:
          - {{path: /, pathType: Prefix, backend: {{service: {{name: shop, port: {{number: 80}}}}}}}}
---"""
    return f"""{route if with_route else ""}
apiVersion: v1
kind: Service
metadata: {{name: shop, namespace: default, annotations: {{headgate.dev/global: "true"}}}}
spec: {{ports: [{{port: 80, targetPort: {port}}}]}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {{name: shop-1, namespace: default, labels: {{kubernetes.io/service-name: shop}}}}
addressType: IPv4
endpoints: [{{addresses: [127.0.0.1], conditions: {{ready: true}}}}]
ports: [{{port: {port}, protocol: TCP}}]
"""


def watcher(folder: Path, stack: Stack, cluster: str) -> AbstractAsyncContextManager[asyncio.subprocess.Process]:
    state = read_state(stack.data_dir)
    assert state is not None
    flags = (f"--manifests={folder}", f"--cluster={cluster}", f"--nats-url={state.nats_url}")
    return running_service("watcher", *flags, f"--data-dir={stack.data_dir}", log=folder.with_suffix(".log"))


async def ask(stack: Stack, *words: str) -> str:
    return (await headgate(*words, f"--data-dir={stack.data_dir}")).out


async def names(stack: Stack, count: int = 20) -> Counter[str]:
    return Counter([(await stack.get(HOST, "/")).json["name"] for _ in range(count)])


async def until_names(stack: Stack, *expected: str) -> None:
    async with asyncio.timeout(30):
        while set(await names(stack)) != set(expected):  # noqa: ASYNC110 - what is waited for has no event
            await asyncio.sleep(0.05)


async def test_two_clusters_serve_one_host(tmp_path: Path) -> None:
    east, west = tmp_path / "east", tmp_path / "west"
    red, blue = free_ports(2)
    for folder, port in ((east, red), (west, blue)):
        folder.mkdir()
        (folder / "shop.yaml").write_text(manifests(port, with_route=folder is east))
    extra = ["--cluster=east", f"--demo-backend=red={red}", f"--demo-backend=blue={blue}"]
    async with Stack(manifests=east, extra=extra) as stack:
        await stack.wait_for_answer(HOST, "/")
        assert set(await names(stack)) == {"red"}
        async with watcher(west, stack, "west") as second:
            await until_names(stack, "red", "blue")
            await ask(stack, "set-cluster", "west", "--weight=3")
            async with asyncio.timeout(30):
                while await names(stack, 40) != {"blue": 30, "red": 10}:  # noqa: ASYNC110 - another process
                    await asyncio.sleep(0.05)
            await ask(stack, "drain", "west", "--by=ada", "--reason=upgrade")
            await until_names(stack, "red")
            second.kill()
            await second.wait()
        async with watcher(west, stack, "west") as second:  # which compares the log with what it reads
            (west / "other.yaml").write_text(manifests(blue, with_route=True).replace("shop", "other"))
            await stack.wait_for_answer("other.example", "/", name="blue")
            assert set(await names(stack)) == {"red"}
            assert "drained by ada" in await ask(stack, "clusters")
            await ask(stack, "undrain", "west")
            await until_names(stack, "red", "blue")
            second.kill()
            await second.wait()
        # A watcher that is gone takes nothing with it.
        await asyncio.sleep(1.0)
        assert set(await names(stack)) == {"red", "blue"}
        (east / "shop.yaml").write_text(manifests(red, with_route=True).replace("ready: true", "ready: false"))
        await until_names(stack, "blue")
