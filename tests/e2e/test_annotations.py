"""`headgate.dev/*` annotations in manifests on disk, seen from a client: through all services to the wire."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest
import pytest_asyncio

from fakes.command import headgate
from fakes.gateway.ports import free_ports
from fakes.peers.echo import EchoServer
from fakes.peers.http2 import Http2Origin, answer_with
from fakes.peers.steady_client import SteadyClient
from fakes.stack import Stack
from fakes.translator.manifests import ingress, service, write
from fakes.waiting import until

HOST = "demo.example"
pytestmark = pytest.mark.asyncio(loop_scope="module")


class World(NamedTuple):
    stack: Stack
    folder: Path
    servers: tuple[EchoServer, EchoServer, EchoServer]


def annotated(document: str, annotations: Mapping[str, str]) -> str:
    """A document whose first object has annotations of ours."""
    own = json.dumps({f"headgate.dev/{name}": value for name, value in annotations.items()})
    before, metadata, after = document.partition("metadata: {")
    return f"{before}{metadata}annotations: {own}, {after}"


def two_endpoints(name: str, *ports: int) -> str:
    """A Service with a slice for each port."""
    first = service(name, ports[0])
    more = [
        service(name, port).partition("---\n")[2].replace(f"{name}-1", f"{name}-{index}")
        for index, port in enumerate(ports[1:], 2)
    ]
    return "---\n".join([first, *more])


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    folder = tmp_path_factory.mktemp("manifests")
    async with EchoServer("one") as one, EchoServer("two") as two, EchoServer("three") as three:
        write(folder, "main.yaml", ingress("main", HOST, "web"), service("web", one.port))
        async with Stack(manifests=folder, extra=["--access-log=off"]) as stack:
            await stack.wait_for_answer(HOST, "/")
            yield World(stack, folder, (one, two, three))


async def names(stack: Stack, host: str, count: int, path: str = "/", **headers: str) -> set[str]:
    """Names of those who answer so many requests."""
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    return {(await stack.get(host, path, headers=sent)).json["name"] for _ in range(count)}


async def test_plugins_of_an_ingress_change_what_goes_through(world: World) -> None:
    plugins = [
        {"name": "proxy-rewrite", "config": {"add_prefix": "/v1", "headers": {"set": {"X-Added": "yes"}}}},
        {"name": "response-rewrite", "config": {"headers": {"set": {"X-Served-By": "headgate"}}}},
        {"name": "cors", "config": {"allow_origins": "https://b.example"}},
    ]
    document = annotated(ingress("plugged", "plugged.example", "web"), {"plugins": json.dumps(plugins)})
    write(world.folder, "plugged.yaml", document)
    await world.stack.wait_for_answer("plugged.example", "/")
    answer = await world.stack.get("plugged.example", "/x", headers={"Origin": "https://b.example"})
    assert answer.json["path"] == "/v1/x"
    assert answer.json["headers"]["X-Added"] == ["yes"]
    assert answer.headers["X-Served-By"] == "headgate"
    assert answer.headers["Access-Control-Allow-Origin"] == "https://b.example"


async def test_sticky_cookie_keeps_a_client_with_its_endpoint(world: World) -> None:
    one, two, _ = world.servers
    document = annotated(ingress("sticky", "sticky.example", "pair"), {"sticky-cookie": "route"})
    write(world.folder, "sticky.yaml", document, two_endpoints("pair", one.port, two.port))
    first = await world.stack.wait_for_answer("sticky.example", "/")
    cookie = first.headers["Set-Cookie"].partition(";")[0]
    assert await names(world.stack, "sticky.example", 4, Cookie=cookie) == {first.json["name"]}


async def test_canary_takes_its_part_of_the_main_ingress(world: World) -> None:
    two = world.servers[1]
    canary = {"canary": "true", "canary-by-header": "x-canary", "canary-weight": "0"}
    document = annotated(ingress("canary", HOST, "next"), canary)
    write(world.folder, "canary.yaml", document, service("next", two.port))

    async def is_taken() -> bool:
        return await names(world.stack, HOST, 1, X_Canary="always") == {"two"}

    await until(is_taken)
    assert await names(world.stack, HOST, 5) == {"one"}
    assert await names(world.stack, HOST, 2, X_Canary="never") == {"one"}


async def test_stream_port_opens_and_closes_with_its_service(world: World) -> None:
    three = world.servers[2]
    (port,) = free_ports(1)
    path = write(world.folder, "stream.yaml", annotated(service("db", three.port), {"stream-port": str(port)}))

    async def is_open() -> bool:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            return False
        try:
            writer.write(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            return b'"three"' in await reader.read()
        except ConnectionResetError:  # by a worker that does not have the stream yet, or any more
            return False
        finally:
            writer.close()

    async def is_closed() -> bool:
        return not await is_open()

    await until(is_open)
    path.unlink()
    await until(is_closed)


async def test_health_check_takes_an_endpoint_out_that_does_not_answer_it(world: World) -> None:
    one = world.servers[0]
    (closed,) = free_ports(1)
    checks = {"health-check-path": "/health", "health-check-interval": "100ms", "health-check-unhealthy-after": "1"}
    documents = annotated(two_endpoints("checked", one.port, closed), checks)
    no_retries = annotated(ingress("checked", "checked.example", "checked"), {"retries": "0"})
    write(world.folder, "checked.yaml", no_retries, documents)
    await world.stack.wait_for_answer("checked.example", "/")

    async def is_left_out() -> bool:
        return {(await world.stack.get("checked.example", "/")).status for _ in range(6)} == {200}

    await until(is_left_out)


async def test_backend_protocol_h2c_is_spoken(world: World) -> None:
    origin = Http2Origin(answer_with(b"over h2c"))
    await origin.start()
    try:
        backend = annotated(service("grpcish", origin.port), {"backend-protocol": "h2c"})
        write(world.folder, "h2c.yaml", ingress("h2c", "h2c.example", "grpcish"), backend)
        answer = await world.stack.wait_for_answer("h2c.example", "/")
        assert answer.body == b"over h2c"
    finally:
        await origin.stop()


async def test_external_name_is_resolved_by_the_gateway(world: World) -> None:
    one = world.servers[0]
    external = f"""\
apiVersion: v1
kind: Service
metadata: {{name: outside}}
spec: {{type: ExternalName, externalName: localhost, ports: [{{name: http, port: {one.port}}}]}}
"""
    write(world.folder, "external.yaml", ingress("external", "external.example", "outside"), external)
    await world.stack.wait_for_answer("external.example", "/", name="one")


async def test_bad_annotation_is_named_by_check_and_status_and_leaves_others_alone(world: World) -> None:
    bad = {"plugins": "cors, gzip", "connect-timeout": "soon"}

    async def is_told() -> bool:
        shown = (await headgate("status", "--json", f"--data-dir={world.stack.data_dir}", code=None)).out
        return all(f"headgate.dev/{name}" in shown for name in bad)

    async with SteadyClient(world.stack.http_port, HOST) as client:
        path = write(world.folder, "bad.yaml", annotated(ingress("bad", "bad.example", "web"), bad))
        # What is not understood of plugins may keep requests out, so that nobody is let in.
        await world.stack.wait_for_answer("bad.example", "/", status=503)
        checked = (await headgate("check", str(path), str(world.folder / "main.yaml"), code=1)).out
        assert all(f"metadata.annotations[headgate.dev/{name}]" in checked for name in bad)
        await until(is_told)
        path.unlink()
        await client.wait_for_more(50)
    assert client.failures == []
