"""Going back and forward with `headgate rollback` and `unpin`, under traffic."""

import asyncio
import sys
from pathlib import Path

import aiohttp

from fakes.echo import EchoServer
from fakes.manifests import ingress, service, write
from fakes.stack import Stack
from fakes.steady_client import SteadyClient

HOST = "web.example"


async def headgate(stack: Stack, *arguments: str) -> str:
    """Run the command against a stack; return what it printed."""
    command = (sys.executable, "-m", "headgate.cli", *arguments, f"--data-dir={stack.data_dir}")
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    out, _ = await process.communicate()
    assert process.returncode == 0, out
    return out.decode()


async def test_no_request_fails_while_a_table_goes_back_and_forward(tmp_path: Path) -> None:
    async with EchoServer("red") as red, EchoServer("blue") as blue:
        folder = tmp_path / "manifests"
        folder.mkdir()
        write(folder, "red.yaml", service("red", red.port))
        write(folder, "blue.yaml", service("blue", blue.port))
        write(folder, "web.yaml", ingress("web", HOST, "red"))
        async with Stack(manifests=folder) as stack, SteadyClient(stack.http_port, HOST) as client:
            write(folder, "web.yaml", ingress("web", HOST, "blue"))
            await stack.wait_for_answer(HOST, "/", name="blue")
            assert "applied by 1 gateway worker" in await headgate(stack, "rollback", "HEAD~1", "--reason=404s")
            await stack.wait_for_answer(HOST, "/", name="red")
            assert await pinned(stack)
            write(folder, "more.yaml", ingress("more", "more.example", "blue"))
            await until_waiting(stack, "more.example")
            await stack.wait_for_answer("more.example", "/", 404)
            await headgate(stack, "unpin")
            await stack.wait_for_answer(HOST, "/", name="blue")
            await stack.wait_for_answer("more.example", "/", name="blue")
            assert not await pinned(stack)
            await client.wait_for_more(50)
        assert client.failures == []


async def pinned(stack: Stack) -> str | None:
    """What the gateway says that it is pinned to."""
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"http://127.0.0.1:{stack.admin_port}/version") as answer,
    ):
        return (await answer.json())["pinned"]  # type: ignore[no-any-return]


async def until_waiting(stack: Stack, host: str) -> None:
    """Wait until a change of a host is in history, and waits."""
    async with asyncio.timeout(20):
        while f"waits: {host}" not in await headgate(stack, "history", "--limit=3"):  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.05)
