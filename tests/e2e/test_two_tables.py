"""Two tables from one log, each with a translator and a gateway of its own: tenants do not meet."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

from fakes.gateway.ports import free_ports
from fakes.stack import Stack, running_service

BOTH = "same.example"


def tenant(namespace: str, port: int) -> str:
    hosts = "".join(
        f"""
    - host: {host}
      http:
        paths:
          - {{path: /, pathType: Prefix, backend: {{service: {{name: web, port: {{number: 80}}}}}}}}"""
        for host in (f"{namespace}.example", BOTH)
    )
    return f"""
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {{name: web, namespace: {namespace}}}
spec:
  rules:{hosts}
---
apiVersion: v1
kind: Service
metadata: {{name: web, namespace: {namespace}}}
spec: {{ports: [{{port: 80, targetPort: {port}}}]}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {{name: web-1, namespace: {namespace}, labels: {{kubernetes.io/service-name: web}}}}
addressType: IPv4
endpoints: [{{addresses: [127.0.0.1], conditions: {{ready: true}}}}]
ports: [{{port: {port}, protocol: TCP}}]
"""


async def ask(session: aiohttp.ClientSession, port: int, host: str) -> tuple[int, str]:
    """Return status and name of the backend that answers, if any."""
    async with session.get(f"http://127.0.0.1:{port}/", headers={"Host": host}) as answer:
        body = await answer.read()
        return answer.status, json.loads(body)["name"] if answer.status == 200 else ""


async def until(session: aiohttp.ClientSession, port: int, host: str, expected: tuple[int, str]) -> None:
    found: Any = None
    async with asyncio.timeout(30):
        while found != expected:
            try:
                found = await ask(session, port, host)
            except aiohttp.ClientError as error:
                found = error
            await asyncio.sleep(0.05)


async def headgate(stack: Stack, *arguments: str) -> Any:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "headgate.cli", *arguments, f"--data-dir={stack.data_dir}"),
        stdout=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(30):
        printed, _ = await process.communicate()
    return json.loads(printed)


@asynccontextmanager
async def table(stack: Stack, namespace: str) -> AsyncIterator[int]:
    """Serve a namespace by a table of its own; give the port of its entrance."""
    port, secure = free_ports(2)
    ports = (f"--http-port={port}", f"--https-port={secure}")
    async with (
        running_service(stack, "translator", "--instance=another", f"--table={namespace}", f"--namespaces={namespace}"),
        running_service(
            stack, "gateway", "--instance=another", f"--table={namespace}", "--allowed-destinations=127.0.0.0/8", *ports
        ),
    ):
        yield port


async def test_tenants_have_entrances_of_their_own(tmp_path: Path) -> None:
    red, blue = free_ports(2)
    for namespace, backend in (("team-a", red), ("team-b", blue)):
        (tmp_path / f"{namespace}.yaml").write_text(tenant(namespace, backend))
    demo = [f"--demo-backend=red={red}", f"--demo-backend=blue={blue}"]
    async with (
        Stack(manifests=tmp_path, extra=demo) as stack,
        aiohttp.ClientSession() as session,
        table(stack, "team-a") as ours,
        table(stack, "team-b") as theirs,
    ):
        await until(session, ours, "team-a.example", (200, "red"))
        await until(session, theirs, "team-b.example", (200, "blue"))
        assert (await ask(session, ours, "team-b.example"))[0] == 404
        assert (await ask(session, theirs, "team-a.example"))[0] == 404
        assert await ask(session, ours, BOTH) == (200, "red")
        assert await ask(session, theirs, BOTH) == (200, "blue")
        # In the table of everything, at the entrance of `up`, one of them has the host.
        assert await ask(session, stack.http_port, "team-a.example") == (200, "red")
        assert await ask(session, stack.http_port, "team-b.example") == (200, "blue")
        assert await ask(session, stack.http_port, BOTH) == (200, "red")
        # A change of one tenant is nothing to the other.
        before = (await headgate(stack, "routes", "--json", "--table=team-a"))["version"]
        (tmp_path / "team-b.yaml").write_text(tenant("team-b", red))
        await until(session, theirs, BOTH, (200, "red"))
        routes = await headgate(stack, "routes", "--json", "--table=team-a")
        assert routes["version"] == before
        assert {route["host"] for route in routes["routes"]} == {"team-a.example", BOTH}
        status = await headgate(stack, "status", "--json", "--table=team-b")
        assert status["published"]["selection"]["namespaces"] == ["team-b"]
        assert {beat["table"] for beat in status["gateways"]} == {"team-b"}
        # Of the host that two want the older Ingress, or the first by name, has it where both are selected only.
        said = await headgate(stack, "status", "--json", "ingress/team-b/web")
        reasons = {one["table"]: {problem["reason"] for problem in one["problems"]} for one in said}
        assert "HostNotOwned" in reasons["default"]
        assert "HostNotOwned" not in reasons["team-b"]
