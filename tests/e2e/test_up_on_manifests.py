"""`headgate up` on a folder of manifests: traffic follows the files, and nothing is left when it ends."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio

from fakes.gateway.ports import free_ports
from fakes.peers.echo import EchoServer
from fakes.stack import Stack
from fakes.translator.manifests import ingress, service, write
from fakes.waiting import until
from headgate.cli.up.embedded_nats import EmbeddedNats

HOST = "web.example"


@pytest_asyncio.fixture
async def red() -> AsyncIterator[EchoServer]:
    async with EchoServer("red") as server:
        yield server


@pytest_asyncio.fixture
async def blue() -> AsyncIterator[EchoServer]:
    async with EchoServer("blue") as server:
        yield server


@pytest.fixture
def folder(tmp_path: Path, red: EchoServer) -> Path:
    path = tmp_path / "manifests"
    path.mkdir()
    write(path, "web.yaml", ingress("web", HOST, "web"), service("web", red.port))
    return path


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def family(pid: int) -> set[int]:
    """A process and all that it started."""
    children = Path(f"/proc/{pid}/task/{pid}/children")
    found = {pid}
    for child in children.read_text().split() if children.exists() else ():
        found |= family(int(child))
    return found


async def until_gone(pids: set[int]) -> None:
    for _ in range(3000):
        if not any(is_running(pid) for pid in pids):
            return
        await asyncio.sleep(0.01)
    raise AssertionError(f"left behind: {[pid for pid in pids if is_running(pid)]}")


class TestTraffic:
    """What clients see while files change."""

    async def test_a_change_of_a_file_changes_the_traffic(self, folder: Path, blue: EchoServer) -> None:
        async with Stack(manifests=folder) as stack:
            assert (await stack.wait_for_answer(HOST, "/")).json["name"] == "red"
            write(folder, "web.yaml", ingress("web", HOST, "web"), service("web", blue.port))
            await stack.wait_for_answer(HOST, "/", name="blue")

    async def test_a_new_file_is_served_and_a_deleted_one_is_not(self, folder: Path) -> None:
        async with Stack(manifests=folder) as stack:
            added = write(folder, "more.yaml", ingress("more", "more.example", "web"))
            await stack.wait_for_answer("more.example", "/")
            added.unlink()
            await stack.wait_for_answer("more.example", "/", status=404)
            assert (await stack.get(HOST, "/")).status == 200

    async def test_a_malformed_file_leaves_its_last_good_content_in_force(self, folder: Path, blue: EchoServer) -> None:
        async with Stack(manifests=folder) as stack:
            (folder / "web.yaml").write_text("spec: [")
            write(folder, "more.yaml", ingress("more", "more.example", "web"))
            await stack.wait_for_answer("more.example", "/", name="red")
            assert (await stack.get(HOST, "/")).json["name"] == "red"
            await until(lambda: "web.yaml" in stack.log)
            write(folder, "web.yaml", ingress("web", HOST, "web"), service("web", blue.port))
            await stack.wait_for_answer(HOST, "/", name="blue")

    async def test_a_service_that_is_missing_is_a_503_that_says_so(self, folder: Path) -> None:
        async with Stack(manifests=folder) as stack:
            write(folder, "more.yaml", ingress("more", "more.example", "nowhere"))
            answer = await stack.wait_for_answer("more.example", "/", status=503)
            assert "nowhere" in answer.headers["x-headgate-reason"]
            assert (await stack.get(HOST, "/")).status == 200

    async def test_several_workers_serve_the_same_table(self, folder: Path, blue: EchoServer) -> None:
        async with Stack(manifests=folder, workers=2) as stack:
            await stack.wait_for_answer(HOST, "/", name="red")
            write(folder, "web.yaml", ingress("web", HOST, "web"), service("web", blue.port))
            await stack.wait_for_answer(HOST, "/", name="blue")


class TestEnding:
    """However it ends, nothing is left."""

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
    async def test_a_signal_ends_everything(self, folder: Path, number: signal.Signals) -> None:
        async with Stack(manifests=folder, workers=2) as stack:
            pids = family(stack.process.pid)
            assert len(pids) >= 6  # up, NATS, watcher, translator, gateway and two workers
            assert await stack.stop(number) == 0
            assert not [pid for pid in pids if is_running(pid)]
            assert not (stack.data_dir / "up.json").exists()

    async def test_nothing_outlives_an_up_that_was_killed(self, folder: Path) -> None:
        async with Stack(manifests=folder, workers=2) as stack:
            pids = family(stack.process.pid)
            assert await stack.stop(signal.SIGKILL) == -signal.SIGKILL
            await until_gone(pids)

    async def test_requests_in_flight_are_finished(self, folder: Path) -> None:
        port = free_ports(1)[0]
        write(folder, "slow.yaml", ingress("slow", "slow.example", "slow"), service("slow", port))
        async with Stack(manifests=folder) as stack:
            await stack.wait_for_answer("slow.example", "/", status=502)
            arrived = asyncio.Event()

            async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                await reader.readuntil(b"\r\n\r\n")
                arrived.set()
                await asyncio.sleep(0.5)
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
                await writer.drain()
                writer.close()

            async with await asyncio.start_server(answer, "127.0.0.1", port):
                request = asyncio.create_task(stack.get("slow.example", "/"))
                await arrived.wait()
                assert await stack.stop() == 0
                assert (await request).body == b"ok"

    async def test_a_second_signal_does_not_wait_for_requests(self, folder: Path) -> None:
        arrived = asyncio.Event()

        async def never_answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            arrived.set()
            await reader.read()
            writer.close()

        async with await asyncio.start_server(never_answer, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            write(folder, "slow.yaml", ingress("slow", "slow.example", "slow"), service("slow", port))
            async with Stack(manifests=folder) as stack:
                request = asyncio.create_task(stack.get("slow.example", "/"))
                await arrived.wait()
                stack.process.send_signal(signal.SIGINT)
                await stack.wait_for_log("gateway stopping")
                pids = family(stack.process.pid)
                assert await stack.stop(signal.SIGINT) == 0
                await until_gone(pids)
                with pytest.raises(aiohttp.ClientError):
                    await request


class TestStarting:
    """What `up` refuses, in one line, before it starts anything."""

    async def test_a_second_up_on_the_same_data_directory_is_refused(self, folder: Path) -> None:
        async with Stack(manifests=folder) as first:
            second = Stack(manifests=folder, data_dir=first.data_dir)
            code, told = await run_to_end(second.command)
            assert code == 2
            assert f"another `headgate up` (process {first.process.pid}) uses" in told
            assert (await first.get(HOST, "/")).status == 200

    async def test_an_existing_nats_server_is_used_and_left_running(self, folder: Path, tmp_path: Path) -> None:
        nats = EmbeddedNats(tmp_path / "nats")
        await nats.start()
        try:
            async with Stack(manifests=folder, extra=[f"--nats-url={nats.url}"]) as stack:
                assert (await stack.get(HOST, "/")).status == 200
                assert set(stack.state().processes) == {"watcher", "translator", "gateway"}
            assert nats.is_running
        finally:
            await nats.stop()

    async def test_a_port_in_use_is_one_line_with_the_port_and_its_flag(
        self, folder: Path, red: EchoServer, tmp_path: Path
    ) -> None:
        stack = Stack(manifests=folder, data_dir=tmp_path / "data")
        stack.http_port = red.port
        code, told = await run_to_end(stack.command)
        assert code == 2
        assert told.splitlines() == [
            f"headgate: port {red.port} (--http-port) is in use; "
            "stop what listens there or choose another with --http-port"
        ]

    async def test_a_restart_on_the_same_data_directory_serves_at_once(self, folder: Path, tmp_path: Path) -> None:
        for _ in range(2):
            async with Stack(manifests=folder, data_dir=tmp_path / "data") as stack:
                await stack.wait_for_answer(HOST, "/")


async def run_to_end(command: list[str]) -> tuple[int, str]:
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE, env=os.environ
    )
    async with asyncio.timeout(30):
        _, told = await process.communicate()
    assert process.returncode is not None
    return process.returncode, told.decode()


async def test_routes_are_served_without_a_manifest(blue: EchoServer, red: EchoServer) -> None:
    routes = (f"--route=app.localhost=127.0.0.1:{blue.port}", f"--route=app.localhost/api=localhost:{red.port}")
    async with Stack(extra=routes) as stack:
        assert (await stack.get("app.localhost", "/")).json["name"] == "blue"
        assert (await stack.get("app.localhost", "/api/x")).json["name"] == "red"
        assert (await stack.get("other.localhost", "/")).status == 404


async def test_a_single_file_of_manifests_is_served(folder: Path) -> None:
    async with Stack(manifests=folder / "web.yaml") as stack:
        await stack.wait_for_answer("web.example", "/", name="red")
