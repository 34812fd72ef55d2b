"""An application that dies under load: nobody notices as long as another endpoint takes its requests."""

import asyncio
import contextlib
import subprocess
import sys
from collections.abc import AsyncIterator

from fakes.gateway.ports import free_ports
from fakes.gateway.served import HOST, at, served, site
from fakes.peers.steady_client import SteadyClient

CONNECTIONS = 100
"""Requests that are under way at any time, a third of them at each endpoint: more than a retry budget allows."""


@contextlib.asynccontextmanager
async def application(name: str, port: int) -> AsyncIterator[subprocess.Popen[bytes]]:
    """A server in a process of its own, which takes a while for each answer."""
    flags = ("demo-backend", f"--name={name}", f"--port={port}", "--delay-ms=100")
    # Not started by uvloop: that forks, after which what other tests have set up would run in the child.
    with subprocess.Popen(  # noqa: ASYNC220 - it takes no time that matters here
        [sys.executable, "-m", "headgate.cli", *flags], stdout=subprocess.DEVNULL
    ) as process:
        try:
            async with asyncio.timeout(60):
                while not await answers(port):  # noqa: ASYNC110 - another process has no event
                    await asyncio.sleep(0.02)
            yield process
        finally:
            process.kill()


async def answers(port: int) -> bool:
    """Whether somebody listens."""
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    return True


async def test_no_request_fails_when_one_of_three_applications_is_killed_under_many() -> None:
    one, two, three = free_ports(3)
    async with (
        application("one", one) as victim,
        application("two", two),
        application("three", three),
        served(site(), at(one, two, three)) as proxy,
        SteadyClient(proxy.port, HOST, connections=CONNECTIONS) as client,
    ):
        await client.wait_for_answer("one", 60)
        await client.wait_for_more(3 * CONNECTIONS, 60)
        victim.kill()
        victim.wait()
        await client.wait_for_more(6 * CONNECTIONS, 60)
        assert not client.failures
        assert proxy.stats.retries >= CONNECTIONS // 3
        assert not proxy.health.stats.budget_rejections
