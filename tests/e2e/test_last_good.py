"""An Ingress that is edited wrongly: its last good version goes on, over a restart, and `headgate status` says so."""

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fakes.command import headgate
from fakes.peers.echo import EchoServer
from fakes.peers.steady_client import SteadyClient
from fakes.stack import Stack
from fakes.translator.manifests import ingress, service, write

HOST = "shop.example"
BOUND_S = 30.0


def shop(path: str = "/", networks: str = "127.0.0.0/8") -> str:
    annotated = f"name: shop, annotations: {{headgate.dev/client-networks: {networks}}}"
    return ingress("shop", HOST, "web", path).replace("name: shop", annotated, 1)


async def status_of(stack: Stack, name: str) -> tuple[int | None, Any]:
    """Exit code and answer of `headgate status OBJECT`; nothing before anything is known of the object."""
    answer = await headgate("status", name, "--json", f"--data-dir={stack.data_dir}", code=None)
    return answer.code, answer.json[0] if answer.out else {}


async def until_status(stack: Stack, check: Callable[[Any], bool]) -> tuple[int | None, Any]:
    async with asyncio.timeout(BOUND_S):
        while True:
            code, said = await status_of(stack, "ingress/shop")
            if said and check(said):
                return code, said


def condition(said: Any, which: str) -> Any:
    return next(one for one in said["conditions"] if one["type"] == which)


async def test_a_wrong_edit_is_told_and_not_served_until_it_is_mended(tmp_path: Path) -> None:
    folder = tmp_path / "manifests"
    folder.mkdir()
    async with EchoServer("web") as server:
        write(folder, "shop.yaml", shop(), service("web", server.port))
        async with Stack(manifests=folder, extra=["--access-log=off"]) as stack:
            await stack.wait_for_answer(HOST, "/")
            code, said = await until_status(stack, lambda said: condition(said, "Programmed")["status"] == "True")
            assert (code, said["problems"], len(said["served_by"])) == (0, [], 1)
            async with SteadyClient(stack.http_port, HOST) as client:
                write(folder, "shop.yaml", shop(path="no-slash"), service("web", server.port))
                code, held = await until_status(stack, lambda said: said["stand_in"] is not None)
                assert code == 1
                assert condition(held, "Accepted")["reason"] == "Invalid"
                assert condition(held, "Programmed")["status"] == "True"
                assert held["revision"] == said["revision"]
                pid = stack.state().processes["translator"]
                os.kill(pid, signal.SIGKILL)
                await stack.wait_for_state(lambda state: state.processes.get("translator", pid) != pid)
                write(folder, "other.yaml", ingress("other", "other.example", "web"))
                await stack.wait_for_answer("other.example", "/", within_s=30)
                await client.wait_for_more(100)
            assert client.failures == []
            write(folder, "shop.yaml", shop(networks="192.0.2.0/24"), service("web", server.port))
            await stack.wait_for_answer(HOST, "/", status=404, within_s=30)
            write(folder, "shop.yaml", shop(networks="everybody"), service("web", server.port))
            # The status before may still be there when the edit between is served.
            _, closed = await until_status(
                stack, lambda said: "client-networks" in condition(said, "Accepted")["message"]
            )
            assert closed["stand_in"] is not None
            await stack.wait_for_answer(HOST, "/", status=404)
            write(folder, "shop.yaml", shop(), service("web", server.port))
            code, mended = await until_status(
                stack, lambda said: said["stand_in"] is None and condition(said, "Programmed")["status"] == "True"
            )
            assert (code, mended["problems"]) == (0, [])
            assert mended["last_error"]["reason"] == "InvalidAnnotation"
            await stack.wait_for_answer(HOST, "/")
