"""Clients that take all file descriptors: established ones go on being served. Limits are a process's own."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from headgate.gateway.net.descriptors import RESERVE, client_share
from headgate.gateway.settings import GatewaySettings

TESTS = Path(__file__).parents[2]
PREAMBLE = f"""
import asyncio, json, logging, resource, sys, time
sys.path.insert(0, {str(TESTS)!r})
soft, hard = (int(number) for number in sys.argv[1:])
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
import uvloop
from prometheus_client import REGISTRY
from fakes.gateway.proxied import proxied
from fakes.waiting import until
from headgate.gateway.net import descriptors
from headgate.gateway.proxy.config import ProxyConfig
lines = []
class Kept(logging.Handler):
    def emit(self, record): lines.append(record.getMessage())
logging.getLogger().addHandler(Kept())
GET = b"GET / HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n"
def exhausted(operation):
    return REGISTRY.get_sample_value("headgate_descriptors_exhausted_total", {{"operation": operation}}) or 0
"""
CLIENTS = """
import resource, socket, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))
opened = []
for line in sys.stdin:
    count, port = map(int, line.split())
    if not count:
        opened.clear()
    for _ in range(count):
        opened.append(socket.create_connection(("127.0.0.1", port), 10))
    print(len(opened), flush=True)
"""


def run(code: str, soft: int, hard: int) -> dict[str, object]:
    done = subprocess.run(
        [sys.executable, "-c", PREAMBLE + code, str(soft), str(hard)], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


FLOOD = f"""
async def main():
    share = descriptors.client_share(descriptors.limit()) if limited else None
    async with proxied(config=ProxyConfig(max_connections=share, header_timeout_s=60)) as proxy:
        client = await proxy.connect()
        async def served():
            await client.send(GET)
            return int((await client.answer())[0].split()[1])
        statuses = [await served()]
        flood = await asyncio.create_subprocess_exec(
            sys.executable, "-c", {CLIENTS!r}, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
        )
        async def clients(count):
            flood.stdin.write(f"{{count}} {{proxy.port}}\\n".encode())
            await flood.stdout.readline()
        cpu = time.process_time()
        await clients(400)
        if limited:
            await until(lambda: proxy.server.connections == share)
        else:
            await until(lambda: proxy.server.is_paused)
        # Another connection to the upstream is needed, as the one of before is gone.
        proxy.pools.close_idle()
        statuses += [await served() for _ in range(3)]
        await asyncio.sleep(1)
        cpu = time.process_time() - cpu
        told = [line for line in lines if "file descriptors are exhausted" in line]
        was_exhausted = exhausted("accept")
        await clients(0)
        await until(lambda: not proxy.server.is_paused)
        async def fresh():
            other = await proxy.connect()
            await other.send(GET)
            return int((await other.answer())[0].split()[1])
        statuses.append(await asyncio.wait_for(fresh(), 30))
        flood.stdin.close()
        await flood.wait()
        print(json.dumps({{"statuses": statuses, "told": len(told), "exhausted": was_exhausted, "cpu": cpu}}))
uvloop.run(main())
"""


def test_established_clients_are_served_while_idle_ones_take_all_they_may() -> None:
    found = run("limited = True\n" + FLOOD, 256, 1024)
    assert found["statuses"] == [200] * 5
    assert (found["told"], found["exhausted"]) == (0, 0)


def test_a_listener_pauses_before_the_last_descriptor_and_says_so_once() -> None:
    """As where TLS handshakes or streams have taken them, which no limit of connections counts."""
    found = run("limited = False\n" + FLOOD, 256, 1024)
    statuses = found["statuses"]
    assert isinstance(statuses, list)
    assert (statuses[0], statuses[-1]) == (200, 200)
    assert found["told"] == 1
    assert found["exhausted"], "counted"


def test_the_soft_limit_is_raised_to_the_hard_one() -> None:
    found = run("print(json.dumps({'limit': descriptors.raise_limit()}))", 100, 300)
    assert found == {"limit": 300}


def test_a_connection_that_finds_no_descriptor_is_counted() -> None:
    code = """
from headgate.gateway.net.dialling import UNBOUNDED
async def main():
    import os
    taken = []
    try:
        while True: taken.append(os.open("/", os.O_RDONLY))
    except OSError: pass
    for host in ("127.0.0.1", "127.0.0.1"):
        try: await UNBOUNDED.connect(asyncio.Protocol, host, 9)
        except OSError as error: assert error.errno == 24, error
    for descriptor in taken: os.close(descriptor)
    print(json.dumps({"exhausted": exhausted("connect"), "told": len(lines)}))
uvloop.run(main())
"""
    assert run(code, 128, 128) == {"exhausted": 2, "told": 1}


@pytest.mark.parametrize(("limit", "share"), [(1024, 480), (256, 96), (64, 1), (10, 1)])
def test_clients_get_half_of_what_the_reserve_leaves(limit: int, share: int) -> None:
    assert client_share(limit) == share == max(1, (limit - RESERVE) // 2)


def test_a_setting_goes_before_the_share() -> None:
    assert GatewaySettings(max_connections=7).proxy_config().max_connections == 7
    assert (GatewaySettings().proxy_config().max_connections or 0) > 0
