"""SIGKILL for NATS, the watcher and the translator, each alone, while a client never stops asking.

What must hold: no request fails, the service is started again, and a change of a file becomes traffic, whether it is
made after that or meanwhile.
"""

import os
import signal
from pathlib import Path

import pytest

from fakes.peers.echo import EchoServer
from fakes.peers.steady_client import SteadyClient
from fakes.stack import Stack
from fakes.translator.manifests import ingress, service, write

HOST = "web.example"


@pytest.mark.parametrize("victim", ["nats", "watcher", "translator"])
async def test_a_killed_service_costs_no_request_and_no_change(victim: str, tmp_path: Path) -> None:
    folder = tmp_path / "manifests"
    folder.mkdir()
    async with EchoServer("red") as red, EchoServer("blue") as blue, EchoServer("green") as green:
        write(folder, "web.yaml", ingress("web", HOST, "web"), service("web", red.port))
        async with Stack(manifests=folder) as stack:
            await stack.wait_for_answer(HOST, "/", name="red")
            async with SteadyClient(stack.http_port, HOST) as client:
                pid = stack.state().processes[victim]
                os.kill(pid, signal.SIGKILL)
                await stack.wait_for_state(lambda state: state.processes.get(victim, pid) != pid)
                await client.wait_for_more(100)
                write(folder, "web.yaml", ingress("web", HOST, "web"), service("web", blue.port))
                await stack.wait_for_answer(HOST, "/", name="blue", within_s=30)
                await client.wait_for_more(100)
                os.kill(stack.state().processes[victim], signal.SIGKILL)
                write(folder, "web.yaml", ingress("web", HOST, "web"), service("web", green.port))
                await stack.wait_for_answer(HOST, "/", name="green", within_s=30)
                await client.wait_for_answer("green")
            assert client.failures == []
            assert set(client.answers) == {"red", "blue", "green"}
            assert stack.state().restarts == {victim: 2}


async def test_a_killed_gateway_is_back_with_its_last_table_though_all_else_is_gone(tmp_path: Path) -> None:
    folder = tmp_path / "manifests"
    folder.mkdir()
    async with EchoServer("red") as red:
        write(folder, "web.yaml", ingress("web", HOST, "web"), service("web", red.port))
        async with Stack(manifests=folder) as stack:
            await stack.wait_for_answer(HOST, "/", name="red")
            processes = stack.state().processes
            for name in ("watcher", "translator", "nats"):
                os.kill(processes[name], signal.SIGSTOP)
            os.kill(processes["gateway"], signal.SIGKILL)
            await stack.wait_for_state(lambda state: state.restarts.get("gateway") == 1)
            await stack.wait_for_answer(HOST, "/", name="red")
            for name in ("watcher", "translator", "nats"):
                os.kill(processes[name], signal.SIGCONT)
