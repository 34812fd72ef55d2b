"""One bad object: a clear error where its author looks, and everything else served as before."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import pytest_asyncio

from fakes.command import headgate
from fakes.gateway.tls import SelfSigned
from fakes.peers.echo import EchoServer
from fakes.peers.steady_client import SteadyClient
from fakes.stack import Stack
from fakes.translator.manifests import ingress, service, write

GOOD = "good.example"
pytestmark = pytest.mark.asyncio(loop_scope="module")


class World(NamedTuple):
    stack: Stack
    folder: Path


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    folder = tmp_path_factory.mktemp("manifests")
    async with EchoServer("web") as server:
        write(folder, "a-good.yaml", ingress("good", GOOD, "web"), service("web", server.port))
        async with Stack(manifests=folder, extra=["--access-log=off"]) as stack:
            await stack.wait_for_answer(GOOD, "/")
            yield World(stack, folder)


def unknown_port() -> list[str]:
    return [ingress("port", "port.example", "web").replace("name: http", "name: nosuch")]


def missing_service() -> list[str]:
    return [ingress("gone", "gone.example", "nowhere")]


def mismatched_key() -> list[str]:
    one, other = (SelfSigned("tls.example").secret("default", "mismatch") for _ in range(2))
    secret = one | {"data": {**one["data"], "tls.key": other["data"]["tls.key"]}}
    tls = "  tls: [{hosts: [tls.example], secretName: mismatch}]\n  rules:"
    return [ingress("tls", "tls.example", "web").replace("  rules:", tls), json.dumps(secret) + "\n"]


def taken_path() -> list[str]:
    return [ingress("zz-late", GOOD, "nowhere")]


def huge_annotation() -> str:
    return ingress("big", "big.example", "web").replace("name: big", f"name: big, annotations: {{x: {'y' * 2**20}}}", 1)


BAD: dict[str, tuple[Callable[[], list[str]], str, int]] = {
    # name of the file and of the Ingress: its documents, the reason, what a client of its host gets
    "port": (unknown_port, "PortNotFound", 503),
    "gone": (missing_service, "ServiceNotFound", 503),
    "tls": (mismatched_key, "InvalidCertificate", 200),
    "zz-late": (taken_path, "PathConflict", 200),
}


@pytest.mark.parametrize("name", BAD)
async def test_a_bad_object_is_named_in_status_and_nothing_else_suffers(world: World, name: str) -> None:
    documents, reason, expected = BAD[name]
    host = GOOD if name == "zz-late" else f"{name}.example"
    async with SteadyClient(world.stack.http_port, GOOD) as client:
        path = write(world.folder, f"{name}.yaml", *documents())
        assert reason in await reasons_of(world.stack, name)
        await world.stack.wait_for_answer(host, "/", status=expected)
        path.unlink()
        await client.wait_for_more(50)
    assert client.failures == []


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        pytest.param("malformed", "spec: [", "not YAML", id="malformed"),
        pytest.param("big", huge_annotation(), "annotations", id="annotation of 1 MiB"),
    ],
)
async def test_a_bad_file_is_named_in_the_log_and_nothing_else_suffers(
    world: World, name: str, text: str, told: str
) -> None:
    async with SteadyClient(world.stack.http_port, GOOD) as client:
        path = write(world.folder, f"{name}.yaml", text)
        await world.stack.wait_for_log(f"{name}.yaml")
        code, document = await status_of(world.stack)
        path.unlink()
        await client.wait_for_more(50)
    assert client.failures == []
    line = next(line for line in world.stack.log.splitlines() if f"{name}.yaml" in line)
    assert told in line
    assert code == 1
    assert [told in entry["message"] for entry in document["problems"] if f"{name}.yaml" in entry["what"]] == [True]
    assert len(line) < 1000


async def status_of(stack: Stack) -> tuple[int | None, Any]:
    """Exit code and answer of `headgate status`."""
    answer = await headgate("status", "--json", f"--data-dir={stack.data_dir}", code=None)
    return answer.code, answer.json


async def reasons_of(stack: Stack, name: str) -> list[str]:
    """Reasons of the problems of an Ingress, as `headgate status` tells them; waits until there is one."""
    async with asyncio.timeout(30):
        while True:
            _, document = await status_of(stack)
            for entry in document["objects"]:
                if entry["ref"][-1] == name:
                    return [problem["reason"] for problem in entry["problems"]]
