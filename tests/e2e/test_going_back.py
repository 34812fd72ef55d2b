"""Going back and forward with `headgate rollback` and `unpin`, under traffic."""

import asyncio
from pathlib import Path

import aiohttp

from fakes.command import headgate
from fakes.peers.echo import EchoServer
from fakes.peers.steady_client import SteadyClient
from fakes.stack import Stack
from fakes.translator.manifests import ingress, service, write

HOST = "web.example"


async def ask(stack: Stack, *words: str) -> str:
    return (await headgate(*words, f"--data-dir={stack.data_dir}")).out


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
            assert "applied by 1 gateway worker" in await ask(stack, "rollback", "HEAD~1", "--reason=404s")
            await stack.wait_for_answer(HOST, "/", name="red")
            assert await pinned(stack)
            write(folder, "more.yaml", ingress("more", "more.example", "blue"))
            await until_waiting(stack, "more.example")
            await stack.wait_for_answer("more.example", "/", 404)
            await ask(stack, "unpin")
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
    async with asyncio.timeout(30):
        while f"waits: {host}" not in await ask(stack, "history", "--limit=3"):  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.05)
