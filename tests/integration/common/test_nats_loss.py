"""NATS loses everything, or comes back with an older copy, while the whole stack serves: nobody notices.

The log is rebuilt from the cluster, the table is committed under a new epoch, gateways follow it, and no request fails.
"""

import asyncio
import json
import os
import shutil
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import aiohttp
import pytest

from fakes.peers.echo import EchoServer
from fakes.peers.steady_client import SteadyClient
from fakes.stack import Stack
from fakes.stores.nats import real_nats
from fakes.translator.manifests import ingress, service, write
from headgate.cli.up.embedded_nats import EmbeddedNats
from headgate.common.snapshot import Version

pytestmark = pytest.mark.slow
HOST = "web.example"
BOUND_S = 40.0


class Site(NamedTuple):
    """A stack on a server of its own, with a client that never stops asking."""

    server: EmbeddedNats
    stack: Stack
    folder: Path
    client: SteadyClient

    @property
    def store(self) -> Path:
        """What NATS keeps on disk."""
        return self.server.store_dir / "jetstream"

    def point(self, name: str, port: int) -> None:
        """Have an endpoint serve."""
        write(self.folder, "web.yaml", ingress("web", HOST, "web"), service("web", port))

    async def version(self) -> Version:
        """What the gateway serves."""
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"http://127.0.0.1:{self.stack.admin_port}/version") as answer,
        ):
            return Version(*map(int, json.loads(await answer.read())["version"].split(".")))

    async def serves_after(self, before: Version) -> Version:
        """Wait until the gateway serves a greater version."""
        async with asyncio.timeout(BOUND_S):
            while (version := await self.version()) <= before:  # noqa: ASYNC110 - another process has no event
                await asyncio.sleep(0.05)
        return version


@asynccontextmanager
async def site(tmp_path: Path, port: int) -> AsyncIterator[Site]:
    folder = tmp_path / "manifests"
    folder.mkdir()
    write(folder, "web.yaml", ingress("web", HOST, "web"), service("web", port))
    async with (
        real_nats() as (server, url),
        Stack(manifests=folder, extra=[f"--nats-url={url}", "--access-log=off"]) as stack,
    ):
        await stack.wait_for_answer(HOST, "/", name="red")
        async with SteadyClient(stack.http_port, HOST) as client:
            yield Site(server, stack, folder, client)


async def test_a_store_that_lost_everything_is_filled_again_under_a_new_epoch(tmp_path: Path) -> None:
    async with EchoServer("red") as red, EchoServer("blue") as blue, site(tmp_path, red.port) as all_of_it:
        before = await all_of_it.version()
        await all_of_it.server.kill()
        shutil.rmtree(all_of_it.store)
        await all_of_it.server.start()
        after = await all_of_it.serves_after(before)
        assert after.epoch > before.epoch
        assert set(all_of_it.client.answers) == {"red"}
        all_of_it.point("blue", blue.port)
        await all_of_it.stack.wait_for_answer(HOST, "/", name="blue", within_s=BOUND_S)
    assert all_of_it.client.failures == []


async def test_a_change_made_while_everything_was_lost_is_served(tmp_path: Path) -> None:
    async with EchoServer("red") as red, EchoServer("blue") as blue, site(tmp_path, red.port) as all_of_it:
        before = await all_of_it.version()
        await all_of_it.server.kill()
        shutil.rmtree(all_of_it.store)
        all_of_it.point("blue", blue.port)
        await all_of_it.server.start()
        await all_of_it.stack.wait_for_answer(HOST, "/", name="blue", within_s=BOUND_S)
        assert (await all_of_it.version()).epoch > before.epoch
    assert all_of_it.client.failures == []


@asynccontextmanager
async def restored(tmp_path: Path, *ports: int) -> AsyncIterator[tuple[Site, Version]]:
    """A site that serves the second endpoint, while NATS is down with a copy in its store that holds the first."""
    first, second = ports
    async with site(tmp_path, first) as all_of_it:
        server, store = all_of_it.server, all_of_it.store
        await server.stop()
        shutil.copytree(store, tmp_path / "copy")
        await server.start()
        all_of_it.point("green", second)
        await all_of_it.stack.wait_for_answer(HOST, "/", name="green", within_s=BOUND_S)
        before = await all_of_it.version()
        await server.kill()
        shutil.rmtree(store)
        shutil.copytree(tmp_path / "copy", store)
        await all_of_it.client.wait_for_more(20)  # answers of the first that were on their way
        all_of_it.client.answers.clear()
        yield all_of_it, before


@pytest.mark.parametrize("late", ["", "watcher", "translator"])
async def test_an_older_copy_does_not_bring_back_what_it_holds(late: str, tmp_path: Path) -> None:
    async with (
        EchoServer("red") as red,
        EchoServer("green") as green,
        EchoServer("blue") as blue,
        restored(tmp_path, red.port, green.port) as (all_of_it, before),
    ):
        if late:
            os.kill(all_of_it.stack.state().processes[late], signal.SIGSTOP)
        await all_of_it.server.start()
        if late:
            await asyncio.sleep(8.0)  # longer than gateways take to announce themselves, and translators to look around
            os.kill(all_of_it.stack.state().processes[late], signal.SIGCONT)
        after = await all_of_it.serves_after(before)
        assert after.epoch > before.epoch
        all_of_it.point("blue", blue.port)
        await all_of_it.stack.wait_for_answer(HOST, "/", name="blue", within_s=BOUND_S)
        await all_of_it.client.wait_for_answer("blue")
        assert set(all_of_it.client.answers) == {"green", "blue"}
    assert all_of_it.client.failures == []


async def test_a_translator_that_starts_on_an_older_copy_does_not_bring_back_what_it_holds(tmp_path: Path) -> None:
    async with (
        EchoServer("red") as red,
        EchoServer("green") as green,
        restored(tmp_path, red.port, green.port) as (all_of_it, before),
    ):
        processes = all_of_it.stack.state().processes
        os.kill(processes["watcher"], signal.SIGSTOP)
        os.kill(processes["translator"], signal.SIGKILL)
        await all_of_it.server.start()
        await asyncio.sleep(10.0)
        os.kill(processes["watcher"], signal.SIGCONT)
        assert (await all_of_it.serves_after(before)).epoch > before.epoch
        assert set(all_of_it.client.answers) == {"green"}
    assert all_of_it.client.failures == []
