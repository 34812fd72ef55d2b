"""`docs/clusters.md`, "Put two clusters together", line by line, with two API servers."""

import asyncio
import os
import re
import signal
import sys
import textwrap
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp

from fakes.gateway.ports import free_ports
from fakes.kubernetes.api import FakeKubernetes
from fakes.kubernetes.objects import endpoint_slice, ingress, service
from fakes.peers.echo import EchoServer

ROOT = Path(__file__).parents[2]
BOUND_S = 90.0


def written() -> list[str]:
    """The blocks of commands of the section, in order."""
    page = (ROOT / "docs/clusters.md").read_text()
    section = page.partition("## Put two clusters together\n")[2].partition("\n## ")[0]
    blocks = re.findall(r"(?m)(?:^ {7}.*\n|^\n(?= {7}))+", section)
    return [textwrap.dedent(block).strip("\n") for block in blocks if block.strip()]


async def answers(port: int, host: str) -> bool:
    async with aiohttp.ClientSession() as session:
        try:
            async with session.get(f"http://127.0.0.1:{port}/", headers={"Host": host}) as answer:
                return answer.status == 200
        except aiohttp.ClientError:
            return False


async def test_the_page_makes_one_control_plane_of_two_clusters(tmp_path: Path) -> None:
    nats_port, http_port, https_port = free_ports(3)
    async with AsyncExitStack() as stack:
        for cluster in ("east", "west"):
            backend = await stack.enter_async_context(EchoServer(cluster))
            api = await stack.enter_async_context(FakeKubernetes(allows_loopback=True))
            api.write_kubeconfig(tmp_path / f"{cluster}.yaml")
            api.apply(service("web"))
            slice_of = endpoint_slice("web-1", "127.0.0.1")
            slice_of["ports"] = [{"name": "", "port": backend.port, "protocol": "TCP"}]
            api.apply(slice_of)
            api.apply(ingress(cluster, f"{cluster}.example"))
        (tmp_path / "deploy").symlink_to(ROOT / "deploy")
        *begun, look = written()
        script = "\n".join([*begun, "wait"])
        for fixed, free in ((4222, nats_port), (8080, http_port), (8443, https_port)):
            script, look = script.replace(str(fixed), str(free)), look.replace(str(fixed), str(free))
        script = script.replace("--http-port", "--allowed-destinations 127.0.0.0/8 --admin-port 0 --http-port")
        # Looking needs the same functions and addresses, and starts nothing.
        helpers = re.sub(r"(?ms)^as translator.*", "", begun[-1]).replace("4222", str(nats_port))
        (tmp_path / "begin.sh").write_text(script)
        (tmp_path / "look.sh").write_text(f"{helpers}\n{look}\n")
        environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
        with (tmp_path / "log").open("wb") as log:
            running = await asyncio.create_subprocess_exec(
                *("bash", "begin.sh"), cwd=tmp_path, env=environment, stdout=log, stderr=log, process_group=0
            )
        try:
            async with asyncio.timeout(BOUND_S):
                for host in ("east.example", "west.example"):
                    while not await answers(http_port, host):  # noqa: ASYNC110 - a process has no event
                        await asyncio.sleep(0.2)
                looked = await asyncio.create_subprocess_exec(
                    *("bash", "look.sh"), cwd=tmp_path, env=environment, stdout=asyncio.subprocess.PIPE
                )
                out = (await looked.communicate())[0].decode()
            assert re.search(r"(?m)^east +served", out), out
            assert re.search(r"(?m)^west +served", out), out
            assert looked.returncode == 0, out
        finally:
            os.killpg(running.pid, signal.SIGKILL)
            await running.wait()
            print((tmp_path / "log").read_text(errors="replace")[-8000:])
